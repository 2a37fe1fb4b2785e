package strata

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/tidwall/gjson"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/measure"
)

func TestAKilledRunHasEveryPlannedRequest(t *testing.T) {
	for kept := range 23 {
		g := NewWithT(t)
		run := referenceRun(t)
		run.Exchanges, run.After, run.End, run.Torn = run.Exchanges[:kept], nil, nil, kept%2 == 0
		d, data := mustBuild(t, run, referenceReplies(t))
		g.Expect(Validate(data, nil)).To(BeEmpty())
		g.Expect(d.Requests).To(HaveLen(22))
		if kept == 22 {
			g.Expect(d.Run.Status).To(Equal(Nonconforming))
		} else {
			g.Expect(d.Run.Status).To(Equal(Incomplete))
			g.Expect(d.Requests[kept].Status).To(Equal("skipped"))
			text, _ := d.Requests[kept].Error.Get()
			g.Expect(text).To(Equal(errNotReached))
			_, known := d.Run.RequiredDuration.Get()
			g.Expect(known).To(BeFalse())
		}
		g.Expect(d.Extensions.StatusReasonCodes).To(ContainElement("record_without_end"))
	}
}

func TestASkippedRequestSaysWhy(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(*fixtures.Run)
	}{
		{"its own reason", "filtered out", func(r *fixtures.Run) { r.Skips = []fixtures.Skip{{ID: "sanity-T4", Reason: "filtered out"}} }},
		{"the refusal", "no such model", func(r *fixtures.Run) { r.Header.Refusal = "no such model" }},
		{"the interruption", "the run ended before this request's turn came: interrupt",
			func(r *fixtures.Run) { r.End.Interrupted = "interrupt" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			run := referenceRun(t)
			run.Exchanges = run.Exchanges[:21]
			c.spoil(run)
			d, _ := mustBuild(t, run, referenceReplies(t))
			text, _ := d.Requests[21].Error.Get()
			g.Expect(text).To(Equal(c.want))
		})
	}
}

func TestEachCauseGivesItsOwnStatusReason(t *testing.T) {
	type causes struct {
		run *fixtures.Run
		all replies
	}
	for _, c := range []struct {
		name  string
		spoil func(causes)
		codes []string
	}{
		{"nothing", func(causes) {}, nil},
		{"mock", func(c causes) { c.run.Header.Engine.Kind = "mock" }, []string{"engine_mock"}},
		{"replay", func(c causes) { c.run.Header.Engine.Kind = "replay" }, []string{"engine_replay"}},
		{"hash declined", func(c causes) { c.run.Header.Declared.SkipModelHash = true; c.run.Header.Host.ModelFiles = nil },
			[]string{"model_hash_skipped"}},
		{"file listed, hash declined", func(c causes) {
			c.run.Header.Declared.SkipModelHash = true
			c.run.Header.Host.ModelFiles[0].SHA256 = ""
		}, []string{"model_hash_skipped"}},
		{"file elsewhere", func(c causes) { c.run.Header.Host.ModelFiles = nil }, []string{"model_file_not_on_host"}},
		{"path untold", func(c causes) { c.run.Header.Host.ModelFiles = nil; c.run.Header.Engine.ModelPath = "" }, []string{"model_path_untold"}},
		{"named file unread", func(c causes) {
			c.run.Header.Host.ModelFiles, c.run.Header.Engine.ModelPath = nil, ""
			c.run.Header.Host.NamedFileUnread = true
			c.run.Header.Host.Reasons["model_files"] = `model file "/models/x.gguf" cannot be read here: permission denied`
		}, []string{"model_file_unread"}},
		{"one of two named files unread", func(c causes) {
			c.run.Header.Engine.ModelPath = ""
			c.run.Header.Host.ModelFiles = append(c.run.Header.Host.ModelFiles, fixtures.ModelFile{Path: "/models/y.gguf"})
		}, []string{"model_file_unread"}},
		{"no file named", func(c causes) {
			c.run.Header.Host.ModelFiles, c.run.Header.Engine.ModelPath = nil, ""
			c.run.Header.Host.Reasons["model_files"] = "the server does not say which file it loaded: name it with --model-file"
		}, []string{"model_path_untold"}},
		{"output untold", func(c causes) {
			c.all.edit("performance-prompt-4k-r2", func(f *measure.Figures) { f.OutputTokens = measure.Unknown[int64]("no usage") })
		}, []string{"usage_untold"}},
		{"input untold", func(c causes) {
			c.all.edit("performance-prompt-4k-r2", func(f *measure.Figures) { f.InputTokens = measure.Unknown[int64]("no usage") })
		}, []string{"length_unchecked", "usage_untold"}},
		{"output of a sanity request untold", func(c causes) {
			c.all.edit("sanity-R1", func(f *measure.Figures) { f.OutputTokens = measure.Unknown[int64]("no usage") })
		}, nil},
		{"a request failed", func(c causes) { c.all.fail("performance-prompt-4k-r2") },
			[]string{"required_request_failed"}},
		{"a request skipped", func(c causes) { c.run.Exchanges, c.run.After.RequestsServed = c.run.Exchanges[:21], nil }, []string{"required_request_skipped"}},
		{"interrupted", func(c causes) {
			c.run.Exchanges, c.run.After, c.run.End.Interrupted = c.run.Exchanges[:21], nil, "interrupt"
		},
			[]string{"run_interrupted", "required_request_skipped", "after_untold"}},
		{"refused", func(c causes) { c.run.Exchanges, c.run.After, c.run.Header.Refusal = nil, nil, "no" }, []string{"engine_refused", "required_request_skipped"}},
		{"no end", func(c causes) { c.run.End = nil }, []string{"record_without_end"}},
		{"torn", func(c causes) { c.run.Torn = true; c.run.End = nil }, []string{"record_torn", "record_without_end"}},
		{"reuse", func(c causes) {
			c.all.edit("performance-short-r2", func(f *measure.Figures) {
				f.CachedTokens.Value, f.ReadTokens.Value = 51, 26
				f.PromptTPS.Value = rounded(26 / 0.4727)
			})
		}, []string{"prompt_reuse"}},
		{"cut", func(c causes) {
			c.all.edit("sanity-R3", func(f *measure.Figures) {
				f.InputTokens.Value, f.ReadTokens.Value = 8192, 8192
				f.PromptTPS.Value = rounded(8192 / 7.2229)
			})
		}, []string{"length_outside_tolerance"}},
		{"overridden", func(c causes) { c.run.Header.Profile.Overridden = []string{"temperature"} }, []string{"settings_overridden"}},
		{"other corpus", func(c causes) { c.run.Header.Protocol.BuiltIn = false }, []string{"corpus_not_protocol"}},
		{"other budget", func(c causes) { c.run.Header.Plan[1].MaxOutputTokens = 600 }, []string{"corpus_not_protocol"}},
		{"model changed", func(c causes) { c.run.After.ServedModels = []string{"other"} }, []string{"served_model_changed"}},
		{"others served", func(c causes) { *c.run.After.RequestsServed++ }, []string{"other_requests_served"}},
		{"a model was added", func(c causes) { c.run.After.ServedModels = []string{"new", "tiny"} }, nil},
		{"the engine was not asked again", func(c causes) { c.run.After = nil }, []string{"after_untold"}},
		{"the engine named no model again", func(c causes) { c.run.After.ServedModels = nil }, []string{"after_untold"}},
		{"a request that reached no engine hides no other's", func(c causes) {
			c.run.Exchanges[3].Response = nil
			c.all.fail(c.run.Exchanges[3].ID)
		}, []string{"required_request_failed", "other_requests_served"}},
		{"cached tokens untold", func(c causes) {
			c.all.edit("performance-prompt-4k-r2", func(f *measure.Figures) { f.CachedTokens = measure.Unknown[int64]("untold") })
		}, []string{"reuse_unchecked"}},
		{"cached tokens of a sanity request untold", func(c causes) {
			c.all.edit("sanity-R1", func(f *measure.Figures) { f.CachedTokens = measure.Unknown[int64]("untold") })
		}, nil},
		{"nobody counts", func(c causes) { uncounted(c.run) }, []string{"length_unchecked"}},
		{"nobody counts, and a prompt was read before", func(c causes) {
			uncounted(c.run)
			c.all.edit("performance-prompt-16k-r1", func(f *measure.Figures) {
				f.CachedTokens.Value, f.ReadTokens.Value = f.InputTokens.Value-6, 6
				f.PromptTPS.Value = rounded(6 / f.PromptSeconds.Value)
			})
		}, []string{"prompt_reuse", "length_unchecked"}},
		{"another tokenizer, as the long prompts show", func(c causes) {
			for id, planned := range c.run.Header.Plan {
				if n := *planned.ContentTokens; n > 1000 {
					c.run.Header.Plan[id].ContentTokens = ptr(n + n/12)
				}
			}
		}, []string{"length_unchecked"}},
		{"truncated requests", func(c causes) { c.run.Header.Declared = fixtures.Declared{} }, nil},
		{"the optional stage failed", func(c causes) {
			withStage(c.run, c.all, 2, 1)
			c.all.fail("concurrency-c2-r1-1")
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			x := causes{referenceRun(t), referenceReplies(t)}
			c.spoil(x)
			d, data := mustBuild(t, x.run, x.all)
			g.Expect(d.Extensions.StatusReasonCodes).To(HaveExactElements(c.codes))
			g.Expect(d.Extensions.StatusReasons).To(HaveLen(len(c.codes)))
			g.Expect(d.Run.Status == Conforming).To(Equal(len(c.codes) == 0))
			g.Expect(Validate(data, nil)).To(BeEmpty())
		})
	}
}

// uncounted takes from a plan all that a tokenizer told of it.
func uncounted(run *fixtures.Run) {
	for i := range run.Header.Plan {
		p := &run.Header.Plan[i]
		p.ContentTokens, p.SharedPrefixTokens = nil, nil
	}
}

func TestTheServedModelsStandBeforeAndAfterTheRun(t *testing.T) {
	for _, c := range []struct {
		name          string
		spoil         func(*fixtures.Run)
		before, after Null[[]string]
	}{
		{"both told", func(*fixtures.Run) {}, Some([]string{"tiny"}), Some([]string{"tiny"})},
		{"another after", func(r *fixtures.Run) { r.After.ServedModels = []string{"other", "tiny"} }, Some([]string{"tiny"}), Some([]string{"other", "tiny"})},
		{"not asked again", func(r *fixtures.Run) { r.After = nil }, Some([]string{"tiny"}), None[[]string](whyNotAskedAgain)},
		{"none told", func(r *fixtures.Run) { r.Header.Engine.ServedModels, r.After.ServedModels = nil, nil },
			None[[]string](whyNoModels), None[[]string](whyNoModels)},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			run := referenceRun(t)
			c.spoil(run)
			d, data := mustBuild(t, run, referenceReplies(t))
			g.Expect(d.Extensions.ServedModelsBefore).To(Equal(c.before))
			g.Expect(d.Extensions.ServedModelsAfter).To(Equal(c.after))
			g.Expect(Validate(data, nil)).To(BeEmpty())
		})
	}
}

func TestStatusReasonsHaveCodesAndSentencesOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, r := range statusReasons {
		g.Expect(r.code).To(MatchRegexp(`^[a-z]+(_[a-z]+)+$`))
		g.Expect(r.sentence).NotTo(BeEmpty())
		g.Expect(seen[r.code] || seen[r.sentence]).To(BeFalse(), r.code)
		seen[r.code], seen[r.sentence] = true, true
	}
}

func TestTheProtocolsPlanIsTheReferences(t *testing.T) {
	g := NewWithT(t)
	var want []string
	for _, r := range gjson.GetBytes(reference(t), "requests.#.id").Array() {
		want = append(want, r.Str)
	}
	var got []string
	for _, r := range protocolPlan() {
		got = append(got, r.id)
	}
	g.Expect(got).To(Equal(want))
	g.Expect(corpus.Phases).To(HaveLen(4))
}

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
		{"a request failed", func(c causes) { c.all.fail("performance-prompt-4k-r2") },
			[]string{"required_request_failed"}},
		{"a request skipped", func(c causes) { c.run.Exchanges, c.run.After = c.run.Exchanges[:21], nil }, []string{"required_request_skipped"}},
		{"interrupted", func(c causes) {
			c.run.Exchanges, c.run.After, c.run.End.Interrupted = c.run.Exchanges[:21], nil, "interrupt"
		},
			[]string{"run_interrupted", "required_request_skipped"}},
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
		{"the engine was not asked again", func(c causes) { c.run.After = nil }, nil},
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

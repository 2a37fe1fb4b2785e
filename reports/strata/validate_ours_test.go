package strata

import (
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/harness/measure"
)

// A document whose parts agree can still say what our builder never does.
func TestOurOwnDocumentsAreHeldToOurOwnWords(t *testing.T) {
	round := func(change func(*ConcurrencyRound)) func(*Document) {
		return func(d *Document) { change(&d.ConcurrencyRounds[0]) }
	}
	none := None[Number]("nobody knows")
	for _, c := range []struct {
		name     string
		edit     func(*Document)
		pointers []string // all that is wrong
	}{
		{"as it was built", func(*Document) {}, nil},
		{"a conforming mock", func(d *Document) {
			d.Run.Status, d.Extensions.StatusReasons, d.Extensions.StatusReasonCodes = Conforming, []string{}, []string{}
		}, []string{"/extensions/status_reason_codes"}},
		{"an invented reason", func(d *Document) { d.Extensions.StatusReasons[1] = "the moon was full" }, []string{"/extensions/status_reasons/1"}},
		{"an invented code", func(d *Document) { d.Extensions.StatusReasonCodes[1] = "full_moon" }, []string{"/extensions/status_reason_codes/1"}},
		{"swapped codes", func(d *Document) { d.Extensions.StatusReasonCodes = []string{"settings_overridden", "engine_mock"} },
			[]string{"/extensions/status_reasons/0", "/extensions/status_reasons/1", "/extensions/status_reason_codes/1"}},
		{"one reason twice", func(d *Document) {
			d.Extensions.StatusReasons = append(d.Extensions.StatusReasons, d.Extensions.StatusReasons[1])
			d.Extensions.StatusReasonCodes = append(d.Extensions.StatusReasonCodes, d.Extensions.StatusReasonCodes[1])
		}, []string{"/extensions/status_reason_codes/2"}},
		{"a reason without a cause", func(d *Document) {
			d.Extensions.StatusReasons = []string{d.Extensions.StatusReasons[0], sentenceOf(t, "prompt_reuse")}
			d.Extensions.StatusReasonCodes = []string{"engine_mock", "prompt_reuse"}
		}, []string{"/extensions/status_reason_codes/1"}},
		{"a model that was not hashed", func(d *Document) { d.Model.Files = None[[]ModelFile]("not read") }, []string{"/extensions/status_reason_codes"}},
		{"another budget, by the operator", func(d *Document) { d.Requests[22].MaxOutputTokens = 1024 }, nil},
		{"another budget, by nobody", func(d *Document) {
			d.Requests[22].MaxOutputTokens = 1024
			d.Extensions.StatusReasons, d.Extensions.StatusReasonCodes = d.Extensions.StatusReasons[:1], d.Extensions.StatusReasonCodes[:1]
		}, []string{"/requests/22/max_output_tokens"}},
		{"engine seconds under the client's basis", func(d *Document) { d.Extensions.TimingBasis = Some("client") }, []string{"/extensions/timing_basis"}},
		{"no client's rates", func(d *Document) { d.Extensions.ClientDecodeTPS = d.Extensions.ClientDecodeTPS[:25] },
			[]string{"/extensions/client_decode_tps/concurrency-c2-r2-2"}},
		{"no drift", func(d *Document) { d.Extensions.RepetitionDrift = d.Extensions.RepetitionDrift[:2] }, []string{"/extensions/repetition_drift/prompt-16k"}},
		{"a round without its time", round(func(r *ConcurrencyRound) { r.Wall = none }),
			[]string{"/concurrency_rounds/0/wall_s", "/concurrency_rounds/0/output_tps"}},
		{"a round without its count", round(func(r *ConcurrencyRound) { r.OutputTokens = None[int64]("nobody knows") }), []string{"/concurrency_rounds/0/output_tokens"}},
		{"a round without its rate", round(func(r *ConcurrencyRound) { r.OutputTPS = none }), []string{"/concurrency_rounds/0/output_tps"}},
		{"a round without its slowest", round(func(r *ConcurrencyRound) { r.Slowest = none }), []string{"/concurrency_rounds/0/slowest_decode_tps"}},
		{"a round without its fastest", round(func(r *ConcurrencyRound) { r.Fastest = none }), []string{"/concurrency_rounds/0/fastest_decode_tps"}},
		{"a round without its spread", round(func(r *ConcurrencyRound) { r.Spread = none }), []string{"/concurrency_rounds/0/slowest_to_fastest"}},
		{"another runner's", func(d *Document) {
			d.Extensions.Runner, d.Extensions.StatusReasonCodes[1], d.Extensions.ClientDecodeTPS = "another", "full_moon", Ordered[Null[Number]]{}
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			run, all := referenceRun(t), referenceReplies(t)
			run.Header.Engine.Kind, run.Header.Profile.Overridden = "mock", []string{"profile"}
			withStage(run, all, 2, 2)
			d, _ := mustBuild(t, run, all)
			c.edit(d)
			g.Expect(pointers(t, d)).To(HaveExactElements(c.pointers))
		})
	}
}

func TestNamesThatDifferInCaseOnlyDoNotConfuseTheValidator(t *testing.T) {
	data := mutate(t, ours(t), mutation{"extensions.STATUS_REASON_CODES", `["engine_mock","engine_replay"]`, ""})
	data = mutate(t, data, mutation{"REQUESTS", `[{},{}]`, ""})
	NewWithT(t).Expect(Validate(data, nil)).To(ContainElement(HaveField("Pointer", "/REQUESTS")))
}

func TestAStageThatWasAskedForHasItsRequestsWhereTheServerCanServeThem(t *testing.T) {
	for _, c := range []struct {
		name     string
		capacity Null[int]
		pointers []string
	}{
		{"four at once", Some(4), []string{"/run/optional_concurrency"}},
		{"one at a time", Some(1), nil},
		{"nobody knows how many", None[int]("untold"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := referenceRun(t)
			run.Header.ConcurrencyStage = true
			d, _ := mustBuild(t, run, referenceReplies(t))
			d.Configuration.ServerCapacity = c.capacity
			NewWithT(t).Expect(pointers(t, d)).To(HaveExactElements(c.pointers))
		})
	}
}

func TestARoundWithoutAnswersGivesNoFigures(t *testing.T) {
	run, all := referenceRun(t), referenceReplies(t)
	withStage(run, all, 2, 2)
	all.fail("concurrency-c2-r1-1")
	all.fail("concurrency-c2-r1-2")
	for _, id := range []string{"concurrency-c2-r2-1", "concurrency-c2-r2-2"} {
		all.edit(id, func(f *measure.Figures) { f.OutputTokens = measure.Unknown[int64]("no usage") })
	}
	d, _ := mustBuild(t, run, all)
	NewWithT(t).Expect(pointers(t, d)).To(BeEmpty())
	d.ConcurrencyRounds[0].OutputTokens = Some(int64(0))
	NewWithT(t).Expect(pointers(t, d)).To(HaveExactElements("/concurrency_rounds/0/output_tokens"))
}

// pointers are the places of all faults of a document whose nulls are listed anew.
func pointers(t *testing.T, d *Document) []string {
	t.Helper()
	if err := d.seal(); err != nil {
		t.Fatal(err)
	}
	data, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	at := []string{}
	for _, f := range Validate(data, nil) {
		at = append(at, f.Pointer)
	}
	return at
}

func sentenceOf(t *testing.T, code string) string {
	t.Helper()
	for _, r := range statusReasons {
		if r.code == code {
			return r.sentence
		}
	}
	t.Fatalf("no code %q", code)
	return ""
}

package strata

import (
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

func TestRatesOfTheClientsClockSayWhoseTheyAre(t *testing.T) {
	g := NewWithT(t)
	all := referenceReplies(t)
	for id := range all {
		all.edit(id, func(f *measure.Figures) {
			f.Basis = measure.ClientBasis
			f.DecodeSeconds, f.PromptSeconds = measure.Unknown[float64]("no timings"), measure.Unknown[float64]("no timings")
			f.PromptTPS = measure.Unknown[float64]("no timings")
			f.DecodeTPS.Source = "deltas on the client's clock"
		})
	}
	d, data := mustBuild(t, referenceRun(t), all)
	g.Expect(Validate(data, nil)).To(BeEmpty())
	basis, _ := d.Extensions.TimingBasis.Get()
	g.Expect(basis).To(Equal("client"))
	g.Expect(d.Requests[0].Sources.EngineTimings).To(Equal("not available: no timings; decode_tps: deltas on the client's clock"))
	g.Expect(d.Summaries[1].N).To(Equal(3))
}

func TestRatesOfTwoClocksAreNotSummedUpTogether(t *testing.T) {
	g := NewWithT(t)
	all := referenceReplies(t)
	all.edit("performance-short-r2", func(f *measure.Figures) {
		f.Basis = measure.ClientBasis
		f.DecodeSeconds = measure.Unknown[float64]("impossible")
	})
	d, data := mustBuild(t, referenceRun(t), all)
	g.Expect(Validate(data, nil)).To(BeEmpty())
	g.Expect(d.Summaries[1].Excluded).To(Equal([]Exclusion{{"performance-short-r2", excludedBasis}}))
	_, known := d.Extensions.TimingBasis.Get()
	g.Expect(known).To(BeFalse())
}

func TestTheDecodeConventionIsTheOneThatRepliesAgreeOn(t *testing.T) {
	for _, c := range []struct {
		name     string
		first    measure.Convention
		want     string
		wantNull bool
	}{
		{"one undetermined", measure.NotDetermined, "n", false},
		{"one against the others", measure.AfterFirst, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			all := referenceReplies(t)
			all.edit("warmup", func(f *measure.Figures) { f.Convention = c.first })
			d, _ := mustBuild(t, referenceRun(t), all)
			got, known := d.Extensions.DecodeConvention.Get()
			g.Expect(known).To(Equal(!c.wantNull))
			g.Expect(got).To(Equal(c.want))
		})
	}
}

func TestTheDriftComparesTheLastRepetitionWithTheFirst(t *testing.T) {
	g := NewWithT(t)
	d, _ := mustBuild(t, referenceRun(t), referenceReplies(t))
	drift, _ := d.Extensions.RepetitionDrift.Get("prompt-4k")
	decode, _ := drift.DecodeTPS.Get()
	g.Expect(decode.String()).To(Equal("0.323755"), "125.854186 against 95.073626")
}

func TestARoundShowsEveryMarkerOfAnotherRequest(t *testing.T) {
	g := NewWithT(t)
	run, all := referenceRun(t), referenceReplies(t)
	withStage(run, all, 2, 2)
	for i, p := range run.Header.Plan[22:] {
		run.Header.Plan[22+i].Marker = "M-" + p.ID
	}
	all.say("concurrency-c2-r1-1", &transcript.Transcript{Content: "M-concurrency-c2-r1-1 is mine"})
	all.say("concurrency-c2-r1-2", &transcript.Transcript{Content: "M-concurrency-c2-r1-2 is mine", Reasoning: "what is M-concurrency-c2-r2-1?"})
	all.say("concurrency-c2-r2-1", &transcript.Transcript{Content: "after M-concurrency-c2-r1-1"})
	d, data := mustBuild(t, run, all)
	g.Expect(d.ConcurrencyRounds[0].ForeignMarkers).To(Equal([]ForeignMarker{
		{"concurrency-c2-r1-2", "M-concurrency-c2-r2-1", "concurrency-c2-r2-1", true},
	}), "a marker of any other round, by its owner")
	g.Expect(d.ConcurrencyRounds[1].ForeignMarkers).To(Equal([]ForeignMarker{
		{"concurrency-c2-r2-1", "M-concurrency-c2-r1-1", "concurrency-c2-r1-1", false},
	}))
	g.Expect(d.Run.Status).To(Equal(Conforming), "the stage is optional")
	g.Expect(Validate(data, nil)).To(BeEmpty())
}

func TestNotesSayWhatTheFiguresDoNot(t *testing.T) {
	g := NewWithT(t)
	d, _ := mustBuild(t, referenceRun(t), referenceReplies(t))
	g.Expect(d.Extensions.Notes).To(HaveExactElements(noteFixedCost, noteTotals))
}

func TestRoundsCountTheirRepliesTogether(t *testing.T) {
	g := NewWithT(t)
	run, all := referenceRun(t), referenceReplies(t)
	withStage(run, all, 2, 2)
	all.fail("concurrency-c2-r2-1")
	d, data := mustBuild(t, run, all)
	g.Expect(Validate(data, nil)).To(BeEmpty())
	g.Expect(d.ConcurrencyRounds).To(HaveLen(2))
	value := func(n Null[Number]) float64 { v, _ := n.Get(); return v.Float64() }

	whole := d.ConcurrencyRounds[0]
	g.Expect(value(whole.Wall)).To(Equal(5.0))
	g.Expect(value(whole.OutputTPS)).To(Equal(40.0), "two replies of 100 tokens in 5 s")
	g.Expect(value(whole.Together)).To(Equal(3.0), "from 1 s, when both had begun, to 4 s, when the first ended")
	// 99 deltas of the first reply, and of the second those up to three quarters of its 99 steps: 74.
	g.Expect(value(whole.TogetherTPS)).To(BeNumerically("~", (99.0+74.0)/3, 1e-6))
	g.Expect(value(whole.Spread)).To(BeNumerically("~", 2.0/3, 1e-6))

	broken := d.ConcurrencyRounds[1]
	g.Expect(value(broken.OutputTPS)).To(Equal(20.0), "the failed reply counts for nothing, its time for all")
	g.Expect(broken.Together.Reason()).To(Equal(whyRoundIncomplete))
	g.Expect(broken.RequestIDs).To(HaveLen(2))
}

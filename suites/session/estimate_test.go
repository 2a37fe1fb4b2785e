package session

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/judge"
	"plumbline/harness/measure"
)

func waiting(id, phase string, tokens, budget int) fixtures.Planned {
	return fixtures.Planned{ID: id, Phase: phase, ContentTokens: &tokens, MaxOutputTokens: budget, Concurrency: 1}
}

func finished(p fixtures.Planned, out int64, ttft, total float64) *judge.Reply {
	return &judge.Reply{Planned: p, Figures: measure.Figures{
		OutputTokens: measure.Known(out, "usage"), TTFT: measure.Known(ttft, "clock"), Total: measure.Known(total, "clock"),
	}}
}

func TestTheTimeLeftFollowsTheNearestFinishedRequest(t *testing.T) {
	g := NewWithT(t)
	short1 := waiting("short-1", corpus.PhasePerformance, 100, 500)
	medium := waiting("medium-1", corpus.PhasePerformance, 800, 500)
	long1 := waiting("long-1", corpus.PhasePerformance, 16000, 500)
	long2 := waiting("long-2", corpus.PhasePerformance, 16000, 500)
	e := newEstimate([]fixtures.Planned{short1, medium, long1, long2})
	_, known := e.others(0)
	g.Expect(known).To(BeFalse(), "nothing has been seen")

	e.add(finished(short1, 250, 1, 3.5)) // 10 ms a token, half of the budget
	expected, known := e.of(medium)
	g.Expect(known).To(BeTrue())
	g.Expect(expected).To(Equal(8*time.Second+2500*time.Millisecond), "8 times the prompt, the same output")
	_, known = e.of(long1)
	g.Expect(known).To(BeFalse(), "160 times the prompt: a short prompt says nothing about it")

	e.add(finished(medium, 500, 8, 13))
	e.add(finished(long1, 500, 40, 90)) // 100 ms a token, the whole budget
	left, known := e.others(0)
	g.Expect(known).To(BeTrue())
	g.Expect(left).To(Equal(90 * time.Second))
	left, _ = e.others(1)
	g.Expect(left).To(BeZero(), "the live request is counted apart")
}

func TestAFailedRequestOnlyLeavesThePlan(t *testing.T) {
	g := NewWithT(t)
	p := waiting("short-1", corpus.PhasePerformance, 100, 500)
	e := newEstimate([]fixtures.Planned{p})
	e.add(&judge.Reply{Planned: p, Figures: measure.Figures{Status: measure.Failed}})
	g.Expect(e.waiting).To(BeEmpty())
	g.Expect(e.took).To(BeEmpty())
}

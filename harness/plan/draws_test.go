package plan

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func TestSizesAreDrawnInIndexOrder(t *testing.T) {
	for seed, want := range map[int64][]int{0: {65536, 65536, 32768, 32768}, 17: {32768, 65536, 131072, 32768}} {
		l := load(t, func(run *fixtures.CapacityRun) { run.Seed = seed })
		NewWithT(t).Expect(l.Sizes("closed")[:4]).To(Equal(want), fmt.Sprint(seed))
		NewWithT(t).Expect(l.Sizes("closed")).To(HaveLen(60))
	}
}

func TestADrawTakesTheFirstSizeWhoseBoundItDoesNotExceed(t *testing.T) {
	for u, want := range map[float64]int{
		0: 16000, 0.218: 16000, 0.2181: 32768, 0.602: 32768, 0.6021: 65536, 0.906: 65536, 0.9061: 131072, 0.995: 131072,
		0.9951: 262144, 0.9999999999999999: 262144,
	} {
		NewWithT(t).Expect(contextSize(u)).To(Equal(want), fmt.Sprint(u))
	}
}

func TestNoPromptIsPlannedAboveTheCap(t *testing.T) {
	g := NewWithT(t)
	l := load(t, func(run *fixtures.CapacityRun) { run.MaxModelLen = 32768 + 64 + 1024 - 1 })
	for _, size := range l.Sizes("closed") {
		g.Expect(size).To(BeElementOf(16000, 32767))
	}
	l = load(t, func(run *fixtures.CapacityRun) { run.MaxModelLen, run.CtxTokens = 0, 300000 })
	g.Expect(l.Sizes("closed")).To(HaveEach(300000), "an unknown window caps nothing")
	l = load(t, func(run *fixtures.CapacityRun) { run.MaxModelLen = 32 + 64 + 1024 })
	g.Expect(l.Sizes("closed")).To(HaveEach(32))
}

func TestContextPlansAreEqualForEqualSeedsWhateverTheConcurrency(t *testing.T) {
	g := NewWithT(t)
	one := load(t, allStages, func(run *fixtures.CapacityRun) { run.Concurrency = 1 })
	many := load(t, allStages, func(run *fixtures.CapacityRun) { run.Concurrency = 64 })
	other := load(t, allStages, func(run *fixtures.CapacityRun) { run.Seed = 1 })
	g.Expect(one.sizes).To(Equal(many.sizes))
	g.Expect(one.sizes).NotTo(Equal(other.sizes))
	g.Expect(messages(one)).To(Equal(messages(many)))
}

func TestTheClosedStageDoesNotDependOnTheOthers(t *testing.T) {
	g := NewWithT(t)
	alone, first := load(t), load(t, allStages)
	g.Expect(alone.Sizes("closed")).To(Equal(first.Sizes("closed")))
	g.Expect(alone.Body("closed", 3)).To(Equal(first.Body("closed", 3)))
	longer := load(t, func(run *fixtures.CapacityRun) { run.Requests += 7 + 5 + 5 })
	var all []int
	for _, stage := range first.Stages() {
		all = append(all, first.Sizes(stage.Name)...)
	}
	g.Expect(all).To(Equal(longer.Sizes("closed")), "the other stages draw on where the closed one ended")
}

package plan

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func TestADryRunShowsThePlanThatARunWouldFollow(t *testing.T) {
	g := NewWithT(t)
	run := capacityRun(allStages, func(run *fixtures.CapacityRun) { run.RequestCanaries, run.Seed = true, 17 })
	d, err := DryRun(run)
	g.Expect(err).NotTo(HaveOccurred())
	l := load(t, func(r *fixtures.CapacityRun) { *r = run })
	total, counted := 0, 0
	for i, stage := range l.Stages() {
		g.Expect(d.Stages[i].Name).To(Equal(stage.Name))
		g.Expect(d.Stages[i].PlannedContextTokens).To(Equal(l.Sizes(stage.Name)))
		g.Expect(d.Stages[i].ArrivalOffsets).To(Equal(stage.Schedule))
		for _, size := range l.Sizes(stage.Name) {
			total += size
		}
	}
	for _, n := range d.ContextDistribution {
		counted += n
	}
	g.Expect(d.TotalPlannedTokens).To(Equal(total))
	g.Expect(counted).To(Equal(77))
	g.Expect(d.Requests).To(Equal(77))
	g.Expect(*d.ContextWindow).To(Equal(262144))
	g.Expect(*d.ContextCap).To(Equal(262144 - 64 - 1024))
	g.Expect(*d.FirstMarker).To(Equal("ANVIL_REQ_17_00000"))
	g.Expect(*d.LastMarker).To(Equal("ANVIL_REQ_17_00076"))
	g.Expect(d.Settings).To(Equal(run))
}

func TestADryRunHasNullForWhatIsNotKnown(t *testing.T) {
	g := NewWithT(t)
	d, err := DryRun(capacityRun(func(run *fixtures.CapacityRun) {
		run.MaxModelLen, run.Requests, run.CtxTokens, run.Calibration = 0, 3, 8192, fixtures.Calibration{}
	}))
	g.Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(d)
	g.Expect(err).NotTo(HaveOccurred())
	var shown map[string]any
	g.Expect(json.Unmarshal(text, &shown)).To(Succeed())
	delete(shown, "settings")
	g.Expect(shown).To(Equal(map[string]any{
		"context_window": nil, "context_cap": nil, "context_distribution": map[string]any{"8192": 3.0},
		"requests": 3.0, "total_planned_tokens": 24576.0, "first_marker": nil, "last_marker": nil,
		"stages": []any{map[string]any{
			"name": "closed", "arrival": "closed", "concurrency": 20.0, "rate": nil,
			"planned_context_tokens": []any{8192.0, 8192.0, 8192.0}, "arrival_offsets_ns": nil,
		}},
	}))
}

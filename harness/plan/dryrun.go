package plan

import (
	"fmt"
	"strconv"
	"time"

	"plumbline/fixtures"
)

// DryPlan is what a capacity run would do, for people to read before it does.
type DryPlan struct {
	Settings fixtures.CapacityRun `json:"settings"`
	// ContextWindow and ContextCap are null where neither a setting nor the engine told the window.
	ContextWindow *int `json:"context_window"`
	ContextCap    *int `json:"context_cap"`
	// ContextDistribution counts the prompts of all stages by their planned tokens.
	ContextDistribution map[string]int `json:"context_distribution"`
	Requests            int            `json:"requests"`
	TotalPlannedTokens  int            `json:"total_planned_tokens"`
	// FirstMarker and LastMarker are null without canaries.
	FirstMarker *string    `json:"first_marker"`
	LastMarker  *string    `json:"last_marker"`
	Stages      []DryStage `json:"stages"`
}

// DryStage is one stage of a dry run.
type DryStage struct {
	Name                 string          `json:"name"`
	Arrival              string          `json:"arrival"`
	Concurrency          *int            `json:"concurrency"`            // null in an open loop
	Rate                 *float64        `json:"rate"`                   // requests a second; null in a closed loop
	PlannedContextTokens []int           `json:"planned_context_tokens"` // in index order
	ArrivalOffsets       []time.Duration `json:"arrival_offsets_ns"`     // from the stage's start; null in a closed loop
}

// DryRun plans a run without a model, a calibration or texts.
func DryRun(run fixtures.CapacityRun) (*DryPlan, error) {
	if err := checkLoad(run); err != nil {
		return nil, fmt.Errorf("plan capacity run: %w", err)
	}
	stages, sizes, err := planLoad(run)
	if err != nil {
		return nil, fmt.Errorf("plan capacity run: %w", err)
	}
	d := &DryPlan{Settings: run, ContextDistribution: map[string]int{}}
	if tokens, ok := contextCap(run); ok {
		d.ContextWindow, d.ContextCap = &run.MaxModelLen, &tokens
	}
	for i, stage := range stages {
		s := DryStage{Name: stage.Name, Arrival: stage.Arrival, PlannedContextTokens: sizes[i], ArrivalOffsets: stage.Schedule}
		if stage.Arrival == arrivalClosed {
			s.Concurrency = &stage.Concurrency
		} else {
			s.Rate = &stage.Rate
		}
		d.Stages = append(d.Stages, s)
		d.Requests += stage.Requests
		for _, size := range sizes[i] {
			d.ContextDistribution[strconv.Itoa(size)]++
			d.TotalPlannedTokens += size
		}
	}
	if run.RequestCanaries {
		first, last := loadMarker(run.Seed, 0), loadMarker(run.Seed, d.Requests-1)
		d.FirstMarker, d.LastMarker = &first, &last
	}
	return d, nil
}

package plan

import (
	"fmt"

	"plumbline/fixtures"
)

// The bounds of a capacity plan.
const (
	minPromptTokens  = 32       // no smaller prompt is planned
	maxPlannedTokens = 67108864 // of all prompts of a run together
	maxLoadRequests  = 100000   // of a run: a marker counts them with five digits
)

// contextSizes are the prompt sizes of a run without a fixed one: a draw takes the first whose bound it does not exceed.
var contextSizes = []struct {
	upTo   float64
	tokens int
}{{0.218, 16000}, {0.602, 32768}, {0.906, 65536}, {0.995, 131072}, {1, 262144}}

func contextSize(u float64) int {
	last := len(contextSizes) - 1
	for _, c := range contextSizes[:last] {
		if u <= c.upTo {
			return c.tokens
		}
	}
	return contextSizes[last].tokens
}

// contextCap is the largest prompt that leaves room for the reply and the margin; ok is false where no window is known.
func contextCap(run fixtures.CapacityRun) (tokens int, ok bool) {
	return run.MaxModelLen - run.MaxTokens - run.Margin, run.MaxModelLen > 0
}

// planSizes draws the prompt sizes of all stages: the closed stage first, the others after it from the same generator, so
// that a stage's sizes depend on the seed and on the stages before it only, and never on how many requests are in flight.
func planSizes(run fixtures.CapacityRun, stages []LoadStage) ([][]int, error) {
	limit, limited := contextCap(run)
	if limited && limit < minPromptTokens {
		return nil, fmt.Errorf("\"capacity-max-model-len\" is %d: less \"capacity-max-tokens\" %d and \"capacity-margin\" %d it leaves %d "+
			"tokens for a prompt, want at least %d", run.MaxModelLen, run.MaxTokens, run.Margin, limit, minPromptTokens)
	}
	draws := newMersenne(seedKey(run.Seed))
	total := 0
	sizes := make([][]int, len(stages))
	for i, stage := range stages {
		sizes[i] = make([]int, stage.Requests)
		for k := range sizes[i] {
			size := run.CtxTokens
			if size == 0 {
				size = contextSize(draws.float64())
			}
			if limited {
				size = min(size, limit)
			}
			sizes[i][k] = size
			if total += size; total > maxPlannedTokens {
				return nil, fmt.Errorf("%q is %d: with request %d of stage %q the run has %d planned tokens, want at most %d; "+
					"plan fewer requests or a smaller \"capacity-ctx-tokens\"",
					requestsSetting(run, stage.Name), stage.Requests, k, stage.Name, total, maxPlannedTokens)
			}
		}
	}
	return sizes, nil
}

// requestsSetting is the setting that says how many requests a stage has.
func requestsSetting(run fixtures.CapacityRun, stage string) string {
	switch {
	case stage == fixtures.StageOpen:
		return "capacity-open-requests"
	case stage != fixtures.StageClosed:
		return "capacity-sweep-requests"
	case run.Burst > 0:
		return "capacity-burst"
	}
	return "capacity-requests"
}

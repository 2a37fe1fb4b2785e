package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"plumbline/fixtures"
)

// The modes of a capacity run's prompts.
const (
	cacheShared = "shared"
	cacheUnique = "unique"
)

var yes, no = true, false

// thinkingModes are the modes with what each sends for enable_thinking; null for nothing.
var thinkingModes = map[string]*bool{"default": nil, "unsupported": nil, "enabled": &yes, "disabled": &no}

// checkLoad refuses settings that no plan can be made of. They may come from a record as well as from an operator.
func checkLoad(run fixtures.CapacityRun) error {
	var faults []error
	bad := func(wrong bool, setting string, value any, want string) {
		if wrong {
			faults = append(faults, fmt.Errorf("%q is %#v: want %s", setting, value, want))
		}
	}
	bad(run.Burst < 0, "capacity-burst", run.Burst, "0 or more")
	bad(run.Burst == 0 && run.Concurrency < 1, "capacity-concurrency", run.Concurrency, "1 or more")
	bad(run.Burst > 0 && run.PromptCacheMode == cacheUnique, "capacity-burst", run.Burst, "0 in the prompt cache mode \"unique\"")
	bad(run.CtxTokens != 0 && run.CtxTokens < minPromptTokens || run.CtxTokens > maxPlannedTokens, "capacity-ctx-tokens", run.CtxTokens,
		fmt.Sprintf("0, or %d to %d", minPromptTokens, maxPlannedTokens))
	bad(run.SharedPrefixTokens < 0 || run.SharedPrefixTokens > maxPlannedTokens, "capacity-shared-prefix-tokens", run.SharedPrefixTokens,
		fmt.Sprintf("0 to %d", maxPlannedTokens))
	bad(!slices.Contains([]string{cacheShared, cacheUnique}, run.PromptCacheMode), "capacity-prompt-cache-mode", run.PromptCacheMode,
		"\"shared\" or \"unique\"")
	bad(run.Seed < 0, "capacity-seed", run.Seed, "0 or more: a marker holds it in digits")
	bad(run.MaxTokens < 1, "capacity-max-tokens", run.MaxTokens, "1 or more")
	bad(run.ResponseWords < 0, "capacity-response-words", run.ResponseWords, "0 or more")
	bad(run.MaxModelLen < 0, "capacity-max-model-len", run.MaxModelLen, "0 or more")
	bad(run.Margin < 0, "capacity-margin", run.Margin, "0 or more")
	enable, known := thinkingModes[run.ThinkingMode]
	bad(!known, "capacity-thinking-mode", run.ThinkingMode, fmt.Sprintf("one of %q", slices.Sorted(maps.Keys(thinkingModes))))
	bad(enable != nil && run.ReasoningEffort != "", "capacity-reasoning-effort", run.ReasoningEffort,
		fmt.Sprintf("none with the thinking mode %q", run.ThinkingMode))
	bad(!slices.Contains([]string{"", arrivalConstant, arrivalPoisson}, run.Arrival), "capacity-arrival", run.Arrival,
		fmt.Sprintf("%q, %q, or none", arrivalConstant, arrivalPoisson))
	for i, level := range run.Sweep {
		bad(level < 1, "capacity-sweep", level, "levels of 1 or more")
		bad(slices.Contains(run.Sweep[:i], level), "capacity-sweep", level, "every level once")
	}
	return errors.Join(faults...)
}

package strata

import (
	"fmt"
	"math"
	"slices"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/measure"
)

// RequestCheck is what is checked of one request's prompt: that it was read whole and read anew.
type RequestCheck struct {
	// MaxSharedPrefix is the longest prefix that the prompt has in common with another prompt of the plan.
	MaxSharedPrefix Null[int] `json:"max_shared_prefix_tokens"`
	// FrozenInput is the prompt's pinned length.
	FrozenInput Null[int] `json:"frozen_input_tokens"`
	// PayloadReuse says whether the engine took more from a cache than prompts have in common.
	PayloadReuse Null[bool] `json:"unexpected_payload_reuse"`
	// LengthOff says whether the engine counted more or fewer tokens than the prompt has.
	LengthOff Null[bool] `json:"length_outside_tolerance"`
	// TemplateOverhead is what the chat template put around the user text: input minus content tokens (ours).
	TemplateOverhead Null[int64] `json:"template_overhead_tokens"`
}

// Faults says in sentences what the check found wrong; none when nothing is, or nothing could be checked.
func (c RequestCheck) Faults() []string {
	var faults []string
	if reused, _ := c.PayloadReuse.Get(); reused {
		prefix, _ := c.MaxSharedPrefix.Get()
		faults = append(faults, fmt.Sprintf("more of the prompt came from a cache than the %d tokens that prompts of the plan share at most", prefix))
	}
	if off, _ := c.LengthOff.Get(); off {
		expected := "the overhead of the other requests"
		if frozen, pinned := c.FrozenInput.Get(); pinned {
			expected = fmt.Sprintf("the pinned length of %d tokens", frozen)
		}
		faults = append(faults, fmt.Sprintf("the engine's count of input tokens misses %s by more than %d", expected, corpus.OverheadTolerance))
	}
	return faults
}

// Check judges the prompt of one request of a plan by what is known so far: figures holds the requests that have been
// measured, by id. It can be asked after each request of a run; a later answer rests on more to compare with. A request
// that is not in the plan has nothing but reasons.
func Check(plan []fixtures.Planned, id string, figures map[string]measure.Figures) RequestCheck {
	return newChecker(plan, figures).check(id)
}

// shortPromptTokens bounds the prompts that no server would cut: their overhead is what long ones are held against.
const shortPromptTokens = 512

// checker holds what the requests of a plan have in common.
type checker struct {
	planned   map[string]fixtures.Planned
	figures   map[string]measure.Figures
	overheads []overhead
	// otherTokenizer says that the engine counts tokens otherwise than the profile's tokenizer does.
	otherTokenizer bool
}

// overhead is what surrounds the user text of one plain request, in tokens.
type overhead struct {
	id     string
	tokens int64
	short  bool
	// own says that the engine's own tokenizer counted the user text.
	own bool
}

func newChecker(plan []fixtures.Planned, figures map[string]measure.Figures) *checker {
	c := &checker{planned: make(map[string]fixtures.Planned, len(plan)), figures: figures}
	var low, high int64 = math.MaxInt64, math.MinInt64
	for _, p := range plan {
		c.planned[p.ID] = p
		o, why := c.overheadOf(p)
		if why != "" {
			continue
		}
		c.overheads = append(c.overheads, o)
		if o.short && !o.own {
			low, high = min(low, o.tokens), max(high, o.tokens)
		}
	}
	// A short prompt cannot have been cut. When even they disagree with the counts, or have fewer tokens than their own
	// text, the counts are those of another tokenizer, and say nothing about the long prompts.
	c.otherTokenizer = low <= high && (low < 0 || high-low > corpus.OverheadTolerance)
	return c
}

// overheadOf is the overhead of a request, or why it is not known.
func (c *checker) overheadOf(p fixtures.Planned) (o overhead, why string) {
	input := c.figures[p.ID].InputTokens
	content := p.ContentTokens
	if p.EngineContentTokens != nil {
		content = p.EngineContentTokens
	}
	switch {
	case p.Tools:
		return o, whyToolsInHead
	case !input.Known:
		return o, whyNoInput
	case content == nil:
		return o, whyUncounted
	}
	return overhead{p.ID, input.Value - int64(*content), *content <= shortPromptTokens, p.EngineContentTokens != nil}, ""
}

func (c *checker) check(id string) RequestCheck {
	p, ok := c.planned[id]
	if !ok {
		return RequestCheck{None[int](whyNotPlanned), None[int](whyNotPlanned), None[bool](whyNotPlanned),
			None[bool](whyNotPlanned), None[int64](whyNotPlanned)}
	}
	r := RequestCheck{
		MaxSharedPrefix:  pointed(p.SharedPrefixTokens, whyPrefixUncounted),
		FrozenInput:      pointed(p.FrozenInputTokens, whyNotPinned),
		PayloadReuse:     c.reuse(p),
		LengthOff:        c.length(p),
		TemplateOverhead: None[int64](whyOtherTokenizer),
	}
	switch o, why := c.overheadOf(p); {
	case why != "":
		r.TemplateOverhead = None[int64](why)
	case o.own || !c.otherTokenizer:
		r.TemplateOverhead = Some(o.tokens)
	}
	return r
}

func (c *checker) reuse(p fixtures.Planned) Null[bool] {
	cached := c.figures[p.ID].CachedTokens
	switch {
	case !cached.Known:
		return None[bool](whyNoCached)
	case p.SharedPrefixTokens == nil:
		return None[bool](whyPrefixUncounted)
	}
	return Some(cached.Value > int64(*p.SharedPrefixTokens))
}

// length holds the engine's input count against the pinned length; without one, the overhead against the median of the
// other short prompts (of all others, while there are no short ones).
func (c *checker) length(p fixtures.Planned) Null[bool] {
	if input := c.figures[p.ID].InputTokens; input.Known && p.FrozenInputTokens != nil {
		return Some(math.Abs(float64(input.Value-int64(*p.FrozenInputTokens))) > corpus.OverheadTolerance)
	}
	o, why := c.overheadOf(p)
	switch {
	case why != "":
		return None[bool](why)
	case !o.own && c.otherTokenizer:
		return None[bool](whyOtherTokenizer)
	}
	others := slices.DeleteFunc(slices.Clone(c.overheads), func(x overhead) bool {
		return x.id == p.ID || (c.otherTokenizer && !x.own)
	})
	if short := slices.DeleteFunc(slices.Clone(others), func(x overhead) bool { return !x.short }); len(short) > 0 {
		others = short
	}
	if len(others) == 0 {
		return None[bool](whyNoneToCompare)
	}
	tokens := make([]float64, len(others))
	for i, x := range others {
		tokens[i] = float64(x.tokens)
	}
	return Some(math.Abs(float64(o.tokens)-median(tokens)) > corpus.OverheadTolerance)
}

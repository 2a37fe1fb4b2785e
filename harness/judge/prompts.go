package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/measure"
)

// PromptCheck is what the token counts of a run say of one prompt: whether it was read whole, and read anew.
type PromptCheck struct {
	// SharedPrefix is the longest prefix, in tokens, that the prompt has in common with another of the plan.
	SharedPrefix measure.Maybe[int]
	// Pinned is the prompt's pinned length in tokens.
	Pinned measure.Maybe[int]
	// Reused says whether the engine took more from a cache than prompts can have in common.
	Reused measure.Maybe[bool]
	// LengthOff says whether the engine counted more or fewer tokens than the prompt has.
	LengthOff measure.Maybe[bool]
	// TemplateOverhead is what the chat template put around the user text: input less content tokens.
	TemplateOverhead measure.Maybe[int64]

	faults []string
}

// Faults says in sentences what the check found wrong; none when nothing is, or nothing could be checked.
func (c PromptCheck) Faults() []string { return c.faults }

// Why a prompt could not be checked.
const (
	whyNotPlanned      = "the plan has no such request"
	whyPrefixUncounted = "what the prompt shares with others of the plan was not counted in tokens"
	whyNotPinned       = "this prompt's length is not pinned for the profile's model yet"
	whyNoInput         = "the number of input tokens is not known"
	whyNoCached        = "how much of the prompt came from a cache is not known"
	whyUncounted       = "neither the engine nor the profile's tokenizer counted the user text"
	whyToolsInHead     = "the offered tools are part of what surrounds the user text, and differ between requests"
	whyNoneToCompare   = "no other request without tools has been measured to compare with"
	whyOtherTokenizer  = "the short prompts disagree with the profile's token counts: the engine uses another tokenizer"
	whyMaybeTokenizer  = "the engine's count misses the profile's, as another tokenizer's would, and it offers none to count with"
)

const (
	// shortTokens bounds the prompts that no server would cut: the long ones are held against them.
	shortTokens = 512
	// longTokens is the length from which a text shows how many tokens a tokenizer makes of such texts.
	longTokens = 1000
	// cutShare is the share of the tokens due below which another tokenizer explains nothing. Tokenizers of large
	// vocabularies were seen 9 % apart on the prompts of the built-in pack, and within 3 % of one share on all of them.
	cutShare = 0.75
)

// PromptChecks judges the prompts of a plan by the counts known so far.
type PromptChecks struct {
	planned map[string]fixtures.Planned
	figures map[string]measure.Figures
	plain   []counted
	// smallest is the smallest input seen of the requests without and with tools. A template's head is in each of its
	// kind, so that it can be no longer.
	smallest map[bool]int64
	// otherTokenizer says that the short prompts show the profile's counts not to be the engine's.
	otherTokenizer bool
}

// counted is a plain request whose user text and whole prompt were counted.
type counted struct {
	id             string
	input, content int64
	own            bool // the engine's own tokenizer counted the text
}

func (c counted) overhead() int64 { return c.input - c.content }
func (c counted) short() bool     { return c.content <= shortTokens }

// Prompts reads the counts of a plan's requests; figures holds those that have been measured, by id. It can be asked
// after each request of a run and judges all data alike: a later answer rests on more to compare with.
func Prompts(plan []fixtures.Planned, figures map[string]measure.Figures) *PromptChecks {
	c := &PromptChecks{planned: make(map[string]fixtures.Planned, len(plan)), figures: figures, smallest: map[bool]int64{}}
	var low, high int64 = math.MaxInt64, math.MinInt64
	for _, p := range plan {
		c.planned[p.ID] = p
		if input := figures[p.ID].InputTokens; input.Known {
			if least, seen := c.smallest[p.Tools]; !seen || input.Value < least {
				c.smallest[p.Tools] = input.Value
			}
		}
		x, why := c.count(p)
		if why != "" {
			continue
		}
		c.plain = append(c.plain, x)
		if x.short() && !x.own {
			low, high = min(low, x.overhead()), max(high, x.overhead())
		}
	}
	// A short prompt cannot have been cut. When even they disagree with the counts, or have fewer tokens than their own
	// text, the counts are another tokenizer's.
	c.otherTokenizer = low <= high && (low < 0 || high-low > corpus.OverheadTolerance)
	return c
}

// count is a plain request with its counts, or why there are none.
func (c *PromptChecks) count(p fixtures.Planned) (x counted, why string) {
	input := c.figures[p.ID].InputTokens
	content := cmp.Or(p.EngineContentTokens, p.ContentTokens)
	switch {
	case p.Tools:
		return x, whyToolsInHead
	case !input.Known:
		return x, whyNoInput
	case content == nil:
		return x, whyUncounted
	}
	return counted{p.ID, input.Value, int64(*content), p.EngineContentTokens != nil}, ""
}

// Check judges the prompt of one request. A request that is not in the plan has nothing but reasons.
func (c *PromptChecks) Check(id string) PromptCheck {
	p, ok := c.planned[id]
	if !ok {
		return PromptCheck{
			SharedPrefix: measure.Unknown[int](whyNotPlanned), Pinned: measure.Unknown[int](whyNotPlanned),
			Reused: measure.Unknown[bool](whyNotPlanned), LengthOff: measure.Unknown[bool](whyNotPlanned),
			TemplateOverhead: measure.Unknown[int64](whyNotPlanned),
		}
	}
	r := PromptCheck{
		SharedPrefix: pointed(p.SharedPrefixTokens, whyPrefixUncounted), Pinned: pointed(p.FrozenInputTokens, whyNotPinned),
	}
	c.reuse(p, &r)
	c.length(p, &r)
	switch x, why := c.count(p); {
	case why != "":
		r.TemplateOverhead = measure.Unknown[int64](why)
	case !x.own && c.otherTokenizer:
		r.TemplateOverhead = measure.Unknown[int64](whyOtherTokenizer)
	case r.LengthOff.Reason == whyMaybeTokenizer:
		r.TemplateOverhead = measure.Unknown[int64](whyMaybeTokenizer)
	default:
		r.TemplateOverhead = measure.Known(x.overhead(), "")
	}
	return r
}

// reuse holds what came from a cache against what prompts have in common. Where that was not counted, no two texts of a
// plan begin alike, so that it is the template's head at most.
func (c *PromptChecks) reuse(p fixtures.Planned, r *PromptCheck) {
	cached := c.figures[p.ID].CachedTokens
	least, seen := c.smallest[p.Tools]
	limit, what := least, "the shortest prompt of its kind has, and with it any template's head"
	switch {
	case !cached.Known:
		r.Reused = measure.Unknown[bool](whyNoCached)
		return
	case p.SharedPrefixTokens != nil:
		limit, what = int64(*p.SharedPrefixTokens), "prompts of the plan share at most"
	case !seen:
		r.Reused = measure.Unknown[bool](whyNoInput)
		return
	}
	r.Reused = measure.Known(cached.Value > limit, "")
	if r.Reused.Value {
		r.faults = append(r.faults, fmt.Sprintf("%d tokens of the prompt came from a cache, more than the %d that %s", cached.Value, limit, what))
	}
}

// length holds the engine's count of input tokens against the pinned length; without one, the template's overhead
// against that of the other requests. Counts of the profile's tokenizer prove a fault only where no tokenizer could be
// the cause.
func (c *PromptChecks) length(p fixtures.Planned, r *PromptCheck) {
	if input := c.figures[p.ID].InputTokens; input.Known && p.FrozenInputTokens != nil {
		pinned := int64(*p.FrozenInputTokens)
		r.setLength(misses(input.Value, pinned),
			fmt.Sprintf("the engine counted %d input tokens, and the prompt's pinned length is %d", input.Value, pinned))
		return
	}
	x, why := c.count(p)
	if why != "" {
		r.LengthOff = measure.Unknown[bool](why)
		return
	}
	usual, known := c.usualOverhead(x)
	off := x.overhead() < -corpus.OverheadTolerance || known && misses(x.overhead(), usual)
	switch sentence := fmt.Sprintf("the engine counted %d input tokens for a text of %d", x.input, x.content); {
	case x.own && off:
		r.setLength(true, sentence+" by its own tokenizer, unlike those of other prompts")
	case !x.own && c.cut(x):
		r.setLength(true, sentence+", fewer than any tokenizer makes of it")
	case !x.own && c.otherTokenizer:
		r.LengthOff = measure.Unknown[bool](whyOtherTokenizer)
	case !x.own && off:
		r.LengthOff = measure.Unknown[bool](whyMaybeTokenizer)
	case !known:
		r.LengthOff = measure.Unknown[bool](whyNoneToCompare)
	default:
		r.setLength(false, "")
	}
}

func (r *PromptCheck) setLength(off bool, sentence string) {
	r.LengthOff = measure.Known(off, "")
	if off {
		r.faults = append(r.faults, sentence)
	}
}

// usualOverhead is the middle overhead of the other short prompts that were counted in the same way, of all others
// while there are no short ones.
func (c *PromptChecks) usualOverhead(x counted) (tokens int64, known bool) {
	var short, all []int64
	for _, other := range c.plain {
		if other.id == x.id || other.own != x.own {
			continue
		}
		all = append(all, other.overhead())
		if other.short() {
			short = append(short, other.overhead())
		}
	}
	if len(short) > 0 {
		all = short
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	return all[len(all)/2], true
}

// cut reports whether so few tokens were counted that no tokenizer makes them: under three quarters of the profile's
// count, and under three quarters of what the engine's tokenizer makes of another long text. That one's share leaves out
// the smallest input as the most that its template can have put in.
func (c *PromptChecks) cut(x counted) bool {
	share := float64(x.input) / float64(x.content)
	if x.short() || share >= cutShare {
		return false
	}
	return slices.ContainsFunc(c.plain, func(other counted) bool {
		return other.id != x.id && !other.own && other.content >= longTokens &&
			share < cutShare*float64(other.input-c.smallest[false])/float64(other.content)
	})
}

func misses(got, want int64) bool { return max(got-want, want-got) > corpus.OverheadTolerance }

func pointed(n *int, reason string) measure.Maybe[int] {
	if n == nil {
		return measure.Unknown[int](reason)
	}
	return measure.Known(*n, "")
}

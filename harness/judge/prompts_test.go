package judge

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/measure"
)

func ptr[T any](v T) *T { return &v }

// prompt is a plain planned request of a length by the profile's tokenizer.
func prompt(id string, content int) fixtures.Planned {
	return fixtures.Planned{ID: id, ContentTokens: &content, SharedPrefixTokens: ptr(40)}
}

// ownCounted is prompt with the same count by the engine's tokenizer, too.
func ownCounted(id string, content int) fixtures.Planned {
	p := prompt(id, content)
	p.EngineContentTokens = p.ContentTokens
	return p
}

// inputs are the figures of requests by their input counts, nothing of them cached.
func inputs(tokens map[string]int64) map[string]measure.Figures {
	figures := map[string]measure.Figures{}
	for id, n := range tokens {
		figures[id] = measure.Figures{InputTokens: measure.Known(n, ""), CachedTokens: measure.Known(int64(0), "")}
	}
	return figures
}

func cache(figures map[string]measure.Figures, id string, cached int64) {
	f := figures[id]
	f.CachedTokens = measure.Known(cached, "")
	figures[id] = f
}

var (
	whole      = measure.Known(false, "")
	outside    = measure.Known(true, "")
	lengthPlan = []fixtures.Planned{prompt("a", 60), prompt("b", 61), prompt("c", 70), prompt("4k", 4000), prompt("16k", 16000)}
	ownPlan    = []fixtures.Planned{ownCounted("a", 60), ownCounted("b", 61), ownCounted("c", 70), ownCounted("4k", 4000), ownCounted("16k", 16000)}
)

func maybeTokenizer() measure.Maybe[bool] { return measure.Unknown[bool](whyMaybeTokenizer) }

func TestAPromptThatWasCutIsOutsideTolerance(t *testing.T) {
	for _, c := range []struct {
		name         string
		long         int64
		own, profile measure.Maybe[bool] // by whose tokenizer the text was counted
	}{
		{"whole", 16011, whole, whole},
		{"two more", 16013, whole, whole},
		{"two fewer", 16009, whole, whole},
		{"three more", 16014, outside, maybeTokenizer()},
		{"three fewer", 16008, outside, maybeTokenizer()},
		{"cut by its head", 15000, outside, maybeTokenizer()},
		{"twice as many", 32000, outside, maybeTokenizer()},
		{"cut to three quarters", 12288, outside, maybeTokenizer()},
		{"cut to a window", 8192, outside, outside},
	} {
		for name, is := range map[string]struct {
			plan []fixtures.Planned
			want measure.Maybe[bool]
		}{"own count": {ownPlan, c.own}, "profile's count": {lengthPlan, c.profile}} {
			t.Run(c.name+", "+name, func(t *testing.T) {
				g := NewWithT(t)
				check := Prompts(is.plan, inputs(map[string]int64{"a": 71, "b": 72, "c": 81, "4k": 4011, "16k": c.long})).Check("16k")
				g.Expect(check.LengthOff).To(Equal(is.want))
				g.Expect(check.Faults()).To(HaveLen(map[bool]int{is.want.Value: 1}[true]))
				if is.want.Known {
					g.Expect(check.TemplateOverhead).To(Equal(measure.Known(c.long-16000, "")))
				} else {
					g.Expect(check.TemplateOverhead.Reason).To(Equal(whyMaybeTokenizer))
				}
			})
		}
	}
}

// Counts of o200k against the profile's qwen3, as the built-in pack's prompts have them: the short ones agree by chance.
func TestAnotherTokenizerThatAgreesOnShortPromptsIsNoFaultAtAnyMoment(t *testing.T) {
	g := NewWithT(t)
	const head = 50
	plan := []fixtures.Planned{}
	tokens := map[string]int64{}
	for _, r := range []struct {
		id            string
		content, miss int
	}{
		{"warmup", 25, 0},
		{"short-1", 27, -1}, {"4k-1", 4046, -257}, {"16k-1", 16334, -1298},
		{"short-2", 27, 0}, {"4k-2", 4046, -348}, {"16k-2", 16334, -1385},
		{"short-3", 27, -1}, {"4k-3", 4046, -301}, {"16k-3", 16334, -1340},
	} {
		plan = append(plan, prompt(r.id, r.content))
		tokens[r.id] = int64(r.content + head + r.miss)
		check := Prompts(plan, inputs(tokens)).Check(r.id)
		g.Expect(check.Faults()).To(BeEmpty(), r.id)
		if r.content > 1000 {
			g.Expect(check.LengthOff).To(Equal(maybeTokenizer()), r.id)
		}
	}
	for _, scale := range []float64{0.6, 0.8, 1.3, 4} { // larger vocabularies, a smaller one, bytes
		for id, n := range tokens {
			if n > 1000 {
				tokens[id] = int64(float64(n) * scale)
			}
		}
		for _, p := range plan {
			g.Expect(Prompts(plan, inputs(tokens)).Check(p.ID).Faults()).To(BeEmpty(), "%s × %v", p.ID, scale)
		}
	}
}

func TestACutIsSeenUnderAnyTokenizer(t *testing.T) {
	for name, tokens := range map[string]map[string]int64{
		"the profile's":               {"a": 71, "b": 72, "c": 81, "4k": 4011, "16k": 8192},
		"another":                     {"a": 71, "b": 72, "c": 81, "4k": 3700, "16k": 8192},
		"another that is known to be": {"a": 71, "b": 90, "c": 81, "4k": 5000, "16k": 8192},
		"all long ones were cut":      {"a": 71, "b": 72, "c": 81, "4k": 2048, "16k": 2048},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			check := Prompts(lengthPlan, inputs(tokens)).Check("16k")
			g.Expect(check.LengthOff).To(Equal(outside))
			g.Expect(check.Faults()).To(HaveExactElements(ContainSubstring("for a text of 16000")))
		})
	}
}

func TestTextsOfAnotherKindOrALongTemplateAreNoCut(t *testing.T) {
	for name, tokens := range map[string]map[string]int64{
		"a text that this tokenizer makes twice the tokens of":           {"a": 71, "4k": 8000, "16k": 14000},
		"a text of that kind too short to tell":                          {"a": 71, "900": 1900, "4k": 2450, "16k": 9650},
		"few tokens under a template of thousands, like no other's text": {"a": 2036, "4k": 4400, "16k": 11600},
	} {
		t.Run(name, func(t *testing.T) {
			plan := append([]fixtures.Planned{prompt("900", 900)}, lengthPlan...)
			NewWithT(t).Expect(Prompts(plan, inputs(tokens)).Check("16k").LengthOff.Known).To(BeFalse())
		})
	}
}

func TestManyCutPromptsDoNotOutvoteTheShortOnes(t *testing.T) {
	g := NewWithT(t)
	plan := []fixtures.Planned{ownCounted("l1", 16000), ownCounted("l2", 16000), ownCounted("l3", 16000), ownCounted("a", 60)}
	checks := Prompts(plan, inputs(map[string]int64{"a": 71, "l1": 2048, "l2": 2048, "l3": 2048}))
	for _, id := range []string{"l1", "l2", "l3"} {
		g.Expect(checks.Check(id).LengthOff).To(Equal(outside), id)
	}
	g.Expect(Prompts(plan[:2], inputs(map[string]int64{"l1": 2048, "l2": 2048})).Check("l1").LengthOff).To(Equal(outside),
		"a prompt cannot have fewer tokens than its own text, whatever others have")
}

func TestTheFirstRequestHasNothingToCompareWith(t *testing.T) {
	for _, plan := range [][]fixtures.Planned{lengthPlan, ownPlan} {
		check := Prompts(plan, inputs(map[string]int64{"a": 71})).Check("a")
		NewWithT(t).Expect(check.LengthOff.Reason).To(Equal(whyNoneToCompare))
	}
}

func TestShortPromptsThatDisagreeMeanAnotherTokenizer(t *testing.T) {
	for name, tokens := range map[string]map[string]int64{
		"they disagree":         {"a": 71, "b": 75, "16k": 17000},
		"fewer than their text": {"a": 58, "b": 59, "16k": 15000},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for id := range maps.Keys(tokens) {
				check := Prompts(lengthPlan, inputs(tokens)).Check(id)
				g.Expect(check.LengthOff.Reason).To(Equal(whyOtherTokenizer))
				g.Expect(check.TemplateOverhead.Reason).To(Equal(whyOtherTokenizer))
				g.Expect(check.Faults()).To(BeEmpty())
			}
		})
	}
}

func TestTheEnginesOwnCountIsPreferred(t *testing.T) {
	g := NewWithT(t)
	plan := []fixtures.Planned{prompt("a", 50), prompt("b", 90), prompt("long", 1)}
	for i, n := range []int{60, 61, 16000} {
		plan[i].EngineContentTokens = ptr(n)
	}
	tokens := map[string]int64{"a": 71, "b": 72, "long": 16011}
	g.Expect(Prompts(plan, inputs(tokens)).Check("long").LengthOff).To(Equal(whole))
	tokens["b"] = 80
	g.Expect(Prompts(plan, inputs(tokens)).Check("b").LengthOff).To(Equal(outside), "the engine's own count cannot be another tokenizer's")
}

func TestAPinnedLengthIsWhatCounts(t *testing.T) {
	for input, want := range map[int64]bool{98: false, 100: false, 102: false, 97: true, 103: true} {
		plan := []fixtures.Planned{{ID: "t", Tools: true, FrozenInputTokens: ptr(100)}}
		check := Prompts(plan, inputs(map[string]int64{"t": input})).Check("t")
		g := NewWithT(t)
		g.Expect(check.LengthOff).To(Equal(measure.Known(want, "")), "%d", input)
		g.Expect(len(check.Faults()) > 0).To(Equal(want))
	}
}

func TestToolsAreNotComparedWithPlainPrompts(t *testing.T) {
	g := NewWithT(t)
	tool := prompt("t", 60)
	tool.Tools = true
	checks := Prompts(append([]fixtures.Planned{tool}, lengthPlan...), inputs(map[string]int64{"t": 340, "a": 71, "b": 72}))
	g.Expect(checks.Check("t").LengthOff.Reason).To(Equal(whyToolsInHead))
	g.Expect(checks.Check("a").LengthOff).To(Equal(whole))
}

func TestReuseIsMoreFromACacheThanPromptsShare(t *testing.T) {
	for cached, want := range map[int64]bool{0: false, 40: false, 41: true} {
		figures := inputs(map[string]int64{"a": 71})
		cache(figures, "a", cached)
		check := Prompts(lengthPlan, figures).Check("a")
		g := NewWithT(t)
		g.Expect(check.Reused).To(Equal(measure.Known(want, "")), "%d", cached)
		g.Expect(len(check.Faults()) > 0).To(Equal(want))
	}
}

func TestReuseIsSeenWithoutATokenizer(t *testing.T) {
	plan := []fixtures.Planned{{ID: "warmup"}, {ID: "16k"}, {ID: "tool", Tools: true}, {ID: "tool2", Tools: true}}
	for _, c := range []struct {
		id     string
		cached int64
		want   bool
	}{
		{"16k", 14010, true}, {"16k", 76, true}, {"16k", 75, false}, {"16k", 0, false},
		{"tool", 325, false}, {"tool", 326, true}, {"warmup", 75, false},
	} {
		g := NewWithT(t)
		figures := inputs(map[string]int64{"warmup": 75, "16k": 14016, "tool": 352, "tool2": 325})
		cache(figures, c.id, c.cached)
		check := Prompts(plan, figures).Check(c.id)
		g.Expect(check.SharedPrefix).To(Equal(measure.Unknown[int](whyPrefixUncounted)))
		g.Expect(check.Reused).To(Equal(measure.Known(c.want, "")), "%d tokens of %s", c.cached, c.id)
		g.Expect(len(check.Faults()) > 0).To(Equal(c.want))
	}
}

func TestWhatWasSeenAsReuseIsNotTakenBackByLaterRequests(t *testing.T) {
	g := NewWithT(t)
	plan := []fixtures.Planned{{ID: "first"}, {ID: "shorter"}}
	figures := inputs(map[string]int64{"first": 100})
	cache(figures, "first", 90)
	g.Expect(Prompts(plan, figures).Check("first").Reused).To(Equal(whole), "the head may be that long, for all that is known")
	figures["shorter"] = inputs(map[string]int64{"x": 80})["x"]
	g.Expect(Prompts(plan, figures).Check("first").Reused).To(Equal(outside))
}

func TestWhatCannotBeCheckedSaysWhy(t *testing.T) {
	g := NewWithT(t)
	unknown := Prompts(lengthPlan, map[string]measure.Figures{"a": {}}).Check("a")
	g.Expect(unknown.Reused.Reason).To(Equal(whyNoCached))
	g.Expect(unknown.LengthOff.Reason).To(Equal(whyNoInput))
	bare := []fixtures.Planned{{ID: "x"}}
	g.Expect(Prompts(bare, inputs(map[string]int64{"x": 9})).Check("x").LengthOff.Reason).To(Equal(whyUncounted))
	noInput := map[string]measure.Figures{"x": {CachedTokens: measure.Known(int64(5), "")}}
	g.Expect(Prompts(bare, noInput).Check("x").Reused.Reason).To(Equal(whyNoInput))
	stray := Prompts(lengthPlan, nil).Check("stray")
	reasons := []string{stray.SharedPrefix.Reason, stray.Pinned.Reason, stray.Reused.Reason, stray.LengthOff.Reason, stray.TemplateOverhead.Reason}
	g.Expect(slices.Compact(reasons)).To(Equal([]string{whyNotPlanned}))
	g.Expect(stray.Faults()).To(BeEmpty())
}

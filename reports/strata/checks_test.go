package strata

import (
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/measure"
)

// prompt is a plain planned request of a known length.
func prompt(id string, content int) fixtures.Planned {
	return fixtures.Planned{ID: id, ContentTokens: &content, SharedPrefixTokens: ptr(40)}
}

// counted are the figures of requests by their input counts.
func counted(inputs map[string]int64) map[string]measure.Figures {
	figures := map[string]measure.Figures{}
	for id, n := range inputs {
		figures[id] = measure.Figures{InputTokens: measure.Known(n, ""), CachedTokens: measure.Known(int64(0), "")}
	}
	return figures
}

var lengthPlan = []fixtures.Planned{prompt("a", 60), prompt("b", 61), prompt("c", 70), prompt("long", 16000)}

func TestAPromptThatWasCutIsOutsideTolerance(t *testing.T) {
	for _, c := range []struct {
		name string
		long int64
		off  bool
	}{
		{"whole", 16011, false}, {"two more", 16013, false}, {"two fewer", 16009, false}, {"three more", 16014, true},
		{"three fewer", 16008, true}, {"cut to a window", 8192, true}, {"cut by its head", 15990, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			check := Check(lengthPlan, "long", counted(map[string]int64{"a": 71, "b": 72, "c": 81, "long": c.long}))
			off, known := check.LengthOff.Get()
			g.Expect(known).To(BeTrue())
			g.Expect(off).To(Equal(c.off))
			overhead, _ := check.TemplateOverhead.Get()
			g.Expect(overhead).To(Equal(c.long - 16000))
			g.Expect(len(check.Faults()) > 0).To(Equal(c.off))
		})
	}
}

func TestManyCutPromptsDoNotOutvoteTheShortOnes(t *testing.T) {
	g := NewWithT(t)
	plan := append([]fixtures.Planned{prompt("l2", 16000), prompt("l3", 16000), prompt("l4", 16000)}, lengthPlan[0], lengthPlan[3])
	figures := counted(map[string]int64{"a": 71, "long": 2048, "l2": 2048, "l3": 2048, "l4": 2048})
	for _, id := range []string{"long", "l2", "l3", "l4"} {
		off, known := Check(plan, id, figures).LengthOff.Get()
		g.Expect(known && off).To(BeTrue(), id)
	}
	off, known := Check(plan, "a", figures).LengthOff.Get()
	g.Expect(known && !off).To(BeFalse(), "with no other short prompt there is nothing sound to hold this one against")
}

func TestTheFirstRequestHasNothingToCompareWith(t *testing.T) {
	check := Check(lengthPlan, "a", counted(map[string]int64{"a": 71}))
	NewWithT(t).Expect(check.LengthOff.Reason()).To(Equal(whyNoneToCompare))
}

func TestShortPromptsThatDisagreeMeanAnotherTokenizer(t *testing.T) {
	for name, inputs := range map[string]map[string]int64{
		"they disagree":         {"a": 71, "b": 75, "long": 17000},
		"fewer than their text": {"a": 58, "b": 59, "long": 15000},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, id := range []string{"a", "b", "long"} {
				check := Check(lengthPlan, id, counted(inputs))
				g.Expect(check.LengthOff.Reason()).To(Equal(whyOtherTokenizer))
				g.Expect(check.TemplateOverhead.Reason()).To(Equal(whyOtherTokenizer))
				g.Expect(check.Faults()).To(BeEmpty())
			}
		})
	}
}

func TestARunOnAnotherTokenizerSaysThatLengthsAreUnchecked(t *testing.T) {
	g := NewWithT(t)
	all := referenceReplies(t)
	all.edit("performance-short-r2", func(f *measure.Figures) {
		f.InputTokens.Value, f.ReadTokens.Value, f.PromptTPS.Value = 82, 82, rounded(82/0.4727)
	})
	d, data := mustBuild(t, referenceRun(t), all)
	g.Expect(d.Extensions.StatusReasonCodes).To(HaveExactElements("length_unchecked"))
	g.Expect(Validate(data, nil)).To(BeEmpty())
}

func TestTheEnginesOwnCountIsPreferred(t *testing.T) {
	g := NewWithT(t)
	plan := []fixtures.Planned{prompt("a", 50), prompt("b", 90), prompt("long", 1)}
	for i, n := range []int{60, 61, 16000} {
		plan[i].EngineContentTokens = ptr(n)
	}
	inputs := map[string]int64{"a": 71, "b": 72, "long": 16011}
	off, known := Check(plan, "long", counted(inputs)).LengthOff.Get()
	g.Expect(known).To(BeTrue())
	g.Expect(off).To(BeFalse())
	inputs["b"] = 80
	off, known = Check(plan, "b", counted(inputs)).LengthOff.Get()
	g.Expect(known && off).To(BeTrue(), "the engine's own count cannot be another tokenizer's")
	g.Expect(newChecker(plan, counted(inputs)).otherTokenizer).To(BeFalse())
}

func TestAPinnedLengthIsWhatCounts(t *testing.T) {
	for input, want := range map[int64]bool{98: false, 100: false, 102: false, 97: true, 103: true} {
		plan := []fixtures.Planned{{ID: "t", Tools: true, FrozenInputTokens: ptr(100)}}
		off, known := Check(plan, "t", counted(map[string]int64{"t": input})).LengthOff.Get()
		g := NewWithT(t)
		g.Expect(known).To(BeTrue())
		g.Expect(off).To(Equal(want), "%d", input)
	}
}

func TestToolsAreNotComparedWithPlainPrompts(t *testing.T) {
	g := NewWithT(t)
	tool := prompt("t", 60)
	tool.Tools = true
	plan := append([]fixtures.Planned{tool}, lengthPlan...)
	figures := counted(map[string]int64{"t": 340, "a": 71, "b": 72})
	g.Expect(Check(plan, "t", figures).LengthOff.Reason()).To(Equal(whyToolsInHead))
	off, known := Check(plan, "a", figures).LengthOff.Get()
	g.Expect(known && !off).To(BeTrue())
}

func TestReuseIsMoreFromACacheThanPromptsShare(t *testing.T) {
	for cached, want := range map[int64]bool{0: false, 40: false, 41: true} {
		figures := counted(map[string]int64{"a": 71})
		f := figures["a"]
		f.CachedTokens = measure.Known(cached, "")
		figures["a"] = f
		check := Check(lengthPlan, "a", figures)
		reused, known := check.PayloadReuse.Get()
		g := NewWithT(t)
		g.Expect(known).To(BeTrue())
		g.Expect(reused).To(Equal(want), "%d", cached)
		g.Expect(len(check.Faults()) > 0).To(Equal(want))
	}
}

func TestWhatCannotBeCheckedSaysWhy(t *testing.T) {
	g := NewWithT(t)
	unknown := map[string]measure.Figures{"a": {}}
	g.Expect(Check(lengthPlan, "a", unknown).PayloadReuse.Reason()).To(Equal(whyNoCached))
	g.Expect(Check(lengthPlan, "a", unknown).LengthOff.Reason()).To(Equal(whyNoInput))
	bare := []fixtures.Planned{{ID: "x"}}
	check := Check(bare, "x", counted(map[string]int64{"x": 9}))
	g.Expect(check.PayloadReuse.Reason()).To(Equal(whyPrefixUncounted))
	g.Expect(check.LengthOff.Reason()).To(Equal(whyUncounted))
	g.Expect(Check(lengthPlan, "stray", nil).LengthOff.Reason()).To(Equal(whyNotPlanned))
}

package measure

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/harness/transcript"
)

func TestEngineSecondsThatCannotBeTrueAreUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		ms     *float64
		reason string
		broken bool
	}{
		"not sent":             {nil, "not sent", false},
		"zero":                 {some(0.0), "zero", false},
		"negative":             {some(-3.0), "negative", true},
		"over the client's":    {some(2044.7), "longer than the whole request", true},
		"a hair over":          {some(2044.6), "", false},
		"rounds to nothing":    {some(0.04), "less than the 4 decimals", false},
		"a plausible interval": {some(513.3), "", false},
	} {
		for _, field := range []string{"prompt", "decode"} {
			e, tr := whole()
			tr.Timings.PredictedPerSecond = nil
			seconds := func(f Figures) Maybe[float64] { return f.PromptSeconds }
			rate := func(f Figures) Maybe[float64] { return f.PromptTPS }
			if field == "prompt" {
				tr.Timings.PromptMS = c.ms
			} else {
				tr.Timings.PredictedMS = c.ms
				seconds = func(f Figures) Maybe[float64] { return f.DecodeSeconds }
				rate = func(f Figures) Maybe[float64] { return f.DecodeTPS }
			}
			f := Of(e, tr)
			g := NewWithT(t)
			g.Expect(seconds(f).Known).To(Equal(c.reason == ""), "%s %s", field, name)
			g.Expect(rate(f).Known).To(Equal(c.reason == ""), "%s %s", field, name)
			g.Expect(seconds(f).Reason).To(ContainSubstring(c.reason), name)
			g.Expect(len(f.Broken) > 0).To(Equal(c.broken), "%s %s: %v", field, name, f.Broken)
			explained(t, f)
		}
	}
}

func TestARateThatRoundingCouldMoveIsUnknown(t *testing.T) {
	for ms, known := range map[float64]bool{4.9: false, 5.1: true} { // half of 0.1 ms is 1 % of 5 ms
		e, tr := whole()
		tr.Timings.PromptMS = &ms
		f := Of(e, tr)
		NewWithT(t).Expect(f.PromptTPS.Known).To(Equal(known), "%v ms", ms)
		NewWithT(t).Expect(f.PromptSeconds.Known).To(BeTrue())
	}
}

func TestTheDecodeConvention(t *testing.T) {
	for name, c := range map[string]struct {
		n      int64
		ms     float64
		rate   *float64
		want   Convention
		broken bool
	}{
		"all tokens":               {128, 1477.6, some(86.6), AllTokens, false},
		"after the first":          {14, 2.73, some(13 / 2.73 * 1000), AfterFirst, false},
		"one token":                {1, 0.001, some(0.0), AfterFirst, false},
		"long, rounded":            {512, 20000, some(25.6), NotDetermined, false},
		"long, not rounded":        {512, 20000, some(25.55), AfterFirst, false},
		"long, with more decimals": {512, 20001.37, some(511 / 20.00137), AfterFirst, false},
		"at the tolerance's edge":  {512, 9000, some(56.9), AllTokens, false},
		"two decimals":             {512, 12377.3, some(41.37), AllTokens, false},
		"whole milliseconds":       {512, 12377, some(41.37), AllTokens, false},
		"contradiction":            {512, 1477.6, some(86.6), NotDetermined, true},
		"no rate":                  {128, 1477.6, nil, NotDetermined, false},
	} {
		e, tr := whole()
		e.End.At = time.Minute
		tr.Usage.CompletionTokens = &c.n
		tr.Timings.PredictedN, tr.Timings.PredictedMS, tr.Timings.PredictedPerSecond = &c.n, &c.ms, c.rate
		f := Of(e, tr)
		NewWithT(t).Expect(f.Convention).To(Equal(c.want), name)
		NewWithT(t).Expect(len(f.Broken) > 0).To(Equal(c.broken), "%s: %v", name, f.Broken)
		NewWithT(t).Expect(f.DecodeTokens.Known).To(BeTrue(), name)
		if c.broken {
			NewWithT(t).Expect(f.DecodeTPS.Known).To(BeFalse(), name)
		}
	}
}

func TestABlockOfTimingsThatTellsNoTimeLeavesTheRatesToTheClient(t *testing.T) {
	g := NewWithT(t)
	e, tr := whole()
	tr.Timings = &transcript.Timings{Raw: []byte(`{"queue_ms":3}`)}
	f := Of(e, tr)
	g.Expect(f.Basis).To(Equal(ClientBasis))
	g.Expect(f.DecodeTPS).To(Equal(f.ClientDecodeTPS))
	g.Expect(f.DecodeTPS.Known).To(BeTrue())
	explained(t, f)
}

func TestAnErrorsTextCannotWriteOverATerminal(t *testing.T) {
	g := NewWithT(t)
	e, tr := whole()
	tr.Error = &transcript.APIError{Message: "no\x1b[2J room\x1b]0;title\x07"}
	g.Expect(Of(e, tr).Error.Value).To(HaveSuffix("no [2J room ]0;title "))
}

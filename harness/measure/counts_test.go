package measure

import (
	"testing"

	"plumbline/fixtures"
	"plumbline/harness/transcript"

	. "github.com/onsi/gomega"
)

func TestACountThatIsMissingIsToldFromOneThatIsNoNumber(t *testing.T) {
	const wrong, absent = " was not sent as a whole number", " was not sent"
	for raw, want := range map[string][3]string{ // prompt, completion, cached
		`{}`: {absent, absent, absent},
		`{"prompt_tokens":null,"completion_tokens":"7","prompt_tokens_details":null}`:                   {absent, wrong, absent},
		`{"prompt_tokens":1.5,"prompt_tokens_details":{"cached_tokens":[]}}`:                            {wrong, absent, wrong},
		`{"prompt_tokens":{},"completion_tokens":false,"prompt_tokens_details":{}}`:                     {wrong, wrong, absent},
		`{"prompt_tokens":"x","completion_tokens":null,"prompt_tokens_details":{"cached_tokens":null}}`: {wrong, absent, absent},
		`{"prompt_tokens":NaN}`: {wrong, absent, absent},
	} {
		e, tr := whole()
		tr.Usage, tr.Timings = &transcript.Usage{Raw: []byte(raw)}, nil
		f := Of(e, tr)
		g := NewWithT(t)
		for i, x := range []struct {
			got  Maybe[int64]
			name string
		}{{f.InputTokens, "usage.prompt_tokens of the last usage object"}, {f.OutputTokens, "usage.completion_tokens of the last usage object"},
			{f.CachedTokens, "usage.prompt_tokens_details.cached_tokens"}} {
			g.Expect(x.got).To(Equal(Unknown[int64](x.name+want[i])), raw)
		}
	}
	e, tr := whole()
	tr.Timings = &transcript.Timings{Raw: []byte(`{"prompt_n":"75","predicted_n":null}`)}
	f := Of(e, tr)
	g := NewWithT(t)
	g.Expect(f.ReadTokens).To(Equal(Unknown[int64]("timings.prompt_n" + wrong)))
	g.Expect(f.DecodeTokens).To(Equal(Unknown[int64]("timings.predicted_n" + absent)))
}

func TestACountThatCannotBeTrueMakesNoRate(t *testing.T) {
	asks := func(body string) edit {
		return func(e *fixtures.Exchange, _ *transcript.Transcript) { e.Request.Body = []byte(body) }
	}
	const over = "usage.completion_tokens is 128, and the request allows "
	for name, c := range map[string]struct {
		edit   edit
		broken string // the beginning of the sentence
		client bool   // the client's rate is known
	}{
		"the limit itself":    {asks(`{"stream":true,"max_tokens":128}`), "", true},
		"one more":            {asks(`{"stream":true,"max_tokens":127}`), "", true},
		"two more":            {asks(`{"stream":true,"max_tokens":126}`), over + "126", false},
		"the newer name":      {asks(`{"stream":true,"max_completion_tokens":64}`), over + "64", false},
		"the smaller of both": {asks(`{"stream":true,"max_completion_tokens":64,"max_tokens":500}`), over + "64", false},
		"none":                {asks(`{"stream":true,"max_tokens":-1,"max_completion_tokens":null}`), "", true},
		"no number":           {asks(`{"stream":true,"max_tokens":"9","n":1}`), "", true},
		"of two choices":      {asks(`{"stream":true,"max_tokens":64,"n":2}`), "", true},
		"two choices' limits": {asks(`{"stream":true,"max_tokens":60,"n":2}`), over + "120", false},
		"a count of billions": {func(_ *fixtures.Exchange, t *transcript.Transcript) {
			t.Timings, t.Usage.CompletionTokens = nil, some(int64(1_000_000_001))
		}, "usage.completion_tokens is 1000000001, more than", false},
		"a count of a billion": {func(_ *fixtures.Exchange, t *transcript.Transcript) {
			t.Timings, t.Usage.CompletionTokens = nil, some(int64(1_000_000_000))
		}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e, tr := whole()
			tr.Deltas = append(tr.Deltas, tr.Deltas[3])
			c.edit(e, tr)
			f := Of(e, tr)
			g.Expect(f.OutputTokens.Known).To(BeTrue())
			g.Expect(f.ClientDecodeTPS.Known).To(Equal(c.client))
			explained(t, f)
			if c.broken == "" {
				g.Expect(f.Broken).To(BeEmpty())
				return
			}
			g.Expect(f.Broken).To(ContainElement(HavePrefix(c.broken)))
			g.Expect(f.Broken).To(ContainElement(f.ClientDecodeTPS.Reason))
		})
	}
}

func TestAnEngineCountThatCannotBeTrueMakesNoRate(t *testing.T) {
	const many = 2_000_000_000
	e, tr := whole()
	tr.Timings.PromptN, tr.Timings.PredictedN, tr.Timings.PredictedPerSecond = some(int64(many)), some(int64(many)), nil
	f := Of(e, tr)
	g := NewWithT(t)
	for field, rates := range map[string][]Maybe[float64]{
		"timings.prompt_n":    {f.PromptTPS, f.EnginePromptTPS},
		"timings.predicted_n": {f.DecodeTPS, f.EngineDecodeTPS},
	} {
		want := field + " is 2000000000, more than any request can have"
		g.Expect(f.Broken).To(ContainElement(want))
		for _, rate := range rates {
			g.Expect(rate).To(Equal(Unknown[float64](want)))
		}
	}
	g.Expect(f.ClientDecodeTPS.Known).To(BeTrue(), "usage is another account")

	e, tr = whole()
	tr.Usage.PromptTokens, tr.Usage.CachedTokens = some(int64(many)), some(int64(many))
	f = Of(e, tr)
	g.Expect(f.Broken).To(ContainElements(HavePrefix("usage.prompt_tokens is 2000000000, more"),
		HavePrefix("the count of cached tokens is 2000000000, more")))
}

package mockserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
)

// TestBuiltInCorpusIsAnsweredRightly sends every prompt of the built-in pack as the standard protocol does.
func TestBuiltInCorpusIsAnsweredRightly(t *testing.T) {
	built, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	budgets := map[string]int{corpus.PhaseWarmup: corpus.WarmupMaxTokens,
		corpus.PhasePerformance: corpus.PerformanceMaxTokens, corpus.PhaseSanity: corpus.SanityMaxTokens}
	s := engine(t, Options{})
	judged := 0
	for _, p := range built.Prompts {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			more := fmt.Sprintf(`%s,"seed":1,"max_tokens":%d`, usageAsked, budgets[p.Phase])
			if p.Tools != nil {
				more += `,"tools":` + string(p.Tools)
			}
			rec := newRecorder()
			post(t, s, rec, body(p.Text, more))
			h := hear(t, rec.answer())
			g.Expect(h.reasoning).NotTo(BeEmpty(), p.ID)
			if p.Tools == nil {
				g.Expect(h.usage["prompt_tokens"]).To(Equal(float64(headTokens+p.ContentTokens[built.Tokenizer])), p.ID)
			}
			if p.Expect == nil {
				g.Expect(h.finish).To(Or(Equal("stop"), Equal("length")), p.ID)
				return
			}
			judged++
			switch p.Expect.Kind {
			case corpus.ExpectText:
				g.Expect(strings.TrimSpace(h.content)).To(Equal(p.Expect.Text), p.ID)
			case corpus.ExpectJSON:
				g.Expect(h.content).To(MatchJSON(p.Expect.JSON), p.ID)
			case corpus.ExpectToolCall:
				g.Expect(h.name).To(Equal(p.Expect.Call.Name), p.ID)
				g.Expect(json.RawMessage(h.arguments)).To(MatchJSON(p.Expect.Call.Arguments), p.ID)
				g.Expect(h.content).To(BeEmpty(), p.ID)
			}
			g.Expect(h.finish).To(Equal(map[bool]string{true: "tool_calls", false: "stop"}[p.Expect.Kind == corpus.ExpectToolCall]), p.ID)
		})
	}
	NewWithT(t).Expect(judged).To(Equal(len(corpus.SanityCases)))
}

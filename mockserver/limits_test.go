package mockserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestBudgetEndsTheReplyWhereverItIs(t *testing.T) {
	s, c := start(t, Options{Pack: pack})
	p := pack.Prompts[2]
	whole := generate(speech{reasoning: p.Answer.Reasoning, call: p.Answer.Call}, 1000, nil)
	thought := whole.count(reasoning)
	for n := 1; n <= len(whole.tokens); n++ {
		g := NewWithT(t)
		field := []string{"max_tokens", "max_completion_tokens"}[n%2]
		more := fmt.Sprintf(`"tools":[%s],%q:%d`, bookTable, field, n)
		h := hear(t, chat(t, s, c, body(p.Text, usageAsked+","+more)))
		g.Expect(h.usage["completion_tokens"]).To(Equal(float64(n)))
		g.Expect(h.pieces).To(HaveLen(n))
		g.Expect(p.Answer.Reasoning).To(HavePrefix(h.reasoning))
		g.Expect(compact(p.Answer.Call.Arguments)).To(HavePrefix(h.arguments))
		g.Expect(h.name == "").To(Equal(n <= thought))
		if n == len(whole.tokens) {
			g.Expect(h.finish).To(Equal("tool_calls"))
			g.Expect(json.Valid([]byte(h.arguments))).To(BeTrue())
			continue
		}
		g.Expect(h.finish).To(Equal("length"))
	}
	g := NewWithT(t)
	cut := chat(t, s, c, body(p.Text, `"max_tokens":2`)).json(t)["choices"].([]any)[0].(map[string]any)
	g.Expect(cut["finish_reason"]).To(Equal("length"))
	g.Expect(cut["message"]).To(And(HaveKeyWithValue("content", ""), HaveKeyWithValue("reasoning_content", Not(BeEmpty()))))
}

func TestBudgetDoesNotChangeTheText(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{})
	long := hear(t, chat(t, s, c, body("hello", `"stream":true,"seed":5`)))
	g.Expect(long.finish).To(Equal("stop"))
	for _, n := range []int{10, 200} {
		short := hear(t, chat(t, s, c, body("hello", fmt.Sprintf(`"stream":true,"seed":5,"max_tokens":%d`, n))))
		g.Expect(long.reasoning + long.content).To(HavePrefix(short.reasoning + short.content))
		g.Expect(short.pieces).To(HaveLen(n))
	}
	free := hear(t, chat(t, s, c, body("hello", `"stream":true,"seed":5,"max_tokens":-1`)))
	g.Expect(free.content).To(Equal(long.content), "-1 is no limit")
	both := hear(t, chat(t, s, c, body("hello", usageAsked+`,"max_tokens":9,"max_completion_tokens":4`)))
	g.Expect(both.usage["completion_tokens"]).To(Equal(4.0), "the smaller of two limits holds")
}

func TestReplyEndsBeforeAStopString(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		stops      []string
		budget     int
		shown      string
		tokens     int // generated in the answer, those of the stop string included
		finish     string
	}{
		{"at a token's edge", "one two three", []string{" two"}, 99, "one", 2, "stop"},
		{"inside a token", "one two three", []string{"wo t"}, 99, "one t", 3, "stop"},
		{"over several tokens", "a longer sentence, you see", []string{"sentence, y"}, 99, "a longer ", 7, "stop"},
		{"at the very start", "stop here", []string{"st"}, 99, "", 1, "stop"},
		{"the one complete first wins", "alpha beta gamma", []string{"gamma", "beta g", "eta"}, 99, "alpha b", 2, "stop"},
		{"of two complete together the longer", "alpha beta", []string{"ta", "eta"}, 99, "alpha b", 2, "stop"},
		{"not there", "alpha beta", []string{"delta"}, 99, "alpha beta", 2, "stop"},
		{"complete only past the budget", "one two three four", []string{"two three"}, 2, "one two", 2, "length"},
		{"complete with the last token", "one two three four", []string{"two"}, 2, "one ", 2, "stop"},
		{"not valid UTF-8 apart", "naïve ☂☂ end", []string{"☂☂"}, 99, "naïve ", 4, "stop"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			// The thinking holds every stop string and is left alone.
			r := generate(speech{reasoning: tc.text, content: tc.text}, countPieces(tc.text)+tc.budget, tc.stops)
			g.Expect(r.text(reasoning)).To(Equal(tc.text))
			g.Expect(r.text(content)).To(Equal(tc.shown))
			g.Expect(r.count(content)).To(Equal(tc.tokens))
			g.Expect(r.finish).To(Equal(tc.finish))
		})
	}
}

func TestStopStringIsNeverSeenInTheStream(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{})
	whole := hear(t, chat(t, s, c, body("hello", `"stream":true`))).content
	stop := whole[40:52]
	for _, form := range []string{`"stop":%q`, `"stop":["never there",%q]`} {
		h := hear(t, chat(t, s, c, body("hello", usageAsked+","+fmt.Sprintf(form, stop))))
		g.Expect(h.content).To(Equal(whole[:strings.Index(whole, stop)]))
		g.Expect(h.finish).To(Equal("stop"))
		g.Expect(h.usage["completion_tokens"]).To(Equal(h.timings["predicted_n"]))
		g.Expect(h.usage["completion_tokens"]).To(BeNumerically(">", len(h.pieces)), "the stop string's tokens were generated")
	}
}

func TestPromptIsRefusedRatherThanCut(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Pack: pack, ContextTokens: 124})
	p := pack.Prompts[0].Text // 101 tokens
	u := chat(t, s, c, body(p, `"max_tokens":23`)).json(t)["usage"]
	g.Expect(u).To(And(HaveKeyWithValue("prompt_tokens", 101.0), HaveKeyWithValue("total_tokens", 124.0)))
	free := chat(t, s, c, body(p, "")).json(t)
	g.Expect(free["usage"]).To(HaveKeyWithValue("total_tokens", 124.0))
	g.Expect(free["choices"]).To(HaveExactElements(HaveKeyWithValue("finish_reason", "length")))

	for _, more := range []string{`"max_tokens":24`, `"max_tokens":9223372036854775807`, `"stream":true,"max_completion_tokens":24`} {
		a := chat(t, s, c, body(p, more))
		g.Expect(a.status).To(Equal(http.StatusBadRequest))
		g.Expect(a.json(t)["error"]).To(And(HaveKeyWithValue("type", "exceed_context_size_error"),
			HaveKeyWithValue("code", "context_length_exceeded"),
			HaveKeyWithValue("n_prompt_tokens", 101.0), HaveKeyWithValue("n_ctx", 124.0)))
	}
	long := chat(t, s, c, body(strings.Repeat("word ", 100), ""))
	g.Expect(long.status).To(Equal(http.StatusBadRequest))
}

func TestFormattedReplyFollowsItsSchema(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Pack: pack})
	schema := `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":120}},
		"required":["name","age"],"additionalProperties":false}`
	h := hear(t, chat(t, s, c, body("hello",
		`"stream":true,"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":`+schema+`}}`)))
	expectValid(g, schema, []byte(h.content))
	g.Expect(h.reasoning).NotTo(BeEmpty())
	h = hear(t, chat(t, s, c, body("hello", `"stream":true,"response_format":{"type":"json_object"}`)))
	var object map[string]any
	g.Expect(json.Unmarshal([]byte(h.content), &object)).To(Succeed())
	g.Expect(object).NotTo(BeEmpty())
	h = hear(t, chat(t, s, c, body(pack.Prompts[1].Text, `"stream":true,"response_format":{"type":"text"}`)))
	g.Expect(h.content).To(Equal(pack.Prompts[1].Answer.Text))
}

package mockserver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
)

const usageAsked = `"stream":true,"stream_options":{"include_usage":true}`

func TestStreamKeepsTheOrderOfLlamaServer(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Pack: pack})
	a := pack.Prompts[1]
	h := hear(t, chat(t, s, c, body(a.Text, usageAsked)))

	n := len(h.chunks)
	g.Expect(h.chunks[0]["choices"]).To(Equal([]any{map[string]any{
		"index": 0.0, "finish_reason": nil, "delta": map[string]any{"role": "assistant", "content": nil}}}))
	g.Expect(h.chunks[n-2]["choices"]).To(Equal([]any{map[string]any{
		"index": 0.0, "finish_reason": "stop", "delta": map[string]any{}}}))
	g.Expect(h.chunks[n-2]).NotTo(Or(HaveKey("usage"), HaveKey("timings")))
	g.Expect(h.chunks[n-1]).To(And(HaveKeyWithValue("choices", []any{}), HaveKey("usage"), HaveKey("timings")))
	for _, chunk := range h.chunks[1 : n-2] {
		g.Expect(chunk).NotTo(Or(HaveKey("usage"), HaveKey("timings")))
		g.Expect(chunk["choices"]).To(HaveExactElements(HaveKeyWithValue("finish_reason", BeNil())))
	}

	g.Expect(h.reasoning).To(Equal(a.Answer.Reasoning))
	g.Expect(h.content).To(Equal(a.Answer.Text))
	thought := countPieces(a.Answer.Reasoning)
	total := thought + countPieces(a.Answer.Text)
	g.Expect(h.pieces).To(HaveLen(total), "one token a chunk")
	for i, delta := range h.pieces {
		g.Expect(delta).To(HaveLen(1))
		if i < thought {
			g.Expect(delta).To(HaveKey("reasoning_content"))
		} else {
			g.Expect(delta).To(HaveKey("content"))
		}
	}
	g.Expect(h.usage).To(Equal(map[string]any{
		"prompt_tokens": 62.0, "completion_tokens": float64(total), "total_tokens": float64(62 + total),
		"prompt_tokens_details":     map[string]any{"cached_tokens": 0.0},
		"completion_tokens_details": map[string]any{"reasoning_tokens": float64(thought)},
	}))
	checkTimings(g, h.timings, 62, total)
}

// checkTimings holds what the engine's clock must say at the fast pace, whatever the machine's load.
func checkTimings(g *WithT, timings map[string]any, promptTokens, tokens int) {
	fast := paces[0]
	g.Expect(timings).To(HaveLen(9))
	g.Expect(timings["cache_n"]).To(Equal(0.0))
	g.Expect(timings["prompt_n"]).To(Equal(float64(promptTokens)))
	g.Expect(timings["predicted_n"]).To(Equal(float64(tokens)))
	g.Expect(timings["prompt_ms"]).To(BeNumerically(">=", fast.Prefill(promptTokens).Seconds()*1000-0.001))
	g.Expect(timings["predicted_ms"]).To(BeNumerically(">=", fast.PerToken().Seconds()*1000*float64(tokens)-0.001))
	for n, part := range map[float64]string{float64(promptTokens): "prompt", float64(tokens): "predicted"} {
		ms := timings[part+"_ms"].(float64)
		g.Expect(timings[part+"_per_token_ms"]).To(BeNumerically("~", ms/n, 1e-9))
		g.Expect(timings[part+"_per_second"]).To(BeNumerically("~", n/ms*1000, 1e-6))
	}
}

func TestStreamWithoutUsageHasTimingsInTheFinishChunk(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Pack: pack})
	for _, more := range []string{`"stream":true`, `"stream":true,"stream_options":{"include_usage":false}`} {
		a := chat(t, s, c, body(pack.Prompts[1].Text, more))
		h := hear(t, a)
		g.Expect(string(a.body)).NotTo(ContainSubstring(`"usage"`))
		last := h.chunks[len(h.chunks)-1]
		g.Expect(last).To(HaveKey("timings"))
		g.Expect(last["choices"]).To(HaveExactElements(HaveKeyWithValue("finish_reason", "stop")))
	}
}

func TestReplyInOnePieceSaysWhatTheStreamSays(t *testing.T) {
	g := NewWithT(t)
	epoch := time.Unix(1700000000, 0)
	s, c := start(t, Options{Pack: pack, Epoch: epoch})
	for _, p := range pack.Prompts {
		more := `"max_tokens":60,"tools":[` + bookTable + `]`
		h := hear(t, chat(t, s, c, body(p.Text, usageAsked+","+more)))
		whole := chat(t, s, c, body(p.Text, more)).json(t)
		g.Expect(whole["object"]).To(Equal("chat.completion"))
		g.Expect(whole["created"]).To(Equal(1700000000.0))
		g.Expect(whole["id"]).To(MatchRegexp(`^chatcmpl-[A-Z0-9]{20,}$`))
		g.Expect(whole["model"]).To(Equal("plumbline-mock"))
		g.Expect(whole["usage"]).To(Equal(h.usage))
		g.Expect(whole).To(HaveKey("timings"))
		only := whole["choices"].([]any)[0].(map[string]any)
		g.Expect(only["finish_reason"]).To(Equal(h.finish))
		said := only["message"].(map[string]any)
		g.Expect(said["reasoning_content"]).To(Equal(h.reasoning))
		if h.name == "" {
			g.Expect(said["content"]).To(Equal(h.content))
			g.Expect(said).NotTo(HaveKey("tool_calls"))
			continue
		}
		g.Expect(said["content"]).To(BeNil())
		call := said["tool_calls"].([]any)[0].(map[string]any)
		g.Expect(call["function"]).To(Equal(map[string]any{"name": h.name, "arguments": h.arguments}))
		g.Expect(call["id"]).To(HavePrefix("call_"))
		g.Expect(call).NotTo(HaveKey("index"))
	}
}

func TestToolCallIsStreamedHeadThenArguments(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Pack: pack})
	p := pack.Prompts[2]
	h := hear(t, chat(t, s, c, body(p.Text, usageAsked+`,"tools":[`+findRoute+`,`+bookTable+`]`)))
	g.Expect(h.finish).To(Equal("tool_calls"))
	g.Expect(h.reasoning).To(Equal(p.Answer.Reasoning))
	g.Expect(h.content).To(BeEmpty())
	g.Expect(h.name).To(Equal("book_table"))
	g.Expect(h.arguments).To(MatchJSON(p.Answer.Call.Arguments))

	thought := countPieces(p.Answer.Reasoning)
	head := h.pieces[thought]["tool_calls"].([]any)[0].(map[string]any)
	g.Expect(head).To(And(HaveKeyWithValue("index", 0.0), HaveKeyWithValue("type", "function"),
		HaveKeyWithValue("id", HavePrefix("call_")),
		HaveKeyWithValue("function", map[string]any{"name": "book_table", "arguments": ""})))
	for _, delta := range h.pieces[thought+1:] {
		piece := delta["tool_calls"].([]any)[0].(map[string]any)
		g.Expect(piece).To(And(HaveLen(2), HaveKeyWithValue("index", 0.0)))
		g.Expect(piece["function"]).To(And(HaveLen(1), HaveKey("arguments")))
	}
	g.Expect(h.usage["completion_tokens"]).To(Equal(float64(len(h.pieces))))
	g.Expect(len(h.pieces)).To(Equal(thought + 1 + countPieces(`{"guests":3,"note":"\"quiet\"\n</tool>"}`)))
}

func TestToolChoiceIsObeyed(t *testing.T) {
	s, c := start(t, Options{Pack: pack})
	offer := `"tools":[` + findRoute + `,` + bookTable + `],`
	for _, tc := range []struct{ name, prompt, choice, called string }{
		{"the corpus answers by itself", pack.Prompts[2].Text, `"auto"`, "book_table"},
		{"none forbids the corpus's call", pack.Prompts[2].Text, `"none"`, ""},
		{"required keeps the corpus's call", pack.Prompts[2].Text, `"required"`, "book_table"},
		{"named overrules the corpus", pack.Prompts[2].Text, `{"type":"function","function":{"name":"find_route"}}`, "find_route"},
		{"required makes a call up", "hello", `"required"`, "find_route"},
		{"named makes a call up", "hello", `{"type":"function","function":{"name":"book_table"}}`, "book_table"},
		{"auto needs no call", "hello", `"auto"`, ""},
		{"null is auto", pack.Prompts[2].Text, `null`, "book_table"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			h := hear(t, chat(t, s, c, body(tc.prompt, offer+`"stream":true,"tool_choice":`+tc.choice)))
			g.Expect(h.name).To(Equal(tc.called))
			if tc.called == "" {
				g.Expect(h.finish).To(Equal("stop"))
				g.Expect(h.content).NotTo(BeEmpty())
				return
			}
			g.Expect(h.finish).To(Equal("tool_calls"))
			for _, tool := range []string{findRoute, bookTable} {
				if strings.Contains(tool, tc.called) {
					expectValid(g, parametersOf(tool), []byte(h.arguments))
				}
			}
		})
	}
}

func parametersOf(tool string) string {
	var t struct {
		Function struct{ Parameters json.RawMessage }
	}
	if err := json.Unmarshal([]byte(tool), &t); err != nil {
		panic(err)
	}
	return string(t.Function.Parameters)
}

func TestCorpusCallNeedsItsToolOnOffer(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Pack: pack})
	for _, more := range []string{`"stream":true`, `"stream":true,"tools":[` + findRoute + `]`} {
		h := hear(t, chat(t, s, c, body(pack.Prompts[2].Text, more)))
		g.Expect(h.name).To(BeEmpty())
		g.Expect(h.content).NotTo(BeEmpty())
	}
}

func TestResultTurnIsAnsweredInWords(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Pack: pack})
	h := hear(t, chat(t, s, c, `{"stream":true,"tools":[`+bookTable+`],"messages":[
		{"role":"system","content":[{"type":"text","text":"Be "},{"type":"text","text":"kind."}]},
		{"role":"user","content":"Book a table for three."},
		{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"book_table","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"booked"}]}`))
	g.Expect(h.finish).To(Equal("stop"))
	g.Expect(h.name).To(BeEmpty())
	g.Expect(h.content).NotTo(BeEmpty())
}

func TestThinkingCanBeSwitchedOff(t *testing.T) {
	s, c := start(t, Options{Pack: pack})
	for _, off := range []string{`"chat_template_kwargs":{"enable_thinking":false}`, `"reasoning_effort":"none"`} {
		for _, p := range []string{pack.Prompts[1].Text, "hello"} {
			g := NewWithT(t)
			h := hear(t, chat(t, s, c, body(p, usageAsked+","+off)))
			g.Expect(h.reasoning).To(BeEmpty())
			g.Expect(h.content).NotTo(BeEmpty())
			g.Expect(h.usage["completion_tokens_details"]).To(HaveKeyWithValue("reasoning_tokens", 0.0))
			g.Expect(string(chat(t, s, c, body(p, off)).body)).NotTo(ContainSubstring("reasoning_content"))
		}
	}
}

func TestPromptsAreCountedByThePackElseByPieces(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Pack: pack})
	count := func(request string) int {
		u := chat(t, s, c, request).json(t)["usage"].(map[string]any)
		return int(u["prompt_tokens"].(float64))
	}
	tokens := func(text string) int {
		content, err := json.Marshal(map[string]string{"content": text})
		g.Expect(err).NotTo(HaveOccurred())
		ids := do(t, c, "POST", s.URL()+"/tokenize", string(content)).json(t)["tokens"].([]any)
		return len(ids)
	}
	for _, p := range pack.Prompts {
		g.Expect(tokens(p.Text)).To(Equal(p.ContentTokens["qwen3"]))
		g.Expect(count(body(p.Text, `"max_tokens":1`))).To(Equal(50 + p.ContentTokens["qwen3"]))
	}
	other := "Nobody counted this: 12 ways, naïve ones."
	g.Expect(tokens(other)).To(Equal(countPieces(other)))
	g.Expect(count(body(other, `"max_tokens":1`))).To(Equal(50 + countPieces(other)))
	withTools := count(body(other, `"max_tokens":1,"tools":[`+findRoute+`]`))
	spaced := count(body(other, `"max_tokens":1,"tools":[ `+strings.ReplaceAll(findRoute, `,"`, `, "`)+` ]`))
	g.Expect(withTools).To(And(BeNumerically(">", 50+countPieces(other)+20), Equal(spaced)), "tools count, their blanks do not")
}

func TestSeedDecidesTheText(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Pack: pack})
	say := func(prompt, more string) string {
		h := hear(t, chat(t, s, c, body(prompt, `"stream":true,`+more)))
		return h.reasoning + "|" + h.content
	}
	p := pack.Prompts[0].Text
	first := say(p, `"seed":1`)
	g.Expect(say(p, `"seed":1`)).To(Equal(first))
	g.Expect(say(p, `"seed":2`)).NotTo(Equal(first))
	g.Expect(say("Something else.", `"seed":1`)).NotTo(Equal(first))
	g.Expect(say(p, `"seed":1,"temperature":0`)).To(Equal(say(p, `"seed":2,"temperature":0`)), "greedy decoding has no seed")
	a := pack.Prompts[1].Text
	g.Expect(say(a, `"seed":1`)).To(Equal(say(a, `"seed":2`)), "a right answer stays right")
}

func TestMarkerBeginsTheAnswer(t *testing.T) {
	s, c := start(t, Options{})
	for prompt, marker := range map[string]string{
		"Write a story. Begin your reply with the marker PLB-7K-0042 and a space.": "PLB-7K-0042",
		"Start with PLB-A9-1-!":                          "PLB-A9-1",
		"ANVIL_REQ_17_00002 first, then a summary.":      "ANVIL_REQ_17_00002",
		"Not xPLB-7, not PLB-; ANVIL_REQ_0_100000!":      "ANVIL_REQ_0_100000",
		strings.Repeat("PLB-", 50) + " PLB-\nPLB-2":      strings.Repeat("PLB-", 49) + "PLB",
		"xPLB-7 and ANVIL_REQ_1_123 are not for us, no.": "",
	} {
		g := NewWithT(t)
		h := hear(t, chat(t, s, c, body(prompt, `"stream":true`)))
		if marker == "" {
			g.Expect(h.content).To(MatchRegexp(`^[A-Z][a-z]`))
			continue
		}
		g.Expect(h.content).To(HavePrefix(marker+" "), prompt)
		g.Expect(strings.Count(h.content+h.reasoning, marker)).To(Equal(1))
	}
}

func TestCapacityBudgetHasRoomForItsMarker(t *testing.T) {
	g := NewWithT(t)
	s := engine(t, Options{})
	for i := range int64(200) {
		msgs := []chatMessage{{Role: "user", text: "Begin with ANVIL_REQ_17_00002."}}
		said, refusal := s.decide(question{messages: msgs, choice: toolChoice{mode: "auto"}, thinking: true}, seedOf(msgs, &i, nil))
		g.Expect(refusal).To(BeNil())
		r := generate(said, 64, nil)
		g.Expect(r.text(content)).To(HavePrefix("ANVIL_REQ_17_00002 "), "seed %d", i)
	}
}

func TestSeededTextIsVaried(t *testing.T) {
	g := NewWithT(t)
	cut := 0
	for i := range int64(100) {
		from := seedOf(nil, &i, nil)
		said := speech{reasoning: thinkingText(from.rand(forThinking), false), content: answerText(from.rand(forText))}
		seen := map[string]bool{}
		lines := strings.FieldsFunc(said.reasoning+" "+said.content, func(r rune) bool { return r == '.' })
		for _, line := range lines {
			seen[line] = true
		}
		g.Expect(len(seen)).To(BeNumerically(">=", len(lines)-1), "seed %d", i)
		g.Expect(said.reasoning + said.content).NotTo(ContainAny("{", "}"))
		n := countPieces(said.reasoning) + countPieces(said.content)
		g.Expect(n).To(BeNumerically(">", 128), "a warm-up is cut")
		if n > corpus.PerformanceMaxTokens {
			cut++
		}
	}
	g.Expect(cut).To(And(BeNumerically(">", 10), BeNumerically("<", 90)), "some replies reach the budget, some end before")
}

// ContainAny matches a string that contains one of the parts.
func ContainAny(parts ...string) OmegaMatcher {
	any := make([]OmegaMatcher, len(parts))
	for i, p := range parts {
		any[i] = ContainSubstring(p)
	}
	return Or(any...)
}

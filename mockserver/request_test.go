package mockserver

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestWrongRequestsAreRefusedByField(t *testing.T) {
	s, c := start(t, Options{Pack: pack})
	for _, tc := range []struct{ name, body, param, code string }{
		{"no body", ``, "", "invalid_json"},
		{"not JSON", `{"messages":`, "", "invalid_json"},
		{"more than one value", body("a", "") + `{}`, "", "invalid_json"},
		{"not UTF-8", "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", "", "invalid_value"},
		{"an array", `[]`, "", "invalid_type"},
		{"no messages", `{}`, "messages", "missing_required_parameter"},
		{"null messages", `{"messages":null}`, "messages", "missing_required_parameter"},
		{"empty messages", `{"messages":[]}`, "messages", "missing_required_parameter"},
		{"messages as string", `{"messages":"hi"}`, "messages", "invalid_type"},
		{"message as string", `{"messages":["hi"]}`, "messages[0]", "invalid_type"},
		{"role missing", `{"messages":[{"content":"hi"}]}`, "messages[0].role", "invalid_value"},
		{"role unknown", `{"messages":[{"role":"user","content":"a"},{"role":"robot","content":"hi"}]}`, "messages[1].role", "invalid_value"},
		{"role as number", `{"messages":[{"role":7,"content":"hi"}]}`, "messages[0].role", "invalid_type"},
		{"content missing", `{"messages":[{"role":"user"}]}`, "messages[0].content", "invalid_value"},
		{"content as number", `{"messages":[{"role":"user","content":5}]}`, "messages[0].content", "invalid_type"},
		{"content as object", `{"messages":[{"role":"user","content":{}}]}`, "messages[0].content", "invalid_type"},
		{"an image", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "messages[0].content", "invalid_value"},
		{"model as number", body("a", `"model":1`), "model", "invalid_type"},
		{"stream as string", body("a", `"stream":"true"`), "stream", "invalid_type"},
		{"stream_options as array", body("a", `"stream_options":[]`), "stream_options", "invalid_type"},
		{"include_usage as number", body("a", `"stream_options":{"include_usage":1}`), "stream_options.include_usage", "invalid_type"},
		{"max_tokens as string", body("a", `"max_tokens":"5"`), "max_tokens", "invalid_type"},
		{"max_tokens as fraction", body("a", `"max_tokens":1.5`), "max_tokens", "invalid_type"},
		{"max_tokens zero", body("a", `"max_tokens":0`), "max_tokens", "invalid_value"},
		{"max_completion_tokens negative", body("a", `"max_completion_tokens":-2`), "max_completion_tokens", "invalid_value"},
		{"two replies", body("a", `"n":2`), "n", "invalid_value"},
		{"no reply", body("a", `"n":0`), "n", "invalid_value"},
		{"seed as fraction", body("a", `"seed":0.5`), "seed", "invalid_type"},
		{"temperature as string", body("a", `"temperature":"hot"`), "temperature", "invalid_type"},
		{"top_p as array", body("a", `"top_p":[1]`), "top_p", "invalid_type"},
		{"top_k as string", body("a", `"top_k":"20"`), "top_k", "invalid_type"},
		{"min_p as string", body("a", `"min_p":"0"`), "min_p", "invalid_type"},
		{"presence_penalty as string", body("a", `"presence_penalty":"0"`), "presence_penalty", "invalid_type"},
		{"frequency_penalty as bool", body("a", `"frequency_penalty":true`), "frequency_penalty", "invalid_type"},
		{"repetition_penalty as object", body("a", `"repetition_penalty":{}`), "repetition_penalty", "invalid_type"},
		{"stop as number", body("a", `"stop":3`), "stop", "invalid_type"},
		{"stop with a number", body("a", `"stop":["a",3]`), "stop", "invalid_type"},
		{"empty stop", body("a", `"stop":["a",""]`), "stop", "invalid_value"},
		{"too many stops", body("a", `"stop":["`+strings.Repeat(`a","`, 16)+`b"]`), "stop", "invalid_value"},
		{"tools as object", body("a", `"tools":{}`), "tools", "invalid_type"},
		{"tool as string", body("a", `"tools":["x"]`), "tools[0]", "invalid_type"},
		{"tool of another type", body("a", `"tools":[`+bookTable+`,{"type":"retrieval"}]`), "tools[1].type", "invalid_value"},
		{"tool without a name", body("a", `"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", "invalid_value"},
		{"tool name as number", body("a", `"tools":[{"type":"function","function":{"name":1}}]`), "tools[0].function.name", "invalid_type"},
		{"unknown choice", body("a", `"tool_choice":"maybe"`), "tool_choice", "invalid_value"},
		{"choice as number", body("a", `"tool_choice":1`), "tool_choice", "invalid_type"},
		{"required without tools", body("a", `"tool_choice":"required"`), "tool_choice", "invalid_value"},
		{"unknown function", body("a", `"tools":[`+bookTable+`],"tool_choice":{"type":"function","function":{"name":"x"}}`), "tool_choice", "invalid_value"},
		{"arguments that cannot be made", body("a", `"tool_choice":"required","tools":[{"type":"function","function":{"name":"x","parameters":{"allOf":[]}}}]`), "tools", "unsupported_schema"},
		{"unknown format", body("a", `"response_format":{"type":"yaml"}`), "response_format.type", "invalid_value"},
		{"format as string", body("a", `"response_format":"json_object"`), "response_format", "invalid_type"},
		{"no schema", body("a", `"response_format":{"type":"json_schema"}`), "response_format.json_schema.schema", "invalid_value"},
		{"schema that cannot be met", body("a", `"response_format":{"type":"json_schema","json_schema":{"schema":{"pattern":"a"}}}`), "response_format.json_schema.schema", "unsupported_schema"},
		{"template arguments as string", body("a", `"chat_template_kwargs":"x"`), "chat_template_kwargs", "invalid_type"},
		{"enable_thinking as string", body("a", `"chat_template_kwargs":{"enable_thinking":"no"}`), "chat_template_kwargs.enable_thinking", "invalid_type"},
		{"unknown effort", body("a", `"reasoning_effort":"huge"`), "reasoning_effort", "invalid_value"},
		{"effort as number", body("a", `"reasoning_effort":3`), "reasoning_effort", "invalid_type"},
		{"parallel_tool_calls as string", body("a", `"parallel_tool_calls":"no"`), "parallel_tool_calls", "invalid_type"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			a := chat(t, s, c, tc.body)
			g.Expect(a.status).To(Equal(http.StatusBadRequest), string(a.body))
			g.Expect(a.header.Get("Content-Type")).To(HavePrefix("application/json"))
			e := a.json(t)["error"].(map[string]any)
			g.Expect(e["type"]).To(Equal("invalid_request_error"))
			g.Expect(e["code"]).To(Equal(tc.code), "%v", e["message"])
			g.Expect(e["message"]).NotTo(BeEmpty())
			if tc.param == "" {
				g.Expect(e["param"]).To(BeNil())
				return
			}
			g.Expect(e["param"]).To(Equal(tc.param))
			g.Expect(e["message"]).To(ContainSubstring(strings.Split(tc.param, "[")[0]))
		})
	}
}

func TestUnusualButRightRequestsAreServed(t *testing.T) {
	s, c := start(t, Options{Pack: pack})
	for name, more := range map[string]string{
		"nulls": `"model":null,"max_tokens":null,"stop":null,"tools":null,"tool_choice":null,"seed":null,"n":null,
			"stream_options":null,"response_format":null,"chat_template_kwargs":null,"reasoning_effort":null,"temperature":null`,
		"a whole profile": `"model":"plumbline-mock","temperature":1.0,"top_p":0.95,"top_k":20,"min_p":0.0,"presence_penalty":0.0,
			"repetition_penalty":1.0,"reasoning_effort":"xhigh","chat_template_kwargs":{"enable_thinking":true,"preserve_thinking":true}`,
		"unknown fields": `"cache_prompt":false,"user":"me","metadata":{"a":1}`,
		"no tools":       `"tools":[]`,
		"one reply":      `"n":1,"stop":[]`,
	} {
		a := chat(t, s, c, body("hello", more))
		NewWithT(t).Expect(a.status).To(Equal(http.StatusOK), "%s: %s", name, a.body)
	}
	g := NewWithT(t)
	tagged := chat(t, s, c, body("What does <think> mean?", "")).json(t)
	g.Expect(tagged["usage"]).To(HaveKeyWithValue("prompt_tokens", float64(50+countPieces("What does <think> mean?"))))
}

func TestOnlyTheServedModelIsKnown(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Model: "mine"})
	g.Expect(chat(t, s, c, body("a", `"model":"mine"`)).json(t)["model"]).To(Equal("mine"))
	g.Expect(chat(t, s, c, body("a", "")).json(t)["model"]).To(Equal("mine"), "no model named is the one served")
	for _, other := range []string{"", "Mine", "gpt"} {
		a := chat(t, s, c, body("a", `"model":"`+other+`"`))
		g.Expect(a.status).To(Equal(http.StatusNotFound))
		g.Expect(a.json(t)["error"]).To(And(HaveKeyWithValue("code", "model_not_found"), HaveKeyWithValue("param", "model"),
			HaveKeyWithValue("message", ContainSubstring(`"mine"`))))
	}
}

func FuzzAnyBodyIsAnsweredOrRefused(f *testing.F) {
	f.Add([]byte(body("Book a table for three.", `"tools":[`+bookTable+`],"tool_choice":"required","stop":["a"],"max_tokens":9`)))
	f.Add([]byte(body("PLB-1", `"response_format":{"type":"json_schema","json_schema":{"schema":{"$ref":"#"}}}`)))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":null,"tool_calls":[1]}],"stream":true}`))
	f.Add([]byte(`{"messages":[null],"tools":[null],"stop":{},"tool_choice":[]}`))
	s, err := newServer(Options{Pack: pack, ContextTokens: 5000})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		j, refusal := s.readChat(data)
		if refusal != nil {
			if refusal.status < 400 || refusal.message == "" || refusal.kind == "" {
				t.Fatalf("refused with %+v", refusal)
			}
			return
		}
		r := generate(j.speech, j.budget, j.stops)
		if len(r.tokens) > j.budget || j.promptTokens+j.budget > s.opts.ContextTokens {
			t.Fatalf("%d tokens on a budget of %d after a prompt of %d", len(r.tokens), j.budget, j.promptTokens)
		}
		if args := r.text(callArguments); r.finish == "tool_calls" && !json.Valid([]byte(args)) {
			t.Fatalf("the arguments are %q", args)
		}
		expectInOrder(t, s, j, &r)
		if !j.stream {
			return
		}
		for i := range defects {
			j, _ := s.readChat(data)
			(&drawer{asked: []asked{{&defects[i], shareSteps}}}).draw(j)
			r := generate(j.speech, j.budget, j.stops)
			expectInOrder(t, s, j, &r)
		}
	})
}

func expectInOrder(t *testing.T, s *Server, j *job, r *reply) {
	frames, _ := s.frames(j, r)
	for i := 1; i < len(frames); i++ {
		if frames[i].due < frames[i-1].due {
			t.Fatalf("with %v frame %d is due before its predecessor", j.defects, i)
		}
	}
}

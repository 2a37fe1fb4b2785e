package plan

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/sjson"

	"plumbline/fixtures"
)

// CaseCall is one request of a case, spelled out.
type CaseCall struct {
	Name         string        // of the exchange; "" where the case has only one
	Start        time.Duration // from the start of the case
	Method, Path string
	Body         []byte // null for a request without one
	// Key is the credential to send instead of the usual one; null for the usual one.
	Key *string
}

// Case returns the requests of a case in its order, as a server is to get them: a case states parameters and a task, and
// the prompt is made of the task. Only the replies of a live engine depend on the prompt's words.
func Case(c *fixtures.Case, model string) ([]CaseCall, error) {
	if model == "" {
		model = fixtures.CaseModel
	}
	if len(c.Exchanges) == 0 {
		call, err := caseCall(c.Request, model, "")
		if err != nil {
			return nil, fmt.Errorf("plan case %q: %w", c.ID, err)
		}
		return []CaseCall{call}, nil
	}
	whole, err := c.Request.Params()
	if err != nil {
		return nil, fmt.Errorf("plan case %q: %w", c.ID, err)
	}
	var calls []CaseCall
	for i, x := range c.Exchanges {
		// Where the last answer must not hold a text, the requests before it are what could have left it behind.
		planted := ""
		if t := whole.Task; t != nil && t.Kind == "not_contains" && i < len(c.Exchanges)-1 {
			planted, _ = t.Text()
		}
		call, err := caseCall(x.Request, model, planted)
		if err != nil {
			return nil, fmt.Errorf("plan case %q, exchange %q: %w", c.ID, x.Name, err)
		}
		call.Name, call.Start = x.Name, fixtures.Milliseconds(x.StartMS)
		calls = append(calls, call)
	}
	return calls, nil
}

func caseCall(r fixtures.CaseRequest, model, planted string) (CaseCall, error) {
	call := CaseCall{Method: r.Method, Path: r.Endpoint}
	p, err := r.Params()
	if err != nil {
		return call, err
	}
	if p.APIKey != "" {
		call.Key = &p.APIKey
	}
	if r.Method == "GET" || r.Method == "HEAD" {
		return call, nil
	}
	call.Body, err = caseBody(p, model, planted)
	return call, err
}

func caseBody(p fixtures.CaseParams, model, planted string) ([]byte, error) {
	if sent, ok := p.Other[fixtures.LiteralBody]; ok {
		if model == fixtures.CaseModel {
			return sent, nil // nobody asked for another model than the recorded one
		}
		return sjson.SetBytes(sent, "model", model)
	}
	body := map[string]any{"model": model}
	content := json.RawMessage(`"` + p.MessageJSONEscape + `"`)
	if p.MessageJSONEscape == "" {
		var err error
		if content, err = json.Marshal(question(p, planted)); err != nil {
			return nil, err
		}
	}
	body["messages"] = []map[string]any{{"role": "user", "content": content}}
	put(body, "stream", p.Stream)
	if p.IncludeUsage != nil && *p.IncludeUsage && p.Stream != nil && *p.Stream {
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	put(body, "max_tokens", p.MaxTokens)
	put(body, "max_completion_tokens", p.MaxCompletionTokens)
	put(body, "temperature", p.Temperature)
	put(body, "seed", p.Seed)
	put(body, "logprobs", p.Logprobs)
	if len(p.Stop) > 0 {
		body["stop"] = p.Stop
	}
	if p.Thinking != nil {
		body["chat_template_kwargs"] = map[string]any{"enable_thinking": *p.Thinking}
	}
	for _, t := range p.Tools {
		offered, _ := body["tools"].([]json.RawMessage)
		tool, err := offer(t)
		if err != nil {
			return nil, err
		}
		body["tools"] = append(offered, tool)
	}
	if p.ToolChoice != nil {
		body["tool_choice"] = p.ToolChoice
	}
	if f := p.ResponseFormat; f != nil {
		body["response_format"] = format(*f)
	}
	for name, v := range p.Other {
		body[name] = v
	}
	return json.Marshal(body)
}

func put[T any](body map[string]any, name string, v *T) {
	if v != nil {
		body[name] = *v
	}
}

// offer is a tool in the interface's own form; each required argument of the short form is a string.
func offer(t fixtures.CaseTool) (json.RawMessage, error) {
	var own struct{ Function json.RawMessage }
	if json.Unmarshal(t.Raw, &own) == nil && own.Function != nil {
		return t.Raw, nil
	}
	properties := map[string]any{}
	for _, name := range t.Required {
		properties[name] = map[string]any{"type": "string"}
	}
	required := t.Required
	if required == nil {
		required = []string{}
	}
	return json.Marshal(map[string]any{"type": "function", "function": map[string]any{
		"name":       t.Name,
		"parameters": map[string]any{"type": "object", "properties": properties, "required": required},
	}})
}

// format is a response format in the interface's own form.
func format(f fixtures.CaseResponseFormat) any {
	var own struct {
		Named json.RawMessage `json:"json_schema"`
	}
	if f.Type != "json_schema" || json.Unmarshal(f.Raw, &own) == nil && own.Named != nil {
		return f.Raw
	}
	return map[string]any{"type": f.Type, "json_schema": map[string]any{"name": "answer", "strict": true, "schema": f.Schema}}
}

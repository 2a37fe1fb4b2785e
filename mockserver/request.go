package mockserver

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// chatRequest is the body of a chat completion, as far as its fields have one type. A field that is null counts as
// absent. The sampling fields without use here are read so that a wrong type is refused.
type chatRequest struct {
	Model               *string           `json:"model"`
	Messages            []json.RawMessage `json:"messages"`
	Stream              bool              `json:"stream"`
	StreamOptions       streamOptions     `json:"stream_options"`
	MaxTokens           *int64            `json:"max_tokens"`
	MaxCompletionTokens *int64            `json:"max_completion_tokens"`
	N                   *int64            `json:"n"`
	Seed                *int64            `json:"seed"`
	Temperature         *float64          `json:"temperature"`
	TopP                *float64          `json:"top_p"`
	TopK                *int64            `json:"top_k"`
	MinP                *float64          `json:"min_p"`
	PresencePenalty     *float64          `json:"presence_penalty"`
	FrequencyPenalty    *float64          `json:"frequency_penalty"`
	RepetitionPenalty   *float64          `json:"repetition_penalty"`
	Stop                json.RawMessage   `json:"stop"`
	Tools               []json.RawMessage `json:"tools"`
	ToolChoice          json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"`
	ResponseFormat      *responseFormat   `json:"response_format"`
	TemplateArguments   templateArguments `json:"chat_template_kwargs"`
	ReasoningEffort     *string           `json:"reasoning_effort"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type templateArguments struct {
	EnableThinking *bool `json:"enable_thinking"`
}

type responseFormat struct {
	Type       string `json:"type"`
	JSONSchema *struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// chatMessage is one message of the conversation; text is its content as one string.
type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
	text      string
}

// tool is one function on offer; source is its JSON without blanks.
type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
	source string
}

// toolChoice says whether a tool may or must be called. name is set in mode named.
type toolChoice struct {
	mode string // auto, none, required, named
	name string
}

// What a request may say.
var (
	roles   = []string{"system", "developer", "user", "assistant", "tool"}
	efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
	formats = []string{"text", "json_object", "json_schema"}
	choices = []string{"auto", "none", "required"}
)

const maxStops = 16

// job is a request that was understood: what to say to it and within which limits.
type job struct {
	id           string
	stream       bool
	includeUsage bool
	promptTokens int
	budget       int // tokens of reply at most
	stops        []string
	speech       speech
	seed         seed
	defects      []*defect // of its reply
	other        stranger  // whose words get into it, where a defect has some
}

// readChat reads a request's body and decides what to say to it. Whatever is wrong with the request is found here.
func (s *Server) readChat(body []byte) (*job, *apiError) {
	if !utf8.Valid(body) {
		return nil, invalid("", "read the request: expected UTF-8, received other bytes")
	}
	var req chatRequest
	if err := decode("", body, &req); err != nil {
		return nil, err
	}
	if req.Model != nil && *req.Model != s.opts.Model {
		return nil, &apiError{
			status: http.StatusNotFound, kind: "invalid_request_error", code: "model_not_found", param: "model",
			message: fmt.Sprintf("find model %q: this server serves %q", *req.Model, s.opts.Model),
		}
	}
	if req.N != nil && *req.N != 1 {
		return nil, invalid("n", "read field \"n\": expected 1, received %d: one reply a request is made here", *req.N)
	}
	msgs, err := readMessages(req.Messages)
	if err != nil {
		return nil, err
	}
	tools, err := readTools(req.Tools)
	if err != nil {
		return nil, err
	}
	choice, err := readToolChoice(req.ToolChoice, tools)
	if err != nil {
		return nil, err
	}
	j := &job{
		id: "chatcmpl-" + rand.Text(), stream: req.Stream, includeUsage: req.StreamOptions.IncludeUsage,
		promptTokens: s.countPrompt(msgs, tools), seed: seedOf(msgs, req.Seed, req.Temperature),
	}
	if j.stops, err = readStops(req.Stop); err != nil {
		return nil, err
	}
	if j.budget, err = s.readBudget(&req, j.promptTokens); err != nil {
		return nil, err
	}
	thinking, err := readThinking(&req)
	if err != nil {
		return nil, err
	}
	j.speech, err = s.decide(question{
		messages: msgs, tools: tools, choice: choice, format: req.ResponseFormat, thinking: thinking,
	}, j.seed)
	return j, err
}

func readMessages(raws []json.RawMessage) ([]chatMessage, *apiError) {
	if len(raws) == 0 {
		e := invalid("messages", "read field \"messages\": expected at least one message, received none")
		e.code = "missing_required_parameter"
		return nil, e
	}
	msgs := make([]chatMessage, len(raws))
	for i, raw := range raws {
		m, where := &msgs[i], fmt.Sprintf("messages[%d]", i)
		if err := decode(where, raw, m); err != nil {
			return nil, err
		}
		if !slices.Contains(roles, m.Role) {
			return nil, invalid(where+".role", "read field %q: expected one of %s, received %q",
				where+".role", strings.Join(roles, ", "), m.Role)
		}
		var err *apiError
		if m.text, err = readContent(where+".content", m); err != nil {
			return nil, err
		}
	}
	return msgs, nil
}

// readContent joins a message's content, which is a string or an array of text parts. Only an assistant may say
// nothing, when it called a tool.
func readContent(where string, m *chatMessage) (string, *apiError) {
	if absent(m.Content) {
		if m.Role == "assistant" && !absent(m.ToolCalls) {
			return "", nil
		}
		return "", invalid(where, "read field %q: expected a string or an array of text parts, received none", where)
	}
	if m.Content[0] != '[' {
		var text string
		err := decode(where, m.Content, &text)
		return text, err
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := decode(where, m.Content, &parts); err != nil {
		return "", err
	}
	var text strings.Builder
	for i, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return "", invalid(where, "read field %q: expected only parts of type \"text\", received %q as part %d",
				where, p.Type, i)
		}
		text.WriteString(*p.Text)
	}
	return text.String(), nil
}

func readTools(raws []json.RawMessage) ([]tool, *apiError) {
	tools := make([]tool, len(raws))
	for i, raw := range raws {
		t, where := &tools[i], fmt.Sprintf("tools[%d]", i)
		if err := decode(where, raw, t); err != nil {
			return nil, err
		}
		if t.Type != "function" {
			return nil, invalid(where+".type", "read field %q: expected \"function\", received %q", where+".type", t.Type)
		}
		if t.Function.Name == "" {
			return nil, invalid(where+".function.name", "read field %q: expected a name, received none", where+".function.name")
		}
		t.source = compact(raw)
	}
	return tools, nil
}

func readToolChoice(raw json.RawMessage, tools []tool) (toolChoice, *apiError) {
	const where = "tool_choice"
	if absent(raw) {
		return toolChoice{mode: "auto"}, nil
	}
	var choice toolChoice
	if raw[0] == '"' {
		if err := decode(where, raw, &choice.mode); err != nil {
			return choice, err
		}
		if !slices.Contains(choices, choice.mode) {
			return choice, invalid(where, "read field %q: expected one of %s or a named function, received %q",
				where, strings.Join(choices, ", "), choice.mode)
		}
	} else {
		var named tool
		if err := decode(where, raw, &named); err != nil {
			return choice, err
		}
		choice = toolChoice{mode: "named", name: named.Function.Name}
		if named.Type != "function" || toolNamed(tools, choice.name) == nil {
			return choice, invalid(where, "read field %q: expected a function on offer, received type %q, name %q",
				where, named.Type, choice.name)
		}
	}
	if choice.mode == "required" && len(tools) == 0 {
		return choice, invalid(where, "read field %q: \"required\" needs tools, received none", where)
	}
	return choice, nil
}

func toolNamed(tools []tool, name string) *tool {
	if i := slices.IndexFunc(tools, func(t tool) bool { return t.Function.Name == name }); i >= 0 {
		return &tools[i]
	}
	return nil
}

func readStops(raw json.RawMessage) ([]string, *apiError) {
	const where = "stop"
	if absent(raw) {
		return nil, nil
	}
	var stops []string
	if raw[0] == '"' {
		stops = make([]string, 1)
		if err := decode(where, raw, &stops[0]); err != nil {
			return nil, err
		}
	} else if err := decode(where, raw, &stops); err != nil {
		return nil, err
	}
	if len(stops) > maxStops {
		return nil, invalid(where, "read field %q: expected at most %d strings, received %d", where, maxStops, len(stops))
	}
	if slices.Contains(stops, "") {
		return nil, invalid(where, "read field %q: expected strings that are not empty, received one that is", where)
	}
	return stops, nil
}

// readBudget says how many tokens a reply may have. Without a limit, or with -1, that is what the context has room for.
// A prompt is never cut: with its limit it fits, or it is refused.
func (s *Server) readBudget(req *chatRequest, promptTokens int) (int, *apiError) {
	room := s.opts.ContextTokens - promptTokens
	wanted := int64(1) // a reply has at least one token
	limited := false
	for _, f := range []struct {
		name  string
		value *int64
	}{{"max_tokens", req.MaxTokens}, {"max_completion_tokens", req.MaxCompletionTokens}} {
		if f.value == nil || *f.value == -1 {
			continue
		}
		if *f.value < 1 {
			return 0, invalid(f.name, "read field %q: expected at least 1, or -1 for no limit, received %d", f.name, *f.value)
		}
		if !limited || *f.value < wanted {
			limited, wanted = true, *f.value
		}
	}
	if wanted > int64(room) {
		return 0, &apiError{
			status: http.StatusBadRequest, kind: "exceed_context_size_error", code: "context_length_exceeded", param: "messages",
			message: fmt.Sprintf("the prompt's %d tokens and %d of reply do not fit into the context of %d",
				promptTokens, wanted, s.opts.ContextTokens),
			promptTokens: promptTokens, contextTokens: s.opts.ContextTokens,
		}
	}
	if limited {
		return int(wanted), nil
	}
	return room, nil
}

func readThinking(req *chatRequest) (bool, *apiError) {
	thinking := req.TemplateArguments.EnableThinking == nil || *req.TemplateArguments.EnableThinking
	if effort := req.ReasoningEffort; effort != nil {
		if !slices.Contains(efforts, *effort) {
			return false, invalid("reasoning_effort", "read field \"reasoning_effort\": expected one of %s, received %q",
				strings.Join(efforts, ", "), *effort)
		}
		thinking = thinking && *effort != "none"
	}
	return thinking, nil
}

// absent says whether a field was left out or is null.
func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// compact is JSON without blanks.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw) // not JSON: only a pack of foreign make could hold such a thing
	}
	return b.String()
}

package transcript

import (
	"bytes"
	"path"
	"strings"

	"plumbline/fixtures"
)

// asked is what the request demanded, as far as it bears on reading the reply. The zero value is a request that cannot
// be read: then nothing is held against the reply.
type asked struct {
	chat   bool // the request goes to the chat-completions path
	models bool // the request asks for the model list
	untold bool // a capture that does not tell its path: the messages of the request or the reply's own name for itself decide
	known  bool // the body is a JSON object
	stream bool
	usage  bool // stream_options.include_usage
	// everyUsage says that usage in every chunk was asked for.
	everyUsage bool
	tagsWanted bool // reasoning_format none: thinking tags belong into the answer
	model      string
	maxTokens  int64 // 0 when not limited
	choices    int64
	stops      []string
	// stopsWanted says that the stop string itself was asked for in the answer.
	stopsWanted bool
	format      string // type of response_format: json_object or json_schema; "" for text
	schema      []byte // the schema of json_schema, nil for none
	tools       map[string]tool
	toolChoice  string // "", auto, none, required, or named
	// prompt is the JSON text of the messages, for asking whether an oddity of the reply was in the prompt.
	prompt []byte
	// question is the text of the last user message, "" where it is none.
	question string
}

// tool is a function that was offered.
type tool struct {
	required   []string
	properties map[string]bool
}

func readRequest(r fixtures.Request) asked {
	p, _, _ := strings.Cut(r.Path, "?")
	a := asked{choices: 1}
	a.untold = p == ""
	a.chat = path.Base(p) == "completions" && path.Base(path.Dir(p)) == "chat" && (r.Method == "POST" || r.Method == "")
	a.models = path.Base(p) == "models" && path.Base(path.Dir(p)) == "v1" && (r.Method == "GET" || r.Method == "")
	body, l := legal(r.Body)
	if !l.ok || !isObject(body) {
		return a
	}
	a.known = true
	eachMember(body, func(name, v []byte) {
		switch string(name) {
		case "stream":
			a.stream = string(v) == "true"
		case "stream_options":
			a.usage = string(member(v, "include_usage")) == "true"
			a.everyUsage = string(member(v, "continuous_usage_stats")) == "true"
		case "reasoning_format":
			a.tagsWanted = string(v) == `"none"`
		case "model":
			a.model, _ = text(v)
		case "max_tokens", "max_completion_tokens":
			if n := integer(v); n != nil && *n > 0 && (a.maxTokens == 0 || *n < a.maxTokens) {
				a.maxTokens = *n
			}
		case "n":
			if n := integer(v); n != nil {
				a.choices = *n
			}
		case "stop":
			a.stops = readStops(v)
		case "include_stop_str_in_output":
			a.stopsWanted = string(v) == "true"
		case "response_format":
			a.readFormat(v)
		case "messages":
			a.prompt = v
			a.question = lastQuestion(v)
			a.chat = a.chat || a.untold
		case "tools":
			a.tools = readTools(v)
		case "tool_choice":
			a.toolChoice = "named"
			if isString(v) || isNull(v) {
				a.toolChoice, _ = text(v)
			}
		}
	})
	return a
}

func readStops(v []byte) []string {
	if s, ok := text(v); ok && s != "" {
		return []string{s}
	}
	var stops []string
	eachElement(v, func(_ int, v []byte) {
		if s, ok := text(v); ok && s != "" {
			stops = append(stops, s)
		}
	})
	return stops
}

// readFormat reads a response_format. The schema stands in json_schema.schema; some servers take it one level higher.
func (a *asked) readFormat(v []byte) {
	kind, _ := text(member(v, "type"))
	if kind != "json_object" && kind != "json_schema" {
		return
	}
	a.format = kind
	if s := member(member(v, "json_schema"), "schema"); isObject(s) {
		a.schema = s
	} else if s := member(v, "schema"); isObject(s) {
		a.schema = s
	}
}

func lastQuestion(messages []byte) string {
	question := ""
	eachElement(messages, func(_ int, m []byte) {
		if role, _ := text(member(m, "role")); role == "user" {
			question, _ = text(member(m, "content"))
		}
	})
	return question
}

func readTools(v []byte) map[string]tool {
	tools := map[string]tool{}
	eachElement(v, func(_ int, offer []byte) {
		function := member(offer, "function")
		name, _ := text(member(function, "name"))
		if name == "" {
			return
		}
		t := tool{properties: map[string]bool{}}
		parameters := member(function, "parameters")
		eachElement(member(parameters, "required"), func(_ int, v []byte) {
			if s, ok := text(v); ok {
				t.required = append(t.required, s)
			}
		})
		eachMember(member(parameters, "properties"), func(name, _ []byte) { t.properties[string(name)] = true })
		tools[name] = t
	})
	return tools
}

// mentions reports whether the prompt holds s, so that s in the reply may be a quotation.
func (a *asked) mentions(s string) bool { return bytes.Contains(a.prompt, []byte(s)) }

// names reports whether a chunk or document calls itself a chat completion.
func names(obj []byte) bool {
	s, _ := text(member(obj, "object"))
	return strings.HasPrefix(s, "chat.completion")
}

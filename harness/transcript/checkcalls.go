package transcript

import (
	"fmt"
	"strings"
)

// checkCalls looks at the tool calls as assembled, and for calls that went somewhere else.
func (r *reader) checkCalls() {
	ids := map[string]bool{}
	same := map[string]bool{}
	for i, c := range r.t.ToolCalls {
		path := fmt.Sprintf("tool_calls[%d]", i)
		if c.ID == "" {
			r.add(ToolIDMissing, -1, path+".id", "")
		} else if ids[c.ID] {
			r.add(ToolIDDuplicate, -1, path+".id", "")
		}
		ids[c.ID] = true
		if c.Name == "" {
			r.add(ToolNameMissing, -1, path+".function.name", "")
		} else if _, offered := r.asked.tools[c.Name]; !offered && len(r.asked.tools) > 0 {
			r.add(ToolNameUnknown, -1, path+".function.name", quote([]byte(c.Name)))
		}
		r.checkArguments(c, path+".function.arguments")
		key := c.Name + "\x00" + c.Arguments
		if same[key] && len(c.Arguments) > len("{}") {
			r.add(ToolCallDuplicated, -1, path, "")
		}
		same[key] = true
	}
	r.checkStray()
}

func (r *reader) checkArguments(c ToolCall, path string) {
	args := strings.TrimSpace(c.Arguments)
	if args == "" || args == "null" {
		if r.t.reason() == "length" {
			r.add(ToolCallTruncated, -1, path, "the token limit was reached")
			return
		}
		severity := Warning
		if len(r.asked.tools[c.Name].required) > 0 {
			severity = Fault
		}
		if severity == Fault || args == "" {
			r.addAs(severity, ToolArgumentsEmpty, -1, path, "")
		}
		return
	}
	v, l := legal([]byte(args))
	switch {
	case l.ok && isObject(v):
	case l.ok && isString(v):
		s, _ := text(v)
		if inner, l := legal([]byte(s)); l.ok && isObject(inner) {
			r.add(ToolArgumentsDoubleEncoded, -1, path, "")
		} else {
			r.add(ToolArgumentsInvalidJSON, -1, path, "they are a string")
		}
	case l.ok:
		r.add(ToolArgumentsInvalidJSON, -1, path, "they are no object")
	case r.t.reason() == "length":
		r.add(ToolCallTruncated, -1, path, "the token limit was reached")
	case r.t.FinishReason == nil && !r.t.DoneSeen: // the reply was cut, which has its own finding
	default:
		if n, _ := valueCount([]byte(args)); n > 1 {
			r.add(ToolArgumentsMultipleValues, -1, path, fmt.Sprintf("%d values", n))
		} else {
			r.add(ToolArgumentsInvalidJSON, -1, path, quote([]byte(args)))
			if n, partial := leadingValues(args); partial && n == 0 {
				r.addAs(Fault, ToolCallTruncated, -1, path, "they end inside a value, and the reply says that it is complete")
			}
		}
	}
}

// checkStray looks for a call that was written as text. Where the request forbids calls, call text is the model's own.
func (r *reader) checkStray() {
	t := r.t
	if len(r.asked.tools) == 0 || r.asked.toolChoice == "none" {
		return
	}
	if len(t.ToolCalls) > 0 {
		if v, l := legal([]byte(unfenced(t.Content))); l.ok && isObject(v) && r.repeatsCall(v) {
			r.add(ToolJSONLeakedInContent, -1, "choices[0].delta.content", "")
		}
		return
	}
	residue, written := r.writtenInContent()
	switch {
	case written:
		r.add(ToolCallInContent, -1, "choices[0].delta.content", "")
		if residue != "" {
			r.add(ChannelResidue, -1, "choices[0].delta.content", quote([]byte(residue)))
		}
	case t.reason() == "stop" && blank(t.Content) && r.callWritten(t.Reasoning):
		r.add(ToolCallInReasoning, -1, "choices[0].delta.reasoning_content", "")
	case t.reason() == "stop" && (r.asked.toolChoice == "required" || r.asked.toolChoice == "named"):
		r.add(NoToolCall, -1, "", "")
	}
}

// callMarkers begin a call in the notations of chat templates.
var callMarkers = []string{"<tool_call>", "<function=", "<function_call>", "[TOOL_CALLS]", "<|tool_call|>",
	"<|python_tag|>", "<|tool_calls_section_begin|>", "<｜tool▁calls▁begin｜>", "<invoke name="}

// callWritten reports whether a text holds a call marker and, after it, the name of an offered function.
func (r *reader) callWritten(s string) bool {
	for _, m := range callMarkers {
		i := strings.Index(s, m)
		if i < 0 || r.asked.mentions(m) {
			continue
		}
		for name := range r.asked.tools {
			if strings.Contains(s[i:], name) {
				return true
			}
		}
	}
	return false
}

// roleWords are names of roles and channels, which stick to the front of a text when only the control tokens around
// them were taken out.
var roleWords = []string{"assistant", "analysis", "commentary", "final", "functions", "tool"}

// writtenInContent reports whether the answer is a call in some notation, and what was left of a control sequence in
// front of it.
func (r *reader) writtenInContent() (residue string, written bool) {
	if r.callWritten(r.t.Content) {
		return "", true
	}
	content := unfenced(r.t.Content)
	brace := strings.IndexByte(content, '{')
	if brace < 0 {
		return "", false
	}
	v, l := legal([]byte(content[brace:]))
	if !l.ok || !isObject(v) {
		return "", false
	}
	front := strings.TrimSpace(content[:brace])
	if front == "" {
		name, _ := text(member(v, "name"))
		_, offered := r.asked.tools[name]
		return "", offered && (isObject(member(v, "arguments")) || isObject(member(v, "parameters")) ||
			isString(member(v, "arguments")))
	}
	for _, word := range roleWords {
		if strings.HasPrefix(front, word) && !strings.ContainsAny(front, " \n") && r.fits(v) {
			return front, true
		}
	}
	return "", false
}

// fits reports whether an object has just the members that an offered function takes.
func (r *reader) fits(obj []byte) bool {
	sent := map[string]bool{}
	eachMember(obj, func(name, _ []byte) { sent[string(name)] = true })
next:
	for _, t := range r.asked.tools {
		for _, name := range t.required {
			if !sent[name] {
				continue next
			}
		}
		for name := range sent {
			if len(t.properties) > 0 && !t.properties[name] {
				continue next
			}
		}
		return len(sent) > 0
	}
	return false
}

// repeatsCall reports whether an object is one of the calls of the reply, or its arguments.
func (r *reader) repeatsCall(obj []byte) bool {
	name, _ := text(member(obj, "name"))
	for _, c := range r.t.ToolCalls {
		if name != "" && name == c.Name && member(obj, "arguments") != nil {
			return true
		}
		if args := strings.TrimSpace(c.Arguments); len(args) > len("{}") && compact([]byte(args)) == compact(obj) {
			return true
		}
	}
	return false
}

// unfenced is a text without white space and Markdown code fence around it.
func unfenced(s string) string {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "```") || !strings.HasSuffix(s, "```") || len(s) < 6 {
		return s
	}
	_, s, _ = strings.Cut(s[:len(s)-3], "\n")
	return strings.TrimSpace(s)
}

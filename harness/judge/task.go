package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// result is how a task went.
type result struct{ state, why string }

func right(why string) result { return result{stateOK, why} }
func wrong(format string, args ...any) result {
	return result{stateFail, fmt.Sprintf(format, args...)}
}
func unknown(why string) result { return result{stateUnknown, why} }

// enoughPrompt is the part of a prompt's estimated length that the server must count at least, and warmShare the part
// from a cache above which a sample of known length is warm; warmAlone is that part where the length was not asked for.
const (
	enoughPrompt = 0.7
	warmShare    = 0.1
	warmAlone    = 0.99
)

// judge finds what one exchange shows once the task is known, and how the task went.
func (x *asked) judge() {
	x.task = result{stateNA, ""}
	if x.chat {
		x.prompt()
	}
	if x.p.Task == nil {
		return
	}
	if probe, ok := probes[x.p.Task.Kind]; ok {
		x.task = probe(x, *x.p.Task)
		return
	}
	if x.own() == Error || x.silent() {
		x.task = unknown("there is no answer to judge")
		return
	}
	rule, ok := rules[x.p.Task.Kind]
	if !ok {
		x.task = unknown(fmt.Sprintf("no rule for a task of kind %q", x.p.Task.Kind))
		return
	}
	x.task = rule(x, *x.p.Task)
	if x.task.state != stateFail || slices.ContainsFunc(x.found, wrongJSON) {
		return
	}
	switch reason(x.t) {
	case "length":
		if x.p.Task.Kind != "finish_reason" && x.p.Task.Kind != "max_tokens" && x.p.Task.Kind != "not_contains" {
			x.task = unknown("the token limit ended the reply before the task was done")
		}
	case "content_filter":
		x.task = unknown("a content filter ended the reply")
	}
}

// wrongJSON reports whether a finding says that the answer went wrong before any limit ended it.
func wrongJSON(f transcript.Finding) bool {
	switch f.ID {
	case transcript.WhitespaceRunaway, transcript.JSONFenced, transcript.JSONTrailingText, transcript.SchemaIgnored,
		transcript.MaxTokensExceeded:
		return true
	}
	return false
}

func reason(t *transcript.Transcript) string {
	if t.FinishReason == nil {
		return ""
	}
	return *t.FinishReason
}

// prompt compares what became of the prompt with what was sent.
func (x *asked) prompt() {
	if excerpt := strings.TrimSpace(x.p.PromptExcerpt); len(excerpt) >= 8 && strings.HasPrefix(strings.TrimSpace(x.t.Content), excerpt) {
		x.add(transcript.PromptEcho, "")
	}
	u := x.t.Usage
	if u == nil || u.PromptTokens == nil || *u.PromptTokens <= 0 {
		return
	}
	prompt, cached := float64(*u.PromptTokens), 0.0
	if x.f.CachedTokens.Known {
		cached = float64(x.f.CachedTokens.Value)
	}
	long := x.p.EstPromptTokens
	// More cached than counted: the prompt's count leaves the cached tokens out.
	if long != nil && cached <= prompt && prompt < enoughPrompt*float64(*long) {
		x.add(PromptTruncated, fmt.Sprintf("%d of about %d", *u.PromptTokens, *long))
	}
	if share := cached / prompt; share <= 1 && (long != nil && share >= warmShare || share >= warmAlone) {
		x.add(PrefixCacheHit, fmt.Sprintf("%.0f of %.0f prompt tokens", cached, prompt))
	}
}

// rules judge an answer by the kind of the task.
var rules = map[string]func(*asked, fixtures.CaseTask) result{
	"none": func(*asked, fixtures.CaseTask) result { return result{stateNA, ""} },
	"contains": func(x *asked, t fixtures.CaseTask) result {
		want, _ := t.Text()
		if !strings.Contains(x.t.Content, want) {
			return wrong("the answer does not contain %s: %s", cut(want), cut(x.t.Content))
		}
		return right("the answer contains " + cut(want))
	},
	"not_contains": func(x *asked, t fixtures.CaseTask) result {
		unwanted, _ := t.Text()
		if strings.Contains(x.t.Content, unwanted) || strings.Contains(x.t.Reasoning, unwanted) {
			return wrong("the answer contains %s", cut(unwanted))
		}
		return right("the answer does not contain " + cut(unwanted))
	},
	"exact": func(x *asked, t fixtures.CaseTask) result {
		want, _ := t.Text()
		if strings.TrimSpace(x.t.Content) != strings.TrimSpace(want) {
			return wrong("the answer is not exactly %s but %s", cut(want), cut(x.t.Content))
		}
		return right("the answer is exactly " + cut(want))
	},
	"tool_call":   taskCalls,
	"json_schema": taskJSON,
	"json_object": taskJSON,
	"max_tokens":  taskMaxTokens,
	taskAnswerKey: keyed,
	taskAnswer:    unkeyed,
	taskLoad:      ofLoad,
	"finish_reason": func(x *asked, t fixtures.CaseTask) result {
		want, _ := t.Text()
		if got := reason(x.t); got != want {
			x.add(transcript.FinishReasonWrong, fmt.Sprintf("%q, and %q was due", got, want))
			return wrong("the finish reason is %q, expected %q", got, want)
		}
		return right(fmt.Sprintf("the finish reason is %q", want))
	},
}

// taskJSON relies on the transcript, which has compared the answer with the response format.
func taskJSON(x *asked, t fixtures.CaseTask) result {
	for _, f := range x.found {
		switch f.ID {
		case transcript.JSONFenced, transcript.JSONTrailingText, transcript.JSONTruncated, transcript.WhitespaceRunaway,
			transcript.SchemaIgnored:
			return wrong("%s", f.Sentence)
		}
	}
	content := []byte(strings.TrimSpace(x.t.Content))
	var object map[string]json.RawMessage
	switch {
	case !json.Valid(content):
		return wrong("the answer is no JSON: %s", cut(x.t.Content))
	case t.Kind == "json_object" && json.Unmarshal(content, &object) != nil:
		return wrong("the answer is no JSON object: %s", cut(x.t.Content))
	}
	return right("the answer is the JSON that was demanded")
}

func taskMaxTokens(x *asked, t fixtures.CaseTask) result {
	limit, ok := t.Int()
	if !ok {
		return unknown("the task names no limit")
	}
	if has(x.found, transcript.MaxTokensExceeded) {
		return wrong("more than %d tokens came", limit)
	}
	switch n := x.f.OutputTokens; {
	case n.Known && n.Value > int64(limit):
		x.add(transcript.MaxTokensExceeded, fmt.Sprintf("%d of %d", n.Value, limit))
		return wrong("%d tokens came, at most %d were allowed", n.Value, limit)
	case n.Known:
		return right(fmt.Sprintf("%d tokens came of at most %d", n.Value, limit))
	case len(x.t.Deltas) > limit:
		x.add(transcript.MaxTokensExceeded, fmt.Sprintf("%d pieces of output of %d tokens", len(x.t.Deltas), limit))
		return wrong("%d pieces of output came, at most %d tokens were allowed", len(x.t.Deltas), limit)
	case reason(x.t) == "length":
		return right("the reply was ended by its limit")
	}
	return unknown("the tokens were not counted")
}

// taskCalls demands the calls of the task, each once, in any order.
func taskCalls(x *asked, t fixtures.CaseTask) result {
	if len(x.t.ToolCalls) == 0 && len(t.Calls) > 0 && reason(x.t) != "length" && !slices.ContainsFunc(x.found, callElsewhere) {
		x.add(transcript.NoToolCall, "")
	}
	left := slices.Clone(x.t.ToolCalls)
	for _, want := range t.Calls {
		i := slices.IndexFunc(left, func(c transcript.ToolCall) bool { return makes(c, want) })
		if i < 0 {
			return wrong("no call to %s with %s among %s", want.Name, cut(oneLine(want.Arguments)), callsInWords(x.t.ToolCalls))
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		return wrong("a call too many: %s", callsInWords(left))
	}
	return right("the calls are those that were asked for")
}

// callElsewhere reports whether a finding says where the call went that did not come.
func callElsewhere(f transcript.Finding) bool {
	switch f.ID {
	case transcript.ToolCallInContent, transcript.ToolCallInReasoning, transcript.EmptyAnswerWithTokens, transcript.NoToolCall:
		return true
	}
	return false
}

// makes reports whether a call is the one that was wanted. Arguments that are the object once more as text, or no
// string, have a finding of their own; what they say is judged.
func makes(c transcript.ToolCall, want fixtures.CaseCall) bool {
	if c.Name != want.Name {
		return false
	}
	if want.Arguments == nil {
		return true
	}
	arguments := []byte(c.Arguments)
	var inner string
	if json.Unmarshal(arguments, &inner) == nil {
		arguments = []byte(inner)
	}
	return diffJSON(want.Arguments, arguments) == nil
}

// oneLine is a JSON value without white space between its tokens.
func oneLine(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

func callsInWords(calls []transcript.ToolCall) string {
	if len(calls) == 0 {
		return "no calls"
	}
	var words []string
	for _, c := range calls {
		words = append(words, c.Name+" "+cut(c.Arguments))
	}
	return strings.Join(words, ", ")
}

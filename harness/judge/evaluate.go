// Package judge gives verdicts: whether an answer is the one asked for, and whether a reply can be relied on. It has
// the Gomega matchers that speak those verdicts with their evidence. It sends nothing and measures nothing.
package judge

import (
	"encoding/json"
	"fmt"
	"strings"

	"plumbline/corpus"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

// Evaluation is the verdict on an answer. Reason is one sentence fragment that says why, with the evidence cut to a
// fixed length.
type Evaluation struct {
	Passed bool
	Reason string
}

func pass(reason string) Evaluation { return Evaluation{Passed: true, Reason: reason} }
func fail(format string, args ...any) Evaluation {
	return Evaluation{Reason: fmt.Sprintf(format, args...)}
}

// Evaluate judges what was said against the answer key. It judges only replies that arrived: one that failed is not
// passed, and the reason says that there was nothing to judge. A reply that ran into its budget is not passed either,
// with a reason of its own.
func Evaluate(expect *corpus.Expect, t *transcript.Transcript, f measure.Figures) Evaluation {
	switch f.Status {
	case measure.Failed:
		return fail("not judged: the request failed")
	case measure.Skipped:
		return fail("not judged: the request was not sent")
	case measure.Truncated:
		return fail("the output budget ran out before the reply ended")
	}
	switch expect.Kind {
	case corpus.ExpectJSON:
		return evaluateJSON(expect.JSON, t)
	case corpus.ExpectText:
		return evaluateText(expect.Text, t)
	case corpus.ExpectToolCall:
		return evaluateCall(expect.Call, t)
	}
	return fail("not judged: unknown kind of answer key %q", expect.Kind)
}

func evaluateJSON(want json.RawMessage, t *transcript.Transcript) Evaluation {
	if len(t.ToolCalls) > 0 {
		return fail("a tool call to %s where a JSON value was asked for", cut(t.ToolCalls[0].Name))
	}
	got := strings.TrimSpace(t.Content)
	if got == "" {
		return fail("no answer text")
	}
	if err := diffJSON(want, []byte(got)); err != nil {
		return fail("not the expected JSON value: %v; the reply was %s", err, cut(got))
	}
	return pass("the reply is the expected JSON value")
}

func evaluateText(want string, t *transcript.Transcript) Evaluation {
	if len(t.ToolCalls) > 0 {
		return fail("a tool call to %s where a text was asked for", cut(t.ToolCalls[0].Name))
	}
	got := strings.TrimSpace(t.Content)
	switch {
	case got == "":
		return fail("no answer text")
	case got != want:
		return fail("expected exactly %s, the reply was %s", cut(want), cut(got))
	}
	return pass("the reply is exactly the expected text")
}

func evaluateCall(want *corpus.Call, t *transcript.Transcript) Evaluation {
	switch n := len(t.ToolCalls); {
	case n == 0 && strings.TrimSpace(t.Content) == "":
		return fail("no tool call and no answer text")
	case n == 0:
		return fail("no tool call; the reply was the text %s", cut(t.Content))
	case n > 1:
		return fail("%d tool calls where one was asked for", n)
	}
	got := t.ToolCalls[0]
	if got.Name != want.Name {
		return fail("expected a call to %s, the call was to %s", cut(want.Name), cut(got.Name))
	}
	if err := diffJSON(want.Arguments, []byte(got.Arguments)); err != nil {
		return fail("not the expected arguments: %v; they were %s", err, cut(got.Arguments))
	}
	return pass("the reply is the expected tool call")
}

// evidenceLength is how many bytes of what came are quoted: enough to recognise a fault, little enough for one line.
const evidenceLength = 160

// cut quotes s, shortened to the evidence length at a character boundary.
func cut(s string) string {
	if len(s) <= evidenceLength {
		return fmt.Sprintf("%q", s)
	}
	end := evidenceLength
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:end], len(s))
}

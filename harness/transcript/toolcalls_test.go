package transcript

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestToolCallsAreAssembled(t *testing.T) {
	const (
		a = `{"index":0,"id":"a","type":"function","function":{"name":"look_up","arguments":`
		b = `{"index":1,"id":"b","type":"function","function":{"name":"now","arguments":`
	)
	call := func(index int, id, name, args string) ToolCall {
		return ToolCall{Index: index, ID: id, Type: "function", Name: name, Arguments: args}
	}
	right := []ToolCall{call(0, "a", "look_up", `{"port":1}`)}
	for name, c := range map[string]struct {
		output []string
		want   []ToolCall
		found  []string
	}{
		"in pieces": {[]string{calls(a + `""}}`), more(`{"po`), more(`rt":1`), more(`}`)}, right, nil},
		"at once":   {[]string{calls(a + `"{\"port\":1}"}}`)}, right, nil},
		"two in one delta": {[]string{calls(a + `"{\"port\":1}"}},` + b + `"{}"}}`)},
			[]ToolCall{right[0], call(1, "b", "now", "{}")}, nil},
		"two by turns": {[]string{calls(a + `""}},` + b + `""}}`), more(`{"port"`), calls(`{"index":1,"function":{"arguments":"{}"}}`), more(`:1}`)},
			[]ToolCall{right[0], call(1, "b", "now", "{}")}, nil},
		"arguments null first": {[]string{calls(a + `null}}`), more(`{"port":1}`)}, right, nil},
		"arguments an object":  {[]string{calls(a + `{ "port": 1 }}}`)}, []ToolCall{{ID: "a", Type: "function", Name: "look_up", Arguments: `{"port":1}`, NotString: true}}, []string{ToolArgumentsNotString}},
		"a list as an object":  {[]string{delta(`{"tool_calls":` + a + `"{\"port\":1}"}}}`)}, right, []string{ContentNotString}},
		"no index": {[]string{calls(`{"id":"a","type":"function","function":{"name":"look_up","arguments":""}}`), calls(`{"function":{"arguments":"{\"port\":1}"}}`),
			calls(`{"id":"b","type":"function","function":{"name":"now","arguments":"{}"}}`)},
			[]ToolCall{right[0], call(1, "b", "now", "{}")}, []string{ToolIndexMissing}},
		"no index, no id": {[]string{calls(`{"type":"function","function":{"name":"look_up","arguments":"{\"port\":1}"}}`), calls(`{"type":"function","function":{"name":"now","arguments":"{}"}}`)},
			[]ToolCall{call(0, "", "look_up", `{"port":1}`), call(1, "", "now", "{}")}, []string{ToolIndexMissing, ToolIDMissing, ToolIDMissing}},
		"one index for two": {[]string{calls(a + `"{\"port\":1}"}}`), calls(`{"index":0,"id":"b","type":"function","function":{"name":"now","arguments":"{}"}}`)},
			[]ToolCall{right[0], call(0, "b", "now", "{}")}, []string{ToolIndexCollision}},
		"another id inside a call": {[]string{calls(a + `""}}`), calls(`{"index":0,"id":"z","function":{"arguments":"{\"port\""}}`), calls(`{"index":0,"id":"z","function":{"arguments":":1}"}}`)},
			right, []string{ToolIDUnstable}},
		"another id and the name inside a call": {[]string{calls(a + `"{\"port\""}}`), calls(`{"index":0,"id":"z","function":{"name":"look_up","arguments":":1}"}}`)},
			right, []string{ToolIDUnstable, ToolNameRepeated}},
		"a name in pieces": {[]string{calls(`{"index":0,"id":"a","type":"function","function":{"name":"lo"}}`), calls(`{"index":0,"function":{"name":"ok_"}}`), calls(`{"index":0,"function":{"name":"up"}}`), more(`{"port":1}`)},
			right, []string{ToolNameSplit}},
		"a name that grows": {[]string{calls(`{"index":0,"id":"a","type":"function","function":{"name":"look"}}`), calls(`{"index":0,"function":{"name":"look_up"}}`), more(`{"port":1}`)},
			right, []string{ToolNameRepeated}},
		"a name again": {[]string{calls(a + `""}}`), calls(`{"index":0,"function":{"name":"look_up","arguments":"{\"port\":1}"}}`)}, right, []string{ToolNameRepeated}},
		"half a pair in each piece": {[]string{calls(a + `""}}`), calls(`{"index":0,"function":{"arguments":"{\"port\":\"\ud83d"}}`), calls(`{"index":0,"function":{"arguments":"\udc4b\"}"}}`)},
			[]ToolCall{call(0, "a", "look_up", `{"port":"👋"}`)}, []string{LoneSurrogate}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := Read(answer(called(c.output...), request(offering)))
			g := NewWithT(t)
			g.Expect(tr.ToolCalls).To(Equal(c.want))
			g.Expect(ids(tr)).To(ConsistOf(c.found))
		})
	}
}

func TestACallIsADeltaWhereItHasNameOrArguments(t *testing.T) {
	tr := Read(answer(called(calls(`{"index":0,"id":"a","type":"function","function":{}}`), calls(opens), more(""), more("{}")), request(offering)))
	var got []string
	for _, d := range tr.Deltas {
		got = append(got, d.Text)
	}
	NewWithT(t).Expect(got).To(Equal([]string{"look_up", "{}"}))
}

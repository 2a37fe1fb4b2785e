package transcript

import (
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestTheWatcherTellsDataFromCommentsAndSeesTheFirstToken(t *testing.T) {
	chunk := func(delta string) string { return `data: {"choices":[{"index":0,"delta":` + delta + "}]}\n\n" }
	type step struct {
		piece string
		want  Signal
	}
	for name, steps := range map[string][]step{
		"keep-alive, role, then text": {
			{": keep-alive\n\n", Signal{}},
			{chunk(`{"role":"assistant","content":""}`), Signal{Data: true}},
			{chunk(`{"content":null}`), Signal{Data: true}},
			{"\n\n:\n\n", Signal{}},
			{chunk(`{"content":"a"}`), Signal{Data: true, Token: true}},
			{": ping\n\n", Signal{Token: true}},
			{"data: [DO", Signal{Token: true}},
			{"NE]\n\n", Signal{Data: true, Token: true, Done: true}},
			{": ping\n\n", Signal{Token: true, Done: true}},
		},
		"the end before any output": {{"data: [DONE]\n", Signal{}}, {"\n", Signal{Data: true, Done: true}}},
		"the end in words of the answer": {
			{chunk(`{"content":"[DONE]"}`), Signal{Data: true, Token: true}},
			{"data: " + strings.Repeat(" ", 200) + "[DONE]" + strings.Repeat(" ", 200) + "x\n\n", Signal{Data: true, Token: true}},
			{"data: [DONE]" + strings.Repeat(" ", 200) + "x\n\n", Signal{Data: true, Token: true}},
			{"data: [DONE]\ndata: x\n\n", Signal{Data: true, Token: true}},
			{": [DONE]\n\n", Signal{Token: true}},
			{"data:[DONE] \r\n\r\n", Signal{Data: true, Token: true, Done: true}},
		},
		"thinking":            {{chunk(`{"reasoning_content":"a"}`), Signal{Data: true, Token: true}}},
		"the other spelling":  {{chunk(`{"reasoning":"a"}`), Signal{Data: true, Token: true}}},
		"a call":              {{chunk(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}`), Signal{Data: true, Token: true}}},
		"a call without text": {{chunk(`{"tool_calls":[{"index":0,"id":"c","function":{"arguments":null}}]}`), Signal{Data: true}}},
		"half an event":       {{`data: {"choices":[{"delta":{"content":"a"}}]}` + "\n", Signal{}}, {"\n", Signal{Data: true, Token: true}}},
		"no JSON":             {{"data: {\"choices\":[{\"delta\":{\"content\n\n", Signal{Data: true}}},
		"a JSON document":     {{" \r\n", Signal{}}, {`{"id":`, Signal{Data: true, Token: true}}, {"1}", Signal{Data: true, Token: true}}},
		"a page":              {{"<html>", Signal{Data: true, Token: true}}},
		"gzip":                {{"\x1f\x8b\x08", Signal{Data: true, Token: true}}},
		"zlib":                {{"x\x9c", Signal{Data: true, Token: true}}},
		"byte-order mark":     {{"\xef\xbb", Signal{}}, {"\xbfdata: x\n\n", Signal{Data: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWatcher()
			for i, s := range steps {
				NewWithT(t).Expect(w.Piece(time.Duration(i), []byte(s.piece))).To(Equal(s.want), "piece %d %q", i, s.piece)
			}
		})
	}
}

func TestTheWatchersCountCanBeReadWhileItIsFed(t *testing.T) {
	w := NewWatcher()
	var wg sync.WaitGroup
	wg.Go(func() {
		for w.Events() < 1000 {
		}
	})
	for range 1000 {
		w.Piece(0, []byte("data: x\n\n: c\n\n"))
	}
	wg.Wait()
	NewWithT(t).Expect(w.Events()).To(BeEquivalentTo(1000))
}

func BenchmarkWatcherAfterTheFirstToken(b *testing.B) {
	event := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}` + "\n\n")
	w := NewWatcher()
	b.ReportAllocs()
	for b.Loop() {
		w.Piece(0, event)
	}
}

package strata

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

// streamed is an exchange whose events arrive at the given moments in milliseconds.
func streamed(id string, start time.Duration, events ...string) fixtures.Exchange {
	e := fixtures.Exchange{
		Format: fixtures.ExchangeFormat, ID: id, SinceStart: start,
		Request: fixtures.Request{Method: "POST", Path: "/v1/chat/completions",
			Body: fixtures.Bytes(`{"model":"tiny","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":128}`)},
		Connection: &fixtures.Connection{Protocol: "HTTP/1.1"},
		Response:   &fixtures.Response{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, At: time.Millisecond},
	}
	for i, data := range events {
		at := time.Duration(i+1) * 100 * time.Millisecond
		e.Pieces = append(e.Pieces, fixtures.Piece{At: at, Bytes: []byte("data: " + data + "\n\n")})
		e.End = fixtures.End{Kind: fixtures.EndClose, At: at}
	}
	return e
}

func chunk(delta, finish string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

const accounts = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[],` +
	`"usage":{"prompt_tokens":77,"completion_tokens":4,"total_tokens":81,"prompt_tokens_details":{"cached_tokens":0}},` +
	`"timings":{"cache_n":0,"prompt_n":77,"prompt_ms":150.0,"prompt_per_second":513.3,"predicted_n":4,"predicted_ms":400.0,"predicted_per_second":10.0}}`

func TestADocumentIsMadeOfTheExactBytesOfItsExchanges(t *testing.T) {
	g := NewWithT(t)
	run := referenceRun(t)
	run.Header.Plan[10].Expect = []byte(`{"kind":"text","text":"yes"}`) // sanity-I1
	run.Exchanges = []fixtures.Exchange{
		streamed("warmup", 0, chunk(`{"role":"assistant","content":""}`, "null"), chunk(`{"reasoning_content":"hm"}`, "null"),
			chunk(`{"content":"a"}`, "null"), chunk(`{"content":"b"}`, "null"), chunk(`{}`, `"length"`), accounts, "[DONE]"),
		streamed("sanity-I1", 2*time.Second, chunk(`{"role":"assistant","content":"yes"}`, "null"), chunk(`{}`, `"stop"`), accounts, "[DONE]"),
	}
	run.After = nil
	d, err := Build(run, outputsDigest)
	g.Expect(err).NotTo(HaveOccurred())
	data, err := d.Marshal()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Validate(data, nil)).To(BeEmpty())

	warmup := d.Requests[0]
	g.Expect(warmup.Status).To(Equal("truncated"))
	text := func(n Null[Number]) string { v, _ := n.Get(); return v.String() }
	g.Expect(text(warmup.Timings.TTFT)).To(Equal("0.2"), "the role chunk is no output")
	g.Expect(text(warmup.Timings.FirstAnswer)).To(Equal("0.3"), "thinking is no answer")
	g.Expect(text(warmup.Timings.Total)).To(Equal("0.7"))
	g.Expect(text(warmup.Timings.Prompt)).To(Equal("0.15"))
	g.Expect(text(warmup.Metrics.DecodeTPS)).To(Equal("10.0"))
	g.Expect(warmup.Sources.Read).To(ContainSubstring("timings.prompt_n"))
	client, _ := d.Extensions.ClientDecodeTPS.Get("warmup")
	g.Expect(text(client)).To(Equal("15.0"), "three tokens after the first in 0.2 s")

	verdict, _ := d.Requests[10].Evaluation.Get()
	g.Expect(verdict.Passed).To(BeTrue(), verdict.Reason)
	g.Expect(d.Quality.Passed).To(Equal(1))
	g.Expect(d.Quality.Total).To(Equal(12))
	g.Expect(d.Requests[1].Status).To(Equal("skipped"))
	g.Expect(d.Run.Status).To(Equal(Incomplete))
}

func TestAnAnswerKeyThatCannotBeReadIsABuildError(t *testing.T) {
	run := referenceRun(t)
	run.Header.Plan[0].Expect = []byte(`[`)
	run.Exchanges = []fixtures.Exchange{streamed("warmup", 0, "[DONE]")}
	_, err := Build(run, outputsDigest)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`"warmup"`)))
}

func TestBrokenRepliesOfAnyKindMakeAValidDocument(t *testing.T) {
	whole := []string{chunk(`{"content":"a"}`, "null"), chunk(`{"content":"b"}`, `"stop"`), accounts, "[DONE]"}
	spoil := map[string]func(*fixtures.Exchange){
		"reset":               func(e *fixtures.Exchange) { e.End.Kind, e.End.Error = fixtures.EndReset, "reset by peer" },
		"truncated":           func(e *fixtures.Exchange) { e.Pieces, e.End.Kind = e.Pieces[:1], fixtures.EndTruncate },
		"reset after the end": func(e *fixtures.Exchange) { e.End.Kind = fixtures.EndReset },
		"nothing":             func(e *fixtures.Exchange) { e.Pieces, e.Response, e.End.Kind = nil, nil, fixtures.EndRefused },
		"a page": func(e *fixtures.Exchange) {
			e.Response.Header["Content-Type"] = []string{"text/html"}
			one(e, "<html>")
		},
		"one document":         func(e *fixtures.Exchange) { one(e, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`) },
		"an error":             func(e *fixtures.Exchange) { one(e, "data: {\"error\":{\"message\":\"no \xff\"}}\n\n") },
		"not UTF-8":            func(e *fixtures.Exchange) { edit(e, `"a"`, "\"\xff\"") },
		"a status":             func(e *fixtures.Exchange) { e.Response.Status = 503 },
		"counts as text":       func(e *fixtures.Exchange) { edit(e, `"prompt_tokens":77`, `"prompt_tokens":"77"`) },
		"more cached than are": func(e *fixtures.Exchange) { edit(e, `"cached_tokens":0`, `"cached_tokens":100`) },
		"counts that differ":   func(e *fixtures.Exchange) { edit(e, `"completion_tokens":4`, `"completion_tokens":9`) },
		"seconds too long":     func(e *fixtures.Exchange) { edit(e, `"predicted_ms":400.0`, `"predicted_ms":40000.0`) },
		"seconds just in":      func(e *fixtures.Exchange) { edit(e, `"predicted_ms":400.0`, `"predicted_ms":409.99`) },
		"zero seconds":         func(e *fixtures.Exchange) { edit(e, `"prompt_ms":150.0`, `"prompt_ms":0`) },
		"seconds of 0.1 ms":    func(e *fixtures.Exchange) { edit(e, `"prompt_ms":150.0`, `"prompt_ms":0.1`) },
		"other finish":         func(e *fixtures.Exchange) { edit(e, `"stop"`, `"content_filter"`) },
		"old finish":           func(e *fixtures.Exchange) { edit(e, `"stop"`, `"function_call"`) },
		"no finish":            func(e *fixtures.Exchange) { edit(e, `"stop"`, `null`) },
		"no timings":           func(e *fixtures.Exchange) { edit(e, `"timings"`, `"other"`) },
		"no usage":             func(e *fixtures.Exchange) { edit(e, `"usage"`, `"other"`) },
		"no answer":            func(e *fixtures.Exchange) { edit(e, `"content"`, `"thing"`) },
		"no pieces":            func(e *fixtures.Exchange) { e.Pieces = nil },
	}
	for name, change := range spoil {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			run := referenceRun(t)
			run.Exchanges = nil
			for i, p := range run.Header.Plan {
				e := streamed(p.ID, time.Duration(i)*time.Second, whole...)
				if i%2 == 0 {
					change(&e)
				}
				run.Exchanges = append(run.Exchanges, e)
			}
			d, err := Build(run, outputsDigest)
			g.Expect(err).NotTo(HaveOccurred())
			data, err := d.Marshal()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(Validate(data, nil)).To(BeEmpty())
		})
	}
}

func TestTheRecordedExchangesOfARealServerMakeAValidDocument(t *testing.T) {
	g := NewWithT(t)
	exchanges, err := fixtures.ReadExchanges(bytes.NewReader(readFile(t, "../../fixtures/recorded/llamacpp-b10573.jsonl")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(exchanges)).To(BeNumerically(">", 100))
	run := referenceRun(t)
	run.Exchanges, run.Header.Plan, run.GPUs = nil, nil, nil
	for i, e := range exchanges {
		p := fixtures.Planned{Phase: "performance", CaseID: fmt.Sprintf("x%d", i), Repetition: 1, Seed: 1, MaxOutputTokens: 100, Concurrency: 1}
		p.ID = requestID(p.Phase, p.CaseID, 1)
		e.ID = p.ID
		run.Header.Plan, run.Exchanges = append(run.Header.Plan, p), append(run.Exchanges, e)
	}
	d, err := Build(run, outputsDigest)
	g.Expect(err).NotTo(HaveOccurred())
	data, err := d.Marshal()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Validate(data, nil)).To(BeEmpty())
	for status, n := range map[string]int{
		"completed": d.RequestCounts.Performance.Completed, "truncated": d.RequestCounts.Performance.Truncated, "failed": d.RequestCounts.Performance.Failed,
	} {
		g.Expect(n).To(BeNumerically(">", 0), status)
	}
}

// one makes the body one piece.
func one(e *fixtures.Exchange, body string) {
	e.Pieces = []fixtures.Piece{{At: e.End.At, Bytes: []byte(body)}}
}

// edit replaces a text wherever it stands in the body.
func edit(e *fixtures.Exchange, old, replacement string) {
	for i := range e.Pieces {
		e.Pieces[i].Bytes = []byte(strings.ReplaceAll(string(e.Pieces[i].Bytes), old, replacement))
	}
}

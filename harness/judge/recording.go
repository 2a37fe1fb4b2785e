package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// The kinds of task of a recording.
const (
	taskAnswerKey = "answer_key"
	taskAnswer    = "answer"
	taskLoad      = "load"
)

// keyed judges an answer by the key of the plan, as the run did.
func keyed(x *asked, t fixtures.CaseTask) result {
	var expect corpus.Expect
	if err := json.Unmarshal(t.Value, &expect); err != nil {
		return unknown(fmt.Sprintf("the answer key cannot be read: %v", err))
	}
	verdict := Evaluate(&expect, x.t, x.f)
	if !verdict.Passed {
		return wrong("%s", verdict.Reason)
	}
	return right(verdict.Reason)
}

// unkeyed demands of a reply what a run demands where the plan has no answer key.
func unkeyed(x *asked, _ fixtures.CaseTask) result {
	r := Reply{Exchange: x.e, Transcript: x.t, Figures: x.f}
	if faults := slices.Concat(silence(r), x.f.Broken); len(faults) > 0 {
		return wrong("%s", strings.Join(faults, "; "))
	}
	return right("the reply says something, and its accounting adds up")
}

// ofLoad demands of a reply what a load does: see Row.
func ofLoad(x *asked, t fixtures.CaseTask) result {
	var r fixtures.LoadRequest
	if err := json.Unmarshal(t.Value, &r); err != nil {
		return unknown(fmt.Sprintf("what the load asked for cannot be read: %v", err))
	}
	if f := Row(r, x.e).Failure; f != nil {
		return wrong("%s: %s", f.Class, f.Message)
	}
	return right("the reply counts as a valid one of a load")
}

// Recording turns an exchange of a run into a case: the request as it was sent, the response as a script with its own
// times, and the task by which the run judged it. Replayed, it shows what the engine said without the engine. The error
// is fixtures.ErrNothingToReplay where no response came.
func Recording(h *fixtures.Header, p fixtures.Planned, e *fixtures.Exchange) (*fixtures.Case, error) {
	task := map[string]any{"kind": taskAnswer}
	if len(p.Expect) > 0 {
		task = map[string]any{"kind": taskAnswerKey, "value": p.Expect}
	}
	return record(h, p, task, e)
}

// RecordingOfLoad is Recording of a request of a capacity run.
func RecordingOfLoad(h *fixtures.Header, r fixtures.LoadRequest, e *fixtures.Exchange) (*fixtures.Case, error) {
	r.Scheduled = nil // it is on the run's clock
	p := fixtures.Planned{ID: r.ID(), Phase: "capacity", Marker: r.Marker, MaxOutputTokens: h.Capacity.MaxTokens}
	return record(h, p, map[string]any{"kind": taskLoad, "value": r}, e)
}

func record(h *fixtures.Header, p fixtures.Planned, task map[string]any, e *fixtures.Exchange) (*fixtures.Case, error) {
	script, err := e.Script()
	if err != nil {
		return nil, err
	}
	if script.Status == 0 {
		return nil, fmt.Errorf("record exchange %q, which has no response head: %w", e.ID, fixtures.ErrNothingToReplay)
	}
	request, err := recordedRequest(task, e)
	if err != nil {
		return nil, fmt.Errorf("record exchange %q: %w", e.ID, err)
	}
	c := &fixtures.Case{
		ID: e.ID, Family: "recorded", FaultKind: "recorded: " + p.Phase, Fidelity: fixtures.Recorded,
		Engine:      strings.TrimSpace(h.Engine.Name + " " + h.Engine.Version),
		Summary:     fmt.Sprintf("request %s of run %s, as it came", e.ID, h.RunID),
		RequestKind: "chat",
		Request:     fixtures.CaseRequest{Endpoint: e.Request.Path, Method: e.Request.Method, Raw: request},
		Client:      recordedDeadlines(e),
	}
	if p.Tools {
		c.RequestKind = "tool"
	}
	c.Status, c.End, c.Headers = script.Status, string(script.End), map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(script.Header)) {
		c.Headers[name] = strings.Join(script.Header[name], ", ")
	}
	wait := script.HeadAfter // a case sends its head at once
	for _, step := range script.Steps {
		c.Raw.Steps = append(c.Raw.Steps, fixtures.Step{AfterMS: milliseconds(wait + step.After), Bytes: step.Bytes})
		wait = 0
	}
	return c, nil
}

// recordedRequest names what the judge reads of a request, and holds the body that was sent.
func recordedRequest(task map[string]any, e *fixtures.Exchange) (json.RawMessage, error) {
	var sent struct {
		Stream  json.RawMessage `json:"stream"`
		Options struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		MaxTokens json.RawMessage `json:"max_tokens"`
		Tools     json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(e.Request.Body, &sent); err != nil {
		return nil, fmt.Errorf("read the body that was sent: %w", err)
	}
	request := map[string]any{"endpoint": e.Request.Path, "method": e.Request.Method,
		"include_usage": sent.Options.IncludeUsage, "task": task, fixtures.LiteralBody: json.RawMessage(e.Request.Body)}
	for name, value := range map[string]json.RawMessage{"stream": sent.Stream, "max_tokens": sent.MaxTokens, "tools": sent.Tools} {
		if value != nil {
			request[name] = value
		}
	}
	return json.Marshal(request)
}

// recordedDeadlines are those that ended the exchange, so that its replay ends in the same way and as soon.
func recordedDeadlines(e *fixtures.Exchange) *fixtures.CaseClient {
	at := milliseconds(e.End.At)
	switch e.End.Kind {
	case fixtures.EndFirstByte:
		return &fixtures.CaseClient{FirstByteMS: at}
	case fixtures.EndFirstToken:
		return &fixtures.CaseClient{FirstTokenMS: at}
	case fixtures.EndTotal, fixtures.EndCanceled:
		return &fixtures.CaseClient{TotalMS: at}
	case fixtures.EndIdle:
		last := time.Duration(0)
		for _, ev := range transcript.Read(e).Events {
			last = ev.At
		}
		return &fixtures.CaseClient{IdleMS: milliseconds(e.End.At - last)}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

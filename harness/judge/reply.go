package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

// Reply is one request of a plan with all that is known of its outcome. It is a pure function of the plan's entry and
// the exchange, so it is the same while the run goes on and when a report is rebuilt from the record.
type Reply struct {
	Planned    fixtures.Planned
	Exchange   *fixtures.Exchange
	Transcript *transcript.Transcript
	Figures    measure.Figures
	// Evaluation is the verdict on the answer; nil where the plan has no answer key.
	Evaluation *Evaluation
}

// Light is the reply without the bytes it was read from and the events but for the last: what a verdict on many replies
// together needs.
func (r Reply) Light() Reply {
	e, t := *r.Exchange, *r.Transcript
	e.Pieces = nil
	t.Events = slices.Clone(t.Events[max(0, len(t.Events)-1):])
	for i := range t.Events {
		t.Events[i].Data = bytes.Clone(t.Events[i].Data) // it is part of the bytes
	}
	t.Deltas = nil
	r.Exchange, r.Transcript = &e, &t
	return r
}

// NewReply reads, measures and judges an exchange.
func NewReply(p fixtures.Planned, e *fixtures.Exchange) (Reply, error) {
	r := Reply{Planned: p, Exchange: e, Transcript: transcript.Read(e)}
	r.Figures = measure.Of(e, r.Transcript)
	if len(p.Expect) == 0 {
		return r, nil
	}
	var expect corpus.Expect
	if err := json.Unmarshal(p.Expect, &expect); err != nil {
		return r, fmt.Errorf("judge %q: read its answer key: %w", p.ID, err)
	}
	verdict := Evaluate(&expect, r.Transcript, r.Figures)
	r.Evaluation = &verdict
	return r, nil
}

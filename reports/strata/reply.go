package strata

import (
	"time"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/judge"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

// reply is what a document needs to know of one request: its figures, its verdict, and when its output came.
type reply struct {
	figures    measure.Figures
	evaluation *judge.Evaluation
	// start, firstOutput and end are offsets on the run's clock; firstOutput and the outputs are those of the deltas.
	start, end time.Duration
	outputs    []time.Duration
	findings   []Finding
	// transcript is what was said; kept in the concurrency stage only, where replies are held against each other.
	transcript *transcript.Transcript
}

// reader makes a reply of an exchange. It is a value so that tests of the builder can say what a reply was without
// writing a stream for it.
type reader func(fixtures.Planned, *fixtures.Exchange) (reply, error)

func readReply(p fixtures.Planned, e *fixtures.Exchange) (reply, error) {
	judged, err := judge.NewReply(p, e)
	if err != nil {
		return reply{}, err
	}
	r := reply{
		figures: judged.Figures, evaluation: judged.Evaluation,
		start: e.SinceStart, end: e.SinceStart + e.End.At,
		outputs:  outputTimes(e.SinceStart, judged.Transcript.Deltas),
		findings: findingsOf(judged.Transcript),
	}
	if p.Phase == corpus.PhaseConcurrency {
		r.transcript = judged.Light().Transcript
	}
	return r, nil
}

func outputTimes(start time.Duration, deltas []transcript.Delta) []time.Duration {
	times := make([]time.Duration, len(deltas))
	for i, d := range deltas {
		times[i] = start + d.At
	}
	return times
}

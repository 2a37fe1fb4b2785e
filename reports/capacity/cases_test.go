package capacity

import (
	"iter"
	"testing"
	"time"

	"plumbline/fixtures"
)

// rowsOf takes the rows of an input.
func rowsOf(in Input) []*fixtures.Row {
	var rows []*fixtures.Row
	for r := range in.Rows() {
		rows = append(rows, r)
	}
	return rows
}

// killed is a run that was killed in its closed loop: five rows, no stage, no end.
func killed() Input {
	in := madeUp()
	in.Stages, in.End = nil, nil
	in.Rows = yielding(rowsOf(in)[:5])
	return in
}

// killedAtOnce has no row at all.
func killedAtOnce() Input {
	in := killed()
	in.Rows = yielding(nil)
	return in
}

// interrupted is a run that was ended by a signal in its open loop.
func interrupted() Input {
	in := madeUp()
	in.End = &fixtures.RunEnd{Interrupted: "interrupt"}
	in.Stages = in.Stages[:1]
	in.Rows = yielding(rowsOf(in)[:10])
	return in
}

// withoutUsage is a run whose engine counts no tokens.
func withoutUsage() Input {
	in := madeUp()
	rows := rowsOf(in)
	for i, r := range rows {
		r.Failure, r.ResponseReceived = nil, true
		if r.Canary == nil || !r.Canary.Passed {
			made := madeRow(in.Header.Capacity, r.Stage, r.RequestIndex, r.PlannedContextTokens, r.SinceStart)
			rows[i], r = made, made
		}
		r.PromptTokens, r.CompletionTokens, r.CachedTokens, r.Usage = nil, nil, nil, nil
		r.OutputTokenSource, r.OutputTokens = sourceChunks, int64(r.ContentChunks)
		r.DecodeTokS, r.TPOTMS, r.EffectivePrefillTokS = nil, nil, nil
		r.ControlledOutput = &fixtures.ControlledOutput{RequestedWords: 12, ObservedWords: new(12), Exact: true}
	}
	in.Rows = yielding(rows)
	return in
}

func oneRequest(t testing.TB) Input {
	in := referenceInput(t)
	in.PlannedSizes = in.PlannedSizes[:1]
	in.Rows = yielding(rowsOf(in)[:1])
	in.Stages[0].Requests, in.Stages[0].Sent = 1, 1
	lasts(&in.Stages[0], time.Duration(rowsOf(in)[0].E2EMS*1e6))
	return in
}

// allFailed is a run that was ended early because nothing worked.
func allFailed() Input {
	in := madeUp()
	var rows []*fixtures.Row
	for i := range 3 {
		rows = append(rows, &fixtures.Row{Stage: "closed", RequestIndex: i, PlannedContextTokens: in.PlannedSizes[i],
			SinceStart: time.Second, E2EMS: 1,
			Failure: &fixtures.RowFailure{Class: fixtures.FailRequest, Type: "connection", Message: "refused"}})
	}
	in.Rows = yielding(rows)
	in.Stages = in.Stages[:1]
	in.Stages[0].Sent, in.Stages[0].Stopped = 3, "3 of 3 requests failed"
	return in
}

// lasts gives a stage its time, on both clocks.
func lasts(s *fixtures.Stage, wall time.Duration) {
	s.Wall, s.FinishedAt = wall.Seconds(), s.StartedAt.Add(wall)
}

// endless is a closed loop of n requests whose rows are made while they are read.
func endless(n int) Input {
	in := madeUp()
	run := *in.Header.Capacity
	run.Requests, run.Arrival, run.Sweep, run.CtxTokens = n, "", nil, 600
	header := *in.Header
	header.Capacity = &run
	in.Header = &header
	in.PlannedSizes = make([]int, n)
	for i := range in.PlannedSizes {
		in.PlannedSizes[i] = run.CtxTokens
	}
	in.Stages = in.Stages[:1]
	in.Stages[0].Requests, in.Stages[0].Sent = n, n
	lasts(&in.Stages[0], time.Duration(n)*1500*time.Millisecond)
	in.Rows = func() iter.Seq2[*fixtures.Row, error] {
		return func(yield func(*fixtures.Row, error) bool) {
			for i := range n {
				r := madeRow(&run, "closed", i%1000, run.CtxTokens, time.Second)
				r.RequestIndex = i
				r.Canary.Marker = marker(run.Seed, i)
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	return in
}

package transcript

import (
	"fmt"
	"slices"
	"time"

	"plumbline/corpus"
)

// Limits of the checks on time. Each is wide, since a false alarm about an engine's clock is worse than none.
const (
	// shortestSpan is the least time on the client's clock that says anything about an engine's.
	shortestSpan = 50 * time.Millisecond
	// implausibleShare is the part of the client's time below which the engine's own cannot have made the reply.
	implausibleShare = 0.05
	// clientShare is the multiple of the client's time that an engine's own must exceed to be called untrue.
	clientShare = 1.2
	// impossiblePromptRate is a prompt rate, in tokens per second, that no machine reaches.
	impossiblePromptRate = 100_000
	// longWait is how much of the wait for the first token must be unexplained, and unexplainedShare what part of it.
	longWait         = 250 * time.Millisecond
	unexplainedShare = 0.5
	// A stall is a gap of at least stallGap and of stallFactor times the usual one, among at least stallGaps gaps.
	stallGap    = 500 * time.Millisecond
	stallFactor = 8
	stallGaps   = 4
	// Held back is a stream of at least heldDeltas deltas that all came at one moment, heldWait after the request.
	heldDeltas = 5
	heldWait   = 300 * time.Millisecond
)

// checkClocks compares the engine's times with each other and with the client's.
func (r *reader) checkClocks() {
	d := r.t.Deltas
	if !r.t.Untimed {
		r.checkPace(d)
	}
	t := r.t.Timings
	if t == nil {
		return
	}
	r.checkTimings(t)
	if r.t.Untimed {
		return
	}
	if t.PromptMS == nil || t.PredictedMS == nil || *t.PromptMS < 0 || *t.PredictedMS < 0 {
		return
	}
	prompt, decode := milliseconds(*t.PromptMS), milliseconds(*t.PredictedMS)
	// over allows for a client that was held up before it stamped its own dispatch, which on a busy machine takes tens
	// of milliseconds and is not the engine's fault.
	over := func(engine, client time.Duration) bool {
		return engine.Seconds() > clientShare*client.Seconds()+corpus.EngineOverClient
	}
	// Each interval alone must fit: some engines count the first token's time in both, so their sum may be longer.
	if longest := max(prompt, decode); r.e.Whole() && over(longest, r.e.End.At) {
		r.add(TimingsImplausible, r.timingsAt, "timings", fmt.Sprintf("%v by the engine's clock, %v by the client's",
			longest, r.e.End.At))
	} else if len(d) > 0 && over(prompt, d[0].At) {
		r.add(TimingsImplausible, r.timingsAt, "timings.prompt_ms", fmt.Sprintf("%v, and the first token came after %v",
			prompt, d[0].At))
	}
	if len(d) < 2 {
		return
	}
	short := func(engine, client time.Duration) bool {
		return engine > 0 && client >= shortestSpan && float64(engine) < implausibleShare*float64(client)
	}
	if span := d[len(d)-1].At - d[0].At; short(decode, span) {
		r.add(TimingsImplausible, r.timingsAt, "timings.predicted_ms", fmt.Sprintf("%v, and the output took %v", decode, span))
	}
	// Output that the engine kept back, a tool call until it was whole, is decoding that the client saw as waiting.
	hidden := max(0, decode-(d[len(d)-1].At-d[0].At))
	r.checkFirst(t, prompt, hidden, d[0].At, short)
}

func (r *reader) checkFirst(t *Timings, prompt, hidden, first time.Duration, short func(engine, client time.Duration) bool) {
	read := t.PromptN
	if read == nil || prompt <= 0 {
		return
	}
	wait := first - prompt - hidden
	long := wait >= longWait && float64(wait) > unexplainedShare*float64(first)
	impossible := float64(*read)/prompt.Seconds() > impossiblePromptRate && short(prompt, first)
	switch {
	case impossible && long:
		r.add(TimingsDoNotCoverWallClock, r.timingsAt, "timings.prompt_ms",
			fmt.Sprintf("%d tokens in %v, first token after %v", *read, prompt, first))
	case impossible:
		r.add(TimingsImplausible, r.timingsAt, "timings.prompt_ms",
			fmt.Sprintf("%d tokens in %v, first token after %v", *read, prompt, first))
	case long:
		r.add(QueueWait, r.timingsAt, "timings.prompt_ms",
			fmt.Sprintf("prompt read in %v, first token after %v", prompt, first))
	}
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(min(ms, 1e12) * float64(time.Millisecond))
}

// checkTimings looks at the timing block alone.
func (r *reader) checkTimings(t *Timings) {
	times := []struct {
		path string
		n    *int64
		ms   *float64
		rate *float64
		from int64 // the least count that takes time
	}{
		{"timings.prompt", t.PromptN, t.PromptMS, t.PromptPerSecond, 1},
		{"timings.predicted", t.PredictedN, t.PredictedMS, t.PredictedPerSecond, 2}, // the interval may begin at the first token
	}
	for _, x := range times {
		if x.n == nil || x.ms == nil {
			r.add(TimingsIncomplete, r.timingsAt, x.path, "")
		}
		switch {
		case x.ms != nil && *x.ms < 0 || x.rate != nil && *x.rate < 0:
			r.add(TimingsNegative, r.timingsAt, x.path, "")
		case x.ms != nil && *x.ms == 0 && x.n != nil && *x.n >= x.from:
			r.add(TimingsZero, r.timingsAt, x.path+"_ms", "")
		}
	}
}

// checkPace looks at when the deltas arrived.
func (r *reader) checkPace(d []Delta) {
	if len(d) == 0 {
		return
	}
	first, last := d[0].At, d[len(d)-1].At
	t := r.t.Timings
	quick := t != nil && t.PredictedMS != nil && *t.PredictedMS > 0 && milliseconds(*t.PredictedMS) < shortestSpan
	if len(d) >= heldDeltas && first == last && first >= heldWait && r.complete() && !quick {
		r.add(StreamBuffered, d[0].Event, "", fmt.Sprintf("%d deltas after %v", len(d), first))
	}
	var gaps []time.Duration
	at, longest := -1, time.Duration(0)
	for i := 1; i < len(d); i++ {
		if gap := d[i].At - d[i-1].At; gap > 0 {
			gaps = append(gaps, gap)
			if gap > longest {
				at, longest = d[i].Event, gap
			}
		}
	}
	if len(gaps) < stallGaps {
		return
	}
	slices.Sort(gaps)
	usual := gaps[len(gaps)/2]
	if longest >= stallGap && longest >= stallFactor*usual {
		r.add(InterTokenStall, at, "", fmt.Sprintf("%v against %v", longest, usual))
	}
}

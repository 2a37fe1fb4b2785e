package capacity

import (
	"cmp"
	"fmt"
	"slices"

	"plumbline/fixtures"
)

// goodputs makes the parts of the extensions that stand on the objective and on the stages after the closed loop.
func (b *builder) goodputs() {
	b.goodput = goodput(b.closed.tally, "dispatch")
	if b.run.Arrival != "" {
		b.openLoop = b.openPart()
	}
	if len(b.run.Sweep) > 0 {
		b.sweep = b.sweepPart()
	}
}

// goodput counts the requests that met the objective; nil without one. A failed request meets none.
func goodput(t *tally, from string) object {
	if len(t.slo) == 0 {
		return nil
	}
	objective := list{}
	for _, o := range t.slo {
		objective = append(objective, object{"figure": o.Figure, "limit_ms": milliseconds(o.Limit)})
	}
	o := object{"objective": objective, "counted_from": from, "met": t.met, "of": t.rows, "unknown": t.unknown}
	put(o, "share", ratio(t.met, t.rows), "no request has a result")
	put(o, "requests_per_s", t.rate(int64(t.met)), whyNoWall)
	return o
}

// OpenLoop is how the open loop went. Times are milliseconds.
type OpenLoop struct {
	Arrival  string
	Rate     float64 // requests a second that were wanted
	Achieved *float64
	Requests int // planned
	Failed   int
	// TTFT and E2E count from the scheduled time, 95th percentile; null where no valid reply has the figure.
	TTFTP95, E2EP95 *float64
	Overloaded      bool
}

func (b *builder) openPart() object {
	t := b.c.open
	o := object{
		"arrival": b.run.Arrival, "rate": b.run.Rate, "requests": b.run.OpenRequests, "results": t.rows,
		"completed": t.completed, "failed": t.failed,
	}
	t.settle()
	var achieved *float64
	if span := t.last - t.first; t.rows > 1 && span > 0 {
		achieved = new(float64(t.rows-1) / span.Seconds())
	}
	put(o, "achieved_rate", achieved, "fewer than two requests were dispatched at different times")
	sent, check, why := (*int)(nil), (*fixtures.ClientCheck)(nil), whyStageCutOff
	if t.stage != nil {
		sent, check, why = &t.stage.Sent, t.stage.Client, "the client did not watch itself"
	}
	put(o, "sent", sent, whyStageCutOff)
	put(o, "wall_ms", wallOf(t.tally), whyNoWall)
	o.part("from_schedule", latency(t.ttftIn, t.e2eIn), whyNoValid)
	o.part("from_dispatch", latency(spreadOf(t.sentTTFT), spreadOf(t.sentE2E)), whyNoValid)
	o.part("dispatch_wait_ms", spreadOf(t.waits).object(), "no request has a result")
	put(o, "throughput_tok_s", usefulRate(t.tally), whyNoTokens)
	put(o, "requests_per_s", t.rate(int64(t.completed)), whyNoWall)
	o.part("goodput", goodput(t.tally, "schedule"), whyNoSLO)
	o.part("client", clientCheck(check), why)
	b.open = &OpenLoop{
		Arrival: b.run.Arrival, Rate: b.run.Rate, Achieved: achieved, Requests: b.run.OpenRequests, Failed: t.failed,
		TTFTP95: t.ttftIn.percentile95(), E2EP95: t.e2eIn.percentile95(), Overloaded: check != nil && check.Overloaded,
	}
	return o
}

const (
	whyStageCutOff = "the stage did not come to its end, so that the record does not say it"
	whyNoTokens    = "not every valid reply counts its tokens, or the stage took no time, or it has no valid reply"
)

// latency is the first output's and the whole request's spread; nil without any.
func latency(ttft, e2e *spread) object {
	if ttft == nil && e2e == nil {
		return nil
	}
	o := object{}
	o.part("ttft_ms", ttft.object(), whyNoValid)
	o.part("e2e_ms", e2e.object(), whyNoValid)
	return o
}

func (s *spread) percentile95() *float64 {
	if s == nil {
		return nil
	}
	return &s.p95
}

func (s *spread) percentile50() *float64 {
	if s == nil {
		return nil
	}
	return &s.p50
}

// wallOf is the stage's wall time in milliseconds; nil where it has none.
func wallOf(t *tally) *float64 {
	if t.wall() <= 0 {
		return nil
	}
	return new(t.wall() * 1000)
}

// usefulRate is the tokens of valid replies a second; nil where they are not known. Unlike the document's throughput it
// is had with failures too: what failed made no tokens that anyone can use, and a sweep is meant to reach that point.
func usefulRate(t *tally) *float64 {
	if t.completed == 0 || !t.counted {
		return nil
	}
	return t.rate(t.tokens)
}

// Level is one concurrency of the sweep. Times are milliseconds; what is not known is null.
type Level struct {
	Concurrency      int
	Requests, Failed int
	Throughput       *float64 // output tokens a second of valid replies
	TTFTP95, TPOTP95 *float64
	Overloaded       bool // the client was
}

// kneeShare is the part of the greatest throughput that counts as having reached it.
const kneeShare = 0.9

const kneeRule = "the smallest concurrency whose throughput (tokens of valid replies a second) is at least 90 % of the " +
	"greatest of all levels; none with fewer than three levels of known throughput, nor where the greatest is that of the " +
	"highest level and more than 10 % above the level before"

func (b *builder) sweepPart() object {
	levels := list{}
	for _, concurrency := range b.run.Sweep {
		t := b.c.levels[fixtures.SweepStage(concurrency)]
		o := object{"concurrency": concurrency, "requests": b.run.SweepRequests, "results": t.rows, "failed": t.failed}
		put(o, "wall_ms", wallOf(t), whyNoWall)
		put(o, "throughput_tok_s", usefulRate(t), whyNoTokens)
		put(o, "requests_per_s", t.rate(int64(t.completed)), whyNoWall)
		for _, f := range []struct {
			name string
			in   *spread
		}{{"ttft", t.ttftIn}, {"tpot", t.tpotIn}, {"e2e", t.e2eIn}} {
			put(o, f.name+"_p50_ms", f.in.percentile50(), whyNoValid)
			put(o, f.name+"_p95_ms", f.in.percentile95(), whyNoValid)
		}
		o.part("goodput", goodput(t, "dispatch"), whyNoSLO)
		var overloaded *bool
		if t.stage != nil && t.stage.Client != nil {
			overloaded = &t.stage.Client.Overloaded
		}
		put(o, "client_overloaded", overloaded, whyStageCutOff)
		levels = append(levels, o)
		b.levels = append(b.levels, Level{
			Concurrency: concurrency, Requests: b.run.SweepRequests, Failed: t.failed, Throughput: usefulRate(t),
			TTFTP95: t.ttftIn.percentile95(), TPOTP95: t.tpotIn.percentile95(), Overloaded: overloaded != nil && *overloaded,
		})
	}
	b.knee, b.kneeReason = findKnee(b.levels)
	return object{
		"levels": levels,
		"knee":   object{"concurrency": b.knee, "concurrency_reason": b.kneeReason, "rule": kneeRule},
	}
}

// findKnee follows kneeRule, and says why. A client that did not keep up bends the curve by itself, so it is named.
func findKnee(all []Level) (*int, string) {
	var known []Level
	doubt := ""
	for _, l := range all {
		if l.Throughput != nil {
			known = append(known, l)
		}
		if l.Overloaded && doubt == "" {
			doubt = fmt.Sprintf("; the client did not keep up at %d", l.Concurrency)
		}
	}
	if len(known) < 3 {
		return nil, fmt.Sprintf("%d levels have a known throughput; three are needed%s", len(known), doubt)
	}
	slices.SortStableFunc(known, func(a, b Level) int { return cmp.Compare(a.Concurrency, b.Concurrency) })
	best := slices.MaxFunc(known, func(a, b Level) int { return cmp.Compare(*a.Throughput, *b.Throughput) })
	greatest := *best.Throughput
	last, before := known[len(known)-1], known[len(known)-2]
	if *last.Throughput == greatest && greatest > (2-kneeShare)**before.Throughput {
		return nil, fmt.Sprintf("throughput was still rising at the highest level: %.1f tokens/s at %d, %.1f at %d%s",
			greatest, last.Concurrency, *before.Throughput, before.Concurrency, doubt)
	}
	at := known[slices.IndexFunc(known, func(l Level) bool { return *l.Throughput >= kneeShare*greatest })]
	return &at.Concurrency, fmt.Sprintf("%.1f tokens/s at %d; the greatest was %.1f at %d%s",
		*at.Throughput, at.Concurrency, greatest, best.Concurrency, doubt)
}

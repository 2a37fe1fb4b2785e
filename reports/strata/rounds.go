package strata

import (
	"slices"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/judge"
	"plumbline/harness/measure"
)

// rounds sums up the rounds of the concurrency stage, in the order of the plan.
func (b *builder) rounds() []ConcurrencyRound {
	rounds := []ConcurrencyRound{}
	for _, p := range b.run.Header.Plan {
		if p.Phase != corpus.PhaseConcurrency || p.Round == nil {
			continue
		}
		n := len(rounds)
		if n == 0 || rounds[n-1].Concurrency != p.Concurrency || rounds[n-1].Round != *p.Round {
			rounds = append(rounds, ConcurrencyRound{Concurrency: p.Concurrency, Round: *p.Round, RequestIDs: []string{}})
			n++
		}
		rounds[n-1].RequestIDs = append(rounds[n-1].RequestIDs, p.ID)
	}
	foreign := b.foreignMarkers()
	for i := range rounds {
		r := &rounds[i]
		b.sumUp(r)
		r.ForeignMarkers = []ForeignMarker{}
		for _, m := range foreign {
			if slices.Contains(r.RequestIDs, m.RequestID) {
				r.ForeignMarkers = append(r.ForeignMarkers, m)
			}
		}
	}
	return rounds
}

// foreignMarkers are the markers of others in any reply of the stage, whatever the level or round of either. A request
// whose reply was not kept was sent for all that, and its marker with it.
func (b *builder) foreignMarkers() []ForeignMarker {
	var replies []judge.Reply
	for _, p := range b.run.Header.Plan {
		if t := b.replies[p.ID].transcript; p.Phase == corpus.PhaseConcurrency && t != nil {
			replies = append(replies, judge.Reply{Planned: p, Transcript: t})
		}
	}
	var markers []ForeignMarker
	for _, l := range judge.Leaks(b.run.Header.Plan, replies) {
		markers = append(markers, ForeignMarker{RequestID: l.ID, Marker: l.Marker, Owner: l.Owner, InThinking: l.InThinking})
	}
	return markers
}

func (b *builder) sumUp(r *ConcurrencyRound) {
	var arrived []reply
	for _, id := range r.RequestIDs {
		if x, ok := b.replies[id]; ok && (x.figures.Status == measure.Completed || x.figures.Status == measure.Truncated) {
			arrived = append(arrived, x)
		}
	}
	b.roundTime(r, arrived)
	b.roundTogether(r, arrived)
	b.roundSpread(r, arrived)
}

// roundTime fills in the wall time and the output over all of it.
func (b *builder) roundTime(r *ConcurrencyRound, arrived []reply) {
	r.Wall, r.OutputTokens, r.OutputTPS = None[Number](whyNoRoundSent), None[int64](whyNoRoundSent), None[Number](whyNoRoundSent)
	start, end, sent := b.span(func(p fixtures.Planned) bool { return slices.Contains(r.RequestIDs, p.ID) })
	if !sent {
		return
	}
	r.Wall = b.seconds(end-start, clientDecimals)
	r.OutputTokens, r.OutputTPS = None[int64](whyNoRoundReply), None[Number](whyNoRoundReply)
	var tokens int64
	counted := false
	for _, x := range arrived {
		if x.figures.OutputTokens.Known {
			tokens += x.figures.OutputTokens.Value
			counted = true
		}
	}
	if !counted {
		return
	}
	r.OutputTokens, r.OutputTPS = Some(tokens), None[Number](whyNoWall)
	if wall, _ := r.Wall.Get(); wall.Float64() > 0 {
		r.OutputTPS = b.number(float64(tokens)/wall.Float64(), rateDecimals)
	}
}

// roundTogether fills in the time during which all were decoding, and the output in it. It is counted by deltas: each
// carries an equal share of its reply's tokens. A delta at the very start of that time is what opened it, and is not in
// it, as with n - 1 tokens between the first and the last.
func (b *builder) roundTogether(r *ConcurrencyRound, arrived []reply) {
	whole := len(arrived) == len(r.RequestIDs) && !slices.ContainsFunc(arrived, func(x reply) bool {
		return len(x.outputs) < 2 || !x.figures.OutputTokens.Known
	})
	if !whole {
		r.Together, r.TogetherTPS = None[Number](whyRoundIncomplete), None[Number](whyRoundIncomplete)
		return
	}
	from, to := arrived[0].outputs[0], arrived[0].outputs[len(arrived[0].outputs)-1]
	for _, x := range arrived {
		from, to = max(from, x.outputs[0]), min(to, x.outputs[len(x.outputs)-1])
	}
	seconds, err := NewNumber((to - from).Seconds(), clientDecimals)
	if err != nil || seconds.Float64() <= 0 {
		r.Together, r.TogetherTPS = None[Number](whyNeverTogether), None[Number](whyNeverTogether)
		return
	}
	tokens := 0.0
	for _, x := range arrived {
		inside := 0
		for _, at := range x.outputs {
			if at > from && at <= to {
				inside++
			}
		}
		tokens += float64(x.figures.OutputTokens.Value) * float64(inside) / float64(len(x.outputs))
	}
	r.Together = Some(seconds)
	r.TogetherTPS = b.number(tokens/seconds.Float64(), rateDecimals)
}

// roundSpread fills in the slowest and the fastest decode rate.
func (b *builder) roundSpread(r *ConcurrencyRound, arrived []reply) {
	r.Slowest, r.Fastest, r.Spread = None[Number](whyNoRoundRate), None[Number](whyNoRoundRate), None[Number](whyNoRoundRate)
	var rates []float64
	for _, x := range arrived {
		if f := x.figures; f.DecodeTPS.Known && f.DecodeTPS.Value > 0 {
			rates = append(rates, f.DecodeTPS.Value)
		}
	}
	if len(rates) == 0 {
		return
	}
	slowest, fastest := slices.Min(rates), slices.Max(rates)
	r.Slowest, r.Fastest = b.number(slowest, rateDecimals), b.number(fastest, rateDecimals)
	r.Spread = b.number(slowest/fastest, rateDecimals)
}

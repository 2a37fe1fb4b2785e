package session

import (
	"cmp"
	"math"
	"slices"
	"time"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/judge"
)

// estimate guesses the time left from what finished requests took. A request is taken to go like the finished one whose
// prompt was nearest to its own in length: rates at 50 tokens say little of 16,000.
type estimate struct {
	waiting []fixtures.Planned // in the order in which they are sent
	took    []sample
}

// sample is what one finished request took.
type sample struct {
	prompt   float64 // tokens of its prompt
	ttft     float64 // seconds
	perToken float64 // seconds for one token of output
	share    float64 // of its budget that it used
}

func newEstimate(plan []fixtures.Planned) estimate { return estimate{waiting: slices.Clone(plan)} }

// add notes a finished request.
func (e *estimate) add(r *judge.Reply) {
	e.waiting = slices.DeleteFunc(e.waiting, func(w fixtures.Planned) bool { return w.ID == r.Planned.ID })
	f := r.Figures
	if !f.OutputTokens.Known || f.OutputTokens.Value == 0 || !f.TTFT.Known || !f.Total.Known {
		return
	}
	out := float64(f.OutputTokens.Value)
	e.took = append(e.took, sample{
		prompt: promptLength(r.Planned), ttft: f.TTFT.Value, perToken: (f.Total.Value - f.TTFT.Value) / out,
		share: out / float64(r.Planned.MaxOutputTokens),
	})
}

// promptLength is a prompt's length in tokens, by whoever counted it; a short prompt's where nobody did.
func promptLength(p fixtures.Planned) float64 {
	const short = 50
	switch {
	case p.EngineContentTokens != nil:
		return float64(max(*p.EngineContentTokens, 1))
	case p.ContentTokens != nil:
		return float64(max(*p.ContentTokens, 1))
	}
	return short
}

// reach is how many times longer or shorter a finished prompt may be than one that it speaks for. Beyond it the fixed
// cost of a short prompt would be taken for a rate.
const reach = 8

// of is how long a request is expected to take; not known while nothing like it has been seen.
func (e *estimate) of(p fixtures.Planned) (time.Duration, bool) {
	if len(e.took) == 0 {
		return 0, false
	}
	length := promptLength(p)
	like := slices.MinFunc(e.took, func(a, b sample) int {
		return cmp.Compare(math.Abs(math.Log(a.prompt/length)), math.Abs(math.Log(b.prompt/length)))
	})
	if ratio := length / like.prompt; ratio > reach || ratio < 1.0/reach {
		return 0, false
	}
	out := float64(p.MaxOutputTokens)
	if p.Phase == corpus.PhaseSanity {
		out = sanityOutput
	} else {
		out *= like.share
	}
	seconds := like.ttft*max(length/like.prompt, 1) + out*like.perToken
	return time.Duration(seconds / float64(p.Concurrency) * float64(time.Second)), true
}

// others is how long the waiting requests are expected to take, the first few left out.
func (e *estimate) others(first int) (time.Duration, bool) {
	var sum time.Duration
	for _, w := range e.waiting[min(first, len(e.waiting)):] {
		d, ok := e.of(w)
		if !ok {
			return 0, false
		}
		sum += d
	}
	return sum, true
}

// sanityOutput is how many tokens a sanity reply takes as a rule: thinking and a short answer, far below its budget.
const sanityOutput = 100

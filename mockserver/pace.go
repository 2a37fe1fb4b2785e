package mockserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Pace is how fast the engine reads prompts and writes tokens. A client that finds a free slot and adds nothing of its
// own sees its first token at Prefill(n) after dispatch, one more every PerToken, and the end one PerToken after the last:
// the step in which the engine finds that the reply is over. So k tokens take k × PerToken on the engine's clock, and the
// k-1 gaps between them show a client the same rate.
type Pace struct {
	// Name is how PaceByName finds it.
	Name string
	// Curve gives the time to read a prompt at some lengths, lengths rising. Between two points the time is linear;
	// outside them the nearest segment goes on.
	Curve []Point
	// Decode is the mean time of one token.
	Decode time.Duration
	// Jitter is how far a single token's time may lie from Decode, as a share of it, from 0 to less than 1. A reply's
	// last token is due at the same moment with and without it.
	Jitter float64
}

// Point is one point of a prefill curve.
type Point struct {
	Tokens int
	Time   time.Duration
}

// rtx3090 is the median machine of the public standard result on one RTX 3090: engine prompt_s of the cases short,
// prompt-4k and prompt-16k, and a decode rate between their medians.
var rtx3090 = Pace{
	Name: "rtx3090",
	Curve: []Point{
		{77, 465600 * time.Microsecond},
		{4093, 2408500 * time.Microsecond},
		{16387, 7307400 * time.Microsecond},
	},
	Decode: time.Second / 120,
}

// paces are the named machines. fast is as quick as its times can still be told apart by a document that keeps tenths
// of milliseconds: quicker, and a short reply's rate would be lost in rounding.
var paces = []Pace{
	{
		Name:   "fast",
		Curve:  []Point{{0, 6 * time.Millisecond}, {16384, 22384 * time.Microsecond}},
		Decode: 125 * time.Microsecond,
	},
	rtx3090,
	{Name: "real", Curve: rtx3090.Curve, Decode: rtx3090.Decode, Jitter: 0.2},
}

// PaceByName returns the named pace. The error lists the valid names.
func PaceByName(name string) (Pace, error) {
	i := slices.IndexFunc(paces, func(p Pace) bool { return p.Name == name })
	if i < 0 {
		return Pace{}, fmt.Errorf("find pace %q: expected one of %s", name, strings.Join(PaceNames(), ", "))
	}
	return paces[i], nil
}

// PaceNames lists the names that PaceByName knows.
func PaceNames() []string {
	names := make([]string, len(paces))
	for i, p := range paces {
		names[i] = p.Name
	}
	return names
}

// shortest is the least time that the engine spends on anything: the last digit of its timings.
const shortest = time.Microsecond

// check refuses a pace that could not be waited for or measured.
func (p Pace) check() error {
	if p.Decode < shortest {
		return fmt.Errorf("pace %q: expected a decode time of at least %v, received %v", p.Name, shortest, p.Decode)
	}
	if !(p.Jitter >= 0 && p.Jitter < 1) { // NaN too
		return fmt.Errorf("pace %q: expected a jitter from 0 to less than 1, received %v", p.Name, p.Jitter)
	}
	if len(p.Curve) == 0 {
		return fmt.Errorf("pace %q: expected at least one point of the prefill curve, received none", p.Name)
	}
	for i, pt := range p.Curve {
		if pt.Time < shortest || pt.Tokens < 0 || i > 0 && pt.Tokens <= p.Curve[i-1].Tokens {
			return fmt.Errorf("pace %q: expected rising lengths with times of at least %v, received (%d, %v) as point %d",
				p.Name, shortest, pt.Tokens, pt.Time, i)
		}
	}
	return nil
}

// Prefill is the time to read a prompt of so many tokens.
func (p Pace) Prefill(tokens int) time.Duration {
	c := p.Curve
	if len(c) == 1 {
		return c[0].Time
	}
	// i is the right end of the segment that holds tokens, or that is nearest to it.
	i := 1
	for i < len(c)-1 && tokens > c[i].Tokens {
		i++
	}
	a, b := c[i-1], c[i]
	slope := float64(b.Time-a.Time) / float64(b.Tokens-a.Tokens)
	return max(a.Time+time.Duration(slope*float64(tokens-a.Tokens)), shortest)
}

// PerToken is the mean time of one token.
func (p Pace) PerToken() time.Duration { return p.Decode }

// deadlines returns when each of n tokens is due and when the reply ends, counted from a slot's start. Jitter is given
// and taken in pairs of tokens that rng brings together, so the end is the same with and without it.
func (p Pace) deadlines(promptTokens, n int, rng *rand.Rand) (tokens []time.Duration, end time.Duration) {
	gaps := make([]time.Duration, n)
	for i := range gaps {
		gaps[i] = p.Decode
	}
	if p.Jitter > 0 {
		order := rng.Perm(n)
		for ; len(order) >= 2; order = order[2:] {
			shift := time.Duration((2*rng.Float64() - 1) * p.Jitter * float64(p.Decode))
			gaps[order[0]] += shift
			gaps[order[1]] -= shift
		}
	}
	end = p.Prefill(promptTokens)
	for i, gap := range gaps {
		gaps[i] = end
		end += gap
	}
	return gaps, end
}

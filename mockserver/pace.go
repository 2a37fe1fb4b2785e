package mockserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Pace is how fast the engine reads prompts and writes tokens. A client that finds a free slot and adds nothing of its
// own sees its first token at Prefill(n) after dispatch, one more every PerToken, and the end one PerToken after the last:
// the step in which the engine finds that the reply is over. So k tokens take k × PerToken on the engine's clock, and the
// k-1 gaps between them show a client the same rate.
type Pace struct {
	// Name is how ParsePace finds it, or the numbers that it read.
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

// ParsePace reads a pace: the name of one, or its numbers as in "ttft=50ms,tpot=10ms". ttft is the time to the first token of
// a prompt of no length, tpot that of each further one; per-1k is what 1000 tokens of prompt add to ttft, jitter is as in
// Pace, and both are 0 when left out. The error lists what is valid.
func ParsePace(text string) (Pace, error) {
	if i := slices.IndexFunc(paces, func(p Pace) bool { return p.Name == text }); i >= 0 {
		return paces[i], nil
	}
	if !strings.Contains(text, "=") {
		return Pace{}, fmt.Errorf("find pace %q: expected one of %s", text, strings.Join(PaceForms(), ", "))
	}
	p := Pace{Name: text}
	given := map[string]time.Duration{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if _, twice := given[name]; twice {
			return Pace{}, fmt.Errorf("read pace %q: expected %q once, received it twice", text, name)
		}
		var err error
		switch name {
		case "ttft", "tpot", "per-1k":
			given[name], err = readTime(value, name != "per-1k")
		case "jitter":
			given[name] = 0
			p.Jitter, err = strconv.ParseFloat(value, 64)
		default:
			err = fmt.Errorf("expected ttft, tpot, per-1k or jitter")
		}
		if err != nil {
			return Pace{}, fmt.Errorf("read pace %q: %q: %w", text, part, err)
		}
	}
	for _, name := range []string{"ttft", "tpot"} {
		if given[name] == 0 {
			return Pace{}, fmt.Errorf("read pace %q: expected %s, received none; the form is %s", text, name, paceForm)
		}
	}
	p.Decode = given["tpot"]
	p.Curve = []Point{{0, given["ttft"]}, {1000, given["ttft"] + given["per-1k"]}}
	return p, p.check()
}

// longest bounds the times of a pace, so that no reply's end is past what a clock can count.
const longest = 10 * time.Minute

func readTime(text string, needed bool) (time.Duration, error) {
	least := time.Duration(0)
	if needed {
		least = shortest
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > longest {
		return 0, fmt.Errorf("expected a time from %v to %v, such as 50ms", least, longest)
	}
	return d, nil
}

// paceForm is how a pace is given by numbers.
const paceForm = "ttft=TIME,tpot=TIME[,per-1k=TIME][,jitter=SHARE]"

// PaceForms lists what ParsePace reads: the names, and the form of numbers.
func PaceForms() []string {
	forms := make([]string, len(paces))
	for i, p := range paces {
		forms[i] = p.Name
	}
	return append(forms, paceForm)
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

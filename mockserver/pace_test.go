package mockserver

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestPrefillFollowsTheCurve(t *testing.T) {
	ms := time.Millisecond
	p := Pace{Curve: []Point{{100, 200 * ms}, {300, 400 * ms}, {500, 1000 * ms}}, Decode: 10 * ms}
	for tokens, want := range map[int]time.Duration{
		100: 200 * ms, 300: 400 * ms, 500: 1000 * ms, // the points themselves
		200: 300 * ms, 400: 700 * ms, // halfway
		0: 100 * ms, 700: 1600 * ms, // the nearest segment goes on
	} {
		g := NewWithT(t)
		g.Expect(p.Prefill(tokens)).To(Equal(want), "%d tokens", tokens)
	}
	g := NewWithT(t)
	flat := Pace{Curve: []Point{{10, 7 * ms}}, Decode: ms}
	g.Expect(flat.Prefill(5000)).To(Equal(7*ms), "one point is a constant")
	steep := Pace{Curve: []Point{{100, ms}, {101, 3 * ms}}, Decode: ms}
	g.Expect(steep.Prefill(0)).To(Equal(time.Microsecond), "a curve that falls below nothing stays at the least time")
}

func TestNamedPacesAreFoundAndUsable(t *testing.T) {
	g := NewWithT(t)
	g.Expect(PaceNames()).To(ConsistOf("fast", "rtx3090", "real"))
	for _, name := range PaceNames() {
		p, err := PaceByName(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.Name).To(Equal(name))
		g.Expect(p.check()).To(Succeed())
	}
	_, err := PaceByName("rtx4090")
	g.Expect(err).To(MatchError(`find pace "rtx4090": expected one of fast, rtx3090, real`))
}

func TestReferenceMachineHasTheReferenceFigures(t *testing.T) {
	g := NewWithT(t)
	p, err := PaceByName("rtx3090")
	g.Expect(err).NotTo(HaveOccurred())
	for tokens, seconds := range map[int]float64{77: 0.4656, 4093: 2.4085, 16387: 7.3074} {
		g.Expect(p.Prefill(tokens).Seconds()).To(BeNumerically("~", seconds, 1e-9))
	}
	g.Expect(1 / p.PerToken().Seconds()).To(BeNumerically("~", 120, 0.01))
}

func TestUnusablePacesAreRefused(t *testing.T) {
	curve := []Point{{1, time.Second}}
	for name, p := range map[string]Pace{
		"no decode time": {Curve: curve},
		"no curve":       {Decode: time.Second},
		"instant":        {Curve: []Point{{1, 0}}, Decode: time.Second},
		"falling":        {Curve: []Point{{2, time.Second}, {1, time.Second}}, Decode: time.Second},
		"full jitter":    {Curve: curve, Decode: time.Second, Jitter: 1},
		"NaN jitter":     {Curve: curve, Decode: time.Second, Jitter: math.NaN()},
	} {
		NewWithT(t).Expect(p.check()).NotTo(Succeed(), name)
	}
}

func TestJitterMovesTokensButNotTheEnd(t *testing.T) {
	g := NewWithT(t)
	p := Pace{Curve: []Point{{0, time.Second}}, Decode: 10 * time.Millisecond, Jitter: 0.2}
	even := p
	even.Jitter = 0
	moved := 0
	for n := range 60 {
		for s := range uint64(5) {
			due, end := p.deadlines(40, n, rand.New(rand.NewPCG(s, 1)))
			plain, plainEnd := even.deadlines(40, n, nil)
			again, _ := p.deadlines(40, n, rand.New(rand.NewPCG(s, 1)))
			g.Expect(due).To(Equal(again), "the seed decides")
			g.Expect(due).To(HaveLen(n))
			for i := range n {
				next := append(due[:n:n], end)[i+1]
				g.Expect(next-due[i]).To(BeNumerically("~", p.Decode, p.Decode/5), "n=%d token %d", n, i)
				if due[i] != plain[i] {
					moved++
				}
			}
			g.Expect(end).To(Equal(plainEnd))
			g.Expect(end).To(Equal(time.Second + time.Duration(n)*p.Decode))
			if n > 0 {
				g.Expect(due[0]).To(Equal(time.Second), "the first token comes with the end of prefill")
			}
		}
	}
	g.Expect(moved).To(BeNumerically(">", 1000))
}

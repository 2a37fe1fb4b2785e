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
	for _, name := range []string{"fast", "rtx3090", "real"} {
		p, err := ParsePace(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.Name).To(Equal(name))
		g.Expect(p.check()).To(Succeed())
	}
	g.Expect(paces).To(HaveLen(3))
}

func TestPaceIsReadFromNumbers(t *testing.T) {
	ms := time.Millisecond
	for text, want := range map[string]struct {
		prefill map[int]time.Duration
		decode  time.Duration
		jitter  float64
	}{
		"ttft=50ms,tpot=10ms":                        {map[int]time.Duration{0: 50 * ms, 100000: 50 * ms}, 10 * ms, 0},
		"tpot=1µs,ttft=1us,jitter=0":                 {map[int]time.Duration{0: time.Microsecond, 5: time.Microsecond}, time.Microsecond, 0},
		"ttft=0.5s,tpot=8.5ms,jitter=0.1,per-1k=2ms": {map[int]time.Duration{0: 500 * ms, 500: 501 * ms, 32000: 564 * ms}, 8500 * time.Microsecond, 0.1},
		"ttft=10m,tpot=10m,per-1k=0s":                {map[int]time.Duration{9: 10 * time.Minute}, 10 * time.Minute, 0},
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			p, err := ParsePace(text)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.check()).To(Succeed())
			g.Expect(p.Name).To(Equal(text))
			g.Expect(p.Decode).To(Equal(want.decode))
			g.Expect(p.Jitter).To(Equal(want.jitter))
			for tokens, prefill := range want.prefill {
				g.Expect(p.Prefill(tokens)).To(Equal(prefill), "%d tokens", tokens)
			}
		})
	}
}

func TestPaceThatCannotBeReadIsRefusedWithWhatCan(t *testing.T) {
	for text, says := range map[string]string{
		"rtx4090":                       `find pace "rtx4090": expected one of fast, rtx3090, real, ttft=TIME,tpot=TIME[,per-1k=TIME][,jitter=SHARE]`,
		"":                              "expected one of fast",
		"ttft=50ms":                     "expected tpot, received none; the form is ttft=TIME",
		"tpot=50ms":                     "expected ttft, received none",
		"ttft=50ms,tpot=0s":             `"tpot=0s": expected a time from 1µs to 10m0s, such as 50ms`,
		"ttft=50ms,tpot=11m":            `"tpot=11m"`,
		"ttft=-1ms,tpot=1ms":            `"ttft=-1ms"`,
		"ttft=50,tpot=1ms":              `"ttft=50"`,
		"ttft=1ms,tpot=1ms,per-1k=-1ms": `"per-1k=-1ms": expected a time from 0s`,
		"ttft=1ms,tpot=1ms,itl=1ms":     `"itl=1ms": expected ttft, tpot, per-1k or jitter`,
		"ttft=1ms,tpot=1ms,":            `""`,
		"ttft=1ms,ttft=2ms,tpot=1ms":    `expected "ttft" once`,
		"ttft=1ms,tpot=1ms,jitter=1":    "expected a jitter from 0 to less than 1, received 1",
		"ttft=1ms,tpot=1ms,jitter=NaN":  "received NaN",
		"ttft=1ms,tpot=1ms,jitter=x":    `"jitter=x"`,
	} {
		_, err := ParsePace(text)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)), text)
	}
}

func TestReferenceMachineHasTheReferenceFigures(t *testing.T) {
	g := NewWithT(t)
	p, err := ParsePace("rtx3090")
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

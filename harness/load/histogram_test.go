package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func TestQuantilesAreWithinOnePercentOfTheSortedSamples(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() time.Duration{
		"constant":    func() time.Duration { return 5 * time.Millisecond },
		"small":       func() time.Duration { return time.Duration(random.IntN(300)) },
		"uniform":     func() time.Duration { return time.Duration(random.Int64N(int64(time.Second))) },
		"exponential": func() time.Duration { return time.Duration(random.ExpFloat64() * 1e7) },
		"every scale": func() time.Duration { return time.Duration(random.Int64()) >> random.IntN(63) },
		"two humps": func() time.Duration {
			return time.Duration(random.IntN(2))*time.Second + time.Duration(random.IntN(1e6))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for round := range 50 {
				h, samples, sum := &histogram{}, make([]time.Duration, 1+random.IntN(1+round*20)), 0.0
				for i := range samples {
					samples[i] = draw()
					h.add(samples[i])
					sum += float64(samples[i])
				}
				slices.Sort(samples)
				for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
					want := samples[max(0, int(math.Ceil(q*float64(len(samples))))-1)]
					got, ok := h.quantile(q)
					g.Expect(ok).To(BeTrue())
					g.Expect(float64(got)).To(BeNumerically("~", float64(want), 0.01*float64(want)), "quantile %v of %v", q, samples)
				}
				s := h.spread()
				g.Expect(*s.Mean).To(BeNumerically("~", sum/float64(len(samples))/1e6, 1e-9**s.Mean))
				g.Expect(*s.Max).To(Equal(milliseconds(samples[len(samples)-1])))
				g.Expect(s.Samples).To(BeEquivalentTo(len(samples)))
			}
		})
	}
}

func TestEveryDurationHasItsBucket(t *testing.T) {
	g := NewWithT(t)
	before := -1
	for _, d := range []time.Duration{0, 1, 2, 63, 64, 126, 127, 128, 130, 254, 256, 260, 508, 512, 1 << 40, 1<<40 + 1<<34, math.MaxInt64 - 1<<57,
		math.MaxInt64} {
		b := bucket(d)
		g.Expect(b).To(And(BeNumerically(">", before), BeNumerically("<", buckets)), "%d", d)
		g.Expect(float64(middle(b))).To(BeNumerically("~", float64(d), float64(d)/128), "%d", d)
		before = b
	}
	g.Expect(bucket(math.MaxInt64)).To(Equal(buckets - 1))

	h := &histogram{}
	h.add(-time.Second)
	g.Expect(h.spread().Max).To(HaveValue(BeZero()))
}

func TestWithoutSamplesThereIsNoFigure(t *testing.T) {
	NewWithT(t).Expect((&histogram{}).spread()).To(Equal(fixtures.Spread{}))
}

package capacity

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
)

// byRatios computes mean and deviation by big.Rat sums and a root of 2,000 bits.
func byRatios(values []float64) (mean, deviation float64) {
	sum, squares := new(big.Rat), new(big.Rat)
	for _, v := range values {
		x := new(big.Rat).SetFloat64(v)
		sum.Add(sum, x)
		squares.Add(squares, new(big.Rat).Mul(x, x))
	}
	n := new(big.Rat).SetInt64(int64(len(values)))
	m := new(big.Rat).Quo(sum, n)
	mean, _ = m.Float64()
	variance := squares.Sub(squares, new(big.Rat).Mul(sum, m))
	if len(values) < 2 || variance.Sign() == 0 {
		return mean, 0
	}
	variance.Quo(variance, new(big.Rat).SetInt64(int64(len(values)-1)))
	root := new(big.Float).SetPrec(2000).SetRat(variance)
	deviation, _ = root.Sqrt(root).Float64()
	return mean, deviation
}

func TestMeanAndDeviationAreTheNearestNumbers(t *testing.T) {
	g := NewWithT(t)
	r := rand.New(rand.NewPCG(1, 2))
	samples := [][]float64{
		{0.1, 0.2, 0.3}, {1e308, 1e308, -1e308}, {5e-324, 0, 5e-324}, {1e300, 1e-300}, {0, 0}, {-0.5}, {7, 7, 7},
		{1e16, 1, -1e16}, {math.MaxFloat64, math.SmallestNonzeroFloat64}, {1 << 53, 1<<53 + 2}, {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1},
	}
	for n := 2; n < 60; n++ {
		one, wide := make([]float64, n), make([]float64, n)
		for i := range one {
			one[i], wide[i] = 25000+r.Float64()*100, r.NormFloat64()*math.Pow(10, float64(r.IntN(40)-20))
		}
		samples = append(samples, one, wide)
	}
	for _, values := range samples {
		mean, deviation := byRatios(values)
		s := sumExactly(values)
		g.Expect(s.mean()).To(Equal(mean), "%v", values)
		if len(values) > 1 {
			g.Expect(s.deviation()).To(Equal(deviation), "%v", values)
		}
	}
}

func TestStatisticsOfFewSamples(t *testing.T) {
	g := NewWithT(t)
	none := describe(nil)
	g.Expect(none).To(Equal(statistics{ranks: map[int]*float64{}}))
	one := describe([]float64{5})
	g.Expect(one.mean).To(HaveValue(Equal(5.0)))
	g.Expect(one.min).To(HaveValue(Equal(5.0)))
	g.Expect(one.ranks[99]).To(HaveValue(Equal(5.0)))
	g.Expect([]*float64{one.deviation, one.low, one.high}).To(HaveEach(BeNil()))
}

func TestPercentilesAreNearestRanks(t *testing.T) {
	g := NewWithT(t)
	values := make([]float64, 200)
	for i := range values {
		values[i] = float64(i + 1)
	}
	for q, want := range map[int]float64{25: 50, 50: 100, 75: 150, 90: 180, 95: 190, 99: 198} {
		g.Expect(nearestRank(values, q)).To(Equal(want))
	}
	g.Expect(nearestRank(values[:3], 25)).To(Equal(1.0))
	g.Expect(nearestRank(values[:3], 50)).To(Equal(2.0))
	g.Expect(nearestRank(values[:4], 25)).To(Equal(1.0))
	g.Expect(nearestRank(values[:5], 25)).To(Equal(2.0))
}

func BenchmarkStatisticsOf100000(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	values := make([]float64, 100_000)
	for i := range values {
		values[i] = r.ExpFloat64() * 30000
	}
	work := make([]float64, len(values))
	b.ReportAllocs()
	for b.Loop() {
		copy(work, values)
		describe(work)
	}
}

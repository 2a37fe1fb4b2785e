package plan

import (
	"math"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestConstantArrivalsAreOneOverTheRateApart(t *testing.T) {
	times, err := schedule("constant", 3, 4, 0)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(times).To(Equal([]time.Duration{0, 333333333, 666666667, time.Second}))
}

// The wanted times were made with Python of random.Random(2**64 + seed) and math.log.
func TestPoissonArrivalsCanBeDrawnElsewhere(t *testing.T) {
	for seed, want := range map[int64][]time.Duration{
		0:         {0, 1900381139, 2132281072, 2478513691},
		17:        {0, 553426829, 809622010, 819384779},
		1<<40 + 3: {0, 291962761, 783662274, 847341690},
	} {
		times, err := schedule("poisson", 2, 4, seed)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(times).To(Equal(want))
	}
}

func TestPoissonGapsHaveTheMeanAndTheSpreadOfTheirRate(t *testing.T) {
	g := NewWithT(t)
	const n, rate = 20000, 50.0
	times, err := schedule("poisson", rate, n, 3)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slices.IsSorted(times)).To(BeTrue())
	var sum, squares float64
	for i := 1; i < n; i++ {
		gap := (times[i] - times[i-1]).Seconds()
		sum, squares = sum+gap, squares+gap*gap
	}
	mean := sum / (n - 1)
	g.Expect(mean).To(BeNumerically("~", 1/rate, 0.03/rate)) // four standard errors
	g.Expect(math.Sqrt(squares/(n-1)-mean*mean)).To(BeNumerically("~", 1/rate, 0.05/rate), "an exponential deviates by its mean")
}

func TestARateThatMakesNoScheduleIsRefused(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-300, 1e-6} {
		_, err := schedule("constant", rate, 60, 0)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("capacity-rate")))
	}
}

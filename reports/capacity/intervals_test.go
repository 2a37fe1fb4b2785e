package capacity

import (
	"math"
	"testing"

	. "github.com/onsi/gomega"
)

func TestStudentQuantilesAreThoseOfTheTables(t *testing.T) {
	g := NewWithT(t)
	for freedom, want := range map[int]float64{ // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2
		1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 29: 2.045, 30: 2.042, 60: 2.000, 100: 1.984,
	} {
		g.Expect(studentQuantile(freedom)).To(BeNumerically("~", want, 5e-4), "%d", freedom)
	}
	g.Expect(studentQuantile(1)).To(BeNumerically("~", math.Tan(0.475*math.Pi), 1e-9), "one degree is the Cauchy distribution")
	g.Expect(studentQuantile(1001)).To(BeNumerically("~", studentQuantile(1000), 3e-6), "the series and the expansion meet")
}

func TestTheBootstrapIsTheSameEveryTimeAndAroundTheMean(t *testing.T) {
	g := NewWithT(t)
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 100}
	low, high := bootstrapInterval(values)
	again, and := bootstrapInterval(values)
	g.Expect([]float64{again, and}).To(Equal([]float64{low, high}))
	g.Expect(low).To(BeNumerically("~", 4, 1.5))
	g.Expect(high).To(BeNumerically("~", 33, 5))
	l, h := bootstrapInterval([]float64{3, 3, 3})
	g.Expect([]float64{l, h}).To(Equal([]float64{3, 3}))
}

func TestAnIntervalThatCannotBeHadSaysWhy(t *testing.T) {
	g := NewWithT(t)
	g.Expect(interval(describe(nil), nil)).To(BeNil())
	one := []float64{4}
	g.Expect(interval(describe(one), one)).To(And(HaveKeyWithValue("student_low", BeNil()),
		HaveKeyWithValue("student_low_reason", whyOneSample), HaveKeyWithValue("bootstrap_high_reason", whyOneSample)))
	many := make([]float64, bootstrapLimit+1)
	many[0] = 1
	g.Expect(interval(describe(many), many)).To(And(HaveKeyWithValue("student_low", Not(BeNil())),
		HaveKeyWithValue("bootstrap_low", BeNil()), HaveKeyWithValue("bootstrap_low_reason", whyManySamples)))
}

func BenchmarkBootstrapOfTheMostSamples(b *testing.B) {
	values := make([]float64, bootstrapLimit)
	for i := range values {
		values[i] = float64(i)
	}
	for b.Loop() {
		bootstrapInterval(values)
	}
}

package plan

import (
	"fmt"
	"math"
	"testing"

	. "github.com/onsi/gomega"
)

// The draws were printed by CPython 3's random.Random(seed).random().
func TestTheGeneratorDrawsWhatPythonDraws(t *testing.T) {
	for _, c := range []struct {
		seed int64
		want []float64
	}{
		{0, []float64{0.8444218515250481, 0.7579544029403025, 0.420571580830845, 0.25891675029296335}},
		{17, []float64{0.5219839097124932, 0.8066907771186791, 0.9604947743238768, 0.2896253777644655}},
		{-17, []float64{0.5219839097124932, 0.8066907771186791, 0.9604947743238768, 0.2896253777644655}},
		{-1, []float64{0.13436424411240122, 0.8474337369372327, 0.763774618976614, 0.2550690257394217}},
		{1 << 32, []float64{0.11299430095636409, 0.41782886486292836, 0.0166763664992291, 0.6117214625782752}},
		{math.MaxInt64, []float64{0.3166448820870279, 0.631259308253863, 0.8035542479972343, 0.45346382341714553}},
		{math.MinInt64, []float64{0.5534639983914199, 0.9406144709090462, 0.24199432111690833, 0.8512870110731147}},
	} {
		t.Run(fmt.Sprint(c.seed), func(t *testing.T) {
			m := newMersenne(seedKey(c.seed))
			for _, want := range c.want {
				NewWithT(t).Expect(m.float64()).To(Equal(want))
			}
		})
	}
}

func TestTheGeneratorDrawsWhatPythonDrawsAfterItsStateHasTurned(t *testing.T) {
	m := newMersenne(seedKey(5))
	for range 1999 {
		m.float64()
	}
	NewWithT(t).Expect(m.float64()).To(Equal(0.20243881971614341))
}

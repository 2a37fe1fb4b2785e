package capacity

import (
	"math"
	"slices"
)

// normal95 is the half width, in standard errors, of the format's interval. It is too narrow for few samples; the
// extensions have a better one.
const normal95 = 1.96

// percentiles are those of the format.
var percentiles = []int{25, 50, 75, 90, 95, 99}

// statistics are the thirteen of a family. What cannot be had of so few samples is null.
type statistics struct {
	mean, deviation, low, high *float64
	min, max                   *float64
	ranks                      map[int]*float64
	samples                    int
}

// describe sorts the values and computes their statistics.
func describe(values []float64) statistics {
	slices.Sort(values)
	s := statistics{samples: len(values), ranks: map[int]*float64{}}
	if len(values) == 0 {
		return s
	}
	sums := sumExactly(values)
	s.mean = new(sums.mean())
	s.min, s.max = &values[0], &values[len(values)-1]
	for _, q := range percentiles {
		s.ranks[q] = new(nearestRank(values, q))
	}
	if len(values) > 1 {
		s.deviation = new(sums.deviation())
		margin := normal95 * *s.deviation / math.Sqrt(float64(len(values)))
		s.low, s.high = new(*s.mean-margin), new(*s.mean+margin)
	}
	return s
}

// nearestRank is the percentile q of sorted values: the one at rank ceil(q·n/100), the first at least.
func nearestRank(sorted []float64, q int) float64 {
	return sorted[max(1, (q*len(sorted)+99)/100)-1]
}

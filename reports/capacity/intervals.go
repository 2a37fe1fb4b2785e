package capacity

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// The better intervals for a mean, beside the format's own.
const (
	confidence = 0.95
	// bootstrapSeed starts the resampling of every family anew, so that equal samples give equal intervals.
	bootstrapSeed  = 20260401
	resamples      = 2000
	bootstrapLimit = 2000 // samples
)

// studentInterval is the interval for the mean by Student's t with n − 1 degrees of freedom.
func studentInterval(s statistics) (low, high float64) {
	half := studentQuantile(s.samples-1) * *s.deviation / math.Sqrt(float64(s.samples))
	return *s.mean - half, *s.mean + half
}

// studentQuantile is the t that a variable of so many degrees of freedom stays within, on both sides, with the
// confidence. The distribution function is the finite series of Abramowitz and Stegun, Handbook of Mathematical
// Functions, 26.7.3 and 26.7.4; with many degrees of freedom, where the series is long, the expansion 26.7.5 around the
// normal quantile is right to 1e-8.
func studentQuantile(freedom int) float64 {
	const normal, many = 1.959963984540054, 1000
	if freedom > many {
		x, v := normal, float64(freedom)
		x3, x5 := x*x*x, x*x*x*x*x
		return x + (x3+x)/(4*v) + (5*x5+16*x3+3*x)/(96*v*v)
	}
	low, high := 0.0, 13.0 // of one degree it is 12.7, and less of more
	for range 60 {
		middle := (low + high) / 2
		if studentWithin(middle, freedom) < confidence {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// studentWithin is the probability that a variable of so many degrees of freedom lies within ±t.
func studentWithin(t float64, freedom int) float64 {
	angle := math.Atan(t / math.Sqrt(float64(freedom)))
	sine, cosine := math.Sincos(angle)
	if freedom == 1 {
		return 2 / math.Pi * angle
	}
	odd := freedom%2 == 1
	sum, term, first := 1.0, 1.0, 1
	if odd {
		sum, term, first = cosine, cosine, 2
	}
	for k := first; k <= freedom-3; k += 2 {
		term *= float64(k) / float64(k+1) * cosine * cosine
		sum += term
	}
	if odd {
		return 2 / math.Pi * (angle + sine*sum)
	}
	return sine * sum
}

// bootstrapInterval is the percentile bootstrap's interval for the mean: the means of resamples drawn with replacement,
// cut at both ends. It needs two values.
func bootstrapInterval(values []float64) (low, high float64) {
	source := rand.NewPCG(bootstrapSeed, 0)
	n := uint64(len(values))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range values {
			at, _ := bits.Mul64(source.Uint64(), n)
			sum += values[at]
		}
		means[i] = sum / float64(n)
	}
	slices.Sort(means)
	tail := int(math.Round((1 - confidence) / 2 * resamples))
	return means[tail-1], means[resamples-tail]
}

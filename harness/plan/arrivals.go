package plan

import (
	"fmt"
	"math"
	"time"
)

// The arrivals of an open loop.
const (
	arrivalClosed   = "closed" // none: a worker's next request follows its last reply
	arrivalConstant = "constant"
	arrivalPoisson  = "poisson"
)

// maxSchedule bounds an open loop: a longer one is a slip in the rate.
const maxSchedule = 7 * 24 * time.Hour

// schedule says when each of n requests is to be sent, from the stage's start; the first is sent at once. Constant arrivals
// are 1/rate apart. Poisson arrivals have exponential gaps of that mean, drawn from a generator of their own, so that they
// do not shift the context draws: Python's random.Random(2**64 + seed), whose seed is beyond any that a run can have. A gap
// is −ln(1 − u)/rate.
func schedule(arrival string, rate float64, n int, seed int64) ([]time.Duration, error) {
	if !(rate > 0) || math.IsInf(rate, 1) {
		return nil, fmt.Errorf("\"capacity-rate\" is %v: want a number of requests a second above 0", rate)
	}
	gaps := newMersenne(arrivalKey(seed))
	times := make([]time.Duration, n)
	at := 0.0 // seconds
	for i := 1; i < n; i++ {
		switch arrival {
		case arrivalConstant:
			at = float64(i) / rate
		case arrivalPoisson:
			at -= math.Log(1-gaps.float64()) / rate
		}
		if at > maxSchedule.Seconds() {
			return nil, fmt.Errorf("\"capacity-rate\" is %v: request %d of %d would be sent %.3g seconds after the first, "+
				"want all within %v", rate, i, n, at, maxSchedule)
		}
		times[i] = time.Duration(math.Round(at * float64(time.Second)))
	}
	return times, nil
}

// arrivalKey is 2^64 + |seed| in 32-bit words.
func arrivalKey(seed int64) []uint32 {
	key := append(seedKey(seed), 0)[:2]
	return append(key, 1)
}

package load

import (
	"math"
	"math/bits"
	"sync"
	"time"

	"plumbline/fixtures"
)

const (
	// Each doubling of a duration is cut into 2^fineBits buckets. A bucket stands for its middle, which is at most
	// 1/128 (0.8 %) from any duration in it.
	fineBits = 6
	fine     = 1 << fineBits
	// buckets are enough for every duration: those below 128 ns have one each, the 56 doublings above 64 each.
	buckets = (63 - fineBits + 1) * fine
)

// histogram counts durations in buckets whose width grows with the duration, so that its size (29 KiB) is fixed and its
// relative error bounded. Mean and maximum are exact. It is safe for concurrent use; the zero value is empty.
type histogram struct {
	mu     sync.Mutex
	counts [buckets]int64
	n      int64
	sum    float64 // of nanoseconds
	max    time.Duration
}

// add counts a duration; a negative one, of a clock's last digit, is 0.
func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[bucket(d)]++
	h.n++
	h.sum += float64(d)
	h.max = max(h.max, d)
}

func bucket(d time.Duration) int {
	doubling := max(0, bits.Len64(uint64(d))-fineBits-1)
	return doubling*fine + int(d>>doubling)
}

// middle is the duration for which a bucket stands.
func middle(bucket int) time.Duration {
	doubling := max(0, bucket/fine-1)
	return time.Duration(bucket-doubling*fine)<<doubling + time.Duration(1)<<doubling>>1
}

// quantile is the smallest duration that at least a share q of the samples does not exceed; ok is false without samples.
func (h *histogram) quantile(q float64) (d time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := max(1, int64(math.Ceil(q*float64(h.n))))
	for b, n := range h.counts {
		if left -= n; left <= 0 {
			return min(middle(b), h.max), true
		}
	}
	return 0, false
}

// spread is the distribution in short, in milliseconds.
func (h *histogram) spread() fixtures.Spread {
	p50, ok := h.quantile(0.5)
	if !ok {
		return fixtures.Spread{}
	}
	p99, _ := h.quantile(0.99)
	h.mu.Lock()
	defer h.mu.Unlock()
	return fixtures.Spread{
		Mean:    new(h.sum / float64(h.n) / 1e6),
		P50:     new(milliseconds(p50)),
		P99:     new(milliseconds(p99)),
		Max:     new(milliseconds(h.max)),
		Samples: h.n,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

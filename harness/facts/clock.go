package facts

import "time"

// clockReads bounds how often the clock is read; with a clock of nanoseconds that takes a few milliseconds.
const clockReads = 50_000

// ClockResolution is the smallest step seen between two reads of this process's monotonic clock, in some 50,000
// reads: no offset is truer than that. It is 0 when the clock did not move.
func ClockResolution() time.Duration {
	start := time.Now()
	return smallestStep(func() time.Duration { return time.Since(start) }, clockReads)
}

func smallestStep(read func() time.Duration, reads int) time.Duration {
	smallest := time.Duration(0)
	last := read()
	for range reads {
		now := read()
		if step := now - last; step > 0 && (smallest == 0 || step < smallest) {
			smallest = step
		}
		last = now
	}
	return smallest
}

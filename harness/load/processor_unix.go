//go:build unix

package load

import (
	"syscall"
	"time"
)

// processorTime is how much processor time this process has used; ok is false where that is not known.
func processorTime() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}

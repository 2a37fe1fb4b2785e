//go:build !unix

package load

import "time"

// processorTime is not known here.
func processorTime() (used time.Duration, ok bool) { return 0, false }

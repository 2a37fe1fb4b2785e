package load

import (
	"context"
	"sync/atomic"
	"time"
)

// Live is what can be seen of a stage while it runs. It costs a few atomic operations a request, none a token. The zero value
// is ready, and it is safe for concurrent use.
type Live struct {
	sent, back   atomic.Int64
	done, failed atomic.Int64
	latency      histogram
}

// Snapshot is a stage at one moment.
type Snapshot struct {
	Dispatched int64
	InFlight   int64
	// Done are the requests that were judged, Failed those of them that failed.
	Done, Failed int64
	// P50 and P95 are of the latencies of those that did not fail; nil while there is none.
	P50, P95 *time.Duration
}

// Judged notes the verdict on a request, and how long it took.
func (l *Live) Judged(latency time.Duration, failed bool) {
	l.done.Add(1)
	if failed {
		l.failed.Add(1)
		return
	}
	l.latency.add(latency)
}

// judged is how many requests failed, of how many. A request counts as done before it counts as failed, and is read the other
// way round, so that no share is seen too high.
func (l *Live) judged() (failed, done int64) {
	failed = l.failed.Load()
	return failed, l.done.Load()
}

func (l *Live) dispatched() { l.sent.Add(1) }
func (l *Live) returned()   { l.back.Add(1) }

// Snapshot is the state now.
func (l *Live) Snapshot() Snapshot {
	s := Snapshot{}
	s.Failed, s.Done = l.judged()
	back := l.back.Load() // before sent, so that no request seems to have returned unsent
	s.Dispatched = l.sent.Load()
	s.InFlight = s.Dispatched - back
	s.P50, s.P95 = l.quantile(0.5), l.quantile(0.95)
	return s
}

func (l *Live) quantile(q float64) *time.Duration {
	if d, ok := l.latency.quantile(q); ok {
		return &d
	}
	return nil
}

// watchEvery is the time between two snapshots of a display: as often as an eye can use, and never more than four a second.
const watchEvery = 300 * time.Millisecond

// Watch shows snapshots until ctx ends, and one last then.
func (l *Live) Watch(ctx context.Context, show func(Snapshot)) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			show(l.Snapshot())
		case <-ctx.Done():
			show(l.Snapshot())
			return
		}
	}
}

package load

import (
	"context"
	"sync"
	"time"
)

// closed keeps the workers busy: each sends its next request when its reply before has ended. Their first ones are due
// one after the other.
func (s *stage) closed(ctx context.Context) {
	var workers sync.WaitGroup
	for n := range min(s.Workers, s.Requests) {
		workers.Go(func() {
			due := s.started.Add(time.Duration(n) * s.Apart)
			wait(ctx, due)
			for {
				i, ok := s.next(ctx)
				if !ok {
					return
				}
				due = s.one(ctx, i, due)
			}
		})
	}
	workers.Wait()
}

// open sends each request at its moment, whatever became of those before. A moment is counted from the start, so one
// dispatch that comes late moves no other.
func (s *stage) open(ctx context.Context) {
	var underWay sync.WaitGroup
	defer underWay.Wait()
	places := make(chan struct{}, s.MaxInFlight)
	for _, at := range s.Schedule {
		due := s.started.Add(at)
		wait(ctx, due)
		places <- struct{}{}
		i, ok := s.next(ctx) // says so when ctx has ended
		if !ok {
			return
		}
		underWay.Go(func() {
			defer func() { <-places }()
			s.one(ctx, i, due)
		})
	}
}

// wait returns at a moment, or once ctx has ended.
func wait(ctx context.Context, moment time.Time) {
	left := time.Until(moment)
	if left <= 0 {
		return
	}
	select {
	case <-time.After(left):
	case <-ctx.Done():
	}
}

package load

import (
	"context"
	"sync"
	"time"
)

// closed keeps the workers busy: each sends its next request when its reply before has ended. The first are due at the
// start.
func (s *stage) closed(ctx context.Context) {
	var workers sync.WaitGroup
	for range min(s.Workers, s.Requests) {
		workers.Go(func() {
			due := s.started
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
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
		}
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

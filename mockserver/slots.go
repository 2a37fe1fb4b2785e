package mockserver

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// maxQueue is how many requests may wait for a slot.
const maxQueue = 4096

// errQueueFull says that a request could not even wait.
var errQueueFull = errors.New("the queue is full")

// slots hands out the engine's places, first come first served.
type slots struct {
	mu       sync.Mutex
	tasks    []int64    // by slot: the request that holds it, 0 when free
	waiting  *list.List // of chan int, each with room for the slot that will be given
	capacity int        // of waiting
	started  int64      // requests that ever got a slot
}

func newSlots(n, queue int) *slots {
	return &slots{tasks: make([]int64, n), waiting: list.New(), capacity: queue}
}

// acquire takes a free slot or waits for one, and says which. A request that gives up leaves the queue at once. It fails
// with errQueueFull or the context's error.
func (s *slots) acquire(ctx context.Context) (slot int, waited bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	s.mu.Lock()
	for slot, task := range s.tasks {
		if task == 0 {
			s.take(slot)
			s.mu.Unlock()
			return slot, false, nil
		}
	}
	if s.waiting.Len() >= s.capacity {
		s.mu.Unlock()
		return 0, false, errQueueFull
	}
	given := make(chan int, 1)
	place := s.waiting.PushBack(given)
	s.mu.Unlock()

	select {
	case slot := <-given:
		return slot, true, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case slot := <-given: // given while leaving: pass it on
		s.free(slot)
	default:
		s.waiting.Remove(place)
	}
	return 0, true, ctx.Err()
}

// release gives a slot back: to the request that has waited longest, if any waits.
func (s *slots) release(slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(slot)
}

func (s *slots) free(slot int) {
	s.tasks[slot] = 0
	if first := s.waiting.Front(); first != nil {
		s.take(slot)
		s.waiting.Remove(first).(chan int) <- slot
	}
}

func (s *slots) take(slot int) {
	s.started++
	s.tasks[slot] = s.started
}

// activity is what the slots do at one moment.
type activity struct {
	tasks   []int64 // by slot: the request that holds it, 0 when free
	busy    int
	queued  int
	started int64
}

func (s *slots) activity() activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := activity{tasks: append([]int64(nil), s.tasks...), queued: s.waiting.Len(), started: s.started}
	for _, task := range a.tasks {
		if task != 0 {
			a.busy++
		}
	}
	return a
}

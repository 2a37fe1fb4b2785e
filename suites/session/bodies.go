package session

import (
	"fmt"
	"sync"
)

// bodies makes the bodies of a stage ahead of their dispatch, in order: a long prompt takes milliseconds to write, which
// would be the client's own delay.
type bodies struct {
	mu      sync.Mutex
	changed *sync.Cond
	ready   map[int][]byte
	size    int // bytes of what is ready
	next    int // the first that was not made yet
	stopped bool
	failed  any // what making one panicked with
	made    sync.WaitGroup
}

// Bodies are made ahead until so many are ready, or so many bytes of them.
const (
	bodiesAhead     = 256
	bodiesAheadSize = 32 << 20
)

func newBodies(n int, write func(i int) []byte) *bodies {
	b := &bodies{ready: map[int][]byte{}}
	b.changed = sync.NewCond(&b.mu)
	b.made.Go(func() {
		for i := range n {
			if !b.room(i) {
				return
			}
			body := b.make(write, i)
			b.mu.Lock()
			b.ready[i], b.size = body, b.size+len(body)
			b.changed.Broadcast()
			b.mu.Unlock()
		}
	})
	return b
}

// make makes one body. A fault in it is that of the request that takes the body.
func (b *bodies) make(write func(i int) []byte, i int) []byte {
	defer func() {
		if p := recover(); p != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.failed = p
		}
	}()
	return write(i)
}

// room waits until body i may be made; false when none is wanted any more.
func (b *bodies) room(i int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.stopped && len(b.ready) > 0 && (len(b.ready) >= bodiesAhead || b.size >= bodiesAheadSize) {
		b.changed.Wait()
	}
	b.next = i + 1
	return !b.stopped
}

// take returns body i, which nobody takes twice, waiting for it where it is not made yet. They are taken nearly in order.
func (b *bodies) take(i int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if body, ok := b.ready[i]; ok {
			delete(b.ready, i)
			b.size -= len(body)
			b.changed.Broadcast()
			if body == nil {
				panic(fmt.Sprintf("the body could not be made: %v", b.failed))
			}
			return body
		}
		if b.stopped {
			return nil
		}
		b.changed.Wait()
	}
}

// stop ends the making of bodies and waits for it.
func (b *bodies) stop() {
	b.mu.Lock()
	b.stopped = true
	b.changed.Broadcast()
	b.mu.Unlock()
	b.made.Wait()
}

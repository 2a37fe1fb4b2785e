package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"plumbline/fixtures"
)

// Timeouts are the five limits of a request; 0 means none. Each ends the exchange with its own kind.
type Timeouts struct {
	// Connect: from the call to a connection in hand, with look-up and TLS.
	Connect time.Duration
	// FirstByte: from dispatch to the first byte of the body. A response head alone does not count, for a server may
	// send it before it has looked at the prompt.
	FirstByte time.Duration
	// FirstToken: from dispatch to the first token that the watcher reports. Without a watcher it has no effect.
	FirstToken time.Duration
	// Idle: the longest time without progress once the first byte came. After the first token progress is a complete
	// data event, so neither keep-alive comments nor an event that never ends keep a dead stream open. Before it, and
	// without a watcher, any bytes are progress: a server may keep the connection alive while it reads the prompt, and
	// how long that may take is FirstToken's to say. A stream whose end marker the watcher has seen gets endGrace at most.
	Idle time.Duration
	// Total: from dispatch to the end of the body. It bounds the time before dispatch as well, apart.
	Total time.Duration
}

func (t Timeouts) check() error {
	for _, l := range []struct {
		name  string
		value time.Duration
	}{{"connect", t.Connect}, {"first-byte", t.FirstByte}, {"first-token", t.FirstToken}, {"idle", t.Idle}, {"total", t.Total}} {
		if l.value < 0 {
			return fmt.Errorf("want a %s time-out of at least 0, got %v", l.name, l.value)
		}
	}
	return nil
}

// endGrace is how long a stream may stay open after its end marker. Nothing of the reply is still to come then: what a
// proxy or a busy server needs to close it is far less, and the next request waits for it.
const endGrace = 2 * time.Second

// expired is the cause with which a time-out cancels its exchange.
type expired struct {
	kind     fixtures.EndKind
	sentence string
}

func (e *expired) Error() string { return e.sentence }

// clock holds the offsets and the time-outs of one exchange. Its offset zero is the call until a connection is in hand,
// and dispatch from then on.
type clock struct {
	limits Timeouts
	cancel context.CancelCauseFunc

	mu                                               sync.Mutex
	zero                                             time.Time
	connect, firstByte, firstToken, idle, end, total *time.Timer

	// progress is the offset of the last progress, for the idle time-out. The timer looks at it when it fires rather
	// than being set anew with every piece.
	progress atomic.Int64
}

func newClock(limits Timeouts, cancel context.CancelCauseFunc) *clock {
	return &clock{limits: limits, cancel: cancel, zero: time.Now()}
}

// start arms the time-outs that hold until a connection is in hand, in place of any others.
func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disarm()
	c.connect = c.arm(c.limits.Connect, fixtures.EndConnectTimeout, "no connection within the connect time-out of %v")
	c.total = c.arm(c.limits.Total, fixtures.EndTotal, "no connection within the total time-out of %v")
}

// dispatch makes now the offset zero. The HTTP layer may take a second connection when the first turns out dead before
// anything was written; the last one counts.
func (c *clock) dispatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zero = time.Now()
	c.disarm()
	c.firstByte = c.arm(c.limits.FirstByte, fixtures.EndFirstByte, "no first body byte within the first-byte time-out of %v")
	c.firstToken = c.arm(c.limits.FirstToken, fixtures.EndFirstToken, "no first token within the first-token time-out of %v")
	c.total = c.arm(c.limits.Total, fixtures.EndTotal, "not finished within the total time-out of %v")
}

// stop disarms every time-out.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disarm()
	c.limits.Idle = 0 // a check that is under way must not arm it again
}

func (c *clock) disarm() {
	for _, t := range []*time.Timer{c.connect, c.firstByte, c.firstToken, c.idle, c.end, c.total} {
		if t != nil {
			t.Stop()
		}
	}
}

func (c *clock) arm(limit time.Duration, kind fixtures.EndKind, sentence string) *time.Timer {
	if limit == 0 {
		return nil
	}
	return time.AfterFunc(limit, func() { c.cancel(&expired{kind, fmt.Sprintf(sentence, limit)}) })
}

// gotByte notes the first byte of the body: its time-out is met, the idle one begins.
func (c *clock) gotByte(at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.firstByte != nil {
		c.firstByte.Stop()
	}
	c.progress.Store(int64(at))
	if c.limits.Idle > 0 {
		c.idle = time.AfterFunc(c.limits.Idle, c.checkIdle)
	}
}

func (c *clock) gotToken() {
	if c.firstToken != nil {
		c.firstToken.Stop()
	}
}

// gotDone notes the end marker of a stream: from now on only the body's end is waited for.
func (c *clock) gotDone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = c.arm(endGrace, fixtures.EndIdle, "the stream was left open after its end marker: no end of the body within %v")
}

func (c *clock) checkIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limits.Idle == 0 {
		return
	}
	quiet := time.Since(c.zero) - time.Duration(c.progress.Load())
	if rest := c.limits.Idle - quiet; rest > 0 {
		c.idle.Reset(rest)
		return
	}
	c.cancel(&expired{fixtures.EndIdle, fmt.Sprintf("no progress within the idle time-out of %v", c.limits.Idle)})
}

// offsetZero is the start of the offsets: the call before dispatch, dispatch after it.
func (c *clock) offsetZero() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zero
}

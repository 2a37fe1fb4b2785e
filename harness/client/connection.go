package client

import (
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"

	"plumbline/fixtures"
)

// connecting notes how the connection of one exchange is had. Its hooks may run after the exchange has ended, when a
// dial that nothing waits for any more comes to its end; hence the lock and the copy.
type connecting struct {
	clock  *clock
	called time.Time

	// redialed says that the request went out before, on a kept connection that the server had closed.
	redialed bool

	mu                  sync.Mutex
	asked, got, reused  bool
	answered            bool // a byte of a response has come
	wait                time.Duration
	dns, connect, shake span
}

// span is a step from its first start to its last successful end.
type span struct{ from, to time.Time }

func (s *span) start() {
	if s.from.IsZero() {
		s.from = time.Now()
	}
}

func (s *span) end(err error) {
	if err == nil {
		s.to = time.Now()
	}
}

func (s *span) length() *time.Duration {
	if s.from.IsZero() || s.to.IsZero() {
		return nil
	}
	return new(s.to.Sub(s.from))
}

func (c *connecting) hooks() *httptrace.ClientTrace {
	locked := func(f func()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	}
	return &httptrace.ClientTrace{
		GetConn:              func(string) { locked(func() { c.asked = true }) },
		DNSStart:             func(httptrace.DNSStartInfo) { locked(c.dns.start) },
		DNSDone:              func(i httptrace.DNSDoneInfo) { locked(func() { c.dns.end(i.Err) }) },
		ConnectStart:         func(_, _ string) { locked(c.connect.start) },
		ConnectDone:          func(_, _ string, err error) { locked(func() { c.connect.end(err) }) },
		TLSHandshakeStart:    func() { locked(c.shake.start) },
		TLSHandshakeDone:     func(_ tls.ConnectionState, err error) { locked(func() { c.shake.end(err) }) },
		GotFirstResponseByte: func() { locked(func() { c.answered = true }) },
		GotConn: func(i httptrace.GotConnInfo) {
			c.clock.dispatch()
			locked(func() {
				c.got, c.reused = true, i.Reused
				c.wait = c.clock.offsetZero().Sub(c.called)
			})
		},
	}
}

// record returns the connection in the exchange's terms, nil when none was had.
func (c *connecting) record(protocol string) *fixtures.Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.got {
		return nil
	}
	r := &fixtures.Connection{Protocol: protocol, Reused: c.reused, Redialed: c.redialed, Wait: c.wait}
	if !c.reused {
		r.DNS, r.Connect, r.TLS = c.dns.length(), c.connect.length(), c.shake.length()
	}
	return r
}

// progress says how far the request got before it failed: whether a connection was asked for, and had.
func (c *connecting) progress() (asked, got bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.got
}

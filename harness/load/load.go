// Package load says how many requests are under way at once, and whether this program kept up with them. It runs the two
// arrival plans, the closed loop and the open one, and measures meanwhile how late it dispatched and how long it took to
// read what had arrived. It never sends a request itself, never reads a reply and never judges the server.
package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"plumbline/fixtures"
)

// Plan is one stage. Workers and Requests make a closed loop, Schedule and MaxInFlight an open one.
type Plan struct {
	// Workers is how many requests a closed loop keeps under way, Requests how many it sends in all.
	Workers, Requests int
	// Apart is the time from one worker's first request to the next one's. Without it all begin at one moment, and what
	// that costs the client (dialling, sending) is in their figures; with equal replies it comes again at each round.
	Apart time.Duration
	// Schedule holds, for each request of an open loop, the time from the stage's start to its dispatch, in order.
	Schedule []time.Duration
	// MaxInFlight bounds the requests of an open loop that are under way. Beyond it dispatch waits, and its lateness shows
	// that: no moment of the schedule moves.
	MaxInFlight int

	// AbortErrorRate ends the stage once more than this share of the requests that Live was told of failed, counted from
	// AbortAfter of them on; 0 never does. Requests under way come to their end.
	AbortErrorRate float64
	AbortAfter     int

	// Live is told of each dispatch; who judges the replies tells it of those. Each stage has one of its own.
	Live *Live

	// Sockets makes the connection for the heartbeat; nil means one of the operating system's. A test under virtual time
	// gives net.Pipe's, for real sockets hold that time still.
	Sockets func() (net.Conn, net.Conn, error)
}

// Send sends request i and returns once its reply is recorded. due is the moment when it was to be dispatched. It is
// called on many goroutines at once. A panic ends this request only.
type Send func(ctx context.Context, i int, due time.Time) Outcome

// Outcome is what a Send tells of its request's times. They carry monotonic readings.
type Outcome struct {
	// Dispatched is when the request was about to be written; zero when that never was, which counts for no lateness.
	Dispatched time.Time
	// Waited is how long the request waited for a connection before that.
	Waited time.Duration
	// Ended is the end of the reply, from which the worker's next request is due; zero means the return of Send.
	Ended time.Time
}

// Result is how a stage went.
type Result struct {
	Sent int
	// StartedAt is the moment before the first dispatch, with its monotonic reading; Wall lasts from there to the end of
	// the last reply.
	StartedAt time.Time
	Wall      time.Duration
	// Stopped says why not all requests were sent; "" when they were.
	Stopped string
	// Faults are the requests whose Send did not return, in the order of their indices.
	Faults []Fault
	Client fixtures.ClientCheck
}

// Fault is a fault of this program in one request.
type Fault struct {
	Request int
	Message string // with the stack, at most maxMessage bytes
}

// maxMessage is as much as a failed row may say.
const maxMessage = 2048

// Run runs a stage to its end: all requests sent, or the plan's abort rule or ctx having stopped it, and every Send
// returned. Once ctx ends nothing more is dispatched; requests under way see it themselves.
func Run(ctx context.Context, p Plan, send Send) (Result, error) {
	if err := p.check(); err != nil {
		return Result{}, fmt.Errorf("run load: %w", err)
	}
	if p.Sockets == nil {
		p.Sockets = sockets
	}
	beat, err := startHeartbeat(p.Sockets)
	if err != nil {
		return Result{}, fmt.Errorf("run load: start heartbeat: %w", err)
	}
	used, known := processorTime()
	s := &stage{Plan: p, send: send, started: time.Now()}
	s.ended = s.started
	if p.Schedule != nil {
		s.open(ctx)
	} else {
		s.closed(ctx)
	}
	lasted := time.Since(s.started)
	beat.stop()
	slices.SortFunc(s.faults, func(a, b Fault) int { return a.Request - b.Request })
	r := Result{Sent: s.sent, StartedAt: s.started, Wall: s.ended.Sub(s.started), Stopped: s.stopped, Faults: s.faults}
	r.Client = check(&s.late, &beat.lag)
	if now, ok := processorTime(); ok && known && lasted > 0 {
		r.Client.CPUShare = new(min(1, (now-used).Seconds()/(lasted.Seconds()*processors())))
	}
	return r, nil
}

func (p Plan) check() error {
	switch {
	case p.Live == nil:
		return errors.New("want a Live in the plan, got none")
	case p.AbortErrorRate < 0 || p.AbortErrorRate >= 1 || p.AbortErrorRate != p.AbortErrorRate:
		return fmt.Errorf("want an abort error rate of at least 0 and less than 1, got %v", p.AbortErrorRate)
	case p.Schedule == nil && p.MaxInFlight != 0:
		return fmt.Errorf("want no bound on requests in flight in a closed loop, got %d", p.MaxInFlight)
	case p.Schedule == nil && (p.Workers < 1 || p.Requests < 0 || p.Apart < 0):
		return fmt.Errorf("want at least 1 worker, 0 requests and no time apart below 0 in a closed loop, got %d, %d and %v", p.Workers, p.Requests, p.Apart)
	case p.Schedule == nil:
		return nil
	case p.Workers != 0 || p.Requests != 0 || p.Apart != 0:
		return fmt.Errorf("want no workers, requests and time apart beside a schedule, got %d, %d and %v", p.Workers, p.Requests, p.Apart)
	case p.MaxInFlight < 1:
		return fmt.Errorf("want at least 1 request in flight in an open loop, got %d", p.MaxInFlight)
	case !slices.IsSorted(p.Schedule) || len(p.Schedule) > 0 && p.Schedule[0] < 0:
		return errors.New("want a schedule in ascending order from 0")
	}
	return nil
}

// stage is a plan under way.
type stage struct {
	Plan
	send    Send
	started time.Time
	late    histogram

	mu      sync.Mutex
	sent    int
	stopped string
	ended   time.Time
	faults  []Fault
}

// next gives the index of the next request to be sent; ok is false when none is to be.
func (s *stage) next(ctx context.Context) (i int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != "" || s.sent == max(s.Requests, len(s.Schedule)) {
		return 0, false
	}
	if s.stopped = s.reason(ctx); s.stopped != "" {
		return 0, false
	}
	s.sent++
	return s.sent - 1, true
}

// reason says why nothing more is to be sent, "" while that is not so.
func (s *stage) reason(ctx context.Context) string {
	if ctx.Err() != nil {
		return "canceled: " + context.Cause(ctx).Error()
	}
	failed, done := s.Live.judged()
	if s.AbortErrorRate == 0 || done == 0 || done < int64(s.AbortAfter) || float64(failed) <= s.AbortErrorRate*float64(done) {
		return ""
	}
	return fmt.Sprintf("%d of %d finished requests failed, more than the abort error rate of %v", failed, done, s.AbortErrorRate)
}

// one sends a request and returns the end of its reply.
func (s *stage) one(ctx context.Context, i int, due time.Time) time.Time {
	s.Live.dispatched()
	out := s.call(ctx, i, due)
	s.Live.returned()
	if !out.Dispatched.IsZero() {
		s.late.add(out.Dispatched.Sub(due) - out.Waited)
	}
	if out.Ended.IsZero() {
		out.Ended = time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if out.Ended.After(s.ended) {
		s.ended = out.Ended
	}
	return out.Ended
}

// call is send, with a panic made into a failure of this request.
func (s *stage) call(ctx context.Context, i int, due time.Time) (out Outcome) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		message := fmt.Sprintf("panic: %v\n%s", v, debug.Stack())
		s.mu.Lock()
		s.faults = append(s.faults, Fault{Request: i, Message: message[:min(len(message), maxMessage)]})
		s.mu.Unlock()
		s.Live.Judged(0, true)
	}()
	return s.send(ctx, i, due)
}

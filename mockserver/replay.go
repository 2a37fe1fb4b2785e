package mockserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"plumbline/fixtures"
)

// CaseHeader is the request header that names what is to be replayed: a case's id, "<id>/<exchange>", or the id of a
// recorded exchange.
const CaseHeader = "X-Plumbline-Case"

// ReplayOptions say what is replayed, and how fast.
type ReplayOptions struct {
	// Listen is host:port; 127.0.0.1:0, a free port of this machine alone.
	Listen string
	// Replays are matched in this order.
	Replays []fixtures.Replay
	// Speed divides every wait: 1 is the scripts' own time, 2 twice as fast. 0 waits for nothing.
	Speed float64
}

// The bounds of Speed but for 0.
const (
	minSpeed = 1e-3
	maxSpeed = 1e6
)

// Replayer answers requests with scripts, byte for byte. It writes HTTP by itself, so that nothing stands in a response
// that its script does not state, but for what frames the body.
//
// A request is matched by CaseHeader; else by the digest of method, path and body; else, where the file states no body,
// by method and path alone, if they lead to one case. GET /health and GET /v1/models answer for the replayer itself
// where no replay does. Anything else gets status 404 and an error that names the nearest recorded request and the first
// place where it differs.
type Replayer struct {
	speed   float64
	answers *answers

	ln     net.Listener
	base   context.Context    // of every response
	cancel context.CancelFunc // ends base
	unhook func() bool

	mu      sync.Mutex
	conns   map[net.Conn]bool // guarded by mu; whether a request is being read or answered
	closing bool              // guarded by mu
	running sync.WaitGroup    // the accepting goroutine and one for each connection
}

// StartReplay serves the replays. The replayer ends at once when ctx ends, and in order by Close.
func StartReplay(ctx context.Context, opts ReplayOptions) (*Replayer, error) {
	p, err := newReplayer(ctx, opts)
	if err != nil {
		return nil, err
	}
	listen := cmp.Or(opts.Listen, "127.0.0.1:0")
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		p.cancel()
		return nil, fmt.Errorf("start replay on %q: %w", listen, err)
	}
	p.start(ctx, ln)
	return p, nil
}

// newReplayer makes a replayer without a listener.
func newReplayer(ctx context.Context, opts ReplayOptions) (*Replayer, error) {
	if s := opts.Speed; s != 0 && !(s >= minSpeed && s <= maxSpeed) {
		return nil, fmt.Errorf("start replay: expected a speed of 0 or from %g to %g, received %g", minSpeed, maxSpeed, s)
	}
	if len(opts.Replays) == 0 {
		return nil, errors.New("start replay: expected at least one replay, received none")
	}
	for _, r := range opts.Replays {
		if err := checkScript(r.Script); err != nil {
			return nil, fmt.Errorf("start replay: %q: %w", r.Name, err)
		}
	}
	p := &Replayer{speed: opts.Speed, answers: newAnswers(opts.Replays), conns: map[net.Conn]bool{}}
	p.base, p.cancel = context.WithCancel(ctx)
	return p, nil
}

// start serves ln.
func (p *Replayer) start(ctx context.Context, ln net.Listener) {
	p.ln = ln
	p.running.Go(p.accept)
	p.unhook = context.AfterFunc(ctx, p.cutOff)
}

// URL is the base URL, without a slash at its end.
func (p *Replayer) URL() string { return "http://" + p.ln.Addr().String() }

// Close takes no new requests, lets the running ones end until ctx ends, and then cuts them off. The error says that
// some were cut off; a hanging response always is.
func (p *Replayer) Close(ctx context.Context) error {
	p.unhook()
	p.shut(func(busy bool) bool { return !busy })
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.running.Wait()
	}()
	select {
	case <-done:
		p.cancel()
		return nil
	case <-ctx.Done():
		p.cutOff()
		<-done
		return fmt.Errorf("close replay: requests were cut off: %w", ctx.Err())
	}
}

// cutOff ends everything at once.
func (p *Replayer) cutOff() {
	p.cancel()
	p.shut(func(bool) bool { return true })
}

// shut stops listening and closes those connections that are to be closed, by whether they are busy.
func (p *Replayer) shut(which func(busy bool) bool) {
	p.ln.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
	for conn, busy := range p.conns {
		if which(busy) {
			conn.Close()
		}
	}
}

// acceptPause is how long to wait after a failure to accept, such as too many open files.
const acceptPause = 10 * time.Millisecond

func (p *Replayer) accept() {
	free := make(chan struct{}, maxSlots) // bounds the open connections
	for {
		select {
		case free <- struct{}{}:
		case <-p.base.Done():
			return
		}
		conn, err := p.ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			<-free
			if waitUntil(p.base, time.Now().Add(acceptPause)) != nil {
				return
			}
		case !p.mark(conn, false):
			conn.Close()
			return
		default:
			p.running.Go(func() {
				defer func() { <-free }()
				p.serve(conn)
			})
		}
	}
}

// mark notes whether a connection is busy. It is false when the replayer is closing, so that no request is to be begun.
func (p *Replayer) mark(conn net.Conn, busy bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return false
	}
	p.conns[conn] = busy
	return true
}

func (p *Replayer) forget(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// due is when a moment of a script comes, given as its offset from the request.
func (p *Replayer) due(received time.Time, offset time.Duration) time.Time {
	if p.speed == 0 {
		return received
	}
	const decades = math.MaxInt64 / 8 // a bound that no one will wait for, far from overflow
	return received.Add(time.Duration(min(float64(offset)/p.speed, decades)))
}

// waitUntil sleeps until a moment, which may be past, or until ctx ends.
func waitUntil(ctx context.Context, due time.Time) error {
	for {
		wait := time.Until(due)
		if wait <= 0 {
			return nil
		}
		if wait > 2*lastStretch {
			wait -= lastStretch
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

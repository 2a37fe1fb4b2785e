package mockserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"plumbline/corpus"
	"plumbline/fixtures"
)

// The engine's own name and version.
const (
	name      = fixtures.MockEngine
	version   = "0.1.0"
	buildInfo = name + "-" + version
)

// The bounds of a request.
const (
	maxBody       = 32 << 20         // bytes
	bodyTimeout   = time.Minute      // for the whole body
	headerTimeout = 10 * time.Second // for the request's head
	maxSlots      = 4096
)

// Options say what engine to be. A zero field has the default named beside it.
type Options struct {
	// Listen is host:port; 127.0.0.1:0, a free port of this machine alone.
	Listen string
	// Pace is how fast the engine is; fast.
	Pace Pace
	// APIKey, when not "", is asked of every request but those to /health.
	APIKey string
	// Model is the id of the one model served; plumbline-mock.
	Model string
	// Slots is how many requests are served at once; 4.
	Slots int
	// ContextTokens is how many tokens a prompt and its reply may have together; 131072.
	ContextTokens int
	// Pack holds the prompts that are answered from its key; the one built in. An empty pack has none: then every prompt
	// gets seeded text.
	Pack *corpus.Pack
	// Epoch is the time told as a reply's creation; the wall clock.
	Epoch time.Time
	// Defects are the faults that the engine is asked to have; none.
	Defects []Defect
}

// withDefaults fills in what was left out and refuses what cannot be.
func (o Options) withDefaults() (Options, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Pace.Decode == 0 && o.Pace.Curve == nil {
		o.Pace = paces[0]
	}
	if o.Model == "" {
		o.Model = name
	}
	if o.Slots == 0 {
		o.Slots = 4
	}
	if o.ContextTokens == 0 {
		o.ContextTokens = 131072
	}
	if o.Pack == nil {
		var err error
		if o.Pack, err = corpus.Default(); err != nil {
			return o, fmt.Errorf("start mock engine: %w", err)
		}
	}
	if o.Slots < 1 || o.Slots > maxSlots {
		return o, fmt.Errorf("start mock engine: expected 1 to %d slots, received %d", maxSlots, o.Slots)
	}
	if o.ContextTokens < 1 {
		return o, fmt.Errorf("start mock engine: expected a context of at least 1 token, received %d", o.ContextTokens)
	}
	if err := o.Pace.check(); err != nil {
		return o, fmt.Errorf("start mock engine: %w", err)
	}
	return o, nil
}

// Server is a running engine.
type Server struct {
	opts    Options
	prompts map[string]*corpus.Prompt // by text
	slots   *slots
	defects *drawer
	began   time.Time

	mu     sync.Mutex
	totals totals // guarded by mu

	url    string
	http   *http.Server
	served chan struct{}      // closed when the listener is
	cancel context.CancelFunc // ends every request
	unhook func() bool
}

// newServer makes an engine without a listener.
func newServer(opts Options) (*Server, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	drawer, err := newDrawer(opts.Defects)
	if err != nil {
		return nil, fmt.Errorf("start mock engine: %w", err)
	}
	return &Server{
		opts: opts, prompts: promptsByText(opts.Pack), slots: newSlots(opts.Slots, maxQueue), defects: drawer, began: time.Now(),
	}, nil
}

// Start makes an engine and serves it. The engine ends at once when ctx ends, and in order by Close.
func Start(ctx context.Context, opts Options) (*Server, error) {
	s, err := newServer(opts)
	if err != nil {
		return nil, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.opts.Listen)
	if err != nil {
		return nil, fmt.Errorf("start mock engine on %q: %w", s.opts.Listen, err)
	}
	s.url = "http://" + ln.Addr().String()
	base, cancel := context.WithCancel(ctx)
	s.cancel = cancel
	s.served = make(chan struct{})
	s.http = &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          log.New(io.Discard, "", 0), // a library prints nothing
	}
	s.unhook = context.AfterFunc(ctx, func() { s.http.Close() })
	go func() {
		defer close(s.served)
		s.http.Serve(ln) // always ends with an error: that the server was closed
	}()
	return s, nil
}

// URL is the engine's base URL, without a slash at its end.
func (s *Server) URL() string { return s.url }

// Close takes no new requests, lets the running ones end until ctx ends, and then cuts them off. The error says that
// some were cut off.
func (s *Server) Close(ctx context.Context) error {
	s.unhook()
	err := s.http.Shutdown(ctx)
	s.cancel()
	if err != nil {
		err = fmt.Errorf("close mock engine: requests were cut off: %w", errors.Join(err, s.http.Close()))
	}
	<-s.served
	return err
}

// now is the time that replies tell.
func (s *Server) now() time.Time {
	if !s.opts.Epoch.IsZero() {
		return s.opts.Epoch
	}
	return time.Now()
}

// totals are what was measured since the start, over finished replies.
type totals struct {
	promptTokens, predictedTokens int
	promptTime, predictedTime     time.Duration
}

// account adds a finished reply.
func (s *Server) account(promptTokens, predictedTokens int, c clock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals.promptTokens += promptTokens
	s.totals.promptTime += c.prefill
	s.totals.predictedTokens += predictedTokens
	s.totals.predictedTime += c.decode()
}

// soFar is the account until now.
func (s *Server) soFar() totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

// Package engine holds how the engine under test is had and what it tells of itself: name, version, models, context,
// capacity, and token counts where it offers them. It is a live server, the built-in mock, a replay of what was
// recorded, or a process or a container that a recipe starts for the run. It asks before and after a run, never during one; it never measures, it never puts the
// mock in the place of a server that was named, and it pulls no image unless told to.
//
// Nothing is left of an engine that it started, however the program ends: the program is started once more, as the
// engine's watchdog.
package engine

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/settings"
	"plumbline/mockserver"
)

// Engine is a server to run against.
type Engine interface {
	// Kind is how it is had.
	Kind() string
	// URL is its base address, without a closing slash.
	URL() string
	// Started is how a process or a container was started; nil for every other kind.
	Started() *fixtures.EngineStart
	// Ended is closed once a process or a container has ended; nil for every other kind.
	Ended() <-chan struct{}
	// Died says why an engine that this program started has ended although nobody stopped it; nil while it runs, and for a
	// server of somebody else.
	Died() error
	// Stop ends what this program started, and nothing else, and says how a process or a container ended; nil for every
	// other kind.
	Stop(ctx context.Context) (*fixtures.EngineExit, error)
}

// The kinds of engine.
const (
	KindLive      = "live"
	KindMock      = "mock"
	KindReplay    = "replay"
	KindProcess   = "process"
	KindContainer = "container"
)

// Kind is the kind of engine that the settings ask for.
func Kind(s *settings.Settings) string {
	if _, form, started := s.Started(); started {
		return string(form)
	}
	return s.EngineName()
}

// Run is what an engine must know of the run that it is had for.
type Run struct {
	// ID is the run's id: containers are labelled with it.
	ID string
	// Dir is the run's folder: the log of a started engine goes there.
	Dir string
	// Pack is the corpus that the built-in mock answers.
	Pack *corpus.Pack
}

// Start gives the engine that the settings ask for. A live server is not contacted here: Ask does that, and fails when it
// cannot be reached. A process or a container has answered a first request when Start returns; an error of theirs is a
// *StartError, and then nothing of it is left but its log. ctx bounds the start alone: only Stop ends the engine.
func Start(ctx context.Context, s *settings.Settings, run Run) (Engine, error) {
	switch name := s.EngineName(); name {
	case settings.EngineLive:
		return live(s.URL), nil
	case settings.EngineMock:
		return startMock(context.WithoutCancel(ctx), s, run.Pack)
	case settings.EngineReplay:
		return startReplay(context.WithoutCancel(ctx), s)
	}
	return startFromRecipe(ctx, s, run)
}

func startMock(ctx context.Context, s *settings.Settings, pack *corpus.Pack) (Engine, error) {
	pace, err := mockserver.ParsePace(s.MockPace)
	if err != nil {
		return nil, fmt.Errorf("start mock engine: mock-pace: %w", err)
	}
	key, err := s.Credential()
	if err != nil {
		return nil, fmt.Errorf("start mock engine: %w", err)
	}
	server, err := mockserver.Start(ctx, mockserver.Options{
		Listen: "127.0.0.1:0",
		Pace:   pace,
		APIKey: key.Reveal(),
		Model:  s.Model,
		Slots:  s.ServerCapacity,
		Pack:   pack,
	})
	if err != nil {
		return nil, fmt.Errorf("start mock engine: %w", err)
	}
	return mock{server}, nil
}

// startReplay gives recorded responses again, each to the request that it was recorded of.
func startReplay(ctx context.Context, s *settings.Settings) (Engine, error) {
	opts := mockserver.ReplayOptions{Speed: 1}
	for _, file := range s.Replay {
		replays, err := fixtures.ReadReplays(file)
		if err != nil {
			return nil, fmt.Errorf("start replay engine: %w", err)
		}
		opts.Replays = append(opts.Replays, replays...)
	}
	server, err := mockserver.StartReplay(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start replay engine: %w", err)
	}
	return replayed{server}, nil
}

type live string

func (live) Kind() string                                       { return KindLive }
func (l live) URL() string                                      { return string(l) }
func (live) Started() *fixtures.EngineStart                     { return nil }
func (live) Ended() <-chan struct{}                             { return nil }
func (live) Died() error                                        { return nil }
func (live) Stop(context.Context) (*fixtures.EngineExit, error) { return nil, nil }

type mock struct{ server *mockserver.Server }

func (mock) Kind() string                   { return KindMock }
func (m mock) URL() string                  { return m.server.URL() }
func (mock) Started() *fixtures.EngineStart { return nil }
func (mock) Ended() <-chan struct{}         { return nil }
func (mock) Died() error                    { return nil }
func (m mock) Stop(ctx context.Context) (*fixtures.EngineExit, error) {
	return nil, m.server.Close(ctx)
}

type replayed struct{ server *mockserver.Replayer }

func (replayed) Kind() string                   { return KindReplay }
func (r replayed) URL() string                  { return r.server.URL() }
func (replayed) Started() *fixtures.EngineStart { return nil }
func (replayed) Ended() <-chan struct{}         { return nil }
func (replayed) Died() error                    { return nil }
func (r replayed) Stop(ctx context.Context) (*fixtures.EngineExit, error) {
	return nil, r.server.Close(ctx)
}

// Options bound the questions to an engine. Zero fields take the defaults named with them.
type Options struct {
	Connect  time.Duration // longest wait for a connection; 10 s
	Endpoint time.Duration // longest wait for one endpoint's whole answer; 10 s
	Ready    time.Duration // how long a server may answer 503, which says that it is loading; 60 s
	Poll     time.Duration // pause between two questions while it loads; 500 ms
	Proxy    bool          // use the proxies of the environment
	HTTP2    bool          // speak HTTP/2: without negotiation on http, offered by ALPN on https
}

// endpointFloor is the least time that an endpoint gets, however short the connect time-out: a busy server may take
// a second to look up from its work.
const endpointFloor = 5 * time.Second

// OptionsFor takes the bounds from the settings.
func OptionsFor(s *settings.Settings) Options {
	return Options{Connect: s.TimeoutConnect, Endpoint: max(s.TimeoutConnect, endpointFloor), Proxy: s.Proxy, HTTP2: s.HTTP2}
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		target *time.Duration
		def    time.Duration
	}{{&o.Connect, 10 * time.Second}, {&o.Endpoint, 10 * time.Second}, {&o.Ready, time.Minute}, {&o.Poll, 500 * time.Millisecond}} {
		if *d.target <= 0 {
			*d.target = d.def
		}
	}
	return o
}

// Authorize is the header that carries a key, empty for an empty key.
func Authorize(key settings.Secret) http.Header {
	h := http.Header{}
	if !key.Empty() {
		h.Set("Authorization", "Bearer "+key.Reveal())
	}
	return h
}

// Describe asks an engine what it is, as Ask does, and adds how it is had.
func Describe(ctx context.Context, e Engine, header http.Header, opts Options) (fixtures.EngineFacts, error) {
	facts, err := Ask(ctx, e.URL(), header, opts)
	facts.Kind = e.Kind()
	facts.Started = e.Kind() != KindLive
	facts.Start = e.Started()
	if facts.Kind == KindReplay { // it names itself, and what was recorded is another engine's
		facts.Name = ""
		delete(facts.Sources, "name")
	}
	return facts, err
}

package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"plumbline/fixtures"
)

// Call is one request.
type Call struct {
	ID     string
	Method string
	// Path counts from the server's root and may hold a query.
	Path string
	// Header is added to the client's; a name that stands here replaces the client's values, with no values it removes
	// them. A body without a Content-Type is sent as application/json.
	Header http.Header
	Body   []byte
	// Timeouts, when set, hold instead of the client's.
	Timeouts *Timeouts
	Watcher  Watcher
}

// Watcher looks at the body while it arrives, to tell the time-outs what they wait for.
type Watcher interface {
	// Piece gets each piece after its offset was taken, on the goroutine that reads: time spent here delays the next
	// read. b is valid during the call only and must not be changed.
	Piece(at time.Duration, b []byte) Signal
}

// Signal is what a piece brought.
type Signal struct {
	Data  bool // a data event ended in this piece
	Token bool // the first token has been seen, in this piece or before
	Done  bool // the stream's end marker has been seen, in this piece or before
}

// Do sends the request and reads the reply to its end. It never fails: how the exchange ended stands in its End, also
// when no request could be built or sent.
func (c *Client) Do(ctx context.Context, call Call) *fixtures.Exchange {
	x := &fixtures.Exchange{
		Format:  fixtures.ExchangeFormat,
		ID:      call.ID,
		Request: fixtures.Request{Method: call.Method, Path: call.Path, Header: map[string][]string{}, Body: call.Body},
	}
	defer c.secrets.exchange(x)

	limits := c.limits
	if call.Timeouts != nil {
		limits = *call.Timeouts
	}
	if call.Watcher == nil {
		limits.FirstToken = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clk := newClock(limits, cancel)
	defer clk.stop()
	conn := &connecting{clock: clk, called: clk.offsetZero()}

	req, err := c.request(ctx, call)
	if err == nil {
		err = limits.check()
	}
	if err != nil {
		c.stamp(x, clk.offsetZero())
		x.End = fixtures.End{Kind: fixtures.EndUnsent, Error: err.Error()}
		return x
	}
	x.Request.Path = req.URL.RequestURI()
	x.Request.Header = maps.Clone(map[string][]string(req.Header))

	pool, traced := c.transport.(*http.Transport)
	if traced {
		clk.start()
	} else {
		clk.dispatch()
	}
	resp, err := roundTrip(c.transport, req, conn)
	if traced && err != nil && ctx.Err() == nil && conn.wasClosed(err) {
		fresh := pool.Clone()
		defer fresh.CloseIdleConnections()
		conn = &connecting{clock: clk, called: conn.called, redialed: true}
		clk.start()
		resp, err = roundTrip(fresh, again(req), conn)
	}
	zero := clk.offsetZero()
	at := time.Since(zero)
	c.stamp(x, zero)
	if err != nil {
		x.Connection = conn.record("")
		x.End = ending(ctx, err, at, conn)
		return x
	}
	x.Connection = conn.record(resp.Proto)
	x.Response = &fixtures.Response{Status: resp.StatusCode, Header: maps.Clone(map[string][]string(resp.Header)), At: at}
	if !traced {
		// A body that is not a connection's does not know of the context: closing it ends a read that waits.
		defer context.AfterFunc(ctx, func() { resp.Body.Close() })()
	}
	defer resp.Body.Close()

	r := &reader{body: resp.Body, zero: zero, clock: clk, watcher: call.Watcher, maxBody: c.maxBody}
	at, err = r.run()
	x.Pieces = r.pieces
	switch {
	case r.tooLarge != "":
		x.Pieces = firstBytes(x.Pieces, keptOfTooLarge)
		x.End = fixtures.End{Kind: fixtures.EndTooLarge, At: at, Error: r.tooLarge}
	case err != nil:
		x.End = ending(ctx, err, at, conn)
	default:
		x.End = fixtures.End{Kind: fixtures.EndClose, At: at}
	}
	return x
}

// stamp sets the wall clock at dispatch and its offset in the run.
func (c *Client) stamp(x *fixtures.Exchange, zero time.Time) {
	x.StartedAt = zero.Round(0).UTC()
	x.SinceStart = zero.Sub(c.epoch)
}

func (c *Client) request(ctx context.Context, call Call) (*http.Request, error) {
	u, err := join(c.base, call.Path)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if len(call.Body) > 0 {
		body = bytes.NewReader(call.Body)
	}
	req, err := http.NewRequestWithContext(ctx, call.Method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "plumbline")
	for _, h := range []http.Header{c.header, call.Header} {
		for name, values := range h {
			name = http.CanonicalHeaderKey(name)
			if len(values) == 0 && name != "User-Agent" { // without that name the HTTP layer sends its own
				delete(req.Header, name)
				continue
			}
			req.Header[name] = slices.Clone(values)
		}
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	return req, nil
}

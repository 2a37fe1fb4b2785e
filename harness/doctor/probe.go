package doctor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tidwall/sjson"

	"plumbline/fixtures"
	"plumbline/harness/client"
	"plumbline/harness/engine"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

// probe is one streamed reply of a few tokens: what the engine tells in it, it tells in every reply.
type probe struct {
	sent       bool
	err        error // ours: the request could not be made
	exchange   *fixtures.Exchange
	transcript *transcript.Transcript
	figures    measure.Figures
}

const (
	// probeText begins like no prompt of a pack, so that nothing of one is in the engine's cache before a run.
	probeText      = "Is anybody there?"
	probeMaxTokens = 16
	probeMaxBody   = 4 << 20 // bytes: a server that heeds no budget has shown enough by then
	// replyFloor is the least time that a reply gets when there is none left, so that the failure is told as such.
	replyFloor = 100 * time.Millisecond
)

// sendProbe sends the warm-up's request with a text and a budget of its own: the profile's sampling and template
// arguments are part of what an engine may refuse. A replay knows only what was recorded: it is sent the warm-up itself.
func (e *evidence) sendProbe(ctx context.Context, url string, auth http.Header) probe {
	p := probe{}
	body, err := e.requests[0].Body, error(nil)
	if e.header.Engine.Kind != engine.KindReplay {
		if body, err = sjson.SetBytes(body, "messages.0.content", probeText); err == nil {
			body, err = sjson.SetBytes(body, "max_tokens", probeMaxTokens)
		}
	}
	if err != nil {
		p.err = fmt.Errorf("make the request: %w", err)
		return p
	}
	limit := e.opts.Within
	if deadline, ok := ctx.Deadline(); ok {
		// A little less than is left: then the exchange ends by its own time-out, which says what was waited for.
		limit = max(time.Until(deadline)*9/10, replyFloor)
	}
	sender, err := client.New(client.Options{
		BaseURL: url, Header: auth, MaxBody: probeMaxBody, Proxy: e.settings.Proxy, HTTP2: e.settings.HTTP2,
		Timeouts: client.Timeouts{Connect: limit, FirstByte: limit, FirstToken: limit, Idle: limit, Total: limit},
	})
	if err != nil {
		p.err = fmt.Errorf("make the request: %w", err)
		return p
	}
	defer sender.Close()
	first := e.requests[0]
	p.sent = true
	p.exchange = sender.Do(ctx, client.Call{ID: "doctor", Method: http.MethodPost, Path: first.Path, Body: body, Watcher: watch{transcript.NewWatcher()}})
	p.transcript = transcript.Read(p.exchange)
	p.figures = measure.Of(p.exchange, p.transcript)
	return p
}

// watch lets the transcript's watcher serve as the client's: the client knows no event streams.
type watch struct{ *transcript.Watcher }

func (w watch) Piece(at time.Duration, b []byte) client.Signal {
	return client.Signal(w.Watcher.Piece(at, b))
}

// keyRefused says whether the engine refused the key where a run sends its requests: some servers list their models to
// anybody.
func (p probe) keyRefused() bool {
	return p.status() == http.StatusUnauthorized || p.status() == http.StatusForbidden
}

// status is that of the reply's head, 0 for none.
func (p probe) status() int {
	if !p.sent || p.exchange.Response == nil {
		return 0
	}
	return p.exchange.Response.Status
}

// answered says whether a whole reply came.
func (p probe) answered() bool { return p.sent && p.figures.Status != measure.Failed }

// outlook says what the evidence means for a run's requests.
func (e *evidence) outlook() Outlook {
	o := Outlook{No, No, No, No}
	if e.header.Refusal != "" || !e.asked {
		return o // nothing will be sent
	}
	if !e.probe.answered() {
		o.RequestFails = Yes
		return o
	}
	o.RequestFails = e.fit().fails
	p := e.header.Plan[0]
	f := e.probe.figures
	counted := f.InputTokens.Known && f.OutputTokens.Known
	if !counted {
		o.UsageUntold = Yes
	}
	if !f.CachedTokens.Known || p.SharedPrefixTokens == nil && !f.InputTokens.Known {
		o.ReuseUnchecked = Yes
	}
	switch {
	case !f.InputTokens.Known, p.EngineContentTokens == nil && p.ContentTokens == nil && e.countErr == nil:
		o.LengthUnchecked = Yes
	case p.EngineContentTokens == nil: // the profile's tokenizer may be another than the engine's
		o.LengthUnchecked = Perhaps
	}
	return o
}

// problemIn says whether the engine could not be used for one of these reasons.
func (e *evidence) problemIn(problems ...engine.Problem) bool {
	for _, p := range problems {
		if e.engineErr != nil && e.engineErr.Problem == p {
			return true
		}
	}
	return false
}

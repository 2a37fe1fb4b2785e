package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"plumbline/fixtures"
	"plumbline/harness/client"
	"plumbline/harness/judge"
	"plumbline/harness/plan"
	"plumbline/harness/transcript"
)

// Send sends one request of the plan, keeps the exchange on disk, and returns what became of it. An error is ours (the
// plan has no such request, the record cannot be kept), never the server's.
func (s *Session) Send(ctx context.Context, id string) (judge.Reply, error) {
	replies, err := s.SendTogether(ctx, []string{id})
	if err != nil {
		return judge.Reply{}, err
	}
	return replies[0], nil
}

// SendTogether dispatches several requests at once and returns their replies in the order of the ids.
func (s *Session) SendTogether(ctx context.Context, ids []string) ([]judge.Reply, error) {
	if s.broken != nil {
		return nil, fmt.Errorf("nothing more is sent, the record could not be kept: %w", s.broken)
	}
	if err := s.engine.Died(); err != nil {
		return nil, fmt.Errorf("nothing more is sent: %w", err)
	}
	requests := make([]*plan.Request, len(ids))
	for i, id := range ids {
		r, ok := s.byID[id]
		if !ok {
			return nil, fmt.Errorf("send: the plan has no request %q", id)
		}
		requests[i] = r
	}
	if s.broken = s.gauge.turn(ctx, requests[0].Phase); s.broken != nil {
		return nil, s.broken
	}
	exchanges, kept := make([]*fixtures.Exchange, len(ids)), make([]error, len(ids))
	var sent sync.WaitGroup
	for i, r := range requests {
		watcher := transcript.NewWatcher()
		s.progress.sending(r.Planned, watcher)
		sent.Go(func() {
			exchanges[i] = s.client.Do(ctx, client.Call{
				ID: r.ID, Method: "POST", Path: r.Path, Body: r.Body, Watcher: watch{watcher},
			})
			kept[i] = s.journal.Append(fixtures.Line{Exchange: exchanges[i]})
		})
	}
	sent.Wait()
	if s.broken = errors.Join(kept...); s.broken != nil {
		return nil, s.broken
	}
	replies := make([]judge.Reply, len(ids))
	for i, e := range exchanges {
		s.cut = s.cut || e.End.Kind == fixtures.EndCanceled
		reply, err := judge.NewReply(s.byID[e.ID].Planned, e)
		if err != nil {
			return nil, err
		}
		if len(ids) > 1 {
			reply = reply.Light() // a level's replies are held together until they have been compared
		}
		replies[i] = reply
		s.figures[e.ID] = reply.Figures
	}
	s.progress.sent(replies)
	if err := s.died(exchanges); err != nil {
		return nil, err
	}
	return replies, nil
}

// deathNotice is how long the news of an engine's end may take: a container's comes through the Docker Engine, after the end of
// its connections.
const deathNotice = 2 * time.Second

// died is why the engine ended, when a request has just failed because of that.
func (s *Session) died(exchanges []*fixtures.Exchange) error {
	ended := s.engine.Ended()
	broken := func(e *fixtures.Exchange) bool {
		return e.End.Kind != fixtures.EndClose && e.End.Kind != fixtures.EndCanceled
	}
	if ended == nil || !slices.ContainsFunc(exchanges, broken) {
		return nil
	}
	select {
	case <-ended:
	case <-time.After(deathNotice):
	}
	return s.engine.Died()
}

// watch lets the transcript's watcher serve as the client's: the client knows no event streams.
type watch struct{ *transcript.Watcher }

func (w watch) Piece(at time.Duration, b []byte) client.Signal {
	return client.Signal(w.Watcher.Piece(at, b))
}

// PromptFaults says what is wrong with how a request's prompt was read, as far as the replies until now tell: taken
// from a cache, or cut.
func (s *Session) PromptFaults(id string) []string {
	return judge.Prompts(s.header.Plan, s.figures).Check(id).Faults()
}

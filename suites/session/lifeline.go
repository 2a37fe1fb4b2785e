package session

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"plumbline/fixtures"
)

// lifeline ends a stage of a load once the engine, where this program started it, has ended: what would be sent after that
// says nothing of it.
type lifeline struct {
	ended <-chan struct{} // nil for a server of somebody else
	once  sync.Once
}

// lifeline has cancel called with the reason, now or later, until ctx ends.
func (s *Session) lifeline(ctx context.Context, cancel context.CancelCauseFunc) *lifeline {
	l := &lifeline{ended: s.engine.Ended()}
	tell := func() {
		if died := s.engine.Died(); died != nil {
			cancel(errors.New(firstLine(died)))
		}
	}
	if tell(); l.ended == nil || ctx.Err() != nil {
		return l
	}
	go func() {
		select {
		case <-l.ended:
			tell()
		case <-ctx.Done():
		}
	}()
	return l
}

// broke holds up a request that got no response, so that the news of the engine's end can come before the next one is sent.
// It does so once a stage: an engine that breaks connections and lives on is not waited for again.
func (l *lifeline) broke(x *fixtures.Exchange) {
	if l.ended == nil || x.Response != nil || x.End.Kind == fixtures.EndCanceled {
		return
	}
	l.once.Do(func() {
		select {
		case <-l.ended:
		case <-time.After(deathNotice):
		}
	})
}

// firstLine is an error without the end of the engine's log, which is in the run's folder.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

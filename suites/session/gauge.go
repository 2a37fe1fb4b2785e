package session

import (
	"context"
	"time"

	"plumbline/fixtures"
	"plumbline/harness/facts"
	"plumbline/harness/journal"
)

// gauge keeps how the accelerators were before and after each phase of one record. It asks the vendors' tools between
// requests only, and never where the first look at the machine found no accelerator of the engine's.
type gauge struct {
	s      *Session
	record *journal.Journal
	phase  string // the one under way, "" for none
}

// turn ends the phase under way and begins the next, "" for none. One reading serves both: nothing happens between them.
func (g *gauge) turn(ctx context.Context, next string) error {
	host := &g.s.header.Host
	if g.phase == next || !host.EngineHere || len(host.GPUs) == 0 {
		return nil
	}
	m := fixtures.GPUMoment{SinceStart: time.Since(g.s.started), State: facts.GPUState(ctx)}
	for _, end := range []struct{ phase, when string }{{g.phase, fixtures.AfterPhase}, {next, fixtures.BeforePhase}} {
		if end.phase == "" {
			continue
		}
		m.Phase, m.When = end.phase, end.when
		if err := g.record.Append(fixtures.Line{GPU: new(m)}); err != nil {
			return err
		}
	}
	g.phase = next
	return nil
}

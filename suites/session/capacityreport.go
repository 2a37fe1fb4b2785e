package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/journal"
	"plumbline/harness/judge"
	"plumbline/harness/plan"
	"plumbline/reports/capacity"
)

// ReportCapacity builds the capacity document of a run's folder from its record alone and writes it there: the one way to
// that document, during a run, at its end and after a kill. A reply that came but had not been read when the run was
// killed is read now.
func ReportCapacity(dir string) (*capacity.Summary, error) { return writeCapacity(dir, true) }

// writeCapacity writes the document; unread looks for replies without a row where the record has no end.
func writeCapacity(dir string, unread bool) (*capacity.Summary, error) {
	record, err := journal.OpenLoad(dir)
	if err != nil {
		return nil, err
	}
	defer record.Close()
	pack, err := corpus.Default()
	if err != nil {
		return nil, err
	}
	p, err := plan.Capacity(*record.Header.Capacity, record.Header.Model, pack)
	if err != nil {
		return nil, err
	}
	if unread && record.End == nil {
		if err := readUnread(dir, record, p); err != nil {
			return nil, err
		}
	}
	f, err := renameio.NewPendingFile(filepath.Join(dir, CapacityName), renameio.WithPermissions(0o644))
	if err != nil {
		return nil, fmt.Errorf("write the document of %q: %w", dir, err)
	}
	defer f.Cleanup()
	sum, err := capacity.Write(f, capacity.Input{
		Header: &record.Header, Stages: record.Stages, GPUs: record.GPUs, End: record.End,
		PlannedSizes: p.Sizes(fixtures.StageClosed), Rows: record.Rows,
	})
	if err != nil {
		return nil, fmt.Errorf("build the document of %q: %w", dir, err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return nil, fmt.Errorf("write the document of %q: %w", dir, err)
	}
	return sum, nil
}

// readUnread judges the replies of a killed run that have no row. A row needs the request's body, which the plan makes again.
func readUnread(dir string, record *journal.Load, p *plan.Load) error {
	open, err := openStart(record, p)
	if err != nil {
		return err
	}
	var scheduled []*fixtures.Row // by the stage's clock
	err = journal.Unread(dir, record.Has(), func(x *fixtures.Exchange) error {
		stage, index, ok := fixtures.ParseLoadID(x.ID)
		if !ok {
			return nil
		}
		body := p.Body(stage, index)
		if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != x.Request.BodySHA256 {
			return fmt.Errorf("read exchange %q: the plan makes another body than the one that was sent: another version of the program wrote this record", x.ID)
		}
		x.Request.Body = body
		row := judge.Row(p.Request(stage, index), x)
		record.Add(&row)
		if row.Scheduled != nil {
			scheduled = append(scheduled, &row)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if open == nil && len(scheduled) > 0 {
		// Nothing tells when the loop began. No request was dispatched before its moment, so it was no later than this, and
		// earlier only by the least that any of them was late.
		least := latest(scheduled[0])
		for _, row := range scheduled {
			least = min(least, latest(row))
		}
		open = &least
	}
	for _, row := range scheduled {
		*row.Scheduled += *open
	}
	return nil
}

// latest is the latest moment at which a row's stage can have begun, the row's schedule being by the stage's clock.
func latest(row *fixtures.Row) time.Duration {
	return row.SinceStart - time.Duration(row.ConnectMS*float64(time.Millisecond)) - *row.Scheduled
}

// openStart is when the open loop began on the run's clock, which its rows' schedule counts from; null where there is none, or
// no line of the record tells.
func openStart(record *journal.Load, p *plan.Load) (*time.Duration, error) {
	if record.Header.Capacity.Arrival == "" {
		return nil, nil
	}
	for _, stage := range record.Stages {
		if stage.Name == fixtures.StageOpen {
			return &stage.SinceStart, nil
		}
	}
	for row, err := range record.Rows() {
		if err != nil {
			return nil, err
		}
		if row.Scheduled != nil {
			return new(*row.Scheduled - *p.Request(row.Stage, row.RequestIndex).Scheduled), nil
		}
	}
	return nil, nil
}

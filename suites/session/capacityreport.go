package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

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
		Header: &record.Header, Stages: record.Stages, End: record.End,
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
	return journal.Unread(dir, record.Has(), func(x *fixtures.Exchange) error {
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
		return nil
	})
}

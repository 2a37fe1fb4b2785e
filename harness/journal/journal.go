// Package journal keeps the record of a run on disk: append-only, one line an entry, on stable storage before the next
// request starts, readable after a kill at any moment. It never interprets what it keeps.
package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"plumbline/fixtures"
)

// Names of records in a run's directory.
const (
	// FileName is the standard protocol's: every exchange of the run.
	FileName = "outputs.jsonl"
	// CapacityFile is the capacity protocol's: a row for each request, small enough to be read again at any length.
	CapacityFile = "capacity.jsonl"
	// CapacityOutputs holds the exchanges that those rows were read from.
	CapacityOutputs = "capacity-outputs.jsonl"
)

// Journal appends to the record of one run. It is safe for concurrent use.
type Journal struct {
	file storage

	mu      sync.Mutex // guards what follows, and writing
	size    int64      // of the whole lines in the file
	written int        // lines written
	ids     map[string]bool
	ended   bool
	broken  error // why nothing can be appended any more

	// syncing is held while the file is synced. Those who wait for it find that a sync of another covered their line.
	syncing sync.Mutex
	synced  int // lines known to be on disk
}

// storage is what a journal needs of its file.
type storage interface {
	Write([]byte) (int, error)
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Create makes a record of a run in dir, which is made when it is not there, and writes its header. A record that
// exists is never touched: the error is then fs.ErrExist.
func Create(dir, name string, h *fixtures.Header) (*Journal, error) {
	if h.Format != fixtures.RunFormat {
		return nil, fmt.Errorf("create journal in %q: want format %q, got %q", dir, fixtures.RunFormat, h.Format)
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	j := &Journal{file: f, ids: make(map[string]bool)}
	if err = j.Append(fixtures.Line{Run: h}); err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		// A record without a header is of no use, and would be in the way of the next attempt.
		return nil, fmt.Errorf("create journal: %w", errors.Join(err, f.Close(), os.Remove(f.Name())))
	}
	return j, nil
}

// Append writes one line and returns once it is on stable storage. When it cannot be written the record stays as it
// was; when the file could not be brought back to its last whole line, or not be synced, every later call fails too.
func (j *Journal) Append(l fixtures.Line) error {
	line, err := fixtures.EncodeLine(l)
	if err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	number, err := j.write(l, line)
	if err == nil {
		err = j.sync(number)
	}
	if err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	return nil
}

// Write writes one line and leaves the sync to a later Append or Sync: a kill of the process does not lose the line, a
// power cut may. It serves loads, where waiting for the disk would hold up the next request.
func (j *Journal) Write(l fixtures.Line) error {
	line, err := fixtures.EncodeLine(l)
	if err == nil {
		_, err = j.write(l, line)
	}
	if err != nil {
		return fmt.Errorf("write to journal: %w", err)
	}
	return nil
}

// Sync returns once every line written so far is on stable storage.
func (j *Journal) Sync() error {
	j.mu.Lock()
	written := j.written
	j.mu.Unlock()
	if err := j.sync(written); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	return nil
}

// write writes the line in one call and returns its number. A line of which only a part could be written, as on a full
// disk, is cut off again.
func (j *Journal) write(l fixtures.Line, line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return 0, j.broken
	}
	if err := j.admit(l); err != nil {
		return 0, err
	}
	n, err := j.file.Write(line)
	if err != nil {
		if n > 0 {
			if cut := j.file.Truncate(j.size); cut != nil {
				j.broken = fmt.Errorf("the record ends inside a line: %w", errors.Join(err, cut))
				return 0, j.broken
			}
		}
		return 0, err
	}
	j.size += int64(n)
	j.written++
	j.ended = l.End != nil
	if l.Exchange != nil {
		j.ids[l.Exchange.ID] = true
	}
	return j.written, nil
}

// admit refuses what would make the record unreadable.
func (j *Journal) admit(l fixtures.Line) error {
	switch {
	case j.ended:
		return errors.New("the record has its last line")
	case l.Run != nil && j.written > 0:
		return errors.New("the record has a header")
	case l.Exchange == nil:
		return nil
	case l.Exchange.Format != fixtures.ExchangeFormat:
		return fmt.Errorf("exchange %q: want format %q, got %q", l.Exchange.ID, fixtures.ExchangeFormat, l.Exchange.Format)
	case j.ids[l.Exchange.ID]:
		return fmt.Errorf("exchange %q is in the record", l.Exchange.ID)
	}
	return nil
}

// sync returns once the line of the given number is on disk. One sync serves all lines that were written before it.
func (j *Journal) sync(number int) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= number {
		return nil
	}
	j.mu.Lock()
	written, broken := j.written, j.broken
	j.mu.Unlock()
	if broken != nil {
		return broken
	}
	if err := j.file.Sync(); err != nil {
		// What was not synced may be lost now, and a later sync would not say so.
		j.mu.Lock()
		defer j.mu.Unlock()
		j.broken = fmt.Errorf("the record is not on disk: %w", err)
		return j.broken
	}
	j.synced = written
	return nil
}

// Close closes the file. Every line was synced when its Append returned; of lines that were only written, those before
// the last Append or Sync.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken == nil {
		j.broken = os.ErrClosed
	}
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// Read reads the record of the run in dir.
func Read(dir string) (*fixtures.Run, error) {
	f, err := os.Open(filepath.Join(dir, FileName))
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	defer f.Close()
	run, err := fixtures.ReadRun(f)
	if err != nil {
		return nil, fmt.Errorf("read journal %q: %w", f.Name(), err)
	}
	return run, nil
}

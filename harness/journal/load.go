package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"plumbline/fixtures"
)

// Load is the record of a capacity run, read back. It keeps where its rows lie, not the rows, so that a record of any
// length can be gone through in a few bytes a row.
type Load struct {
	Header fixtures.Header
	Stages []fixtures.Stage
	GPUs   []fixtures.GPUMoment
	After  *fixtures.After
	End    *fixtures.RunEnd
	// Torn says that the record ended inside a line, which was left out.
	Torn bool

	file   *os.File
	rows   []rowAt
	stages []string // in the order in which their first row came
}

type rowAt struct {
	stage, index int
	at           int64
	size         int
	added        *fixtures.Row // one that is not in the file
}

// OpenLoad reads the record of the capacity run in dir. Close it after use.
func OpenLoad(dir string) (*Load, error) {
	f, err := os.Open(filepath.Join(dir, CapacityFile))
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	l := &Load{file: f}
	if err := l.scan(); err != nil {
		f.Close()
		return nil, fmt.Errorf("read journal %q: %w", f.Name(), err)
	}
	return l, nil
}

// Close closes the record's file.
func (l *Load) Close() error { return l.file.Close() }

func (l *Load) scan() error {
	r := fixtures.NewLineReader(l.file)
	first, err := r.Next()
	switch {
	case err != nil:
		return fmt.Errorf("no header: %w", err)
	case first.Run == nil || first.Run.Capacity == nil:
		return errors.New("line 1: want the header of a capacity run")
	}
	l.Header = *first.Run
	if err := l.Header.Check(); err != nil {
		return fmt.Errorf("line 1: %w", err)
	}
	seen := map[rowAt]bool{}
	for {
		line, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, fixtures.ErrTorn):
			l.Torn = true
			return nil
		case err != nil:
			return err
		case l.End != nil:
			return fmt.Errorf("line %d: comes after the end of the run", r.Number())
		}
		switch {
		case line.Row != nil:
			row := rowAt{stage: l.stage(line.Row.Stage), index: line.Row.RequestIndex}
			if seen[row] {
				return fmt.Errorf("line %d: request %d of stage %q has a row already", r.Number(), line.Row.RequestIndex, line.Row.Stage)
			}
			seen[row] = true
			row.at, row.size = r.Offset()
			l.rows = append(l.rows, row)
		case line.Stage != nil:
			l.Stages = append(l.Stages, *line.Stage)
		case line.GPU != nil:
			if err := line.GPU.Check(); err != nil {
				return fmt.Errorf("line %d: %w", r.Number(), err)
			}
			l.GPUs = append(l.GPUs, *line.GPU)
		case line.After != nil:
			l.After = line.After
		case line.End != nil:
			l.End = line.End
		default:
			return fmt.Errorf("line %d: want a row, a stage, a state of accelerators, what the engine told after the run, or its end", r.Number())
		}
	}
}

// stage is the number of a stage in order of appearance.
func (l *Load) stage(name string) int {
	i := slices.Index(l.stages, name)
	if i < 0 {
		i = len(l.stages)
		l.stages = append(l.stages, name)
	}
	return i
}

// Has says which requests have a row, by their ids.
func (l *Load) Has() map[string]bool {
	ids := make(map[string]bool, len(l.rows))
	for _, r := range l.rows {
		ids[fixtures.LoadID(l.stages[r.stage], r.index)] = true
	}
	return ids
}

// Add takes in a row that the record lacks. It is not written.
func (l *Load) Add(row *fixtures.Row) {
	l.rows = append(l.rows, rowAt{stage: l.stage(row.Stage), index: row.RequestIndex, added: row})
}

// Rows yields every row by stage and index. Each is read from the file anew.
func (l *Load) Rows() iter.Seq2[*fixtures.Row, error] {
	slices.SortFunc(l.rows, func(a, b rowAt) int { return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.index, b.index)) })
	return func(yield func(*fixtures.Row, error) bool) {
		var buf []byte
		for _, r := range l.rows {
			if r.added != nil {
				if !yield(r.added, nil) {
					return
				}
				continue
			}
			buf = slices.Grow(buf[:0], r.size)[:r.size]
			var line fixtures.Line
			_, err := l.file.ReadAt(buf, r.at)
			if err == nil {
				err = json.Unmarshal(buf, &line)
			}
			if err != nil {
				yield(nil, fmt.Errorf("read a row of %q: %w", l.file.Name(), err))
				return
			}
			if !yield(line.Row, nil) {
				return
			}
		}
	}
}

// Unread calls found for every exchange in dir's capacity outputs whose id is not in has: the replies that came while
// the run was killed, before they had been read. A torn last line is left out.
func Unread(dir string, has map[string]bool, found func(*fixtures.Exchange) error) error {
	f, err := os.Open(filepath.Join(dir, CapacityOutputs))
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	defer f.Close()
	r := fixtures.NewLineReader(f)
	for {
		line, err := r.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, fixtures.ErrTorn):
			return nil
		case err != nil:
			return fmt.Errorf("read journal %q: %w", f.Name(), err)
		case line.Exchange == nil || has[line.Exchange.ID]:
			continue
		}
		if err := found(line.Exchange); err != nil {
			return err
		}
	}
}

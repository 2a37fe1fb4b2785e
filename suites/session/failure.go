package session

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"plumbline/fixtures"
	"plumbline/harness/journal"
	"plumbline/harness/judge"
	"plumbline/harness/settings"
)

// SaveFailure writes the exchange of a request beside the record, as a case that can be replayed and sent to others, and
// returns the command that replays and judges it again without the engine. The error is fixtures.ErrNothingToReplay
// where no response came.
func (s *Session) SaveFailure(id string) (command string, err error) {
	run, err := journal.Read(s.dir)
	if err != nil {
		return "", err
	}
	for i := range run.Exchanges {
		if run.Exchanges[i].ID == id {
			c, err := judge.Recording(&run.Header, s.byID[id].Planned, &run.Exchanges[i])
			if err != nil {
				return "", err
			}
			return saveCase(s.dir, c)
		}
	}
	return "", fmt.Errorf("save failure: the record holds no exchange %q: %w", id, fixtures.ErrNothingToReplay)
}

// saveCase writes a case into a run's folder and returns the command that replays it.
func saveCase(dir string, c *fixtures.Case) (command string, err error) {
	var file bytes.Buffer
	if err := fixtures.WriteCase(&file, c); err != nil {
		return "", err
	}
	name := "failures/" + c.ID + ".json"
	if _, err := journal.WriteFile(dir, name, file.Bytes()); err != nil {
		return "", err
	}
	program := "plumbline"
	if _, inTree := settings.SourceTree(); inTree {
		program = "go run ./cmd/plumbline"
	}
	return program + " probe " + filepath.Join(dir, filepath.FromSlash(name)), nil
}

// savedFailures keeps the first failures of a load as cases: of thousands that fail alike, a few are enough.
type savedFailures struct {
	mu       sync.Mutex
	byClass  map[string][]string // commands, at most failuresKept of a class
	examples map[string][]string // what failed, in words
}

const failuresKept = 3

// save keeps a failed reply of a load, while few of its class have been kept. One that cannot be kept as a case is still in
// the record.
func (f *savedFailures) save(l *loadRun, d unjudged, failure *fixtures.RowFailure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.examples[failure.Class]) >= failuresKept {
		return
	}
	if f.examples == nil {
		f.examples, f.byClass = map[string][]string{}, map[string][]string{}
	}
	f.examples[failure.Class] = append(f.examples[failure.Class], fmt.Sprintf("%s (%s): %s", d.request.ID(), failure.Type, failure.Message))
	c, err := judge.RecordingOfLoad(&l.header, d.request, d.exchange)
	var command string
	if err == nil {
		command, err = saveCase(l.s.dir, c)
	}
	switch {
	case errors.Is(err, fixtures.ErrNothingToReplay):
	case err != nil:
		n := len(f.examples[failure.Class]) - 1
		f.examples[failure.Class][n] += fmt.Sprintf(" (not saved: %v)", err)
	default:
		f.byClass[failure.Class] = append(f.byClass[failure.Class], command)
	}
}

// evidence is what failed in a class, and the commands that replay it.
func (f *savedFailures) evidence(class string) (examples, commands []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.examples[class], f.byClass[class]
}

package session

import (
	"bytes"
	"fmt"
	"path/filepath"

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
		if run.Exchanges[i].ID != id {
			continue
		}
		c, err := judge.Recording(&run.Header, s.byID[id].Planned, &run.Exchanges[i])
		if err != nil {
			return "", err
		}
		var file bytes.Buffer
		if err := fixtures.WriteCase(&file, c); err != nil {
			return "", err
		}
		name := "failures/" + id + ".json"
		if _, err := journal.WriteFile(s.dir, name, file.Bytes()); err != nil {
			return "", err
		}
		program := "plumbline"
		if _, inTree := settings.SourceTree(); inTree {
			program = "go run ./cmd/plumbline"
		}
		return program + " probe " + filepath.Join(s.dir, filepath.FromSlash(name)), nil
	}
	return "", fmt.Errorf("save failure: the record holds no exchange %q: %w", id, fixtures.ErrNothingToReplay)
}

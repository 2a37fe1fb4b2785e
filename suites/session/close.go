package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"plumbline/fixtures"
	"plumbline/harness/engine"
	"plumbline/harness/journal"
	"plumbline/reports/capacity"
	"plumbline/reports/strata"
)

// Names of the files of a run.
const (
	OutputsName = "outputs.jsonl"
	ResultsName = "results.json"
)

// stopTimeout bounds the wait for an engine of ours to stop. One that was started as a process or a container has a grace of
// its own within it.
const stopTimeout = 30 * time.Second

// Close ends the run: it asks the engine once more, writes the records' last lines, builds the documents from the
// records and stops the engine. Interrupted names what cut the run short, "" when nothing is known to have; unsent is then
// why a request of the standard plan was not sent. It is called after Open, also after an Open that failed. Called again,
// it waits for the first call and returns its error.
func (s *Session) Close(ctx context.Context, interrupted, unsent string) error {
	s.closing.Do(func() { s.closed = s.close(ctx, interrupted, unsent) })
	return s.closed
}

func (s *Session) close(ctx context.Context, interrupted, unsent string) error {
	defer s.progress.stop()
	if interrupted == "" && s.cut {
		interrupted = "the run was told to end before this request, by its time-out or by another failure"
	}
	var errs []error
	if s.engine != nil {
		if died := s.engine.Died(); died != nil {
			errs = append(errs, died)
			if interrupted == "" {
				interrupted = firstLine(died)
			}
		}
	}
	if interrupted != "" {
		unsent = interrupted
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.journal != nil {
		errs = append(errs, s.gauge.turn(ctx, ""))
	}
	after, exit, err := s.leaveEngine(ctx)
	errs = append(errs, err)
	errs = append(errs, s.endRecords(interrupted, unsent, after, exit))
	if s.journal != nil {
		doc, err := Report(s.dir)
		errs = append(errs, err)
		if err == nil {
			s.progress.end(s, doc.Text(), ResultsName)
		}
	}
	if s.load != nil {
		sum, err := ReportCapacity(s.dir)
		errs = append(errs, err)
		if err == nil {
			s.progress.end(s, capacity.Text(sum), CapacityName)
		}
	}
	return errors.Join(errs...)
}

// Opened says whether the run was opened, so that it has to be closed.
func (s *Session) Opened() bool { return s.opened }

// leaveEngine asks the engine once more and stops it, if it is ours. An engine that is gone by now has told all that it will:
// the document says that it was not asked again.
func (s *Session) leaveEngine(ctx context.Context) (*fixtures.After, *fixtures.EngineExit, error) {
	if s.engine == nil {
		return nil, nil, nil
	}
	var told *fixtures.After
	if (s.journal != nil || s.load != nil) && s.header.Refusal == "" {
		if after, err := engine.After(ctx, s.engine.URL(), s.auth, engine.OptionsFor(s.settings)); err == nil {
			told = &after
		}
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	exit, err := s.engine.Stop(stop)
	return told, exit, err
}

// endRecords writes the last lines of the records that there are.
func (s *Session) endRecords(interrupted, unsent string, after *fixtures.After, exit *fixtures.EngineExit) error {
	end := fixtures.RunEnd{At: time.Since(s.started), Interrupted: interrupted, Engine: exit}
	var errs []error
	if s.load != nil {
		errs = append(errs, s.load.end(after, end))
	}
	if s.journal != nil {
		errs = append(errs, s.endStandard(cmp.Or(s.after, after), end, unsent))
	}
	return errors.Join(errs...)
}

func (s *Session) endStandard(after *fixtures.After, end fixtures.RunEnd, unsent string) error {
	lines := make([]fixtures.Line, 0, len(s.requests)+2)
	if s.header.Refusal == "" {
		for _, r := range s.requests {
			if _, ok := s.figures[r.ID]; !ok {
				lines = append(lines, fixtures.Line{Skip: &fixtures.Skip{ID: r.ID, Reason: unsent}})
			}
		}
	}
	if after != nil {
		lines = append(lines, fixtures.Line{After: after})
	}
	for _, line := range append(lines, fixtures.Line{End: &end}) {
		if err := s.journal.Append(line); err != nil {
			return err
		}
	}
	return s.journal.Close()
}

// Report builds the standard document of a run's folder from its record alone and writes it there. It is the one way
// to a document, at the end of a run and after a kill, so both give the same bytes.
func Report(dir string) (*strata.Document, error) {
	run, err := journal.Read(dir)
	if err != nil {
		return nil, err
	}
	digest, err := journal.SHA256File(filepath.Join(dir, OutputsName))
	if err != nil {
		return nil, err
	}
	doc, err := strata.Build(run, digest)
	if err != nil {
		return nil, fmt.Errorf("build the document of %q: %w", dir, err)
	}
	data, err := doc.Marshal()
	if err != nil {
		return nil, fmt.Errorf("write the document of %q: %w", dir, err)
	}
	if _, err := journal.WriteFile(dir, ResultsName, data); err != nil {
		return nil, err
	}
	return doc, nil
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"plumbline/harness/journal"
	"plumbline/reports/capacity"
	"plumbline/suites/session"
)

type reportCommand struct {
	Dir string `arg:"" type:"existingdir" help:"A run's folder, such as out/latest."`
}

// records are the records that a run's folder can hold, and how each becomes a document; text is its summary.
var records = []struct {
	file, document string
	report         func(dir string) (text string, err error)
}{
	{journal.FileName, session.ResultsName, func(dir string) (string, error) {
		doc, err := session.Report(dir)
		if err != nil {
			return "", err
		}
		return doc.Text(), nil
	}},
	{journal.CapacityFile, session.CapacityName, func(dir string) (string, error) {
		sum, err := session.ReportCapacity(dir)
		if err != nil {
			return "", err
		}
		return capacity.Text(sum), nil
	}},
}

func (c reportCommand) Run(s streams) error {
	found, failed := false, false
	for _, r := range records {
		if _, err := os.Stat(filepath.Join(c.Dir, r.file)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found = true
		text, err := r.report(c.Dir)
		if err != nil {
			return err
		}
		path := filepath.Join(c.Dir, r.document)
		fmt.Fprintf(s.out, "%sresult: %s\n", text, path)
		data, err := readDocument(path)
		if err != nil {
			return fmt.Errorf("read the document: %w", err)
		}
		if faults := faultsOf(data, c.Dir); len(faults) > 0 {
			failed = true
			fmt.Fprintf(s.out, "the record makes a document that is not valid, %d faults\n", len(faults))
			printFaults(s.out, faults)
		}
	}
	switch {
	case !found:
		return fmt.Errorf("report: %q holds no record of a run: expected %s or %s", c.Dir, journal.FileName, journal.CapacityFile)
	case failed:
		return errFailed
	}
	return nil
}

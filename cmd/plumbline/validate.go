package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"plumbline/reports/strata"
)

type validateCommand struct {
	Files []string `arg:"" help:"Result documents. Artifacts that lie beside a document are checked against its hashes."`
}

func (c validateCommand) Run(s streams) error {
	failed := false
	for _, file := range c.Files {
		data, err := readDocument(file)
		if err != nil {
			return fmt.Errorf("read the document: %w", err)
		}
		faults := strata.Validate(data, os.DirFS(filepath.Dir(file)))
		if len(faults) == 0 {
			fmt.Fprintf(s.out, "%s: valid\n", file)
			continue
		}
		failed = true
		fmt.Fprintf(s.out, "%s: not valid, %d faults\n", file, len(faults))
		printFaults(s.out, faults)
	}
	if failed {
		return errFailed
	}
	return nil
}

func printFaults(out io.Writer, faults []strata.Fault) {
	for _, f := range faults {
		fmt.Fprintf(out, "  %s: %s\n", cmp.Or(f.Pointer, "(the whole document)"), f.Message)
	}
}

// readDocument reads a regular file of a size that a document can have. What is no regular file may have no end.
func readDocument(file string) ([]byte, error) {
	info, err := os.Stat(file) // before it is opened: opening a pipe waits for its other end
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q: expected a regular file", file)
	}
	if info.Size() > strata.MaxDocument {
		return nil, fmt.Errorf("%q: expected at most %d bytes, received %d", file, strata.MaxDocument, info.Size())
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, strata.MaxDocument+1)) // it may grow meanwhile
	if err != nil {
		return nil, err
	}
	if len(data) > strata.MaxDocument {
		return nil, fmt.Errorf("%q: expected at most %d bytes, received more", file, strata.MaxDocument)
	}
	return data, nil
}

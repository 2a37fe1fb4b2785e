package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tidwall/gjson"

	"plumbline/reports/capacity"
	"plumbline/reports/strata"
)

type validateCommand struct {
	Files []string `arg:"" help:"Result documents: a standard run's results.json, a capacity run's capacity.json. Artifacts that lie beside a document are checked against its hashes."`
}

func (c validateCommand) Run(s streams) error {
	failed := false
	for _, file := range c.Files {
		data, err := readDocument(file)
		if err != nil {
			return fmt.Errorf("read the document: %w", err)
		}
		faults := faultsOf(data, filepath.Dir(file))
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

// fault is one thing wrong with a document.
type fault struct{ pointer, message string }

// faultsOf validates a document by its own schema: a capacity document says which it is, and anything else is held
// against the standard one.
func faultsOf(data []byte, dir string) []fault {
	var all []fault
	if gjson.ValidBytes(data) && gjson.GetBytes(data, "schema").Exists() {
		for _, f := range capacity.Validate(data) {
			all = append(all, fault{f.Pointer, f.Message})
		}
		return all
	}
	for _, f := range strata.Validate(data, os.DirFS(dir)) {
		all = append(all, fault{f.Pointer, f.Message})
	}
	return all
}

func printFaults(out io.Writer, faults []fault) {
	for _, f := range faults {
		fmt.Fprintf(out, "  %s: %s\n", cmp.Or(f.pointer, "(the whole document)"), f.message)
	}
}

// maxDocument bounds what is read of a document: one of the longest capacity run has some hundred megabytes.
const maxDocument = max(strata.MaxDocument, capacity.MaxDocument)

// readDocument reads a regular file of a size that a document can have. What is no regular file may have no end.
func readDocument(file string) ([]byte, error) {
	info, err := os.Stat(file) // before it is opened: opening a pipe waits for its other end
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q: expected a regular file", file)
	}
	if info.Size() > maxDocument {
		return nil, fmt.Errorf("%q: expected at most %d bytes, received %d", file, maxDocument, info.Size())
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1)) // it may grow meanwhile
	if err != nil {
		return nil, err
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("%q: expected at most %d bytes, received more", file, maxDocument)
	}
	return data, nil
}

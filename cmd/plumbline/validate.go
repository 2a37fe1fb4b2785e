package main

import (
	"cmp"
	"fmt"
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
		data, err := os.ReadFile(file)
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
		for _, f := range faults {
			fmt.Fprintf(s.out, "  %s: %s\n", cmp.Or(f.Pointer, "(the whole document)"), f.Message)
		}
	}
	if failed {
		return errFailed
	}
	return nil
}

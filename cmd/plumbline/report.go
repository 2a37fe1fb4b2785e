package main

import (
	"fmt"
	"os"
	"path/filepath"

	"plumbline/reports/strata"
	"plumbline/suites/session"
)

type reportCommand struct {
	Dir string `arg:"" type:"existingdir" help:"A run's folder, such as out/latest."`
}

func (c reportCommand) Run(s streams) error {
	doc, err := session.Report(c.Dir)
	if err != nil {
		return err
	}
	fmt.Fprint(s.out, doc.Text())
	fmt.Fprintf(s.out, "result: %s\n", filepath.Join(c.Dir, session.ResultsName))
	data, err := doc.Marshal()
	if err != nil {
		return err
	}
	if faults := strata.Validate(data, os.DirFS(c.Dir)); len(faults) > 0 {
		fmt.Fprintf(s.out, "the record makes a document that is not valid, %d faults\n", len(faults))
		printFaults(s.out, faults)
		return errFailed
	}
	return nil
}

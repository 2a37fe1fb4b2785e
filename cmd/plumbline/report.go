package main

import (
	"fmt"
	"path/filepath"

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
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"plumbline/harness/doctor"
	"plumbline/harness/settings"
	"plumbline/reports/strata"
	"plumbline/suites/session"
)

// doctorCommand takes the suite's own flags: all of them, so that a line that passes here is one to run the suite with.
type doctorCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" name:"flag" help:"The flags that the suite gets after its --, and --json, --within. --help lists them."`
}

// diagnosis is what --json prints.
type diagnosis struct {
	Format     string         `json:"format"`
	CanRun     bool           `json:"can_run"`
	Conforming string         `json:"conforming"` // yes, no, perhaps; unknown of an engine that was not asked
	Engine     string         `json:"engine"`
	Version    string         `json:"engine_version"`
	URL        string         `json:"url"`
	Model      string         `json:"model"`
	Checks     []doctor.Check `json:"checks"`
	// Reasons are those for which the result would not conform.
	Reasons []strata.ForeseenReason `json:"reasons"`
	Missing []missingField          `json:"missing"`
}

// missingField is a null of the result, and the flags that fill it.
type missingField struct {
	Field  string   `json:"field"` // a JSON pointer into results.json
	Reason string   `json:"reason"`
	Flags  []string `json:"flags"`
}

const doctorFormat = "plumbline.doctor/1"

func (c doctorCommand) Run(ctx context.Context, s streams) error {
	fs := flag.NewFlagSet("plumbline doctor", flag.ContinueOnError)
	fs.SetOutput(s.out)
	loader := settings.Register(fs)
	asJSON := fs.Bool("json", false, "print one JSON object instead of a table")
	within := fs.Duration("within", doctor.DefaultWithin, "longest time for all checks together; a large model on a slow machine may need more")
	if err := settings.CheckArgs(c.Args, fs); err != nil {
		return err
	}
	if err := fs.Parse(c.Args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return fmt.Errorf("read flags: %w", err)
	}
	if *within <= 0 || *within > time.Hour {
		return fmt.Errorf("read flags: --within: expected more than 0 and at most 1h, received %v", *within)
	}
	base, err := settings.BaseDir()
	if err != nil {
		return err
	}
	chosen, err := loader.Resolve(os.Environ(), base)
	if err != nil {
		return err
	}
	if !slices.Contains(chosen.Protocols, "standard") {
		return fmt.Errorf("examine for protocols %q: expected \"standard\" among them: the doctor knows that plan alone; "+
			"--capacity-dry-run shows a load's", chosen.Protocols)
	}
	found, err := doctor.Examine(ctx, chosen, doctor.Options{Within: *within, RunnerCommit: session.Commit(ctx)})
	if err != nil {
		return err
	}
	d, err := diagnose(found)
	if err != nil {
		return err
	}
	if *asJSON {
		out := json.NewEncoder(s.out)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		err = out.Encode(d)
	} else {
		err = d.show(s.out)
	}
	if err != nil {
		return fmt.Errorf("write the diagnosis: %w", err)
	}
	if !d.CanRun {
		return errFailed
	}
	return nil
}

var flagName = regexp.MustCompile(`--[a-z][a-z0-9-]*[a-z0-9]`)

// diagnose puts the examination beside what the result's own code says of such a run.
func diagnose(found *doctor.Result) (*diagnosis, error) {
	h := &found.Header
	d := &diagnosis{
		Format: doctorFormat, CanRun: found.Runnable(), Conforming: "unknown", Checks: found.Checks,
		Engine: h.Engine.Name, Version: h.Engine.Version, URL: h.Engine.URL, Model: h.Model,
		Reasons: []strata.ForeseenReason{}, Missing: []missingField{},
	}
	if !found.EngineAsked && h.Refusal == "" {
		return d, nil
	}
	foresight, err := strata.Foresee(h, strata.Foretold{
		RequestFails:    strata.Likelihood(found.Outlook.RequestFails),
		UsageUntold:     strata.Likelihood(found.Outlook.UsageUntold),
		ReuseUnchecked:  strata.Likelihood(found.Outlook.ReuseUnchecked),
		LengthUnchecked: strata.Likelihood(found.Outlook.LengthUnchecked),
	})
	if err != nil {
		return nil, err
	}
	d.Reasons = foresight.Reasons
	d.Conforming = "yes"
	for _, r := range d.Reasons {
		if r.Likelihood == strata.Certain {
			d.Conforming = "no"
			break
		}
		d.Conforming = "perhaps"
	}
	if h.Refusal != "" {
		return d, nil // what an engine would have told is no null yet
	}
	for _, m := range foresight.Missing {
		flags := flagName.FindAllString(m.Value, -1)
		if flags == nil {
			flags = []string{}
		}
		d.Missing = append(d.Missing, missingField{m.Key, m.Value, flags})
	}
	return d, nil
}

// show prints a diagnosis for a person.
func (d *diagnosis) show(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range d.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Status, c.ID, wide(c.Answer))
		if c.Mend != "" {
			fmt.Fprintf(w, "\t\t→ %s\n", c.Mend)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case !d.CanRun:
		fmt.Fprintln(out, "\nNo run can be made, or not one whose requests all succeed: see what failed.")
	default:
		fmt.Fprintln(out, "\nA run can be made.")
	}
	switch d.Conforming {
	case "unknown":
		fmt.Fprintln(out, "Whether its result can be conforming is not known: the engine was not asked.")
	case "yes":
		fmt.Fprintln(out, "Its result can be conforming: nothing is seen that speaks against it.")
	case "perhaps":
		fmt.Fprintln(out, "Its result may be conforming; only the run can tell:")
	default:
		fmt.Fprintln(out, "Its result will not be conforming:")
	}
	for _, r := range d.Reasons {
		mark := ""
		if r.Likelihood == strata.Perhaps {
			mark = "perhaps "
		}
		fmt.Fprintf(out, "  %s%s: %s\n", mark, r.Code, r.Sentence)
	}
	if len(d.Missing) > 0 {
		fmt.Fprintln(out, "Null in its result, as far as this can be known beforehand:")
		w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, m := range d.Missing {
			fmt.Fprintf(w, "  %s\t%s\n", strings.TrimPrefix(m.Field, "/"), wide(m.Reason))
		}
		return w.Flush()
	}
	return nil
}

// answerLimit is how much of an answer is shown, in characters.
const answerLimit = 400

// wide is a text on one line without what no terminal should get; tabs would make columns of their own.
func wide(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if r := []rune(s); len(r) > answerLimit {
		return string(r[:answerLimit]) + "…"
	}
	return s
}

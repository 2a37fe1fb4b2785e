package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"plumbline/corpus"
	"plumbline/mockserver"
)

type mockCommand struct {
	Listen        string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to serve (default ${default}); port 0 takes a free one."`
	Pace          string   `default:"fast" help:"How fast: ${paces} (default ${default})."`
	Model         string   `help:"Model id to serve."`
	Slots         int      `default:"4" help:"Requests served at once (default ${default}); others wait."`
	Context       int      `default:"131072" help:"Context size in tokens (default ${default})."`
	CredentialEnv string   `placeholder:"NAME" help:"Environment variable that holds the key to ask for; none asks for no key."`
	Corpus        string   `type:"existingdir" placeholder:"DIR" help:"Corpus pack to answer from; the built-in one by default."`
	Defect        []string `placeholder:"NAME[=SHARE]" help:"Fault to have in a share of the streams such as 5% or 0.05, of all by default; may be given several times. One of ${defects}."`
	Defects       bool     `help:"List the faults with what each one does, and exit."`
}

// stopTimeout bounds the wait for open streams when the mock is told to stop.
const stopTimeout = 5 * time.Second

func (c mockCommand) Run(ctx context.Context, s streams) error {
	if c.Defects {
		return listDefects(s)
	}
	pace, err := mockserver.ParsePace(c.Pace)
	if err != nil {
		return err
	}
	var faults []mockserver.Defect
	for _, text := range c.Defect {
		d, err := mockserver.ParseDefect(text)
		if err != nil {
			return err
		}
		faults = append(faults, d)
	}
	open := corpus.Default
	if c.Corpus != "" {
		open = func() (*corpus.Pack, error) { return corpus.Open(c.Corpus) }
	}
	pack, err := open()
	if err != nil {
		return err
	}
	var key string
	if c.CredentialEnv != "" {
		if key = os.Getenv(c.CredentialEnv); key == "" {
			return fmt.Errorf("read the key: the environment variable %q is empty or not set", c.CredentialEnv)
		}
	}
	server, err := mockserver.Start(ctx, mockserver.Options{
		Listen: c.Listen, Pace: pace, APIKey: key, Model: c.Model, Slots: c.Slots, ContextTokens: c.Context, Pack: pack, Defects: faults,
	})
	if err != nil {
		return err
	}
	for _, d := range faults {
		fmt.Fprintf(s.out, "defect %v: %s\n", d, mockserver.Explain(d.Name))
	}
	fmt.Fprintf(s.out, "mock engine at %s, pace %s; stop it with Ctrl-C\n", server.URL(), c.Pace)
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return server.Close(stop)
}

func listDefects(s streams) error {
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, name := range mockserver.DefectNames() {
		fmt.Fprintf(table, "%s\t%s\n", name, mockserver.Explain(name))
	}
	return table.Flush()
}

func paces() string { return strings.Join(mockserver.PaceForms(), ", ") }

func defects() string { return strings.Join(mockserver.DefectNames(), ", ") }

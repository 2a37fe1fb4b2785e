// Command plumbline is the one command beside the suite: it serves the mock engine, replays what was recorded or
// scripted, rebuilds a run's documents from its record, and validates documents. It holds no logic of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes, the same for every subcommand.
const (
	exitOK      = 0
	exitFailed  = 1 // the thing asked for was judged, and is not right
	exitTrouble = 2 // usage, or something that could not be read or done
)

type command struct {
	Mock     mockCommand     `cmd:"" help:"Serve the offline engine."`
	Health   healthCommand   `cmd:"" help:"Ask a server's /health once, for health checks."`
	Replay   replayCommand   `cmd:"" help:"Serve recorded or scripted responses, byte for byte."`
	Probe    probeCommand    `cmd:"" help:"Send a case to a live engine, or replay its own transcript, and judge the reply."`
	Doctor   doctorCommand   `cmd:"" passthrough:"" help:"Look for all that a run would stumble over, before it."`
	Report   reportCommand   `cmd:"" help:"Rebuild results.json of a run's folder from its record alone."`
	Validate validateCommand `cmd:"" help:"Check result documents: schema and meaning."`
}

// streams are where a subcommand reads and writes.
type streams struct {
	out, err io.Writer
}

// errFailed ends a subcommand that has said what is not right.
var errFailed = errors.New("failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr}))
}

func run(ctx context.Context, args []string, s streams) int {
	var c command
	exited := -1
	parser, err := kong.New(&c, kong.Name("plumbline"),
		kong.Description("Conformance and measurement for servers that speak the OpenAI chat-completions interface. "+
			"The suite itself runs with `go tool ginkgo ./suites`."),
		kong.Vars{"paces": paces(), "defects": defects()}, kong.UsageOnError(), kong.Writers(s.out, s.err), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s),
		kong.Exit(func(code int) { exited = code }))
	if err != nil {
		fmt.Fprintln(s.err, "plumbline:", err)
		return exitTrouble
	}
	k, err := parser.Parse(args)
	switch {
	case exited == 0: // help was asked for, and given
		return exitOK
	case err != nil:
		fmt.Fprintln(s.err, "plumbline:", err)
		return exitTrouble
	}
	switch err := k.Run(); {
	case errors.Is(err, errFailed):
		return exitFailed
	case err != nil:
		fmt.Fprintln(s.err, "plumbline:", err)
		return exitTrouble
	}
	return exitOK
}

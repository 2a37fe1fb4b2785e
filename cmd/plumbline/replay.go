package main

import (
	"context"
	"fmt"

	"plumbline/fixtures"
	"plumbline/mockserver"
)

type replayCommand struct {
	Files  []string `arg:"" help:"Cases, recorded exchanges, or a run's outputs.jsonl."`
	Listen string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to serve (default ${default}); port 0 takes a free one."`
	Speed  *float64 `xor:"pace" placeholder:"FACTOR" help:"How fast: 1 is the files' own time, 2 twice as fast (default 1)."`
	AtOnce bool     `xor:"pace" help:"Wait for nothing."`
}

func (c replayCommand) Run(ctx context.Context, s streams) error {
	opts := mockserver.ReplayOptions{Listen: c.Listen, Speed: 1}
	if c.Speed != nil {
		opts.Speed = *c.Speed
	}
	pace := fmt.Sprintf("at %g times the recorded pace", opts.Speed)
	if c.AtOnce || opts.Speed == 0 {
		opts.Speed, pace = 0, "at once"
	}
	for _, file := range c.Files {
		replays, err := fixtures.ReadReplays(file)
		if err != nil {
			return err
		}
		opts.Replays = append(opts.Replays, replays...)
	}
	server, err := mockserver.StartReplay(ctx, opts)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "replaying %d responses at %s, %s; the header %s names one; stop it with Ctrl-C\n",
		len(opts.Replays), server.URL(), pace, mockserver.CaseHeader)
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return server.Close(stop)
}

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

type healthCommand struct {
	URL    string        `arg:"" name:"url" default:"http://127.0.0.1:8080" help:"Base address of the server (default ${default})."`
	Within time.Duration `default:"2s" help:"Longest wait for its answer (default ${default})."`
}

// Run asks GET /health once, as the health check of an image without a shell.
func (c healthCommand) Run(ctx context.Context, s streams) error {
	base, err := url.Parse(c.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil {
		return fmt.Errorf("ask for health: expected an address such as http://127.0.0.1:8080, received another")
	}
	ctx, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(c.URL, "/")+"/health", nil)
	if err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	// Its own transport: a proxy of the environment is no way to the same container.
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		fmt.Fprintln(s.out, "not healthy: no answer to GET /health")
		return errFailed
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)) // what it says counts for nothing, its status does
	if response.StatusCode != http.StatusOK {
		fmt.Fprintf(s.out, "not healthy: GET /health answers status %d\n", response.StatusCode)
		return errFailed
	}
	fmt.Fprintln(s.out, "healthy")
	return nil
}

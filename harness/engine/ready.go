package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const chatPath = "/v1/chat/completions"

// step is one thing that an engine must do before it counts as ready.
type step struct {
	what string // as in "waited for …"
	ask  func(ctx context.Context, c *caller) error
}

// readiness are the steps in their order: each must succeed once.
type readiness struct {
	steps   []step
	timeout time.Duration
	poll    time.Duration
}

// readyPoll is the pause between two questions to a starting engine: short against the seconds that the fastest takes to
// load a model.
const readyPoll = 200 * time.Millisecond

// whenServing: the health path answers 200, and a token comes. An open port, or a health path that answers before the model is
// loaded, says too little.
func whenServing(path, model string, timeout time.Duration) readiness {
	return readiness{timeout: timeout, poll: readyPoll, steps: []step{
		{"GET " + path + " to answer 200", func(ctx context.Context, c *caller) error {
			a, err := c.get(ctx, path)
			if err != nil {
				return c.transportError(ctx, err)
			}
			if a.status != http.StatusOK {
				return fmt.Errorf("it answers status %d%s", a.status, c.message(a))
			}
			return nil
		}},
		{"POST " + chatPath + " to give one token", func(ctx context.Context, c *caller) error { return c.oneToken(ctx, model) }},
	}}
}

// oneToken asks for a completion of one token, of the named model or the first that is listed.
func (c *caller) oneToken(ctx context.Context, model string) error {
	list, err := c.models(ctx)
	if err != nil {
		return err
	}
	if model == "" {
		if model = list.json.Get("data.0.id").String(); model == "" {
			return errors.New("it lists no model")
		}
	}
	a, err := c.post(ctx, chatPath, map[string]any{
		"model": model, "messages": []map[string]string{{"role": "user", "content": "Hi"}}, "max_tokens": 1, "stream": false,
	})
	if err != nil {
		return c.transportError(ctx, err)
	}
	if a.status != http.StatusOK {
		return fmt.Errorf("it answers status %d%s", a.status, c.message(a))
	}
	if !a.json.Get("choices.0").Exists() {
		return errors.New("it answers 200 without a choice")
	}
	return nil
}

// withoutAdvice is what was wrong, without what would be right for a server that is there already.
func withoutAdvice(err error) string {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err.Error()
	}
	if i := strings.LastIndex(e.Text, ": "); i > 0 {
		return e.Text[:i]
	}
	return e.Text
}

// errEnded says that the engine ended while it was waited for.
var errEnded = errors.New("the engine ended")

// wait asks until every step has succeeded, the time is over, ctx ends, the engine refuses the key, or it ended. waited is
// the step at which it stood.
func (r readiness) wait(ctx context.Context, c *caller, ended <-chan struct{}) (waited string, err error) {
	deadline := time.Now().Add(r.timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	long := *c
	for _, s := range r.steps {
		for {
			long.opts.Endpoint = max(time.Until(deadline), time.Millisecond) // a first token may take as long as the start
			last := s.ask(ctx, &long)
			if last == nil {
				break
			}
			if e, ok := errors.AsType[*Error](last); ok && e.Problem == KeyRefused {
				return s.what, last
			}
			select {
			case <-ended:
				return s.what, errEnded
			default:
			}
			select {
			case <-ended:
				return s.what, errEnded
			case <-ctx.Done():
				if time.Now().Before(deadline) {
					return s.what, context.Cause(ctx)
				}
				return s.what, fmt.Errorf("it was not ready within %v (the last time: %s)", r.timeout, withoutAdvice(last))
			case <-time.After(r.poll):
			}
		}
	}
	return "", nil
}

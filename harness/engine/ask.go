package engine

import (
	"context"
	"net/http"
	"sync"
	"time"

	"plumbline/fixtures"
)

// Ask asks a server what it is. Only GET /v1/models must answer; every other endpoint adds facts where it exists. A
// server that answers 503 is loading and is asked again, for as long as opts.Ready; anything else that is wrong fails
// at once. The error is an *Error; the facts then hold the URL alone.
func Ask(ctx context.Context, base string, header http.Header, opts Options) (fixtures.EngineFacts, error) {
	c := newCaller(base, header, opts)
	models, err := c.whenReady(ctx)
	if err != nil {
		return fixtures.EngineFacts{URL: c.base}, err
	}
	t := newTelling(c.base)
	c.consult(ctx, t, models, endpoints)
	t.facts.CanTokenize = c.canTokenize(ctx)
	if t.facts.CanTokenize {
		t.facts.Sources["can_tokenize"] = "POST " + tokenizePath
	}
	return c.clean(t.finish()), nil
}

// After asks again what may have changed during a run: the models served and the engine's own count of requests.
func After(ctx context.Context, base string, header http.Header, opts Options) (fixtures.After, error) {
	c := newCaller(base, header, opts)
	models, err := c.models(ctx)
	if err != nil {
		return fixtures.After{}, err
	}
	t := newTelling(c.base)
	c.consult(ctx, t, models, endpoints)
	facts := c.clean(t.finish())
	return fixtures.After{ServedModels: facts.ServedModels, RequestsServed: facts.RequestsServed}, nil
}

// whenReady is the list of models once the server has one to give.
func (c *caller) whenReady(ctx context.Context) (answer, error) {
	deadline := time.Now().Add(c.opts.Ready)
	for {
		a, err := c.models(ctx)
		e, _ := err.(*Error)
		if e == nil {
			return a, nil
		}
		if e.Problem != NotReady || !time.Now().Before(deadline) {
			return a, e
		}
		select {
		case <-ctx.Done():
			return a, c.transportError(ctx, ctx.Err())
		case <-time.After(c.opts.Poll):
		}
	}
}

func (c *caller) models(ctx context.Context) (answer, error) {
	a, err := c.get(ctx, modelsPath)
	if err != nil {
		return a, c.transportError(ctx, err)
	}
	if a.status != http.StatusOK || !a.json.Get("data").IsArray() {
		return a, c.statusError(a)
	}
	return a, nil
}

// consult asks all endpoints at once, so that a server that hangs on unknown paths costs one time-out, and then reads
// the answers in the table's order, which is the order of trust.
func (c *caller) consult(ctx context.Context, t *telling, models answer, table []endpoint) {
	answers := make([]answer, len(table))
	var wg sync.WaitGroup
	for i, e := range table {
		if e.path == modelsPath {
			answers[i] = models
			continue
		}
		wg.Go(func() {
			if a, err := c.get(ctx, e.path); err == nil {
				answers[i] = a
			}
		})
	}
	wg.Wait()
	for i, e := range table {
		if answers[i].status == http.StatusOK {
			t.at = "GET " + e.path
			e.tell(t, answers[i])
		}
	}
}

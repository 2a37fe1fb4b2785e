package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"plumbline/fixtures"
	"plumbline/harness/client"
	"plumbline/harness/judge"
	"plumbline/harness/plan"
	"plumbline/harness/transcript"
	"plumbline/mockserver"
)

type probeCommand struct {
	Files         []string `arg:"" help:"Cases, one a file."`
	URL           string   `name:"url" placeholder:"URL" help:"Live engine to ask; without it each case's own transcript is replayed over a socket."`
	JSON          bool     `name:"json" help:"Print one JSON object a case, on one line."`
	CredentialEnv string   `placeholder:"NAME" help:"Environment variable that holds the live engine's key."`
	Model         string   `help:"Model to name in the requests; by default the first that a live engine lists."`
}

// replayedAtOnce is how many cases are replayed at a time: few, so that they do not disturb each other's times. A live
// engine gets them one after the other.
const replayedAtOnce = 4

// replayTries is how often a script with times is replayed before a verdict that is not the expected one stands: a busy
// machine may have held a replay up. A wrong verdict stays wrong however often it is asked for.
const replayTries = 5

// replayTimeouts hold where a case names none of its own: a script is over long before.
var replayTimeouts = client.Timeouts{Connect: 10 * time.Second, FirstByte: 30 * time.Second, FirstToken: 30 * time.Second,
	Idle: 30 * time.Second, Total: 2 * time.Minute}

// liveTimeouts hold for a live engine: a large model on a small machine may be silent for minutes before a token.
var liveTimeouts = client.Timeouts{Connect: 10 * time.Second, FirstByte: 10 * time.Minute, FirstToken: 10 * time.Minute,
	Idle: 6 * time.Minute, Total: 30 * time.Minute}

func (c probeCommand) Run(ctx context.Context, s streams) error {
	var key string
	if c.CredentialEnv != "" {
		if key = os.Getenv(c.CredentialEnv); key == "" {
			return fmt.Errorf("read the key: the environment variable %q is empty or not set", c.CredentialEnv)
		}
	}
	if c.URL != "" {
		checked, err := client.New(client.Options{BaseURL: c.URL})
		if err != nil {
			return err
		}
		checked.Close()
	}
	cases := make([]*fixtures.Case, len(c.Files))
	for i, file := range c.Files {
		var err error
		if cases[i], err = fixtures.ReadCaseFile(file); err != nil {
			return err
		}
	}
	atOnce := replayedAtOnce
	if c.URL != "" {
		atOnce = 1
	}
	probes := make([]*probe, len(cases))
	done := make([]chan struct{}, len(cases))
	slots := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	defer running.Wait()
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	firstListed := sync.OnceValue(func() string { return firstModel(ctx, c.URL, key) })
	for i, one := range cases {
		done[i] = make(chan struct{})
		probes[i] = &probe{c: one, url: c.URL, key: key, model: c.Model}
		if c.URL != "" && c.Model == "" && !listsModels(one) {
			probes[i].listed = firstListed
		}
	}
	running.Go(func() {
		for i, p := range probes {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots; close(done[i]) }()
				p.run(ctx)
			})
		}
	})
	if c.URL == "" {
		running.Wait() // judging is work, and would delay what is still being replayed
	}
	failed := false
	for i, p := range probes {
		<-done[i]
		if p.err != nil {
			return fmt.Errorf("probe %q: %w", p.c.ID, p.err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("probe %q: %w", p.c.ID, ctx.Err())
		}
		differences := p.judge()
		for n := 1; n < replayTries && len(differences) > 0 && c.URL == "" && p.c.Expect != nil && !p.c.Raw.Untimed && ctx.Err() == nil; n++ {
			fmt.Fprintf(s.err, "probe %s: replayed again, as the machine may have been busy: %s\n", p.c.ID, differences[0])
			if p.run(ctx); p.err != nil {
				return fmt.Errorf("probe %q: %w", p.c.ID, p.err)
			}
			differences = p.judge()
		}
		failed = failed || len(differences) > 0
		if !c.JSON {
			p.show(s.out, differences)
			continue
		}
		line, err := json.Marshal(p.judgement)
		if err != nil {
			return fmt.Errorf("write the judgement of %q: %w", p.c.ID, err)
		}
		fmt.Fprintf(s.out, "%s\n", line)
		for _, d := range differences {
			fmt.Fprintf(s.err, "%s: %s\n", p.c.ID, d)
		}
	}
	if failed {
		return errFailed
	}
	return nil
}

// probe is one case on its way.
type probe struct {
	c               *fixtures.Case
	url, key, model string // url is "" for a replay
	// listed, when set, gives the model to name.
	listed func() string

	subject   *fixtures.Case // what the exchanges are judged as
	exchanges []*fixtures.Exchange
	judgement judge.Judgement
	err       error
}

func (p *probe) run(ctx context.Context) {
	if p.listed != nil {
		p.model = p.listed()
	}
	calls, err := plan.Case(p.c, p.model)
	if err != nil {
		p.err = err
		return
	}
	url := p.url
	p.subject = judge.Live(p.c)
	if url == "" {
		replayer, err := mockserver.StartReplay(ctx, mockserver.ReplayOptions{Listen: "127.0.0.1:0", Replays: p.c.Replays(), Speed: 1})
		if err != nil {
			p.err = err
			return
		}
		defer func() {
			over, cancel := context.WithCancel(ctx)
			cancel() // every answer has been read: nothing is waited for
			_ = replayer.Close(over)
		}()
		url, p.subject = replayer.URL(), p.c
	}
	p.exchanges, p.err = p.send(ctx, url, calls)
}

// send sends the calls at their times. To a live engine a call that is meant to come later waits for those before it as
// well: how long they take is not the script's to say.
func (p *probe) send(ctx context.Context, url string, calls []plan.CaseCall) ([]*fixtures.Exchange, error) {
	limits := deadlines(p.c.Client, p.url == "")
	begin := time.Now()
	sender, err := client.New(client.Options{BaseURL: url, Header: bearer(p.key), Timeouts: limits, Epoch: begin})
	if err != nil {
		return nil, err
	}
	defer sender.Close()
	exchanges := make([]*fixtures.Exchange, len(calls))
	var under sync.WaitGroup
	last := time.Duration(0)
	for i, call := range calls {
		if p.url != "" && call.Start > last {
			under.Wait()
		}
		last = call.Start
		wait := time.NewTimer(time.Until(begin.Add(call.Start)))
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
		id := p.c.ID
		if call.Name != "" {
			id += "/" + call.Name
		}
		own := http.Header{}
		if call.Key != nil {
			own = bearer(*call.Key)
		}
		// A replayer that holds many cases knows by it which one is meant; no engine minds it.
		own.Set(mockserver.CaseHeader, id)
		under.Go(func() {
			exchanges[i] = sender.Do(ctx, client.Call{ID: id, Method: call.Method, Path: call.Path, Header: own, Body: call.Body,
				Watcher: watch{transcript.NewWatcher()}})
		})
	}
	under.Wait()
	return exchanges, nil
}

// watch tells the client what the watcher of the transcript sees.
type watch struct{ *transcript.Watcher }

func (w watch) Piece(at time.Duration, b []byte) client.Signal {
	return client.Signal(w.Watcher.Piece(at, b))
}

// deadlines are the case's, and the usual ones where it names none. The deadlines of a case are made for its script,
// so that a live engine is given the usual ones.
func deadlines(c *fixtures.CaseClient, replayed bool) client.Timeouts {
	if !replayed {
		return liveTimeouts
	}
	limits := replayTimeouts
	if c == nil {
		return limits
	}
	for _, l := range []struct {
		ms   float64
		into *time.Duration
	}{{c.FirstByteMS, &limits.FirstByte}, {c.FirstTokenMS, &limits.FirstToken}, {c.IdleMS, &limits.Idle}, {c.TotalMS, &limits.Total}} {
		if l.ms > 0 {
			*l.into = fixtures.Milliseconds(l.ms)
		}
	}
	return limits
}

// judge judges the exchanges and returns the differences.
func (p *probe) judge() []string {
	p.judgement = judge.Verdict(p.subject, p.exchanges)
	return p.differences()
}

// differences are those to the verdict that the case states; a live engine, and a case that states none, must pass.
func (p *probe) differences() []string {
	if p.url == "" && p.c.Expect != nil {
		return p.judgement.Against(p.c.Expect)
	}
	if o := p.judgement.Outcome; o != judge.Pass && o != judge.PassWithFinding {
		return []string{fmt.Sprintf("outcome is %s, expected %s or %s", o, judge.Pass, judge.PassWithFinding)}
	}
	return nil
}

func bearer(key string) http.Header {
	h := http.Header{}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}

const modelsPath = "/v1/models"

// listsModels reports whether a case asks for the model list itself: then nothing else must ask for it.
func listsModels(c *fixtures.Case) bool {
	return c.Request.Endpoint == modelsPath ||
		slices.ContainsFunc(c.Exchanges, func(x fixtures.CaseExchange) bool { return x.Request.Endpoint == modelsPath })
}

// listTimeout bounds the wait for the model list.
const listTimeout = 10 * time.Second

// firstModel is the first model that an engine lists, "" when it lists none.
func firstModel(ctx context.Context, url, key string) string {
	sender, err := client.New(client.Options{BaseURL: url, Header: bearer(key), Timeouts: client.Timeouts{Connect: listTimeout, Total: listTimeout}})
	if err != nil {
		return ""
	}
	defer sender.Close()
	for _, id := range transcript.Read(sender.Do(ctx, client.Call{ID: "models", Method: "GET", Path: modelsPath})).ModelIDs {
		return id
	}
	return ""
}

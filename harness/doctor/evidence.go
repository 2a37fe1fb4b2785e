package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/fixtures/engines"
	"plumbline/harness/engine"
	"plumbline/harness/facts"
	"plumbline/harness/plan"
	"plumbline/harness/settings"
)

// evidence is all that was seen. The checks read it and see nothing else.
type evidence struct {
	settings *settings.Settings
	opts     Options
	pack     *corpus.Pack
	profile  *corpus.Profile
	header   fixtures.Header

	requests []plan.Request

	form       engines.Form // of an engine that is started for the run; "" for any other
	program    string       // what its process form starts, found on this machine
	programErr error
	asked      bool
	keyErr     error // the key could not be read where the settings say it is
	startErr   error // the mock could not be started
	engineErr  *engine.Error
	modelErr   *engine.Error
	probe      probe
	countErr   error

	machineKnown bool // the facts of this machine came in time
	place        place
	placeKnown   bool
	docker       docker
}

func newEvidence(s *settings.Settings, opts Options) (*evidence, error) {
	e := &evidence{settings: s, opts: opts}
	var err error
	if e.pack, err = openPack(s.Corpus); err != nil {
		return nil, err
	}
	if e.profile, err = corpus.LoadProfile(s.Profile); err != nil {
		return nil, err
	}
	e.header = fixtures.Header{
		Format: fixtures.RunFormat, RunnerCommit: opts.RunnerCommit,
		Protocol: fixtures.Protocol{ID: e.pack.ID, Profile: e.profile.Name, CorpusSHA256: e.pack.ManifestSHA256, BuiltIn: e.pack.BuiltIn},
		Profile:  fixtures.Profile{Sampling: e.profile.Sampling, ChatTemplateKwargs: e.profile.ChatTemplateKwargs},
		Engine:   fixtures.EngineFacts{Kind: engine.Kind(s), URL: s.URL},
		Declared: s.Declared(), ConcurrencyStage: s.ConcurrencyStage, ClockResolution: facts.ClockResolution(),
	}
	if !e.profile.BuiltIn {
		e.header.Profile.Overridden = []string{"profile"}
	}
	if n := s.ServerCapacity; n > 0 {
		e.header.ServerCapacity = &n
	}
	return e, e.planRequests(s.Model)
}

func (e *evidence) planRequests(model string) error {
	requests, err := plan.Standard(e.pack, plan.Asker{Profile: e.profile, Model: model})
	if err != nil {
		return err
	}
	e.requests, e.header.Plan = requests, nil
	for _, r := range requests {
		e.header.Plan = append(e.header.Plan, r.Planned)
	}
	return nil
}

// gather looks at engine, machine and place at the same time. What does not come before ctx ends is left out: a drive
// that hangs holds a goroutine of ours, and nothing more.
func (e *evidence) gather(ctx context.Context) {
	var looking sync.WaitGroup
	looking.Go(func() { e.place, e.placeKnown = inTime(ctx, func() place { return lookAtPlace(e.settings) }) })
	looking.Go(func() { e.docker, _ = inTime(ctx, func() docker { return askDocker(ctx, e.wantedImage()) }) })
	if name, form, started := e.settings.Started(); started {
		e.form = form
		var recipe *engines.Recipe
		recipe, e.programErr = engines.Load(name)
		if e.programErr == nil && form == engines.FormProcess {
			e.program, e.programErr = findProgram(e.settings, recipe)
		}
	} else {
		e.askEngine(ctx)
	}
	var host fixtures.HostFacts
	host, e.machineKnown = inTime(ctx, func() fixtures.HostFacts { return e.lookAtMachine(ctx) })
	e.header.Host = host
	looking.Wait()
}

// inTime is what look finds, unless ctx ends before it does.
func inTime[T any](ctx context.Context, look func() T) (found T, ok bool) {
	done := make(chan T, 1)
	go func() { done <- look() }()
	select {
	case found = <-done:
		return found, true
	case <-ctx.Done():
		return found, false
	}
}

func (e *evidence) lookAtMachine(ctx context.Context) fixtures.HostFacts {
	cache, err := facts.DigestCachePath()
	if err != nil {
		cache = "" // a user without a home has no cache
	}
	return facts.Host(ctx, facts.Options{
		EngineURL: e.header.Engine.URL, ModelFiles: e.settings.ModelFile, ModelPath: e.header.Engine.ModelPath,
		SkipModelHash: e.settings.SkipModelHash, DigestCache: cache, Glance: true,
	})
}

// The shares of the whole time: a connection and an endpoint get a fifth each, so that a server that lets every question
// hang still leaves time to say so. A server that is loading is not waited for.
const (
	endpointShare = 5
	loadingWait   = 500 * time.Millisecond
)

// askEngine asks a live server or a mock of ours, in the order in which a run would.
func (e *evidence) askEngine(ctx context.Context) {
	key, err := e.settings.Credential()
	if err != nil {
		e.keyErr, e.header.Refusal = err, err.Error()
		return
	}
	auth := engine.Authorize(key)
	e.header.APIKeySent = !key.Empty()
	had, err := engine.Start(ctx, e.settings, engine.Run{Pack: e.pack})
	if err != nil {
		e.startErr, e.header.Refusal = err, err.Error()
		return
	}
	defer func() {
		over, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel() // every answer has been read: nothing is waited for
		_, _ = had.Stop(over)
	}()
	e.asked = true
	options := engine.OptionsFor(e.settings)
	share := e.opts.Within / endpointShare
	options.Connect, options.Endpoint, options.Ready, options.Poll = min(share, e.settings.TimeoutConnect), share, loadingWait, loadingWait/2
	described, err := engine.Describe(ctx, had, auth, options)
	e.header.Engine = described
	if e.refused(err, &e.engineErr) {
		return
	}
	if e.header.ServerCapacity == nil {
		e.header.ServerCapacity = described.Capacity
	}
	e.header.Model, err = engine.ResolveModel(described, e.settings.Model)
	if e.refused(err, &e.modelErr) {
		return
	}
	if err := e.planRequests(e.header.Model); err != nil {
		e.probe.err = err
		return
	}
	e.probe = e.sendProbe(ctx, had.URL(), auth)
	e.count(ctx, had.URL(), auth, options)
}

// refused notes why no request can be sent.
func (e *evidence) refused(err error, at **engine.Error) bool {
	if err == nil {
		return false
	}
	e.header.Refusal = err.Error()
	if !errors.As(err, at) {
		*at = &engine.Error{Problem: engine.NotOurs, URL: e.header.Engine.URL, Text: err.Error(), Err: err}
	}
	return true
}

// count lets the engine count the prompts with its own tokenizer, where it offers one and there is time.
func (e *evidence) count(ctx context.Context, url string, auth http.Header, options engine.Options) {
	if !e.header.Engine.CanTokenize {
		return
	}
	texts := make([]string, len(e.requests))
	for i, r := range e.requests {
		texts[i] = r.Text
	}
	counts, err := engine.CountTokens(ctx, url, auth, texts, options)
	if err != nil {
		e.countErr = err
		if ctx.Err() != nil {
			e.countErr = fmt.Errorf("there was no time left to count every prompt")
		} else {
			e.header.Engine.CanTokenize = false // as a run takes it
		}
		return
	}
	for i := range counts {
		e.header.Plan[i].EngineContentTokens = &counts[i]
	}
}

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/client"
	"plumbline/harness/engine"
	"plumbline/harness/journal"
	"plumbline/harness/load"
	"plumbline/harness/plan"
	"plumbline/harness/transcript"
	"plumbline/reports/capacity"
)

// CapacityName is the capacity protocol's document in a run's folder.
const CapacityName = "capacity.json"

// abortAfter is how many requests must have finished before a stage may be stopped for its error rate: fewer say little
// of a rate.
const abortAfter = 20

// loadRun is the capacity part of a run.
type loadRun struct {
	s      *Session
	header fixtures.Header
	plan   *plan.Load
	client *client.Client

	record, outputs *journal.Journal
	saved           savedFailures
}

// Load runs the capacity protocol's stages and returns what the document says of them so far. An error is ours, or says
// why nothing could be sent; what the server did wrong is in the summary.
func (s *Session) Load(ctx context.Context) (*capacity.Summary, error) {
	if s.journal != nil { // the standard document counts the requests that were served until now
		if told, err := engine.After(ctx, s.engine.URL(), s.auth, engine.OptionsFor(s.settings)); err == nil {
			s.after = &told
		}
		if err := s.gauge.turn(ctx, ""); err != nil {
			return nil, err
		}
	}
	l := &loadRun{s: s, header: s.header}
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	s.load = l
	cards := gauge{s: s, record: l.record}
	for _, stage := range l.plan.Stages() {
		if err := cards.turn(ctx, stage.Name); err != nil {
			return nil, err
		}
		if err := l.run(ctx, stage); err != nil {
			return nil, err
		}
		if ctx.Err() != nil || s.engine.Died() != nil {
			break
		}
	}
	if err := cards.turn(context.WithoutCancel(ctx), ""); err != nil {
		return nil, err
	}
	return writeCapacity(s.dir, false)
}

// Calibrated says whether prompts were sized by what the server counts, not by an assumption.
func (s *Session) Calibrated() bool {
	return s.load != nil && s.load.header.Capacity.Calibration.Source != plan.Assumed.Source
}

// PlannedTokens is the mean planned size of the closed loop's prompts; 0 when there was none.
func (s *Session) PlannedTokens() float64 {
	if s.load == nil {
		return 0
	}
	sum, sizes := 0, s.load.plan.Sizes(fixtures.StageClosed)
	for _, size := range sizes {
		sum += size
	}
	return float64(sum) / float64(len(sizes))
}

// LoadFailures are the first requests of the load that failed in a class, in words, and the commands that replay and judge
// them again without the engine.
func (s *Session) LoadFailures(class string) (examples, commands []string) {
	if s.load == nil {
		return nil, nil
	}
	return s.load.saved.evidence(class)
}

// askedOfLoad is what the settings ask of this server, seen to be possible.
func (s *Session) askedOfLoad() (fixtures.CapacityRun, error) {
	run := s.settings.CapacityRun()
	if run.MaxModelLen == 0 {
		if s.header.Engine.ContextTokens == nil {
			return run, errors.New("plan the load: the server does not tell its context window: give it with --capacity-max-model-len")
		}
		run.MaxModelLen, run.MaxModelLenSource = *s.header.Engine.ContextTokens, "engine"
	}
	run.Calibration = plan.Assumed
	pack, err := corpus.Default()
	if err != nil {
		return run, err
	}
	_, err = plan.Capacity(run, s.header.Model, pack)
	return run, err
}

func (l *loadRun) prepare(ctx context.Context) error {
	s, run := l.s, l.s.asked
	timeouts := s.timeouts()
	timeouts.Total = run.Timeout
	for _, inner := range []*time.Duration{&timeouts.FirstByte, &timeouts.FirstToken, &timeouts.Idle, &timeouts.Connect} {
		*inner = min(*inner, run.Timeout)
	}
	var err error
	if l.client, err = s.newClient(timeouts); err != nil {
		return err
	}
	pack, err := corpus.Default()
	if err != nil {
		return err
	}
	l.header.Plan = nil
	l.header.Capacity = &run
	if l.plan, err = plan.Capacity(run, s.header.Model, pack); err != nil {
		return err
	}
	if s.settings.Capacity.Calibrate {
		if run.Calibration, err = l.calibrate(ctx); err != nil {
			return err
		}
		if l.plan, err = plan.Capacity(run, s.header.Model, pack); err != nil {
			return err
		}
	}
	if l.outputs, err = journal.Create(s.dir, journal.CapacityOutputs, &l.header); err != nil {
		return err
	}
	l.record, err = journal.Create(s.dir, journal.CapacityFile, &l.header)
	return err
}

// calibrate learns from two small requests how many characters make a token. Usage counts the template too, which an
// engine's tokenizer endpoint would not; that is asked where replies bring no usage.
func (l *loadRun) calibrate(ctx context.Context) (fixtures.Calibration, error) {
	var points []plan.CalibrationPoint
	texts := l.plan.CalibrationTexts()
	for i, body := range l.plan.CalibrationBodies() {
		x := l.client.Do(ctx, client.Call{ID: fmt.Sprintf("capacity-calibration-%d", i+1), Method: "POST", Path: plan.ChatPath,
			Body: body, Watcher: watch{transcript.NewWatcher()}})
		t := transcript.Read(x)
		if t.Usage == nil || t.Usage.PromptTokens == nil {
			return l.count(ctx, texts)
		}
		points = append(points, plan.CalibrationPoint{Chars: len(texts[i]), Tokens: int(*t.Usage.PromptTokens)})
	}
	c, err := plan.Calibrate(points)
	if err != nil {
		return plan.Assumed, nil // counts that no text can have: the sizes are then as exact as an assumption is
	}
	c.Source = "usage"
	return c, nil
}

// count asks the engine's tokenizer; without one a token's length is assumed.
func (l *loadRun) count(ctx context.Context, texts []string) (fixtures.Calibration, error) {
	s := l.s
	if !s.header.Engine.CanTokenize {
		return plan.Assumed, nil
	}
	counts, err := engine.CountTokens(ctx, s.engine.URL(), s.auth, texts, engine.OptionsFor(s.settings))
	if err != nil {
		return plan.Assumed, nil
	}
	points := make([]plan.CalibrationPoint, len(texts))
	for i, text := range texts {
		points[i] = plan.CalibrationPoint{Chars: len(text), Tokens: counts[i]}
	}
	c, err := plan.Calibrate(points)
	if err != nil {
		return plan.Assumed, nil
	}
	c.Source = "tokenizer"
	return c, nil
}

// run sends one stage and keeps what came of it.
func (l *loadRun) run(ctx context.Context, stage plan.LoadStage) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	line := l.s.lifeline(ctx, cancel)
	live := &load.Live{}
	judged := l.judging(stage.Name, live, cancel)
	bodies := newBodies(stage.Requests, func(i int) []byte { return l.plan.Body(stage.Name, i) })
	defer bodies.stop()
	shown := l.s.progress.watchLoad(stage, live)

	send := func(ctx context.Context, i int, due time.Time) load.Outcome {
		r := l.plan.Request(stage.Name, i)
		if stage.Schedule != nil {
			at := due.Sub(l.s.started)
			r.Scheduled = &at
		}
		x := l.client.Do(ctx, client.Call{ID: r.ID(), Method: "POST", Path: plan.ChatPath, Body: bodies.take(i),
			Watcher: watch{transcript.NewWatcher()}})
		line.broke(x)
		judged.put(r, x) // last: what panics before it is a request without a row, which then gets one
		return outcome(l.s.started, x)
	}
	asked := load.Plan{AbortErrorRate: abortRate(l.header.Capacity.AbortErrorRate), AbortAfter: abortAfter, Live: live}
	if stage.Schedule != nil {
		asked.Schedule, asked.MaxInFlight = stage.Schedule, maxInFlight
	} else {
		asked.Workers, asked.Requests, asked.Apart = stage.Concurrency, stage.Requests, apart(l.header.Capacity)
	}
	result, err := load.Run(ctx, asked, send)
	returned := time.Now()
	judged.faulted(result.Faults)
	kept := judged.finish()
	shown()
	if err = errors.Join(err, kept); err != nil {
		return err
	}
	at := fixtures.Stage{
		Name: stage.Name, Arrival: stage.Arrival, Concurrency: stage.Concurrency, Rate: stage.Rate, Requests: stage.Requests,
		Sent: result.Sent, StartedAt: result.StartedAt.Round(0).UTC(), Wall: result.Wall.Seconds(), Stopped: result.Stopped,
		Client: &result.Client,
	}
	// By the host's clock: the document tells how far it moved beside the monotonic one.
	at.FinishedAt = returned.Round(0).Add(result.Wall - returned.Sub(result.StartedAt)).UTC()
	at.SinceStart = result.StartedAt.Sub(l.s.started)
	return errors.Join(l.outputs.Sync(), l.record.Append(fixtures.Line{Stage: &at}))
}

// abortRate is the rate as a load knows it: a share that no load can pass stops none.
func abortRate(share float64) float64 {
	if share >= 1 {
		return 0
	}
	return share
}

// apart is the time between the first requests of two clients of a closed loop. Clients do not come at one moment, but a
// burst does.
func apart(c *fixtures.CapacityRun) time.Duration {
	if c.Burst > 0 {
		return 0
	}
	return time.Millisecond
}

// maxInFlight bounds the requests of an open loop that are under way at once: the most that a run may have anywhere.
const maxInFlight = 4096

// outcome is what the load's own check needs of an exchange.
func outcome(epoch time.Time, x *fixtures.Exchange) load.Outcome {
	o := load.Outcome{Ended: epoch.Add(x.SinceStart + x.End.At)}
	if x.Connection != nil {
		o.Dispatched, o.Waited = epoch.Add(x.SinceStart), x.Connection.Wait
	}
	return o
}

// end writes the records' last lines.
func (l *loadRun) end(after *fixtures.After, end fixtures.RunEnd) error {
	var errs []error
	if after != nil {
		errs = append(errs, l.record.Append(fixtures.Line{After: after}))
	}
	for _, j := range []*journal.Journal{l.outputs, l.record} {
		errs = append(errs, j.Append(fixtures.Line{End: &end}), j.Close())
	}
	l.client.Close()
	return errors.Join(errs...)
}

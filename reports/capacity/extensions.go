package capacity

import (
	"fmt"
	"math"
	"slices"

	"plumbline/fixtures"
)

// The key of what this program adds to the format, and the version of its shape.
const (
	extensionKey    = "plumbline"
	ExtensionFormat = "plumbline.capacity/1"
)

// put writes a value that may be missing. A null has its reason beside it.
func put[T any](o object, name string, v *T, reason string) {
	if v != nil {
		o[name] = *v
		return
	}
	o.null(name, reason)
}

// part writes an object that may be missing.
func (o object) part(name string, p object, reason string) {
	if p != nil {
		o[name] = p
		return
	}
	o.null(name, reason)
}

func (o object) null(name, reason string) {
	o[name], o[name+"_reason"] = nil, reason
}

// The reasons for what is null in the extensions.
const (
	whyCutOff      = "the closed loop did not come to its end, so that the record does not say it"
	whyNoValid     = "no valid reply has this figure"
	whyNoSLO       = "no objective was set"
	whyNoWall      = "the stage took no time that could be measured"
	whyOneSample   = "one value has no spread"
	whyManySamples = "with more than 2000 values the mean is so nearly normal that the Student-t interval is enough"
)

func (b *builder) extensions() object {
	h, run, c := b.in.Header, b.run, b.closed
	source := "computed"
	if b.declared {
		source = "declared"
	}
	o := object{
		"format":                           ExtensionFormat,
		"runner_version":                   h.RunnerVersion,
		"command":                          h.Command,
		"record_run_id":                    h.RunID,
		"configuration_fingerprint_source": source,
		"incomplete_because":               texts(b.incomplete()),
		"incomplete":                       len(b.incomplete()) > 0,
		"without_result":                   len(b.in.PlannedSizes) - c.rows,
		"findings":                         tallied(b.c.findings),
		"failure_classes":                  tallied(c.classes),
		"canaries":                         b.canaries(),
		"connections":                      b.connections(),
		"intervals":                        b.intervals(),
		"sizing":                           b.sizing(),
		"cached_tokens":                    b.cached(),
		"margin":                           run.Margin,
	}
	put(o, "interrupted", told(b.in.Interrupted), "nothing cut the run short")
	put(o, "runner_commit", told(h.RunnerCommit), "the program does not know its commit")
	o.part("aborted", b.aborted(), "no stage was ended early")
	var notSent *int
	var step *float64
	var check *fixtures.ClientCheck
	whyNoCheck := whyCutOff
	if s := c.stage; s != nil {
		notSent = new(len(b.in.PlannedSizes) - s.Sent)
		step = new(milliseconds(b.finished.Sub(b.started)) - b.wall*1000)
		check, whyNoCheck = s.Client, "the client did not watch itself"
	}
	put(o, "not_sent", notSent, whyCutOff)
	put(o, "clock_step_ms", step, whyCutOff)
	o.part("client", clientCheck(check), whyNoCheck)
	o.part("goodput", b.goodput, whyNoSLO)
	o.part("open_loop", b.openLoop, "no open loop was asked for")
	o.part("sweep", b.sweep, "no sweep was asked for")
	b.putGPUStates(o)
	put(o, "max_model_len_source", told(run.MaxModelLenSource), "no context window is known")
	return o
}

func texts(all []string) list {
	l := list{}
	for _, s := range all {
		l = append(l, s)
	}
	return l
}

// incomplete says what the run lacks, in sentences; nothing when it is whole.
func (b *builder) incomplete() []string {
	var why []string
	if b.in.Interrupted != "" {
		why = append(why, "the run was interrupted: "+b.in.Interrupted)
	} else if b.in.End == nil {
		why = append(why, "the record has no end: the run was killed, or goes on")
	}
	if n := len(b.in.PlannedSizes) - b.closed.rows; n > 0 {
		why = append(why, fmt.Sprintf("%d of the %d requests of the closed loop have no result", n, len(b.in.PlannedSizes)))
	}
	stages := []string{fixtures.StageClosed}
	if b.run.Arrival != "" {
		stages = append(stages, fixtures.StageOpen)
	}
	for _, level := range b.run.Sweep {
		stages = append(stages, fixtures.SweepStage(level))
	}
	for _, name := range stages {
		if !slices.ContainsFunc(b.in.Stages, func(s fixtures.Stage) bool { return s.Name == name }) {
			why = append(why, fmt.Sprintf("stage %q did not come to its end", name))
		}
	}
	return why
}

// aborted is the first stage that ended before all of its requests were sent; nil when there is none.
func (b *builder) aborted() object {
	for _, s := range b.in.Stages {
		if s.Stopped == "" {
			continue
		}
		o := object{"stage": s.Name, "reason": s.Stopped, "requests": s.Requests, "sent": s.Sent}
		put(o, "limit", positive(b.run.AbortErrorRate), "no limit on the share of failed requests was set")
		return o
	}
	return nil
}

func positive(v float64) *float64 {
	if v > 0 {
		return &v
	}
	return nil
}

func clientCheck(c *fixtures.ClientCheck) object {
	if c == nil {
		return nil
	}
	bounds := object{}
	for name, limit := range c.Bounds {
		bounds[name] = limit
	}
	o := object{"bounds": bounds, "client_overloaded": c.Overloaded, "reasons": texts(c.Reasons)}
	put(o, "cpu_share", c.CPUShare, "the system does not tell how much processor time the program used")
	o.part("dispatch_late_ms", watched(c.DispatchLate), "no request had a moment that its dispatch could be held against")
	o.part("read_lag_ms", watched(c.ReadLag), "no heartbeat was read")
	return o
}

func watched(s fixtures.Spread) object {
	if s.Samples == 0 {
		return nil
	}
	o := object{"samples": s.Samples}
	put(o, "mean", s.Mean, whyNotTold)
	put(o, "p50", s.P50, whyNotTold)
	put(o, "p99", s.P99, whyNotTold)
	put(o, "max", s.Max, whyNotTold)
	return o
}

const whyNotTold = "the record does not tell it"

// canaries counts over all replies received, also those whose failure keeps them out of the metrics.
func (b *builder) canaries() object {
	c := b.closed
	return object{
		"attempted": c.canaries, "passed": c.canariesPassed, "failed": c.canaries - c.canariesPassed,
		"foreign_markers": c.foreign, "foreign_in_thinking": c.thought, "foreign_seen": texts(c.markers),
	}
}

func (b *builder) connections() object {
	c := b.closed
	o := object{"reused": c.reused, "new": len(c.connect) - c.reused}
	o.part("connect_ms", spreadOf(c.connect).object(), "no request had a connection")
	return o
}

func (b *builder) sizing() object {
	c := b.closed
	cal := b.run.Calibration
	measured := object{"samples": len(c.sized)}
	var mean, deviation *float64
	if len(c.sized) > 0 {
		mean, deviation = new(sumExactly(c.sized).mean()), new(0.0)
		for _, r := range c.sized {
			*deviation = max(*deviation, math.Abs(r-1))
		}
	}
	const why = "no reply counts its prompt tokens"
	put(measured, "mean", mean, why)
	put(measured, "max_deviation", deviation, why)
	return object{
		"calibration":         object{"chars_per_token": cal.CharsPerToken, "overhead_tokens": cal.OverheadTokens, "source": cal.Source},
		"measured_to_planned": measured,
	}
}

func (b *builder) cached() object {
	c := b.closed
	o := object{"samples": c.cachedSamples}
	var sum *int64
	var mean *float64
	if c.cachedSamples > 0 {
		sum, mean = &c.cachedTokens, new(float64(c.cachedTokens)/float64(c.cachedSamples))
	}
	const why = "no valid reply says how many prompt tokens came from a cache"
	put(o, "sum", sum, why)
	put(o, "mean", mean, why)
	return o
}

// intervalFamilies are the figures whose mean has a better interval.
var intervalFamilies = []string{"ttft", "time_to_first_output", "e2e", "tpot", "decode_tok_s", "effective_prefill_tok_s"}

// intervals are those of Student and of the bootstrap, which hold for few samples too.
func (b *builder) intervals() object {
	means := object{}
	for i, f := range families {
		if slices.Contains(intervalFamilies, f.name) {
			means.part(f.row, interval(b.described[i], b.closed.figures[i]), whyNoValid)
		}
	}
	return object{
		"confidence": confidence, "bootstrap_resamples": resamples, "bootstrap_seed": bootstrapSeed,
		"bootstrap_up_to_samples": bootstrapLimit, "means": means,
	}
}

func interval(s statistics, values []float64) object {
	if s.samples == 0 {
		return nil
	}
	o := object{"mean": *s.mean, "samples": s.samples}
	var low, high, from, to *float64
	why := whyOneSample
	if s.samples > 1 {
		l, h := studentInterval(s)
		low, high = &l, &h
	}
	if s.samples > bootstrapLimit {
		why = whyManySamples
	} else if s.samples > 1 {
		l, h := bootstrapInterval(values)
		from, to = &l, &h
	}
	put(o, "student_low", low, whyOneSample)
	put(o, "student_high", high, whyOneSample)
	put(o, "bootstrap_low", from, why)
	put(o, "bootstrap_high", to, why)
	return o
}

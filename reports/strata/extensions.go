package strata

import (
	"cmp"
	"slices"
	"strings"

	"plumbline/corpus"
	"plumbline/harness/judge"
	"plumbline/harness/measure"
)

func (b *builder) extensions(d *Document) Extensions {
	h := &b.run.Header
	checks := judge.Prompts(h.Plan, b.figures)
	x := Extensions{
		Suite: Suite, Runner: Runner,
		StartedEngine:        h.Engine.Started,
		ServerRequestsBefore: pointed(h.Engine.RequestsServed, whyNoRequestsServed),
		OtherEngineOptions:   b.otherOptions(),
		RequestChecks:        Ordered[RequestCheck]{},
		OptionalStageSkipped: h.ConcurrencyStage && d.RequestCounts.Concurrency.Attempted == 0,
		APIKeySent:           h.APIKeySent,
		RunnerVersion:        told(h.RunnerVersion, whyNoRunnerVer),
		EngineKind:           told(h.Engine.Kind, whyNoKind),
		EngineName:           told(h.Engine.Name, whyEngineSilent),
		EngineCommit:         told(h.Engine.Commit, whyEngineSilent),
		TimingBasis:          timingBasis(d.Requests),
		DecodeConvention:     b.decodeConvention(),
		ClientDecodeTPS:      Ordered[Null[Number]]{},
		RepetitionDrift:      b.drift(d.Requests),

		ClockResolutionSeconds: None[Number](whyNoResolution),
		ServedModelsBefore:     models(h.Engine.ServedModels),
		ServedModelsAfter:      None[[]string](whyNotAskedAgain),
		GPUStates:              b.gpuStates(),
		Notes:                  notes(d.Summaries),
		Findings:               b.findings(),
	}
	if b.run.After != nil {
		x.ServedModelsAfter = models(b.run.After.ServedModels)
	}
	if h.ClockResolution > 0 {
		x.ClockResolutionSeconds = b.seconds(h.ClockResolution, clockDecimals)
	}
	for _, p := range h.Plan {
		x.RequestChecks = append(x.RequestChecks, Member[RequestCheck]{p.ID, requestCheck(checks.Check(p.ID))})
		reason := whyNotSent
		if _, sent := b.replies[p.ID]; sent {
			reason = whyNoClientRate
		}
		rate := b.figures[p.ID].ClientDecodeTPS
		rate.Reason = cmp.Or(rate.Reason, reason)
		x.ClientDecodeTPS = append(x.ClientDecodeTPS, Member[Null[Number]]{p.ID, b.decimal(rate, rateDecimals)})
	}
	return x
}

// models are names that the engine told; none at all tell nothing.
func models(names []string) Null[[]string] {
	if len(names) == 0 {
		return None[[]string](whyNoModels)
	}
	valid := make([]string, len(names))
	for i, name := range names {
		valid[i] = cmp.Or(strings.ToValidUTF8(name, "\uFFFD"), unnamed)
	}
	return Some(valid)
}

// notes are what a reader must know of the figures that are there.
func notes(summaries []Summary) []string {
	notes := []string{}
	if hasRate(summaries, shortCase, "prompt_tps") {
		notes = append(notes, noteFixedCost)
	}
	if slices.ContainsFunc(summaries, func(s Summary) bool { return s.Metric == "total_s" && s.N > 0 }) {
		notes = append(notes, noteTotals)
	}
	return notes
}

// shortCase is the performance case whose prompt is too short for a rate.
const shortCase = "short"

func hasRate(summaries []Summary, caseID, metric string) bool {
	return slices.ContainsFunc(summaries, func(s Summary) bool { return s.CaseID == caseID && s.Metric == metric && s.N > 0 })
}

// timingBasis is the one clock that all decode rates of a run are from: a rate of the engine's clock stands beside its
// seconds.
func timingBasis(requests []Request) Null[string] {
	basis := ""
	for _, r := range requests {
		if _, known := r.Metrics.DecodeTPS.Get(); !known {
			continue
		}
		mine := string(measure.ClientBasis)
		if _, known := r.Timings.Decode.Get(); known {
			mine = string(measure.EngineBasis)
		}
		switch basis {
		case "", mine:
			basis = mine
		default:
			return None[string](whyBasesDiffer)
		}
	}
	return told(basis, whyNothingMeasured)
}

// decodeConvention is the one way in which the engine counts its decode interval: replies that fit both ways do not
// speak against one.
func (b *builder) decodeConvention() Null[string] {
	seen := ""
	for _, p := range b.run.Header.Plan {
		mine := b.figures[p.ID].Convention
		switch {
		case mine == "" || string(mine) == seen:
		case seen == "" || seen == string(measure.NotDetermined):
			seen = string(mine)
		case mine != measure.NotDetermined:
			return None[string](whyConventionsMixed)
		}
	}
	return told(seen, whyNothingMeasured)
}

// drift compares the last repetition of each case with the first.
func (b *builder) drift(requests []Request) Ordered[Drift] {
	drift := Ordered[Drift]{}
	for i := range requests {
		first := &requests[i]
		if first.Phase != corpus.PhasePerformance {
			continue
		}
		if _, done := drift.Get(first.CaseID); done {
			continue
		}
		last := first
		for j := range requests {
			if r := &requests[j]; r.Phase == corpus.PhasePerformance && r.CaseID == first.CaseID && r.Repetition > last.Repetition {
				last = r
			}
		}
		drift = append(drift, Member[Drift]{first.CaseID, Drift{
			PromptTPS: b.change(first, last, "prompt_tps"), DecodeTPS: b.change(first, last, "decode_tps"),
		}})
	}
	return drift
}

func (b *builder) change(first, last *Request, metric string) Null[Number] {
	from, ok1 := first.metrics()[metric].Get()
	to, ok2 := last.metrics()[metric].Get()
	if first == last || !ok1 || !ok2 || from.Float64() <= 0 {
		return None[Number](whyNoRepetitions)
	}
	return b.number(to.Float64()/from.Float64()-1, rateDecimals)
}

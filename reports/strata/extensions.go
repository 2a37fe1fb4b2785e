package strata

import (
	"plumbline/corpus"
	"plumbline/harness/measure"
)

func (b *builder) extensions(d *Document, checks *checker) Extensions {
	h := &b.run.Header
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
		TimingBasis:          b.timingBasis(d),
		DecodeConvention:     b.decodeConvention(),
		ClientDecodeTPS:      Ordered[Null[Number]]{},
		RepetitionDrift:      b.drift(d.Requests),

		ClockResolutionSeconds: None[Number](whyNoResolution),
	}
	if h.ClockResolution > 0 {
		x.ClockResolutionSeconds = b.seconds(h.ClockResolution, clockDecimals)
	}
	for _, p := range h.Plan {
		x.RequestChecks = append(x.RequestChecks, Member[RequestCheck]{p.ID, checks.check(p.ID)})
		reason := whyNotSent
		if _, sent := b.replies[p.ID]; sent {
			reason = whyNoClientRate
		}
		x.ClientDecodeTPS = append(x.ClientDecodeTPS, Member[Null[Number]]{p.ID,
			b.decimalOr(b.figures[p.ID].ClientDecodeTPS, rateDecimals, reason)})
	}
	return x
}

// timingBasis is the one clock that all rates of the run are from.
func (b *builder) timingBasis(d *Document) Null[string] {
	basis := ""
	for _, r := range d.Requests {
		if _, known := r.Metrics.DecodeTPS.Get(); !known {
			continue
		}
		switch mine := string(b.figures[r.ID].Basis); basis {
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

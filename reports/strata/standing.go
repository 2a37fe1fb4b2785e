package strata

import (
	"slices"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/measure"
)

// standing is what a run's status depends on.
type standing struct {
	run      *fixtures.Run
	unhashed string
	tally
}

// tally is what the required requests of a document say of its run.
type tally struct {
	skipped, failed   int
	reused, lengthOff bool
	// Whether it could not be checked that the prompt of a performance request that was answered was read anew, or whole.
	reuseUnchecked, lengthUnchecked bool
	// usageUntold says that a performance request was answered without a count of its input, or of its output.
	usageUntold bool
}

func (b *builder) standing(d *Document) *standing {
	s := &standing{run: b.run, tally: tallyOf(d)}
	if b.run.Header.Refusal == "" { // an engine that was never reached could not tell of its model
		s.unhashed = b.unhashed()
	}
	return s
}

func tallyOf(d *Document) tally {
	var t tally
	for _, r := range d.Requests {
		if r.Phase == corpus.PhaseConcurrency {
			continue
		}
		checks, _ := d.Extensions.RequestChecks.Get(r.ID)
		reused, reuseKnown := checks.PayloadReuse.Get()
		off, lengthKnown := checks.LengthOff.Get()
		t.reused, t.lengthOff = t.reused || reused, t.lengthOff || off
		switch measure.Status(r.Status) {
		case measure.Skipped:
			t.skipped++
		case measure.Failed:
			t.failed++
		default:
			measured := r.Phase == corpus.PhasePerformance
			t.reuseUnchecked = t.reuseUnchecked || measured && !reuseKnown
			t.lengthUnchecked = t.lengthUnchecked || measured && !lengthKnown
			t.usageUntold = t.usageUntold || measured && !(r.Tokens.Input.known && r.Tokens.Output.known)
		}
	}
	return t
}

// reasons are the sentences and codes of all that keeps the run from conforming.
func (s *standing) reasons() (sentences, codes []string) {
	sentences, codes = []string{}, []string{}
	for _, r := range statusReasons {
		if r.holds(s) {
			sentences, codes = append(sentences, r.sentence), append(codes, r.code)
		}
	}
	return sentences, codes
}

func (s *standing) status() RunStatus {
	sentences, _ := s.reasons()
	switch {
	case s.skipped > 0:
		return Incomplete
	case len(sentences) > 0:
		return Nonconforming
	}
	return Conforming
}

func (s *standing) modelChanged() bool {
	return s.run.After != nil && modelChanged(s.run.Header.Model, s.run.Header.Engine.ServedModels, s.run.After.ServedModels)
}

// modelChanged reports whether the engine, asked after the last request, no longer served what it served before. A
// server of many models may gain or lose others; one that serves the model under another name than the one requested
// must serve the same names. An engine that names no model tells nothing.
func modelChanged(model string, before, after []string) bool {
	switch {
	case len(after) == 0:
		return false
	case slices.Contains(before, model) || slices.Contains(after, model):
		return !slices.Contains(after, model)
	}
	return len(before) > 0 && !slices.Equal(slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(after)))
}

// afterUntold reports whether an engine that was in use did not name its models again.
func (s *standing) afterUntold() bool {
	return s.run.Header.Refusal == "" && (s.run.After == nil || len(s.run.After.ServedModels) == 0)
}

// foreignRequests is how many requests of others the engine served meanwhile; 0 when it does not say. Requests of ours
// that got no response may not have reached it: they are not taken off its count.
func (s *standing) foreignRequests() int64 {
	before := s.run.Header.Engine.RequestsServed
	if before == nil || s.run.After == nil || s.run.After.RequestsServed == nil {
		return 0
	}
	foreign := *s.run.After.RequestsServed - *before
	for _, e := range s.run.Exchanges {
		if e.Response != nil {
			foreign--
		}
	}
	return foreign
}

// requirement is one request that the protocol demands.
type requirement struct {
	id, phase, caseID, category string
	repetition, budget          int
}

// budgetOf is the output budget of each phase.
var budgetOf = map[string]int{
	corpus.PhaseWarmup: corpus.WarmupMaxTokens, corpus.PhasePerformance: corpus.PerformanceMaxTokens,
	corpus.PhaseSanity: corpus.SanityMaxTokens, corpus.PhaseConcurrency: corpus.ConcurrencyMaxTokens,
}

// protocolPlan lists the required requests of the protocol in their order (ref).
func protocolPlan() []requirement {
	plan := []requirement{{"warmup", corpus.PhaseWarmup, "warmup", "", 1, corpus.WarmupMaxTokens}}
	for r := 1; r <= corpus.Repetitions; r++ {
		for _, c := range corpus.PerformanceCases {
			plan = append(plan, requirement{requestID(corpus.PhasePerformance, c, int64(r)), corpus.PhasePerformance, c, "", r, corpus.PerformanceMaxTokens})
		}
	}
	for _, c := range corpus.SanityCases {
		plan = append(plan, requirement{requestID(corpus.PhaseSanity, c, 1), corpus.PhaseSanity, c, categoryOf[c[0]], 1, corpus.SanityMaxTokens})
	}
	return plan
}

// categoryOf is the category of a sanity case by the first letter of its id (ref).
var categoryOf = map[byte]string{'I': "instruction", 'R': "retrieval", 'T': "tool_call"}

func isProtocolPlan(plan []fixtures.Planned) bool {
	required := slices.DeleteFunc(slices.Clone(plan), func(p fixtures.Planned) bool { return p.Phase == corpus.PhaseConcurrency })
	return slices.EqualFunc(required, protocolPlan(), func(p fixtures.Planned, r requirement) bool {
		return p.ID == r.id && p.Phase == r.phase && p.CaseID == r.caseID && p.Category == r.category &&
			p.Repetition == r.repetition && p.Seed == int64(r.repetition) && p.MaxOutputTokens == r.budget && p.Concurrency == 1
	})
}

// followsProtocol reports whether the required requests of a document are the protocol's, by id and budget.
func followsProtocol(requests []Request) bool {
	required := slices.DeleteFunc(slices.Clone(requests), func(r Request) bool { return r.Phase == corpus.PhaseConcurrency })
	return slices.EqualFunc(required, protocolPlan(), func(r Request, want requirement) bool {
		return r.ID == want.id && r.MaxOutputTokens == want.budget
	})
}

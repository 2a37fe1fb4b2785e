package strata

import (
	"slices"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/measure"
)

// standing is what a run's status depends on.
type standing struct {
	run                             *fixtures.Run
	requiredSkipped, requiredFailed int
	unhashed                        string
	reused, lengthOff               bool
	otherTokenizer                  bool
}

func (b *builder) standing(d *Document, c *checker) *standing {
	s := &standing{run: b.run, otherTokenizer: c.otherTokenizer}
	if b.run.Header.Refusal == "" { // an engine that was never reached could not tell of its model
		s.unhashed = b.unhashed()
	}
	for _, r := range d.Requests {
		if r.Phase == corpus.PhaseConcurrency {
			continue
		}
		switch measure.Status(r.Status) {
		case measure.Skipped:
			s.requiredSkipped++
		case measure.Failed:
			s.requiredFailed++
		}
		checks, _ := d.Extensions.RequestChecks.Get(r.ID)
		reused, _ := checks.PayloadReuse.Get()
		off, _ := checks.LengthOff.Get()
		s.reused, s.lengthOff = s.reused || reused, s.lengthOff || off
	}
	return s
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
	case s.requiredSkipped > 0:
		return Incomplete
	case len(sentences) > 0:
		return Nonconforming
	}
	return Conforming
}

// modelChanged reports whether the engine, asked after the last request, no longer served what it served before. A
// server of many models may gain or lose others; one that serves the model under another name than the one requested
// must serve the same names.
func (s *standing) modelChanged() bool {
	if s.run.After == nil || len(s.run.After.ServedModels) == 0 {
		return false
	}
	before, after, model := s.run.Header.Engine.ServedModels, s.run.After.ServedModels, s.run.Header.Model
	if slices.Contains(before, model) || slices.Contains(after, model) {
		return !slices.Contains(after, model)
	}
	return len(before) > 0 && !slices.Equal(slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(after)))
}

// foreignRequests is how many requests of others the engine served meanwhile; 0 when it does not say.
func (s *standing) foreignRequests() int64 {
	before := s.run.Header.Engine.RequestsServed
	if before == nil || s.run.After == nil || s.run.After.RequestsServed == nil {
		return 0
	}
	return *s.run.After.RequestsServed - *before - int64(len(s.run.Exchanges))
}

// requirement is one request that the protocol demands.
type requirement struct {
	id, phase, caseID, category string
	repetition, budget          int
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

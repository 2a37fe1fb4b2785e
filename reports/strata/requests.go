package strata

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/measure"
)

// request makes the row of one planned request.
func (b *builder) request(p fixtures.Planned) Request {
	r := Request{
		ID: p.ID, Phase: p.Phase, CaseID: p.CaseID, Repetition: p.Repetition, Seed: p.Seed,
		MaxOutputTokens: p.MaxOutputTokens, Concurrency: p.Concurrency, Round: pointed(p.Round, whyNotARound),
	}
	reply, sent := b.replies[p.ID]
	f := reply.figures
	if !sent {
		f = unsent(b.skipReason(p.ID))
	}
	r.Status = string(f.Status)
	r.FinishReason = figure(f.FinishReason, whyNoFinish)
	r.Error = figure(f.Error, whyNoError)
	r.Tokens = Tokens{
		Input: figure(f.InputTokens, ""), Cached: figure(f.CachedTokens, ""), Read: figure(f.ReadTokens, ""),
		Output: figure(f.OutputTokens, ""), Decode: figure(f.DecodeTokens, ""),
	}
	r.Timings = Timings{
		Prompt: b.decimal(f.PromptSeconds, engineDecimals), Decode: b.decimal(f.DecodeSeconds, engineDecimals),
		TTFT: b.decimal(f.TTFT, clientDecimals), FirstAnswer: b.decimal(f.FirstAnswer, clientDecimals),
		Total: b.decimal(f.Total, clientDecimals),
	}
	r.Metrics = Metrics{b.decimal(f.PromptTPS, rateDecimals), b.decimal(f.DecodeTPS, rateDecimals)}
	r.Sources = sources(f)
	r.FirstDeltaKind = figure(f.FirstDeltaKind, whyNoDelta)
	r.TokenAccountingNote = note(f, p.MaxOutputTokens)
	r.Evaluation = b.evaluation(p, reply)
	return r
}

// note is the note on counts that differ, and on an output beyond its budget. Counts that contradict each other never
// stand in a document without one.
func note(f measure.Figures, budget int) Null[string] {
	left := f.InputTokens.Value - f.CachedTokens.Value
	prompt := f.InputTokens.Known && f.CachedTokens.Known && (left < 0 || f.ReadTokens.Known && f.ReadTokens.Value != left)
	output := f.OutputTokens.Known && f.DecodeTokens.Known && f.OutputTokens.Value != f.DecodeTokens.Value
	var notes []string
	switch {
	case f.AccountingNote.Known:
		notes = append(notes, f.AccountingNote.Value)
	case prompt || output:
		notes = append(notes, cmp.Or(strings.Join(f.Broken, "; "), noteCountsDiffer))
	}
	if f.OutputTokens.Known && f.OutputTokens.Value > int64(budget) {
		notes = append(notes, fmt.Sprintf(noteOverBudget, f.OutputTokens.Value, budget))
	}
	if len(notes) > 0 {
		return Some(strings.Join(notes, "; "))
	}
	return figure(f.AccountingNote, whyCountsAgree)
}

// skipReason says why a planned request was not sent.
func (b *builder) skipReason(id string) string {
	for _, s := range b.run.Skips {
		if s.ID == id && s.Reason != "" {
			return s.Reason
		}
	}
	if end := b.run.End; b.run.Header.Refusal == "" && end != nil && end.Interrupted != "" {
		return fmt.Sprintf(errInterrupted, end.Interrupted)
	}
	return cmp.Or(b.run.Header.Refusal, errNotReached)
}

// unsent are the figures of a request that was not sent: none.
func unsent(why string) measure.Figures {
	count, time, word := measure.Unknown[int64](whyNotSent), measure.Unknown[float64](whyNotSent), measure.Unknown[string](whyNotSent)
	return measure.Figures{
		Status: measure.Skipped, Error: measure.Known(why, ""), FinishReason: word,
		InputTokens: count, CachedTokens: count, ReadTokens: count, OutputTokens: count, DecodeTokens: count,
		PromptSeconds: time, DecodeSeconds: time, TTFT: time, FirstAnswer: time, Total: time,
		PromptTPS: time, DecodeTPS: time, FirstDeltaKind: word, AccountingNote: word,
	}
}

func (b *builder) decimal(m measure.Maybe[float64], decimals int) Null[Number] {
	if !m.Known {
		return None[Number](m.Reason)
	}
	return b.number(m.Value, decimals)
}

func (b *builder) evaluation(p fixtures.Planned, r reply) Null[Evaluation] {
	if p.Phase != corpus.PhaseSanity {
		return None[Evaluation](whyNotJudged)
	}
	e := Evaluation{Category: p.Category, Reason: verdictUnsent}
	switch _, sent := b.replies[p.ID]; {
	case r.evaluation != nil:
		e.Passed, e.Reason = r.evaluation.Passed, r.evaluation.Reason
	case sent:
		e.Reason = verdictNoKey
	}
	return Some(e)
}

// sources says where each figure came from.
func sources(f measure.Figures) Sources {
	return Sources{
		Input: source(f.InputTokens), Cached: source(f.CachedTokens), Read: source(f.ReadTokens),
		Output: source(f.OutputTokens), Decode: source(f.DecodeTokens),
		EngineTimings: engineSource(f),
		ClientTimings: joined(f.TTFT, f.FirstAnswer, f.Total),
	}
}

func source[T any](m measure.Maybe[T]) string {
	switch {
	case !m.Known:
		return fmt.Sprintf(sourceNone, cmp.Or(m.Reason, whyEngineSilent))
	case m.Source == "":
		return sourceUnsaid
	}
	return m.Source
}

// engineSource names the source of the engine's seconds, and that of the decode rate when it is the client's.
func engineSource(f measure.Figures) string {
	s := joined(f.PromptSeconds, f.DecodeSeconds)
	if f.Basis == measure.ClientBasis && f.DecodeTPS.Known {
		s += fmt.Sprintf(sourceClientRate, source(f.DecodeTPS))
	}
	return s
}

// joined names the different sources of figures that share a line: what is known first, and why nothing is otherwise.
func joined(figures ...measure.Maybe[float64]) string {
	var known, unknown []string
	for _, m := range figures {
		list := &unknown
		if m.Known {
			list = &known
		}
		if s := source(m); !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	if len(known) > 0 {
		return strings.Join(known, "; ")
	}
	return strings.Join(unknown, "; ")
}

// countRequests counts the rows by phase and status.
func countRequests(requests []Request) RequestCounts {
	var c RequestCounts
	for _, r := range requests {
		c.phase(r.Phase).add(r.Status)
	}
	return c
}

// phase returns the counts of a phase. A phase that the format does not know cannot be counted.
func (c *RequestCounts) phase(name string) *Counts {
	switch name {
	case corpus.PhaseWarmup:
		return &c.Warmup
	case corpus.PhasePerformance:
		return &c.Performance
	case corpus.PhaseSanity:
		return &c.Sanity
	case corpus.PhaseConcurrency:
		return &c.Concurrency
	}
	return &Counts{}
}

func (c *Counts) add(status string) {
	c.Planned++
	switch measure.Status(status) {
	case measure.Skipped:
		c.Skipped++
		return
	case measure.Completed:
		c.Completed++
	case measure.Truncated:
		c.Truncated++
	case measure.Failed:
		c.Failed++
	}
	c.Attempted++
}

// countVerdicts counts the sanity verdicts by category.
func countVerdicts(requests []Request) Quality {
	q := Quality{Categories: make(Ordered[Score], len(corpus.Categories))}
	for i, name := range corpus.Categories {
		q.Categories[i].Key = name
	}
	for _, r := range requests {
		e, judged := r.Evaluation.Get()
		if !judged {
			continue
		}
		passed := 0
		if e.Passed {
			passed = 1
		}
		q.Total++
		q.Passed += passed
		for i := range q.Categories {
			if c := &q.Categories[i]; c.Key == e.Category {
				c.Value.Total++
				c.Value.Passed += passed
			}
		}
	}
	return q
}

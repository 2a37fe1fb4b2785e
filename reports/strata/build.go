package strata

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/measure"
)

// Suite and Runner are how documents of this package name what made them.
const (
	Suite  = "standard-v1"
	Runner = "plumbline"
)

// Build makes the result document of a run from its record alone. outputsSHA256 is the digest of the record's own file,
// in hex. Every planned request is in the document: one without an exchange is skipped, and says why. It is a pure
// function; equal records give equal documents.
//
// A record that contradicts itself (an exchange that was not planned, or one request sent twice) is an error, as is a
// figure that is neither finite nor explained.
func Build(run *fixtures.Run, outputsSHA256 string) (*Document, error) {
	return build(run, outputsSHA256, readReply)
}

func build(run *fixtures.Run, outputsSHA256 string, read reader) (*Document, error) {
	replies, err := readReplies(run, read)
	if err != nil {
		return nil, fmt.Errorf("build result document of run %q: %w", run.Header.RunID, err)
	}
	b := builder{run: run, replies: replies, figures: map[string]measure.Figures{}}
	for id, r := range replies {
		b.figures[id] = r.figures
	}
	d := b.document(outputsSHA256)
	if err := errors.Join(b.errs...); err != nil {
		return nil, fmt.Errorf("build result document of run %q: %w", run.Header.RunID, err)
	}
	if err := d.seal(); err != nil {
		return nil, fmt.Errorf("build result document of run %q: %w", run.Header.RunID, err)
	}
	return d, nil
}

func readReplies(run *fixtures.Run, read reader) (map[string]reply, error) {
	planned := make(map[string]fixtures.Planned, len(run.Header.Plan))
	for _, p := range run.Header.Plan {
		if _, twice := planned[p.ID]; twice {
			return nil, fmt.Errorf("read plan: expected each id once, received %q twice", p.ID)
		}
		planned[p.ID] = p
	}
	replies := make(map[string]reply, len(run.Exchanges))
	for i := range run.Exchanges {
		e := &run.Exchanges[i]
		p, ok := planned[e.ID]
		if !ok {
			return nil, fmt.Errorf("read exchange %q: the plan has no such request", e.ID)
		}
		if _, twice := replies[e.ID]; twice {
			return nil, fmt.Errorf("read exchange %q: expected one, received two", e.ID)
		}
		r, err := read(p, e)
		if err != nil {
			return nil, fmt.Errorf("read exchange %q: %w", e.ID, err)
		}
		replies[e.ID] = r
	}
	return replies, nil
}

// builder holds the record while a document is made of it, and the errors met on the way.
type builder struct {
	run     *fixtures.Run
	replies map[string]reply
	figures map[string]measure.Figures
	errs    []error
}

func (b *builder) document(outputsSHA256 string) *Document {
	h := &b.run.Header
	d := &Document{
		Format: Format, SchemaVersion: SchemaVersion,
		Protocol: Protocol{
			ID: h.Protocol.ID, GitCommit: told(h.RunnerCommit, whyNoRunnerCommit), Profile: h.Protocol.Profile,
			CorpusSHA256: h.Protocol.CorpusSHA256, ModelCardRevision: None[string](whyNoCardRevision),
		},
		Hardware: b.hardware(), Software: b.software(), Model: b.model(), Configuration: b.configuration(),
		Requests:  make([]Request, 0, len(h.Plan)),
		Artifacts: []Artifact{{Kind: "outputs", Path: "outputs.jsonl", SHA256: outputsSHA256}},
	}
	for _, a := range h.Artifacts {
		d.Artifacts = append(d.Artifacts, Artifact(a))
	}
	for _, p := range h.Plan {
		d.Requests = append(d.Requests, b.request(p))
	}
	d.RequestCounts = countRequests(d.Requests)
	d.Summaries = b.summaries(d.Requests)
	d.ConcurrencyRounds = b.rounds()
	d.Quality = countVerdicts(d.Requests)
	d.Extensions = b.extensions(d)
	b.judge(d)
	return d
}

// judge fills in the run: when it was, how long it took, and whether it conforms.
func (b *builder) judge(d *Document) {
	h := &b.run.Header
	s := b.standing(d)
	d.Extensions.StatusReasons, d.Extensions.StatusReasonCodes = s.reasons()
	d.Run = Run{
		ID: h.RunID, StartedAt: h.StartedAt.UTC().Format(time.RFC3339), Status: s.status(),
		RequiredDuration: b.requiredDuration(), OptionalDuration: b.optionalDuration(),
		OptionalConcurrency: h.ConcurrencyStage, Command: h.Command,
	}
}

// requiredDuration is the wall time from the dispatch of the warm-up to the end of the last required request.
func (b *builder) requiredDuration() Null[Number] {
	var first, last *reply
	for _, p := range b.run.Header.Plan {
		if p.Phase == corpus.PhaseConcurrency {
			continue
		}
		last = nil
		if r, ok := b.replies[p.ID]; ok {
			last = &r
			if p.Phase == corpus.PhaseWarmup && first == nil {
				first = &r
			}
		}
	}
	switch {
	case first == nil:
		return None[Number](whyWarmupUnsent)
	case last == nil:
		return None[Number](whyRequiredUnsent)
	}
	return b.seconds(last.end-first.start, durationDecimals)
}

func (b *builder) optionalDuration() Null[Number] {
	if !b.run.Header.ConcurrencyStage {
		return None[Number](whyStageNotAsked)
	}
	start, end, sent := b.span(func(p fixtures.Planned) bool { return p.Phase == corpus.PhaseConcurrency })
	if !sent {
		return None[Number](whyStageUnsent)
	}
	return b.seconds(end-start, durationDecimals)
}

// span is the time from the first dispatch to the last end of the requests chosen.
func (b *builder) span(chosen func(fixtures.Planned) bool) (start, end time.Duration, sent bool) {
	for _, p := range b.run.Header.Plan {
		r, ok := b.replies[p.ID]
		if !ok || !chosen(p) {
			continue
		}
		if !sent {
			start, end, sent = r.start, r.end, true
		}
		start, end = min(start, r.start), max(end, r.end)
	}
	return start, end, sent
}

// number makes a document number and keeps the error.
func (b *builder) number(v float64, decimals int) Null[Number] {
	n, err := NewNumber(v, decimals)
	if err != nil {
		b.errs = append(b.errs, err)
	}
	return Some(n)
}

func (b *builder) seconds(d time.Duration, decimals int) Null[Number] {
	return b.number(d.Seconds(), decimals)
}

// told is a text that may be empty, in which case it is null for the reason.
func told(s, reason string) Null[string] {
	if s = strings.ToValidUTF8(s, "\uFFFD"); s == "" {
		return None[string](reason)
	}
	return Some(s)
}

// pointed is a value that may be absent.
func pointed[T any](v *T, reason string) Null[T] {
	if v == nil {
		return None[T](reason)
	}
	return Some(*v)
}

// figure takes over a figure with its reason, or with the fallback where it has none of its own.
func figure[T any](m measure.Maybe[T], fallback string) Null[T] {
	if !m.Known {
		return None[T](cmp.Or(m.Reason, fallback))
	}
	return Some(m.Value)
}

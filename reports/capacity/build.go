package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"plumbline/fixtures"
)

// The names and enumerations of the format.
const (
	SchemaName        = "anvil-serving.benchmark/v1"
	ProtocolPlain     = "capacity-v3"
	ProtocolReasoning = "capacity-v4-reasoning" // some reply held reasoning

	p99Tail        = "tail-estimate"
	p99Descriptive = "descriptive-nearest-rank-only"
	p99Samples     = 100 // from so many on a p99 says something of the tail

	cacheUnique    = "unique"
	thinkingOff    = "disabled"
	thinkingOn     = "enabled"
	redacted       = "[operator identity redacted]" // in place of an address
	maxMessage     = 2048                           // characters of an error message
	labelLayout    = "2006-01-02T15:04:05Z"
	runIDLayout    = "benchmark-20060102T150405Z"
	timestampsNote = "nanosecond-unix-fields; the labels are cut to whole seconds"
)

// p99Families are the figures whose p99 the document interprets.
var p99Families = []string{"decode_tok_s", "e2e", "effective_prefill_tok_s", "tpot", "ttft"}

// Rows yields every row of a run's record, stage after stage, each stage's by request index. It is called several times.
type Rows func() iter.Seq2[*fixtures.Row, error]

// Input is a capacity run's record.
type Input struct {
	Header *fixtures.Header
	// Stages are those that came to their end. A stage without one was cut off.
	Stages []fixtures.Stage
	// GPUs are the states of the accelerators before and after stages, in the order of the record.
	GPUs []fixtures.GPUMoment
	// End is the record's last line; nil for a run that was killed.
	End *fixtures.RunEnd
	// Interrupted, when not "", is what cut the run short; "" takes what End says.
	Interrupted string
	// PlannedSizes are the planned prompt sizes, in tokens, of all requests of the closed loop, sent or not.
	PlannedSizes []int
	Rows         Rows
}

// Write writes the document of a run and returns what it says in short. It goes through the rows three times and keeps
// some hundred bytes for each. Equal records give equal documents. After an error the text written is no document.
//
// A record that contradicts itself (rows out of order, more rows than were planned, a figure that is not finite) is an
// error.
func Write(w io.Writer, in Input) (*Summary, error) {
	s, err := write(w, in)
	if err != nil {
		return nil, fmt.Errorf("write capacity document of run %q: %w", runID(in.Header), err)
	}
	return s, nil
}

func runID(h *fixtures.Header) string {
	if h == nil {
		return ""
	}
	return h.RunID
}

func write(w io.Writer, in Input) (*Summary, error) {
	switch {
	case in.Header == nil || in.Header.Capacity == nil:
		return nil, errors.New("expected the header of a capacity run, received none")
	case len(in.PlannedSizes) == 0:
		return nil, errors.New("expected the planned size of every request, received none")
	case in.Rows == nil:
		return nil, errors.New("expected the rows of the record, received none")
	}
	if in.Interrupted == "" && in.End != nil {
		in.Interrupted = in.End.Interrupted
	}
	c, err := collect(in)
	if err != nil {
		return nil, err
	}
	b := builder{in: in, run: in.Header.Capacity, c: c, closed: c.closed}
	b.times()
	b.described = c.closed.describe()
	b.goodputs()
	document := b.document()
	if err := encode(w, document); err != nil {
		return nil, err
	}
	return b.summary(), nil
}

// builder makes the document of what was collected from the rows.
type builder struct {
	in        Input
	run       *fixtures.CapacityRun
	c         *collected
	closed    *closedRows
	described []statistics // by family

	started, finished time.Time
	wall              float64 // seconds

	goodput     object // of the closed loop, like openLoop and sweep part of the extensions
	openLoop    object
	sweep       object
	open        *OpenLoop
	levels      []Level
	knee        *int
	kneeReason  string
	fingerprint string
	declared    bool
}

// times says when the closed loop ran: by the host's clock, and how long by the monotonic one. Where it was cut off, it ran
// from the first dispatch to the end of the last reply.
func (b *builder) times() {
	b.wall = b.closed.wall()
	if stage := b.closed.stage; stage != nil {
		b.started, b.finished = stage.StartedAt.UTC(), stage.FinishedAt.UTC()
		return
	}
	b.started = b.in.Header.StartedAt.UTC().Add(b.closed.first)
	b.finished = b.started.Add(b.closed.end - b.closed.first)
}

func (b *builder) document() object {
	h, run, c := b.in.Header, b.run, b.closed
	planned := len(b.in.PlannedSizes)
	eligible := c.completed == planned
	prefix := run.SharedPrefixTokens
	if run.PromptCacheMode == cacheUnique {
		prefix = 0
	}
	b.fingerprint, b.declared = run.ConfigurationFingerprint, run.ConfigurationFingerprint != ""
	if !b.declared {
		b.fingerprint = Fingerprint(h)
	}
	protocol := ProtocolPlain
	if c.reasoned {
		protocol = ProtocolReasoning
	}
	return object{
		"schema":                    SchemaName,
		"measurement_protocol":      protocol,
		"run_id":                    b.started.Format(runIDLayout),
		"started_at":                b.started.Format(labelLayout),
		"finished_at":               b.finished.Format(labelLayout),
		"started_at_unix_ns":        b.started.UnixNano(),
		"finished_at_unix_ns":       b.finished.UnixNano(),
		"timestamp_precision":       timestampsNote,
		"clock_domain_id":           told(run.ClockDomainID),
		"configuration_fingerprint": b.fingerprint,
		"wall_clock_ms":             b.wall * 1000,
		"base_url":                  h.Engine.URL,
		"model":                     h.Model,
		"engine":                    told(h.Engine.Name),
		"gpu":                       told(accelerators(h.Host)),
		"tier":                      nil,
		"manifest":                  nil,
		"source_recipe":             nil,
		"requests":                  planned,
		"completed":                 c.completed,
		"failed":                    c.failed,
		"responses_received":        c.received,
		"failures":                  b.rows(func(r *fixtures.Row) bool { return r.Failure != nil }, failure(run)),
		"concurrency":               run.Concurrency,
		"context_tokens":            given(run.CtxTokens),
		"context_seed":              run.Seed,
		"context_distribution":      distribution(b.in.PlannedSizes),
		"max_context_tokens":        given(run.MaxModelLen),
		"max_tokens":                run.MaxTokens,
		"response_words":            run.ResponseWords,
		"prompt_cache_mode":         run.PromptCacheMode,
		"shared_prefix_tokens":      prefix,
		"request_canaries":          run.RequestCanaries,
		"controlled_output_policy":  run.ControlledOutputPolicy,
		"performance_eligible":      eligible,
		"metric_population":         b.population(),
		"metrics":                   c.metrics(b.described, planned, b.wall),
		"request_timings":           b.rows(func(r *fixtures.Row) bool { return r.Failure == nil }, valid(run)),
		"sampling":                  object{"temperature": sampled(run.Temperature), "top_p": sampled(run.TopP)},
		"serve_flags": object{
			"no_thinking": run.ThinkingMode == thinkingOff, "reasoning_effort": told(run.ReasoningEffort),
			"shared_prefix_burst": run.Burst > 0, "thinking_mode": run.ThinkingMode,
		},
		"timing_methodology": methodology(),
		"extensions":         object{extensionKey: b.extensions()},
	}
}

// told is a text, null where there is none.
func told(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// given is a number, null where it is 0, which stands for none.
func given(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func sampled(v *float64) object {
	return object{"requested": v, "sent": v != nil, "effective_request": v}
}

func distribution(sizes []int) object {
	counts := map[int]int{}
	for _, size := range sizes {
		counts[size]++
	}
	o := object{}
	for size, n := range counts {
		o[strconv.Itoa(size)] = n
	}
	return o
}

// accelerators names the GPUs that the engine has, equal ones with their number; "" where the engine runs elsewhere.
func accelerators(host fixtures.HostFacts) string {
	if !host.EngineHere {
		return ""
	}
	var names []string
	counts := map[string]int{}
	for _, g := range host.GPUs {
		name := cmp.Or(g.Name, "unnamed")
		if counts[name] == 0 {
			names = append(names, name)
		}
		counts[name]++
	}
	for i, name := range names {
		if n := counts[name]; n > 1 {
			names[i] = fmt.Sprintf("%dx %s", n, name)
		}
	}
	return strings.Join(names, ", ")
}

func (b *builder) population() object {
	c := b.closed
	samples, meaning := object{}, object{}
	for i, f := range families {
		if slices.Contains(p99Families, f.name) {
			samples[f.name] = b.described[i].samples
			meaning[f.name] = p99Meaning(b.described[i].samples)
		}
	}
	return object{
		"attempted_requests":              c.rows,
		"successful_requests":             c.completed,
		"performance_eligible_requests":   c.completed,
		"excluded_requests":               c.failed,
		"aggregate_throughput_eligible":   c.throughput(len(b.in.PlannedSizes), b.wall) != nil,
		"failure_policy":                  failurePolicy,
		"p99_interpretation":              p99Meaning(c.completed),
		"p99_interpretation_by_metric":    meaning,
		"p99_minimum_recommended_samples": p99Samples,
		"p99_samples_by_metric":           samples,
	}
}

func p99Meaning(samples int) string {
	if samples >= p99Samples {
		return p99Tail
	}
	return p99Descriptive
}

// throughput is the tokens of the closed loop per second of its wall time; nil unless every planned request succeeded and
// its tokens are known.
func (c *closedRows) throughput(planned int, wall float64) *float64 {
	if c.completed == planned && c.counted && wall > 0 {
		return new(float64(c.tokens) / wall)
	}
	return nil
}

// metrics are the 159 numbers of the document; wall is in seconds.
func (c *closedRows) metrics(described []statistics, planned int, wall float64) object {
	throughput := c.throughput(planned, wall)
	m := object{
		"content_chunks":                         c.contentChunks,
		"content_chunks_s":                       (*float64)(nil),
		"controlled_output_exact_adherence":      c.wordsExact,
		"controlled_output_exact_adherence_rate": ratio(c.wordsExact, c.wordsSamples-c.wordsUnseen),
		"controlled_output_samples":              c.wordsSamples,
		"controlled_output_unobservable":         c.wordsUnseen,
		"output_token_sources":                   tallied(c.sources),
		"output_tokens":                          (*int64)(nil),
		"prefix_cache_hit_avg":                   (*float64)(nil),
		"prompt_token_samples":                   c.promptSamples,
		"prompt_tokens":                          (*int64)(nil),
		"reasoning_chunks":                       c.reasoningChunks,
		"request_canary_passed":                  c.canaryPassed,
		"request_canary_samples":                 c.canarySamples,
		"throughput_performance_eligible":        throughput != nil,
		"throughput_tok_s":                       throughput,
	}
	if c.counted {
		m["output_tokens"] = c.tokens
	} else if wall > 0 {
		m["content_chunks_s"] = float64(c.contentChunks) / wall
	}
	if c.promptSamples > 0 {
		m["prompt_tokens"] = c.promptTokens
	}
	if len(c.cachedShares) > 0 {
		m["prefix_cache_hit_avg"] = sumExactly(c.cachedShares).mean()
	}
	for i, f := range families {
		f.put(m, described[i])
	}
	return m
}

// ratio is part over whole; nil of nothing.
func ratio(part, whole int) *float64 {
	if whole == 0 {
		return nil
	}
	return new(float64(part) / float64(whole))
}

func tallied(counts map[string]int) object {
	o := object{}
	for name, n := range counts {
		o[name] = n
	}
	return o
}

// rows streams the closed loop's rows that are chosen, each as its entry.
func (b *builder) rows(chosen func(*fixtures.Row) bool, entry func(*fixtures.Row) object) stream {
	return func(emit func(any) error) error {
		n := 0
		for row, err := range b.in.Rows() {
			if err != nil {
				return fmt.Errorf("read row: %w", err)
			}
			if row.Stage != fixtures.StageClosed {
				if n > 0 {
					break
				}
				continue
			}
			n++
			if !chosen(row) {
				continue
			}
			if err := emit(entry(row)); err != nil {
				return err
			}
		}
		if n != b.closed.rows {
			return fmt.Errorf("read rows again: expected %d of stage %q, received %d", b.closed.rows, fixtures.StageClosed, n)
		}
		return nil
	}
}

package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plumbline/fixtures"
)

// collected is what one pass over the rows leaves: counts, and the figures as bare numbers.
type collected struct {
	closed   *closedRows
	open     *openRows
	levels   map[string]*tally // by stage
	findings map[string]int    // rows that have the finding, by its id
}

// collect goes through the rows once.
func collect(in Input) (*collected, error) {
	run := in.Header.Capacity
	stages := map[string]*fixtures.Stage{}
	for i, s := range in.Stages {
		if stages[s.Name] != nil {
			return nil, fmt.Errorf("read stages: expected each once, received %q twice", s.Name)
		}
		stages[s.Name] = &in.Stages[i]
	}
	c := collected{levels: map[string]*tally{}, findings: map[string]int{}}
	c.closed = &closedRows{tally: newTally(stages[fixtures.StageClosed], run.SLO)}
	c.open = &openRows{tally: newTally(stages[fixtures.StageOpen], run.SLO)}
	c.open.late = lateBySchedule
	for _, level := range run.Sweep {
		name := fixtures.SweepStage(level)
		c.levels[name] = newTally(stages[name], run.SLO)
	}
	planned := plannedRows(in)
	var order rowOrder
	for row, err := range in.Rows() {
		if err != nil {
			return nil, fmt.Errorf("read row: %w", err)
		}
		if changed, err := order.next(row, planned); err != nil {
			return nil, err
		} else if changed {
			c.settle()
		}
		if err := finite(row); err != nil {
			return nil, err
		}
		for _, id := range row.Findings {
			c.findings[id]++
		}
		switch {
		case row.Stage == fixtures.StageClosed:
			c.closed.add(row)
		case row.Stage == fixtures.StageOpen:
			c.open.add(row)
		default:
			c.levels[row.Stage].add(row)
		}
	}
	c.settle()
	return &c, nil
}

// settle gives up the single figures of levels whose rows are over, once they are summed up.
func (c *collected) settle() {
	for _, t := range c.levels {
		t.settle()
	}
}

// plannedRows says how many rows each stage can have.
func plannedRows(in Input) map[string]int {
	run := in.Header.Capacity
	planned := map[string]int{fixtures.StageClosed: len(in.PlannedSizes)}
	if run.Arrival != "" {
		planned[fixtures.StageOpen] = run.OpenRequests
	}
	for _, level := range run.Sweep {
		planned[fixtures.SweepStage(level)] = run.SweepRequests
	}
	return planned
}

// rowOrder holds the rows to their order: stage after stage, and each stage's by index.
type rowOrder struct {
	stage string
	index int
	seen  []string
}

func (o *rowOrder) next(r *fixtures.Row, planned map[string]int) (changed bool, err error) {
	n, known := planned[r.Stage]
	switch {
	case !known:
		return false, fmt.Errorf("read row %d of stage %q: the plan has no such stage", r.RequestIndex, r.Stage)
	case r.RequestIndex < 0 || r.RequestIndex >= n:
		return false, fmt.Errorf("read row %d of stage %q: expected an index from 0 to %d", r.RequestIndex, r.Stage, n-1)
	case r.Stage != o.stage && slices.Contains(o.seen, r.Stage):
		return false, fmt.Errorf("read row %d of stage %q: expected the rows of a stage together", r.RequestIndex, r.Stage)
	case r.Stage == o.stage && r.RequestIndex <= o.index:
		return false, fmt.Errorf("read row %d of stage %q: expected an index above %d", r.RequestIndex, r.Stage, o.index)
	}
	if changed = r.Stage != o.stage; changed {
		o.stage, o.seen = r.Stage, append(o.seen, r.Stage)
	}
	o.index = r.RequestIndex
	return changed, nil
}

// finite refuses a row with a figure that no JSON can hold.
func finite(r *fixtures.Row) error {
	for name, v := range map[string]*float64{"connect_ms": &r.ConnectMS, "visible_generation_ms": r.VisibleGenerationMS} {
		if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
			return fmt.Errorf("read row %d of stage %q: expected a finite %s, received %v", r.RequestIndex, r.Stage, name, *v)
		}
	}
	for _, f := range families {
		if v := f.of(r); v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
			return fmt.Errorf("read row %d of stage %q: expected a finite %s, received %v", r.RequestIndex, r.Stage, f.row, *v)
		}
	}
	return nil
}

// tally counts the rows of a stage. Its figures are of valid replies, in milliseconds, with the wait before dispatch that
// late says.
type tally struct {
	stage *fixtures.Stage // nil for one that was cut off
	slo   []fixtures.Objective
	late  func(*fixtures.Row) float64

	rows, completed, failed, received int
	classes                           map[string]int
	tokens                            int64 // of valid replies
	counted                           bool  // the tokens of every valid reply are known

	first, last, end time.Duration // first and last dispatch, end of the last reply, on the run's clock

	met, unknown     int // goodput
	ttft, tpot, e2e  []float64
	settled          bool
	ttftIn, tpotIn   *spread
	e2eIn            *spread
	foreign, thought int // markers of other requests in the answers and in the thinking
}

func newTally(stage *fixtures.Stage, slo []fixtures.Objective) *tally {
	return &tally{stage: stage, slo: slo, classes: map[string]int{}, counted: true, late: onTime}
}

func onTime(*fixtures.Row) float64 { return 0 }

// lateBySchedule is how long after its scheduled time a request was dispatched, the wait for a connection included. A
// request that had to wait for the client is slow to whoever sent it, so latency counts from the scheduled time.
func lateBySchedule(r *fixtures.Row) float64 {
	if r.Scheduled == nil {
		return 0
	}
	return max(0, milliseconds(r.SinceStart-*r.Scheduled))
}

// count takes in a row but for its figures.
func (t *tally) count(r *fixtures.Row) {
	end := r.SinceStart + time.Duration(r.E2EMS*float64(time.Millisecond))
	if t.rows == 0 {
		t.first, t.last, t.end = r.SinceStart, r.SinceStart, end
	}
	t.first, t.last, t.end = min(t.first, r.SinceStart), max(t.last, r.SinceStart), max(t.end, end)
	t.rows++
	t.thought += r.ForeignInThinking
	if r.Canary != nil {
		t.foreign += r.Canary.ForeignMarkerCount
	}
	if r.Failure != nil {
		t.failed++
		t.classes[r.Failure.Class]++
		if r.ResponseReceived {
			t.received++
		}
		return
	}
	t.completed++
	t.received++
	t.tokens += r.OutputTokens
	t.counted = t.counted && r.OutputTokenSource == sourceUsage
	t.hold(r)
}

// hold holds a valid reply against the objective. One that has no figure the objective bounds does not meet it.
func (t *tally) hold(r *fixtures.Row) {
	if len(t.slo) == 0 {
		return
	}
	late, met, unknown := t.late(r), true, false
	for _, o := range t.slo {
		v, wait := r.TPOTMS, 0.0
		switch o.Figure {
		case "ttft":
			v, wait = r.TTFTMS, late
		case "e2e":
			v, wait = &r.E2EMS, late
		}
		unknown = unknown || v == nil
		met = met && v != nil && *v+wait <= milliseconds(o.Limit)
	}
	if met {
		t.met++
	}
	if unknown {
		t.unknown++
	}
}

// add takes in a row with its figures.
func (t *tally) add(r *fixtures.Row) {
	t.count(r)
	if r.Failure != nil {
		return
	}
	late := t.late(r)
	t.e2e = append(t.e2e, r.E2EMS+late)
	if r.TTFTMS != nil {
		t.ttft = append(t.ttft, *r.TTFTMS+late)
	}
	if r.TPOTMS != nil {
		t.tpot = append(t.tpot, *r.TPOTMS)
	}
}

// settle sums up the figures and lets them go.
func (t *tally) settle() {
	if t.settled || t.rows == 0 {
		return
	}
	t.settled = true
	t.ttftIn, t.tpotIn, t.e2eIn = spreadOf(t.ttft), spreadOf(t.tpot), spreadOf(t.e2e)
	t.ttft, t.tpot, t.e2e = nil, nil, nil
}

// wall is how long the stage lasted, in seconds; of one that was cut off, from the first dispatch to the end of the last
// reply.
func (t *tally) wall() float64 {
	if t.stage != nil {
		return t.stage.Wall
	}
	return (t.end - t.first).Seconds()
}

// rate is so many per second of the stage's wall time; nil where it has none.
func (t *tally) rate(n int64) *float64 {
	if t.wall() <= 0 {
		return nil
	}
	return new(float64(n) / t.wall())
}

// spread is a distribution in short.
type spread struct {
	mean, p50, p95, p99, max float64
	samples                  int
}

// spreadOf sorts the values; nil of none.
func spreadOf(values []float64) *spread {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	return &spread{
		mean: sumExactly(values).mean(), samples: len(values), max: values[len(values)-1],
		p50: nearestRank(values, 50), p95: nearestRank(values, 95), p99: nearestRank(values, 99),
	}
}

// object is the spread as it is written; nil for none.
func (s *spread) object() object {
	if s == nil {
		return nil
	}
	return object{"mean": s.mean, "p50": s.p50, "p95": s.p95, "p99": s.p99, "max": s.max, "samples": s.samples}
}

// closedRows are the rows that the document's metrics are made of.
type closedRows struct {
	*tally
	figures [11][]float64 // by family, of valid replies

	reasoned                              bool // some reply received held reasoning
	contentChunks, reasoningChunks        int
	sources                               map[string]int
	promptSamples                         int
	promptTokens                          int64
	canarySamples, canaryPassed           int // of valid replies
	canaries, canariesPassed              int // of all replies received
	wordsSamples, wordsExact, wordsUnseen int
	cachedSamples                         int
	cachedTokens                          int64
	cachedShares                          []float64
	connect                               []float64 // of every request that had a connection
	reused                                int
	sized                                 []float64 // measured over planned tokens, of every reply that counts them
	markers                               []string  // of other requests, the first few
}

// shownMarkers is how many markers of other requests are kept.
const shownMarkers = 8

func (c *closedRows) add(r *fixtures.Row) {
	c.count(r)
	if r.Reused || r.ConnectMS > 0 || r.ResponseReceived {
		c.connect = append(c.connect, r.ConnectMS)
	}
	if r.Reused {
		c.reused++
	}
	if r.ResponseReceived || r.Failure == nil {
		c.reply(r)
	}
	if r.Failure == nil {
		c.validReply(r)
	}
}

// reply takes in what counts of any reply, failed or not.
func (c *closedRows) reply(r *fixtures.Row) {
	c.reasoned = c.reasoned || r.ReasoningChunks > 0
	if r.Canary != nil {
		c.canaries++
		if r.Canary.Passed {
			c.canariesPassed++
		}
	}
	for _, m := range r.ForeignMarkers {
		if len(c.markers) < shownMarkers && !slices.Contains(c.markers, m) {
			c.markers = append(c.markers, strings.Clone(m))
		}
	}
	if r.PromptTokens != nil && *r.PromptTokens > 0 && r.PlannedContextTokens > 0 {
		c.sized = append(c.sized, float64(*r.PromptTokens)/float64(r.PlannedContextTokens))
	}
}

func (c *closedRows) validReply(r *fixtures.Row) {
	for i, f := range families {
		if v := f.of(r); v != nil {
			c.figures[i] = append(c.figures[i], *v)
		}
	}
	c.contentChunks += r.ContentChunks
	c.reasoningChunks += r.ReasoningChunks
	if c.sources == nil {
		c.sources = map[string]int{}
	}
	c.sources[r.OutputTokenSource]++
	if r.PromptTokens != nil {
		c.promptSamples++
		c.promptTokens += *r.PromptTokens
	}
	if r.Canary != nil {
		c.canarySamples++
		if r.Canary.Passed {
			c.canaryPassed++
		}
	}
	if w := r.ControlledOutput; w != nil {
		c.wordsSamples++
		switch {
		case w.ObservedWords == nil:
			c.wordsUnseen++
		case w.Exact:
			c.wordsExact++
		}
	}
	if r.CachedTokens != nil {
		c.cachedSamples++
		c.cachedTokens += *r.CachedTokens
		if r.PromptTokens != nil && *r.PromptTokens > 0 {
			c.cachedShares = append(c.cachedShares, float64(*r.CachedTokens)/float64(*r.PromptTokens))
		}
	}
}

// describe computes the statistics of every family.
func (c *closedRows) describe() []statistics {
	all := make([]statistics, len(families))
	for i := range families {
		all[i] = describe(c.figures[i])
	}
	return all
}

// openRows are the rows of the open loop. The tally's figures count from the scheduled time; sent ones from dispatch.
type openRows struct {
	*tally
	sentTTFT, sentE2E, waits []float64
}

func (o *openRows) add(r *fixtures.Row) {
	o.tally.add(r)
	o.waits = append(o.waits, o.late(r))
	if r.Failure != nil {
		return
	}
	o.sentE2E = append(o.sentE2E, r.E2EMS)
	if r.TTFTMS != nil {
		o.sentTTFT = append(o.sentTTFT, *r.TTFTMS)
	}
}

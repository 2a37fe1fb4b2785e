package plan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"plumbline/corpus"
	"plumbline/fixtures"
)

// Load is the plan of a capacity run: its stages, its prompt sizes, all drawn before anything is sent, and its requests,
// whose bodies are made when they are asked for. The same settings make the same bytes, whatever the concurrency.
type Load struct {
	run       fixtures.CapacityRun
	model     string
	prose     []string
	stages    []LoadStage
	sizes     [][]int
	first     []int // of the whole run's requests, the first of each stage
	body      frame
	calibrate frame
}

// LoadStage is a group of requests under one arrival plan.
type LoadStage struct {
	Name    string
	Arrival string // closed, constant, poisson
	// Concurrency is the requests in flight of a closed loop, Rate the requests a second of an open one; 0 elsewhere.
	Concurrency int
	Rate        float64
	Requests    int
	// Schedule is when an open loop's requests are to be sent, from the stage's start; null in a closed loop.
	Schedule []time.Duration
}

// Capacity plans a run. Where the context window is not known (MaxModelLen is 0), sizes are not capped.
func Capacity(run fixtures.CapacityRun, model string, pack *corpus.Pack) (*Load, error) {
	if err := errors.Join(checkLoad(run), checkCalibration(run.Calibration)); err != nil {
		return nil, fmt.Errorf("plan capacity run: %w", err)
	}
	l := &Load{run: run, model: model, prose: proseOf(pack)}
	var err error
	if l.stages, l.sizes, err = planLoad(run); err != nil {
		return nil, fmt.Errorf("plan capacity run: %w", err)
	}
	n := 0
	for _, stage := range l.stages {
		l.first = append(l.first, n)
		n += stage.Requests
	}
	if l.body, err = newFrame(run, model, run.MaxTokens); err == nil {
		l.calibrate, err = newFrame(run, model, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("plan capacity run: write body: %w", err)
	}
	return l, nil
}

// planLoad plans what needs no texts.
func planLoad(run fixtures.CapacityRun) ([]LoadStage, [][]int, error) {
	stages, err := planStages(run)
	if err != nil {
		return nil, nil, err
	}
	sizes, err := planSizes(run, stages)
	return stages, sizes, err
}

// planStages returns the closed loop or the burst in its place, the open loop, and the sweep's levels, each named for its
// concurrency.
func planStages(run fixtures.CapacityRun) ([]LoadStage, error) {
	closed := LoadStage{Name: fixtures.StageClosed, Arrival: arrivalClosed, Concurrency: run.Concurrency, Requests: run.Requests}
	if run.Burst > 0 {
		closed.Concurrency, closed.Requests = run.Burst, run.Burst
	}
	stages := []LoadStage{closed}
	if run.Arrival != "" {
		stages = append(stages, LoadStage{Name: fixtures.StageOpen, Arrival: run.Arrival, Rate: run.Rate, Requests: run.OpenRequests})
	}
	for _, level := range run.Sweep {
		stages = append(stages, LoadStage{
			Name: fixtures.SweepStage(level), Arrival: arrivalClosed, Concurrency: level, Requests: run.SweepRequests,
		})
	}
	total := 0
	for i, stage := range stages {
		setting := requestsSetting(run, stage.Name)
		if stage.Requests < 1 || stage.Requests > maxLoadRequests {
			return nil, fmt.Errorf("%q is %d: want 1 to %d", setting, stage.Requests, maxLoadRequests)
		}
		if total += stage.Requests; total > maxLoadRequests {
			return nil, fmt.Errorf("%q is %d: with stage %q the run has %d requests or more, want at most %d in all",
				setting, stage.Requests, stage.Name, total, maxLoadRequests)
		}
		if stage.Arrival != arrivalClosed {
			var err error
			if stages[i].Schedule, err = schedule(stage.Arrival, stage.Rate, stage.Requests, run.Seed); err != nil {
				return nil, err
			}
		}
	}
	return stages, nil
}

// Stages returns the stages in their order. Callers must not change them.
func (l *Load) Stages() []LoadStage { return l.stages }

// Sizes returns the planned tokens of a stage's prompts, in index order; null for a stage that the plan does not have.
// Callers must not change them.
func (l *Load) Sizes(stage string) []int {
	if s := l.place(stage); s >= 0 {
		return l.sizes[s]
	}
	return nil
}

func (l *Load) place(stage string) int {
	return slices.IndexFunc(l.stages, func(s LoadStage) bool { return s.Name == stage })
}

// Request returns the i-th request of a stage of the plan. Its marker counts on over the stages, so that no two of a run
// are the same. Its scheduled time is from the stage's start: whoever starts the stage moves it to the run's clock.
func (l *Load) Request(stage string, i int) fixtures.LoadRequest {
	s := l.place(stage)
	r := fixtures.LoadRequest{Stage: stage, Index: i, PlannedContextTokens: l.sizes[s][i]}
	if l.run.RequestCanaries {
		r.Marker = loadMarker(l.run.Seed, l.first[s]+i)
	}
	if l.run.ResponseWords > 0 {
		r.ResponseWords, r.Word, r.Strict = l.run.ResponseWords, LoadWord, l.run.ControlledOutputPolicy == "strict"
	}
	if at := l.stages[s].Schedule; at != nil {
		scheduled := at[i]
		r.Scheduled = &scheduled
	}
	return r
}

// Body returns the request body of the i-th request of a stage of the plan. It may be called from several goroutines.
func (l *Load) Body(stage string, i int) []byte {
	r := l.Request(stage, i)
	return l.body.around(l.prompt(r, promptChars(l.run.Calibration, r.PlannedContextTokens)), l.prose)
}

// total is the number of requests of all stages.
func (l *Load) total() int {
	n := 0
	for _, stage := range l.stages {
		n += stage.Requests
	}
	return n
}

func (l *Load) prompt(r fixtures.LoadRequest, chars int) loadPrompt {
	m := loadPrompt{seed: l.run.Seed, model: l.model, stage: r.Stage, index: r.Index, chars: chars, task: loadTask(r)}
	if l.run.PromptCacheMode == cacheShared {
		m.prefix = int(float64(l.run.SharedPrefixTokens) * l.run.Calibration.CharsPerToken)
	}
	return m
}

// The messages that calibrate. Two texts of the filler have the same characters per token but for some twenty tokens,
// whatever their length (seen with the Qwen3 tokenizer), so an eighth of the largest prompt foretells that prompt's tokens
// within a few hundred, which the usual margin covers.
const (
	calibrationShare = 8
	leastCalibration = 9000 // characters: shorter ones would say little, and engines read this in seconds
	calibrationRatio = 6    // of the long message to the short one
	calibrationStage = "calibration"
)

// CalibrationBodies returns the request bodies of two small requests of different size, whose prompt tokens calibrate the
// sizes. They are made like the others and have beginnings of their own, but ask for one token. Where the window is known
// to be small, so are they.
func (l *Load) CalibrationBodies() [][]byte {
	largest := 0
	for _, sizes := range l.sizes {
		largest = max(largest, slices.Max(sizes))
	}
	long := max(leastCalibration, promptChars(Assumed, largest/calibrationShare))
	if tokens, ok := contextCap(l.run); ok {
		long = min(long, 2*tokens) // no common text has fewer than two characters a token
	}
	var bodies [][]byte
	for n, chars := range []int{long / calibrationRatio, long} {
		r := fixtures.LoadRequest{Stage: calibrationStage, Index: n}
		if l.run.ResponseWords > 0 {
			r.ResponseWords, r.Word = l.run.ResponseWords, LoadWord
		}
		if l.run.RequestCanaries { // the sentence around a marker has more tokens for its length than prose
			r.Marker = loadMarker(l.run.Seed, l.total()+n)
		}
		m := l.prompt(r, chars)
		m.prefix = 0
		bodies = append(bodies, l.calibrate.around(m, l.prose))
	}
	return bodies
}

// CalibrationTexts returns the user messages of the calibration's requests.
func (l *Load) CalibrationTexts() []string {
	var texts []string
	for _, body := range l.CalibrationBodies() {
		texts = append(texts, gjson.GetBytes(body, "messages.0.content").String())
	}
	return texts
}

// frame is a request body without its message.
type frame struct{ before, after []byte }

func newFrame(run fixtures.CapacityRun, model string, maxTokens int) (frame, error) {
	e := edit{body: []byte(golden)}
	e.set("model", model)
	e.set("max_tokens", maxTokens)
	if run.Temperature != nil {
		e.set("temperature", *run.Temperature)
	}
	if run.TopP != nil {
		e.set("top_p", *run.TopP)
	}
	if enable, ok := thinkingModes[run.ThinkingMode]; ok && enable != nil {
		e.set("chat_template_kwargs.enable_thinking", *enable)
	}
	if run.ReasoningEffort != "" {
		e.set("reasoning_effort", run.ReasoningEffort)
	}
	// A model's name cannot hold this text: its quotes would be escaped.
	mark := []byte(`"content":"`)
	before, after, ok := bytes.Cut(e.body, mark)
	if e.err == nil && !ok {
		e.err = fmt.Errorf("expected %s in %s", mark, e.body)
	}
	return frame{before: append(bytes.Clone(before), mark...), after: after}, e.err
}

// around returns the body with its message.
func (f frame) around(m loadPrompt, prose []string) []byte {
	// A line end is one more byte than characters, and a line has more than 64; the last one is written whole before it is
	// cut.
	const lastLine = 2048
	room := len(f.before) + len(f.after) + max(0, m.chars) + max(0, m.chars)/64 + len(m.task) + lastLine
	p := &page{body: append(make([]byte, 0, room), f.before...)}
	m.write(p, prose)
	return append(p.body, f.after...)
}

package capacity

import "slices"

// Summary is what a document says in short. Times are milliseconds, rates per second; what is not known is nil.
type Summary struct {
	RunID, Model string
	Engine       string // "" when it does not tell its name
	Concurrency  int

	Requests, Completed, Failed int // of the closed loop; Requests planned
	WithoutResult               int // planned, with neither success nor failure
	ResponsesReceived           int
	FailureClasses              map[string]int
	Wall                        float64 // seconds

	CanariesAttempted, CanariesPassed int // of all replies received
	ForeignMarkers, ForeignInThinking int
	ForeignSeen                       []string // the first few
	WordsExact, WordsSamples          int
	Reasoning                         bool // some reply held reasoning
	TTFT, FirstOutput, TPOT, E2E      Percentiles
	Decode, Prefill                   Percentiles // tokens a second of a request
	Throughput                        *float64    // output tokens a second of all requests together
	MeasuredToPlanned                 *float64    // mean of measured over planned prompt tokens
	GoodputMet, GoodputOf             int         // 0 and 0 without an objective
	Findings                          map[string]int
	Interrupted                       string   // "" when nothing cut the run short
	IncompleteBecause                 []string // empty for a whole run
	AbortedStage, Aborted             string   // the first stage that ended early, and why; "" for none
	Overloaded                        bool     // the client was, in the closed loop
	OverloadReasons                   []string
	Open                              *OpenLoop
	Levels                            []Level
	Knee                              *int // a concurrency
	KneeReason                        string
	Fingerprint                       string
	FingerprintDeclared               bool
}

// Percentiles are those of one figure over the valid replies.
type Percentiles struct {
	P50, P95 *float64
	Samples  int
}

func (b *builder) summary() *Summary {
	c := b.closed
	s := &Summary{
		RunID: b.started.Format(runIDLayout), Model: b.in.Header.Model, Engine: b.in.Header.Engine.Name,
		Concurrency: b.run.Concurrency,
		Requests:    len(b.in.PlannedSizes), Completed: c.completed, Failed: c.failed,
		WithoutResult: len(b.in.PlannedSizes) - c.rows, ResponsesReceived: c.received, FailureClasses: c.classes, Wall: b.wall,
		CanariesAttempted: c.canaries, CanariesPassed: c.canariesPassed,
		ForeignMarkers: c.foreign, ForeignInThinking: c.thought, ForeignSeen: c.markers,
		WordsExact: c.wordsExact, WordsSamples: c.wordsSamples, Reasoning: c.reasoned,
		TTFT: b.percentiles("ttft"), FirstOutput: b.percentiles("time_to_first_output"), TPOT: b.percentiles("tpot"),
		E2E: b.percentiles("e2e"), Decode: b.percentiles("decode_tok_s"), Prefill: b.percentiles("effective_prefill_tok_s"),
		Throughput: c.throughput(len(b.in.PlannedSizes), b.wall), Findings: b.c.findings,
		Interrupted: b.in.Interrupted, IncompleteBecause: b.incomplete(),
		Open: b.open, Levels: b.levels, Knee: b.knee, KneeReason: b.kneeReason,
		Fingerprint: b.fingerprint, FingerprintDeclared: b.declared,
	}
	if len(c.sized) > 0 {
		s.MeasuredToPlanned = new(sumExactly(c.sized).mean())
	}
	if len(b.run.SLO) > 0 {
		s.GoodputMet, s.GoodputOf = c.met, c.rows
	}
	for _, stage := range b.in.Stages {
		if stage.Stopped != "" {
			s.AbortedStage, s.Aborted = stage.Name, stage.Stopped
			break
		}
	}
	if c.stage != nil && c.stage.Client != nil {
		s.Overloaded, s.OverloadReasons = c.stage.Client.Overloaded, c.stage.Client.Reasons
	}
	return s
}

func (b *builder) percentiles(name string) Percentiles {
	i := slices.IndexFunc(families, func(f family) bool { return f.name == name })
	d := b.described[i]
	return Percentiles{d.ranks[50], d.ranks[95], d.samples}
}

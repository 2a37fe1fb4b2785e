package corpus

// The standard protocol's numbers. Those marked ref were read from a public result document of the format
// strata-standard-benchmark; those marked ours are decisions of this project where that document is silent, kept
// here in one place so that they can change; docs/formats.md explains them.

// Phases in their fixed order (ref).
const (
	PhaseWarmup      = "warmup"
	PhasePerformance = "performance"
	PhaseSanity      = "sanity"
	PhaseConcurrency = "concurrency"
)

// Phases lists the phases in order.
var Phases = []string{PhaseWarmup, PhasePerformance, PhaseSanity, PhaseConcurrency}

// Categories of the sanity phase, in order (ref).
var Categories = []string{"instruction", "retrieval", "tool_call"}

// Budgets and repetitions (ref).
const (
	WarmupMaxTokens      = 128
	PerformanceMaxTokens = 512
	SanityMaxTokens      = 2048
	ConcurrencyMaxTokens = 512 // ref for the number, ours for what is asked
	Repetitions          = 3
)

// PerformanceCases in their order within a repetition (ref).
var PerformanceCases = []string{"short", "prompt-4k", "prompt-16k"}

// SanityCases in order (ref).
var SanityCases = []string{"I1", "I2", "I3", "I4", "R1", "R2", "R3", "R4", "T1", "T2", "T3", "T4"}

// Sizes of the long prompts in tokens, template head included, and how far a text may miss them (ours).
const (
	Tokens4K       = 4096
	Tokens16K      = 16384
	SizeTolerance  = 8
	MaxSharedWords = 180 // no two prompts share a longer run of words
)

// Tolerances of the checks on a run (ours).
const (
	// OverheadTolerance is how far the template's overhead (input minus content tokens) may differ between requests of
	// one kind. Two tokens: a tokenizer may merge the text's first or last token with the template's.
	OverheadTolerance = 2
	// EngineOverClient is how many seconds an engine's own times may exceed the client's before its accounting is called
	// broken: its clock may begin before our dispatch is stamped by one scheduling delay, and 42 ms of delay were seen in
	// a genuine capture on a busy machine.
	EngineOverClient = 0.050
	// RateRoundingLimit is the largest relative error that rounding an interval to the document's four decimals may
	// put into a rate. A rate with a larger one is null.
	RateRoundingLimit = 0.01
)

// Concurrency stage (ours).
const (
	ConcurrencyRounds   = 3
	MaxConcurrencyLevel = 256
)

// ConcurrencyLevels returns 2, 4, 8 … up to the capacity, and the capacity itself; none below 2.
func ConcurrencyLevels(capacity int) []int {
	capacity = min(capacity, MaxConcurrencyLevel)
	var levels []int
	for n := 2; n <= capacity; n *= 2 {
		levels = append(levels, n)
	}
	if len(levels) > 0 && levels[len(levels)-1] != capacity {
		levels = append(levels, capacity)
	}
	return levels
}

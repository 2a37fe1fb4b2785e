// Package measure turns an exchange and its transcript into figures: the engine's clock beside the client's. A figure
// has a source, or is unknown with a reason; it is never zero, NaN or infinite for "unknown". It is a pure function and
// never decides whether a figure is good.
package measure

// Maybe is a figure that may be unknown. Reason says why when it is; Source says where it came from when it is not.
type Maybe[T any] struct {
	Value  T
	Known  bool
	Reason string
	Source string
}

// Known makes a figure with its source.
func Known[T any](v T, source string) Maybe[T] {
	return Maybe[T]{Value: v, Known: true, Source: source}
}

// Unknown makes a figure that is not known, with the reason.
func Unknown[T any](reason string) Maybe[T] { return Maybe[T]{Reason: reason} }

// Status is how a request ended, in the standard protocol's words.
type Status string

// The statuses of a request.
const (
	Completed Status = "completed" // finish reason stop or tool_calls
	Truncated Status = "truncated" // finish reason length
	Failed    Status = "failed"    // no whole, readable reply: transport, refusal, in-band error, time-out
	Skipped   Status = "skipped"   // never sent
)

// Basis says whose clock the rates come from.
type Basis string

// The bases of rates.
const (
	EngineBasis Basis = "engine"
	ClientBasis Basis = "client"
)

// Convention says how the engine counts its decode interval: over all n tokens, or over the n-1 after the first.
type Convention string

// The conventions of the decode interval.
const (
	AllTokens     Convention = "n"
	AfterFirst    Convention = "n-1"
	NotDetermined Convention = "undetermined" // both fit within the tolerance, or nothing to check
)

// Figures are the figures of one request. Seconds and rates are rounded to the standard document's decimals: engine
// seconds 4, client seconds 6, rates 6.
type Figures struct {
	Status Status
	Error  Maybe[string] // why the request failed; unknown when it did not

	FinishReason Maybe[string]

	InputTokens  Maybe[int64]
	CachedTokens Maybe[int64]
	ReadTokens   Maybe[int64]
	OutputTokens Maybe[int64]
	DecodeTokens Maybe[int64]

	PromptSeconds Maybe[float64]
	DecodeSeconds Maybe[float64]
	TTFT          Maybe[float64] // dispatch to the first non-empty delta of any kind
	FirstAnswer   Maybe[float64] // dispatch to the first answer text or tool call
	Total         Maybe[float64] // dispatch to the end of the body

	PromptTPS Maybe[float64]
	DecodeTPS Maybe[float64] // by the clock that Basis names
	// ClientDecodeTPS is the decode rate by the client's clock whatever the basis: the tokens after the first over the
	// time from the first delta to the last.
	ClientDecodeTPS Maybe[float64]

	// EnginePromptTPS and EngineDecodeTPS are the engine's counts over its milliseconds as they were sent: without the
	// rounding of the standard's document, and so known for intervals too short for it.
	EnginePromptTPS Maybe[float64]
	EngineDecodeTPS Maybe[float64]

	FirstDeltaKind Maybe[string]
	AccountingNote Maybe[string] // known only when API and engine counts differ

	Basis      Basis
	Convention Convention

	// Broken lists what is wrong with the reply's accounting, in sentences: counts that contradict each other, engine
	// seconds that cannot be true. Empty when nothing is.
	Broken []string
}

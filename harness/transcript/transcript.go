// Package transcript reads the bytes of an exchange: body to events, events to chunks, chunks to what the model said,
// with every deviation seen on the way. It is a pure function of the exchange: it never opens a connection, never
// reads a clock and never decides whether an answer is right.
package transcript

import (
	"encoding/json"
	"time"
)

// Transcript is what a server said in one exchange, and how.
type Transcript struct {
	// Stream says whether the body was read as an event stream (else as one JSON document).
	Stream bool
	// Events are the event-stream events in order.
	Events []Event
	// Deltas are the non-empty pieces of output in order of arrival, of choice 0.
	Deltas []Delta

	Role string
	// Content is the answer text after repairs: thinking that stood between tags is in Reasoning, repeated text is
	// there once. Where nothing was repaired it is what was sent.
	Content string
	// ContentSent is the answer text exactly as sent, joined.
	ContentSent string
	Reasoning   string
	// ContentStrings is the answer text as sent without what was taken out of values that should have been strings.
	ContentStrings string
	// ReasoningField names the member that carried the thinking, "" when none did.
	ReasoningField string
	ToolCalls      []ToolCall
	// FinishReason is the last finish reason sent; null when none was. An empty string is none.
	FinishReason *string
	// FinishReasonCount is how many finish reasons were sent.
	FinishReasonCount int
	// DoneSeen says whether [DONE] arrived.
	DoneSeen bool
	// DoneAt is the offset of the first [DONE]; zero when none arrived.
	DoneAt time.Duration
	// EventsAfterDone counts events after the first [DONE], which are not read.
	EventsAfterDone int
	Usage           *Usage
	Timings         *Timings
	// Error is an error object sent by the server, in a refusal or inside a stream.
	Error *APIError

	ID, Model, SystemFingerprint string
	// IDs are the different ids of the chunks in order of first sight, the first distinctIDsKept of them; DistinctIDs is
	// how many there were.
	IDs         []string
	DistinctIDs int

	// ModelIDs are the ids of a model list, for a request that asked for one; null where no list could be read.
	ModelIDs []string

	// Untimed says that the offsets of the exchange mean nothing (see ReadUntimed).
	Untimed bool

	Findings []Finding
}

// Event is one event of an event stream. At is the offset of the piece that completed it.
type Event struct {
	At   time.Duration
	Name string // the event field, "" for none
	Data []byte
}

// DeltaKind is the channel of a piece of output.
type DeltaKind string

// The channels of output.
const (
	Reasoning DeltaKind = "reasoning"
	Content   DeltaKind = "content"
	Call      DeltaKind = "tool_call"
	// Markup is text of the answer channel that belongs to no channel: thinking tags and blank lines around them.
	Markup DeltaKind = "markup"
)

// Delta is one non-empty piece of output. Role-only chunks, empty strings, nulls and comments are none.
type Delta struct {
	Kind  DeltaKind
	At    time.Duration
	Event int // index into Events
	// Text is the text; of a tool call, the piece of its name and arguments.
	Text string
	// Recovered says that the text was taken out of a value that should have been a string.
	Recovered bool
}

// ToolCall is an assembled tool call. Arguments is the joined string exactly as sent, or the compact JSON of a value
// that was sent in place of a string.
type ToolCall struct {
	Index     int
	ID        string
	Type      string
	Name      string
	Arguments string
	// NotString says that Arguments is such a value.
	NotString bool
}

// Usage is the interface's own token accounting. A nil field was not sent, or not as a number.
type Usage struct {
	PromptTokens     *int64
	CompletionTokens *int64
	TotalTokens      *int64
	CachedTokens     *int64 // prompt_tokens_details.cached_tokens
	ReasoningTokens  *int64 // completion_tokens_details.reasoning_tokens
	Raw              json.RawMessage
}

// Timings is the engine's own timing block in llama.cpp's names. A nil field was not sent, or not as a finite number.
type Timings struct {
	CacheN             *int64
	PromptN            *int64
	PromptMS           *float64
	PromptPerSecond    *float64
	PredictedN         *int64
	PredictedMS        *float64
	PredictedPerSecond *float64
	DraftN             *int64
	DraftNAccepted     *int64
	Raw                json.RawMessage
}

// APIError is an error object of the interface.
type APIError struct {
	Status int    // HTTP status of the response that held it
	Event  int    // event index inside a stream, -1 outside one
	Type   string // "" when not sent
	Code   string // as text, "" when not sent
	// CodeNumber says that the code was sent as a number.
	CodeNumber bool
	Message    string
}

// Severity says how much a finding weighs.
type Severity string

// The severities: an Info stands beside the result, a Warning is a deviation that leaves the answer readable, a Fault is wrong.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Fault   Severity = "fault"
)

// Finding is one deviation. Event is the event index, or -1; Path is a JSON path inside the event or body, "" for none.
type Finding struct {
	ID       string
	Severity Severity
	Event    int
	Path     string
	Sentence string
}

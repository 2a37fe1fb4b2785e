package capacity

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Document is a result document as it was read. What it lacked is nil or empty; what this package does not know is kept
// under Unknown. Times are milliseconds, rates per second.
type Document struct {
	Schema                   string  `json:"schema"`
	MeasurementProtocol      string  `json:"measurement_protocol"`
	RunID                    string  `json:"run_id"`
	StartedAt                string  `json:"started_at"`
	FinishedAt               string  `json:"finished_at"`
	StartedAtUnixNS          *int64  `json:"started_at_unix_ns"`
	FinishedAtUnixNS         *int64  `json:"finished_at_unix_ns"`
	ClockDomainID            *string `json:"clock_domain_id"`
	ConfigurationFingerprint *string `json:"configuration_fingerprint"`

	WallClockMS *float64 `json:"wall_clock_ms"`
	BaseURL     *string  `json:"base_url"`
	Model       string   `json:"model"`
	Engine      *string  `json:"engine"`
	GPU         *string  `json:"gpu"`

	Requests          *int64 `json:"requests"` // planned
	Completed         *int64 `json:"completed"`
	Failed            *int64 `json:"failed"`
	ResponsesReceived *int64 `json:"responses_received"`

	Concurrency            *int64           `json:"concurrency"`
	ContextTokens          *int64           `json:"context_tokens"` // null: sizes were drawn
	ContextSeed            *int64           `json:"context_seed"`
	ContextDistribution    map[string]int64 `json:"context_distribution"` // requests by planned tokens
	MaxContextTokens       *int64           `json:"max_context_tokens"`
	MaxTokens              *int64           `json:"max_tokens"`
	ResponseWords          *int64           `json:"response_words"`
	PromptCacheMode        string           `json:"prompt_cache_mode"`
	SharedPrefixTokens     *int64           `json:"shared_prefix_tokens"`
	RequestCanaries        *bool            `json:"request_canaries"`
	ControlledOutputPolicy string           `json:"controlled_output_policy"`
	PerformanceEligible    *bool            `json:"performance_eligible"`

	// Metrics are kept as written: Metric reads one that is a number.
	Metrics        map[string]jsontext.Value `json:"metrics"`
	RequestTimings []Timing                  `json:"request_timings"`
	Failures       []Failure                 `json:"failures"`
	Sampling       *Sampling                 `json:"sampling"`
	// Extensions are kept as written, by the name of the program that added them.
	Extensions map[string]jsontext.Value `json:"extensions"`

	Unknown map[string]jsontext.Value `json:",embed"`
}

// Timing is what a document says of a request's times and tokens.
type Timing struct {
	RequestIndex         *int64   `json:"request_index"`
	PlannedContextTokens *int64   `json:"planned_context_tokens"`
	TimeToFirstOutputMS  *float64 `json:"time_to_first_output_ms"`
	TTFTMS               *float64 `json:"ttft_ms"`
	E2EMS                *float64 `json:"e2e_ms"`
	GenerationMS         *float64 `json:"generation_ms"`
	VisibleGenerationMS  *float64 `json:"visible_generation_ms"`
	EffectivePrefillTokS *float64 `json:"effective_prefill_tok_s"`
	DecodeTokS           *float64 `json:"decode_tok_s"`
	TPOTMS               *float64 `json:"tpot_ms"`
	PromptTokens         *int64   `json:"prompt_tokens"`
	OutputTokens         *int64   `json:"output_tokens"`
	OutputTokenSource    *string  `json:"output_token_source"`

	Unknown map[string]jsontext.Value `json:",embed"`
}

// Failure is a request that is in no distribution.
type Failure struct {
	RequestIndex     *int64  `json:"request_index"`
	FailureClass     string  `json:"failure_class"`
	ErrorType        string  `json:"error_type"`
	ErrorMessage     string  `json:"error_message"`
	ResponseReceived *bool   `json:"response_received"`
	ResponseTiming   *Timing `json:"response_timing"`

	Unknown map[string]jsontext.Value `json:",embed"`
}

// Sampling is how replies were sampled.
type Sampling struct {
	Temperature *Sampled `json:"temperature"`
	TopP        *Sampled `json:"top_p"`

	Unknown map[string]jsontext.Value `json:",embed"`
}

// Sampled is a sampling setting: what was asked for, whether it was sent, and what the request held.
type Sampled struct {
	Requested        *float64 `json:"requested"`
	Sent             bool     `json:"sent"`
	EffectiveRequest *float64 `json:"effective_request"`

	Unknown map[string]jsontext.Value `json:",embed"`
}

// Parse reads a document. It must be strict JSON of this schema with values of the format's types; members that it lacks
// or has besides are no fault. Validate says whether the document is right.
func Parse(data []byte) (*Document, error) {
	if problem := strict(data); problem != nil {
		return nil, fmt.Errorf("read capacity document: %s", problem)
	}
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("read capacity document: %w", err)
	}
	if d.Schema != SchemaName {
		return nil, fmt.Errorf("read capacity document: expected the schema %q, received %q", SchemaName, d.Schema)
	}
	return &d, nil
}

// Metric is a metric's number; false where it is absent, null or no number.
func (d *Document) Metric(name string) (float64, bool) {
	var v *float64
	if raw, ok := d.Metrics[name]; !ok || json.Unmarshal(raw, &v) != nil || v == nil {
		return 0, false
	}
	return *v, true
}

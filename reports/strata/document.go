package strata

import "encoding/json"

// Format and SchemaVersion identify the document (ref).
const (
	Format        = "strata-standard-benchmark"
	SchemaVersion = 1
)

// Document is a result document. Its fields are in the order in which they are written. Types are exact: a field that
// the format allows to be null is a Null.
type Document struct {
	Format            string             `json:"format"`
	SchemaVersion     int                `json:"schema_version"`
	Protocol          Protocol           `json:"protocol"`
	Run               Run                `json:"run"`
	Hardware          Hardware           `json:"hardware"`
	Software          Software           `json:"software"`
	Model             Model              `json:"model"`
	Configuration     Configuration      `json:"configuration"`
	RequestCounts     RequestCounts      `json:"request_counts"`
	Requests          []Request          `json:"requests"`
	Summaries         []Summary          `json:"summaries"`
	ConcurrencyRounds []ConcurrencyRound `json:"concurrency_rounds"`
	Quality           Quality            `json:"quality"`
	Artifacts         []Artifact         `json:"artifacts"`
	// Missing holds, for every null of the document, its JSON pointer (RFC 6901) and the reason.
	Missing    Ordered[string] `json:"missing"`
	Extensions Extensions      `json:"extensions"`
}

// Protocol says what was asked, in which words. GitCommit is the source commit of the program that holds the protocol.
type Protocol struct {
	ID                string       `json:"id"`
	GitCommit         Null[string] `json:"git_commit"`
	Profile           string       `json:"profile"`
	CorpusSHA256      string       `json:"corpus_sha256"`
	ModelCardRevision Null[string] `json:"model_card_revision"`
}

// RunStatus says whether a run followed the protocol.
type RunStatus string

// The statuses of a run. Incomplete: it ended before every required request was attempted.
const (
	Conforming    RunStatus = "conforming"
	Nonconforming RunStatus = "nonconforming"
	Incomplete    RunStatus = "incomplete"
)

// Run says when and how the requests were sent. Durations are in seconds, 3 decimals.
type Run struct {
	ID        string    `json:"id"`         // YYYYMMDDTHHMMSSZ- and 8 hex digits
	StartedAt string    `json:"started_at"` // RFC 3339, whole seconds, UTC
	Status    RunStatus `json:"status"`
	// RequiredDuration runs from the dispatch of the warm-up to the end of the last required request.
	RequiredDuration Null[Number] `json:"required_duration_s"`
	// OptionalDuration runs from the first dispatch of the concurrency stage to its last end.
	OptionalDuration    Null[Number] `json:"optional_duration_s"`
	OptionalConcurrency bool         `json:"optional_concurrency"`
	Command             string       `json:"command"`
}

// Hardware is the machine that the engine runs on.
type Hardware struct {
	GPUs                Null[[]GPU]  `json:"gpus"`
	CPU                 Null[string] `json:"cpu"`
	RAMBytes            Null[int64]  `json:"ram_bytes"`
	Storage             Null[string] `json:"storage"`
	BackgroundWorkloads Null[string] `json:"background_workloads"`
}

// GPU is one accelerator. PowerLimitW is in watts.
type GPU struct {
	DeviceIndex int          `json:"device_index"`
	Name        Null[string] `json:"name"`
	MemoryBytes Null[int64]  `json:"memory_bytes"`
	MemoryKind  Null[string] `json:"memory_kind"` // dedicated, unified
	PowerLimitW Null[Number] `json:"power_limit_w"`
}

// Software is what runs on the machine of the engine, and the runner itself.
type Software struct {
	OS            Null[OS]            `json:"os"`
	Drivers       Null[[]NameVersion] `json:"drivers"`
	Runtime       Null[[]NameVersion] `json:"runtime"`
	StrataCommit  Null[string]        `json:"strata_commit"`
	EngineVersion Null[string]        `json:"engine_version"`
	BuildKind     Null[string]        `json:"build_kind"`
	RunnerCommit  Null[string]        `json:"runner_commit"`
	BuildOptions  Null[string]        `json:"build_options"`
}

// OS is an operating system: the distribution's name, and the version of its kernel.
type OS struct {
	Name    Null[string] `json:"name"`
	Version Null[string] `json:"version"`
}

// NameVersion is a named piece of software.
type NameVersion struct {
	Name    string       `json:"name"`
	Version Null[string] `json:"version"`
}

// Model is what was served.
type Model struct {
	ID                Null[string]      `json:"id"`
	Revision          Null[string]      `json:"revision"`
	SourceRevision    Null[string]      `json:"source_revision"`
	Quantization      Null[string]      `json:"quantization"`
	Files             Null[[]ModelFile] `json:"files"`
	TokenizerRevision Null[string]      `json:"tokenizer_revision"`
	CustomPack        Null[string]      `json:"custom_pack"`
}

// ModelFile is a local model file.
type ModelFile struct {
	Path   string       `json:"path"`
	Bytes  int64        `json:"bytes"`
	SHA256 Null[string] `json:"sha256"`
}

// Configuration is how the engine was set up and how it was asked.
type Configuration struct {
	Track               Null[string]    `json:"track"`
	TrackNotes          Null[string]    `json:"track_notes"`
	ContextTokens       Null[int]       `json:"context_tokens"`
	ServerCapacity      Null[int]       `json:"server_capacity"`
	KVCache             Null[string]    `json:"kv_cache"`
	ExpertCache         Null[string]    `json:"expert_cache"`
	Offloading          Null[string]    `json:"offloading"`
	Prefill             Null[string]    `json:"prefill"`
	MTP                 Null[string]    `json:"mtp"`
	Calibration         Null[string]    `json:"calibration"`
	ExperimentalOptions Null[string]    `json:"experimental_options"`
	Template            Null[Template]  `json:"template"`
	Sampling            json.RawMessage `json:"sampling"`
	ChatTemplateKwargs  json.RawMessage `json:"chat_template_kwargs"`
}

// Template is the chat template, kept among the artifacts.
type Template struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// RequestCounts counts requests by phase and status.
type RequestCounts struct {
	Warmup      Counts `json:"warmup"`
	Performance Counts `json:"performance"`
	Sanity      Counts `json:"sanity"`
	Concurrency Counts `json:"concurrency"`
}

// Counts counts one phase: planned = attempted + skipped, attempted = completed + truncated + failed.
type Counts struct {
	Planned   int `json:"planned"`
	Attempted int `json:"attempted"`
	Completed int `json:"completed"`
	Truncated int `json:"truncated"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
}

// Request is one request of the plan and its outcome.
type Request struct {
	ID              string       `json:"id"`
	Phase           string       `json:"phase"`
	CaseID          string       `json:"case_id"`
	Repetition      int          `json:"repetition"`
	Seed            int64        `json:"seed"`
	MaxOutputTokens int          `json:"max_output_tokens"`
	Concurrency     int          `json:"concurrency"`
	Round           Null[int]    `json:"round"`
	Status          string       `json:"status"` // completed, truncated, failed, skipped
	FinishReason    Null[string] `json:"finish_reason"`
	Error           Null[string] `json:"error"`
	Tokens          Tokens       `json:"tokens"`
	Timings         Timings      `json:"timings"`
	Metrics         Metrics      `json:"metrics"`
	Sources         Sources      `json:"sources"`
	FirstDeltaKind  Null[string] `json:"first_delta_kind"` // reasoning, content, tool_call
	// TokenAccountingNote is set when two counts of one thing differ, or the output passes its budget.
	TokenAccountingNote Null[string]     `json:"token_accounting_note"`
	Evaluation          Null[Evaluation] `json:"evaluation"` // sanity only
}

// Tokens are the counts of one request.
type Tokens struct {
	Input  Null[int64] `json:"input_tokens"`
	Cached Null[int64] `json:"cached_tokens"`
	Read   Null[int64] `json:"read_tokens"`
	Output Null[int64] `json:"output_tokens"`
	Decode Null[int64] `json:"decode_tokens"`
}

// Timings are in seconds: the engine's own with 4 decimals, the client's with 6.
type Timings struct {
	Prompt      Null[Number] `json:"prompt_s"`
	Decode      Null[Number] `json:"decode_s"`
	TTFT        Null[Number] `json:"ttft_s"`
	FirstAnswer Null[Number] `json:"first_answer_s"`
	Total       Null[Number] `json:"total_s"`
}

// Metrics are rates in tokens per second, 6 decimals.
type Metrics struct {
	PromptTPS Null[Number] `json:"prompt_tps"`
	DecodeTPS Null[Number] `json:"decode_tps"`
}

// Sources say in words where each figure of a request came from, or why there is none.
type Sources struct {
	Input         string `json:"input_tokens"`
	Cached        string `json:"cached_tokens"`
	Read          string `json:"read_tokens"`
	Output        string `json:"output_tokens"`
	Decode        string `json:"decode_tokens"`
	EngineTimings string `json:"engine_timings"`
	ClientTimings string `json:"client_timings"`
}

// Evaluation is the verdict on a sanity answer.
type Evaluation struct {
	Category string `json:"category"` // instruction, retrieval, tool_call
	Passed   bool   `json:"passed"`
	Reason   string `json:"reason"`
}

// Summary sums up one metric over the repetitions of one performance case.
type Summary struct {
	Phase       string       `json:"phase"`
	CaseID      string       `json:"case_id"`
	Concurrency int          `json:"concurrency"`
	Metric      string       `json:"metric"`
	Unit        string       `json:"unit"`
	Median      Null[Number] `json:"median"`
	Min         Null[Number] `json:"min"`
	Max         Null[Number] `json:"max"`
	N           int          `json:"n"`
	Included    []string     `json:"included_request_ids"`
	Excluded    []Exclusion  `json:"excluded"`
}

// Exclusion says why a request is not in a summary.
type Exclusion struct {
	RequestID string `json:"request_id"`
	Reason    string `json:"reason"`
}

// ConcurrencyRound is one round of the optional stage (ours): requests that were dispatched together.
type ConcurrencyRound struct {
	Concurrency int      `json:"concurrency"`
	Round       int      `json:"round"`
	RequestIDs  []string `json:"request_ids"`
	// Wall is the time in seconds from the first dispatch to the last end.
	Wall Null[Number] `json:"wall_s"`
	// OutputTokens counts the replies that arrived whole; OutputTPS is that count over Wall.
	OutputTokens Null[int64]  `json:"output_tokens"`
	OutputTPS    Null[Number] `json:"output_tps"`
	// Together is the time in seconds during which every request of the round was decoding, TogetherTPS the tokens that
	// arrived in it over that time. A reply's tokens are spread evenly over its deltas.
	Together    Null[Number] `json:"all_decoding_s"`
	TogetherTPS Null[Number] `json:"all_decoding_tps"`
	// Slowest and Fastest are the extremes of decode_tps; Spread is Slowest over Fastest.
	Slowest Null[Number] `json:"slowest_decode_tps"`
	Fastest Null[Number] `json:"fastest_decode_tps"`
	Spread  Null[Number] `json:"slowest_to_fastest"`
	// ForeignMarkers are the markers of other requests, of this round or any other, in the round's replies.
	ForeignMarkers []ForeignMarker `json:"foreign_markers"`
}

// ForeignMarker is the marker of one request in the reply to another.
type ForeignMarker struct {
	RequestID  string `json:"request_id"` // whose reply holds it
	Marker     string `json:"marker"`
	Owner      string `json:"owner"` // the request that it was given to
	InThinking bool   `json:"in_thinking"`
}

// Quality counts the sanity verdicts. A request that was not sent, or failed, has not passed.
type Quality struct {
	Passed     int            `json:"passed"`
	Total      int            `json:"total"`
	Categories Ordered[Score] `json:"categories"`
}

// Score counts the verdicts of one category.
type Score struct {
	Passed int `json:"passed"`
	Total  int `json:"total"`
}

// Artifact is a file beside the document.
type Artifact struct {
	Kind   string `json:"kind"` // outputs, config, provenance
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Extensions is what a runner adds. The first nine are known from the reference, the others are ours.
type Extensions struct {
	Suite                string                `json:"suite"`
	Runner               string                `json:"runner"`
	StatusReasons        []string              `json:"status_reasons"`
	StatusReasonCodes    []string              `json:"status_reason_codes"` // ours: one stable code beside each reason
	StartedEngine        bool                  `json:"started_engine"`
	ServerRequestsBefore Null[int64]           `json:"server_requests_before_run"`
	OtherEngineOptions   Ordered[string]       `json:"other_engine_options"`
	RequestChecks        Ordered[RequestCheck] `json:"request_checks"`
	OptionalStageSkipped bool                  `json:"optional_stage_skipped"`
	APIKeySent           bool                  `json:"api_key_sent"`
	RunnerVersion        Null[string]          `json:"runner_version"`
	EngineKind           Null[string]          `json:"engine_kind"` // live, mock, replay, process, container
	EngineName           Null[string]          `json:"engine_name"`
	EngineCommit         Null[string]          `json:"engine_commit"`
	TimingBasis          Null[string]          `json:"timing_basis"`      // whose clock the rates are from: engine, client
	DecodeConvention     Null[string]          `json:"decode_convention"` // n, n-1, undetermined
	// ClientDecodeTPS is each request's decode rate by the client's clock, to hold against the engine's: output tokens
	// less one over the time from the first delta to the last.
	ClientDecodeTPS        Ordered[Null[Number]] `json:"client_decode_tps"`
	RepetitionDrift        Ordered[Drift]        `json:"repetition_drift"`
	ClockResolutionSeconds Null[Number]          `json:"clock_resolution_s"` // 9 decimals
	// ServedModelsBefore and ServedModelsAfter are the ids of the models that the engine said it served, before the run and after its last request.
	ServedModelsBefore Null[[]string] `json:"served_models_before"`
	ServedModelsAfter  Null[[]string] `json:"served_models_after"`
	// GPUStates are the states of the accelerators before and after each phase, as their vendors' tools told them.
	GPUStates Null[[]GPUState] `json:"gpu_states"`
	// Notes say what the figures of this document do not.
	Notes []string `json:"notes"`
	// Findings are the deviations of each reply from the interface; requests without any are left out.
	Findings Ordered[[]Finding] `json:"findings"`
}

// Drift is the relative change of a rate from the first repetition of a case to its last, 6 decimals: 0.2 means that the
// last was a fifth faster.
type Drift struct {
	PromptTPS Null[Number] `json:"prompt_tps"`
	DecodeTPS Null[Number] `json:"decode_tps"`
}

// GPUState is how the accelerators were before or after a phase, while no request was under way.
type GPUState struct {
	Phase    string             `json:"phase"`
	When     string             `json:"when"` // before, after
	Readings Null[[]GPUReading] `json:"readings"`
}

// GPUReading is one accelerator at one moment: watts, degrees Celsius, megahertz, with the decimals of the tool.
type GPUReading struct {
	DeviceIndex    int          `json:"device_index"`
	PowerW         Null[Number] `json:"power_w"`
	TemperatureC   Null[Number] `json:"temperature_c"`
	CoreClockMHz   Null[Number] `json:"core_clock_mhz"`
	MemoryClockMHz Null[Number] `json:"memory_clock_mhz"`
}

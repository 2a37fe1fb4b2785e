package mockserver

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// completion is a reply, or one chunk of a streamed one.
type completion struct {
	ID                string   `json:"id"`
	Object            string   `json:"object"`
	Created           int64    `json:"created"`
	Model             string   `json:"model"`
	SystemFingerprint string   `json:"system_fingerprint"`
	Choices           []choice `json:"choices"`
	Usage             *usage   `json:"usage,omitempty"`
	Timings           *timings `json:"timings,omitempty"`
}

// choice has a Delta in a stream and a Message elsewhere.
type choice struct {
	Index        int      `json:"index"`
	Delta        any      `json:"delta,omitempty"`
	Message      *message `json:"message,omitempty"`
	FinishReason *string  `json:"finish_reason"`
}

// The deltas of a stream. Each carries exactly the keys that llama.cpp sends.
type (
	roleDelta struct {
		Role    string  `json:"role"`
		Content *string `json:"content"`
	}
	reasoningDelta struct {
		Reasoning string `json:"reasoning_content"`
	}
	contentDelta struct {
		Content string `json:"content"`
	}
	callDelta struct {
		ToolCalls []toolCall `json:"tool_calls"`
	}
	endDelta struct{}
)

// message is a whole reply. Content is null beside a tool call.
type message struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// toolCall is a call or a piece of one. Index is left out of whole replies, ID, Type and Name of all pieces but the
// first.
type toolCall struct {
	Index    *int     `json:"index,omitempty"`
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// usage is the interface's token accounting. PromptDetails is promptDetails, unless it is to be wrong.
type usage struct {
	PromptTokens     int               `json:"prompt_tokens"`
	CompletionTokens int               `json:"completion_tokens"`
	TotalTokens      int               `json:"total_tokens"`
	PromptDetails    any               `json:"prompt_tokens_details"`
	Details          completionDetails `json:"completion_tokens_details"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

type completionDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// timings is the engine's own clock. Milliseconds have three decimals; the rates follow from them as they stand.
type timings struct {
	CacheN              int     `json:"cache_n"`
	PromptN             int     `json:"prompt_n"`
	PromptMS            float64 `json:"prompt_ms"`
	PromptPerTokenMS    float64 `json:"prompt_per_token_ms"`
	PromptPerSecond     float64 `json:"prompt_per_second"`
	PredictedN          int     `json:"predicted_n"`
	PredictedMS         float64 `json:"predicted_ms"`
	PredictedPerTokenMS float64 `json:"predicted_per_token_ms"`
	PredictedPerSecond  float64 `json:"predicted_per_second"`
}

// newTimings states what the clock showed for the counts that are given.
func newTimings(counts timings, c clock) *timings {
	t := timings{CacheN: counts.CacheN, PromptN: counts.PromptN, PredictedN: counts.PredictedN}
	t.PromptMS, t.PromptPerTokenMS, t.PromptPerSecond = rates(t.PromptN, c.prefill)
	t.PredictedMS, t.PredictedPerTokenMS, t.PredictedPerSecond = rates(t.PredictedN, c.decode())
	return &t
}

// rates is n tokens in d as milliseconds, milliseconds a token and tokens a second. A rate without tokens or without time
// is 0, as llama.cpp writes it.
func rates(n int, d time.Duration) (ms, perToken, perSecond float64) {
	ms = math.Round(float64(d)/float64(time.Microsecond)) / 1000
	if n > 0 && ms > 0 {
		perToken, perSecond = ms/float64(n), 1000*float64(n)/ms
	}
	return ms, perToken, perSecond
}

// appendJSON writes v without escapes that JSON does not need.
func appendJSON(b *bytes.Buffer, v any) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("encode own reply: " + err.Error()) // every value written is a plain struct of this package
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	appendJSON(&b, v)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	w.Write(b.Bytes()) // a client that has left is no concern of the engine
}

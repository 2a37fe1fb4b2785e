package capacity

import (
	"cmp"
	"encoding/json"
	"strconv"

	"plumbline/fixtures"
)

// timing is what is known of a reply's times and tokens.
func timing(r *fixtures.Row) object {
	return object{
		"request_index":                 r.RequestIndex,
		"planned_context_tokens":        r.PlannedContextTokens,
		"time_to_first_output_ms":       r.TimeToFirstOutputMS,
		"ttft_ms":                       r.TTFTMS,
		"e2e_ms":                        r.E2EMS,
		"generation_ms":                 r.GenerationMS,
		"visible_generation_ms":         r.VisibleGenerationMS,
		"effective_prefill_tok_s":       r.EffectivePrefillTokS,
		"decode_tok_s":                  r.DecodeTokS,
		"mean_inter_token_latency_ms":   r.TPOTMS,
		"mean_time_per_output_token_ms": r.TPOTMS,
		"tpot_ms":                       r.TPOTMS,
		"prompt_tokens":                 r.PromptTokens,
		"output_tokens":                 r.OutputTokens,
		"output_token_source":           told(r.OutputTokenSource),
		"content_chunks":                r.ContentChunks,
		"reasoning_chunks":              r.ReasoningChunks,
	}
}

// valid makes the request_timings entry of a valid reply.
func valid(run *fixtures.CapacityRun) func(*fixtures.Row) object {
	return func(r *fixtures.Row) object {
		o := timing(r)
		o["visible_content_truncated"] = r.VisibleContentTruncated
		contracts(o, run, r)
		return o
	}
}

// failure makes the failures entry of a row. It holds no text of the reply.
func failure(run *fixtures.CapacityRun) func(*fixtures.Row) object {
	return func(r *fixtures.Row) object {
		message, cut := firstCharacters(cmp.Or(r.Failure.Message, r.Failure.Type, r.Failure.Class), maxMessage)
		o := object{
			"request_index":           r.RequestIndex,
			"planned_context_tokens":  r.PlannedContextTokens,
			"failure_class":           r.Failure.Class,
			"error_type":              cmp.Or(r.Failure.Type, r.Failure.Class),
			"error_message":           message,
			"error_message_truncated": cut || r.Failure.Truncated,
			"response_received":       r.ResponseReceived,
			"performance_eligible":    false,
			"elapsed_ms":              r.E2EMS,
		}
		if r.ResponseReceived {
			o["response_timing"], o["response_metadata"] = timing(r), metadata(r)
			contracts(o, run, r)
		}
		return o
	}
}

func firstCharacters(s string, n int) (string, bool) {
	for at := range s {
		if n == 0 {
			return s[:at], true
		}
		n--
	}
	return s, false
}

// contracts puts in how the reply kept to what it was asked for.
func contracts(o object, run *fixtures.CapacityRun, r *fixtures.Row) {
	o["request_canary"], o["controlled_output"] = nil, nil
	if c := r.Canary; c != nil {
		o["request_canary"] = object{
			"capture_complete": c.CaptureComplete, "foreign_marker_count": c.ForeignMarkerCount, "marker": c.Marker,
			"marker_at_start": c.MarkerAtStart, "observed_marker_count": c.ObservedMarkerCount, "passed": c.Passed,
		}
	}
	if c := r.ControlledOutput; c != nil {
		exact := &c.Exact
		if c.ObservedWords == nil {
			exact = nil
		}
		o["controlled_output"] = object{
			"policy": run.ControlledOutputPolicy, "requested_words": c.RequestedWords, "observed_words": c.ObservedWords,
			"exact_adherence": exact, "capture_complete": c.ObservedWords != nil,
		}
	}
}

func metadata(r *fixtures.Row) object {
	reasons := list{}
	for _, reason := range r.FinishReasons {
		reasons = append(reasons, reason)
	}
	return object{
		"output_token_source":       told(r.OutputTokenSource),
		"content_chunks":            r.ContentChunks,
		"reasoning_chunks":          r.ReasoningChunks,
		"finish_reasons":            reasons,
		"stream_terminal_observed":  r.StreamTerminalObserved,
		"visible_content_truncated": r.VisibleContentTruncated,
		"usage":                     usage(r),
	}
}

// usage keeps the three counts of a usage object, where they are counts: what else a server puts there may be anything.
func usage(r *fixtures.Row) object {
	o := object{}
	if r.PromptTokens != nil {
		o["prompt_tokens"] = *r.PromptTokens
	}
	if r.CompletionTokens != nil {
		o["completion_tokens"] = *r.CompletionTokens
	}
	var sent map[string]json.RawMessage
	if json.Unmarshal(r.Usage, &sent) != nil {
		return o
	}
	for _, name := range []string{"prompt_tokens", "completion_tokens", "total_tokens"} {
		if n, err := strconv.ParseInt(string(sent[name]), 10, 64); err == nil && n >= 0 {
			o[name] = n
		}
	}
	return o
}

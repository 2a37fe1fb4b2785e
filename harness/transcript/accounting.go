package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// usage reads a usage object. Null is none: the last object counts.
func (r *reader) usage(v []byte, index int) {
	if isNull(v) {
		return
	}
	if !isObject(v) {
		r.addAs(Warning, UsageInconsistent, index, "usage", "it is no object")
		return
	}
	count := func(path string, v []byte) *int64 {
		n := integer(v)
		if n == nil && !isNull(v) {
			r.addAs(Warning, UsageInconsistent, index, path, "it is no whole number but "+quote(v))
		}
		return n
	}
	u := &Usage{Raw: bytes.Clone(v)}
	eachMember(v, func(name, v []byte) {
		switch string(name) {
		case "prompt_tokens":
			u.PromptTokens = count("usage.prompt_tokens", v)
		case "completion_tokens":
			u.CompletionTokens = count("usage.completion_tokens", v)
		case "total_tokens":
			u.TotalTokens = count("usage.total_tokens", v)
		case "prompt_tokens_details":
			u.CachedTokens = count("usage.prompt_tokens_details.cached_tokens", member(v, "cached_tokens"))
		case "completion_tokens_details":
			u.ReasoningTokens = count("usage.completion_tokens_details.reasoning_tokens", member(v, "reasoning_tokens"))
		}
	})
	if last := r.t.Usage; last != nil && r.asked.choices <= 1 && (falls(last.PromptTokens, u.PromptTokens) ||
		falls(last.CompletionTokens, u.CompletionTokens)) {
		r.add(UsageInconsistent, index, "usage", "a count fell from one chunk to the next")
	}
	r.usages++
	r.usageAt = index
	r.t.Usage = u
}

// Sent reports whether there is something but null at a path of members in an object as it was sent, such as the Raw of
// Usage and Timings.
func Sent(raw json.RawMessage, path ...string) bool {
	v := []byte(raw)
	for _, name := range path {
		v = member(v, name)
	}
	return !isNull(v)
}

func falls(before, after *int64) bool { return before != nil && after != nil && *after < *before }

// timings reads the engine's own timing block. The last one counts.
func (r *reader) timings(v []byte, index int) {
	if !isObject(v) {
		if !isNull(v) {
			r.add(TimingsIncomplete, index, "timings", "it is no object")
		}
		return
	}
	t := &Timings{Raw: bytes.Clone(v)}
	eachMember(v, func(name, v []byte) {
		switch string(name) {
		case "cache_n":
			t.CacheN = integer(v)
		case "prompt_n":
			t.PromptN = integer(v)
		case "prompt_ms":
			t.PromptMS = number(v)
		case "prompt_per_second":
			t.PromptPerSecond = number(v)
		case "predicted_n":
			t.PredictedN = integer(v)
		case "predicted_ms":
			t.PredictedMS = number(v)
		case "predicted_per_second":
			t.PredictedPerSecond = number(v)
		case "draft_n":
			t.DraftN = integer(v)
		case "draft_n_accepted":
			t.DraftNAccepted = integer(v)
		}
	})
	r.timingsAt = index
	r.t.Timings = t
}

// logprobs compares the bytes given for each token with its text. Texts that cannot be compared are left alone: a
// token that is part of a character, an empty one, and the spellings that stand for bytes or ids.
func (r *reader) logprobs(v []byte, index int, path string) {
	if !isObject(v) {
		return
	}
	eachElement(member(v, "content"), func(n int, entry []byte) {
		token, ok := text(member(entry, "token"))
		list := member(entry, "bytes")
		if !ok || token == "" || !isList(list) || strings.Contains(token, "\uFFFD") ||
			strings.HasPrefix(token, "bytes:") || strings.HasPrefix(token, "token_id:") {
			return
		}
		var spelled []byte
		legal := true
		eachElement(list, func(_ int, v []byte) {
			b := integer(v)
			if b == nil || *b < 0 || *b > 255 {
				legal = false
				return
			}
			spelled = append(spelled, byte(*b))
		})
		if !legal || string(spelled) != token {
			r.add(LogprobsBytesWrong, index, path+".content", fmt.Sprintf("token %d is %q", n, token))
		}
	})
}

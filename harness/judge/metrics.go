package judge

import (
	"math"
	"slices"
	"strings"
	"time"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// MetricNames are the names of all metrics. Every judgement has each; one that is unknown is null, never zero.
var MetricNames = []string{"first_byte_ms", "ttft_ms", "first_answer_ms", "last_token_ms", "e2e_ms", "itl_ms", "max_gap_ms",
	"decode_tps", "answer_tps", "prefill_tps", "engine_prefill_tps", "engine_decode_tps", "cold_prefill_tps",
	"unexplained_wait_ms", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "usage_minus_engine",
	"served", "refused", "failure_rate", "level_ttft_p50", "level_throughput_tps"}

// unexplained is the part of the wait for the first token that the engine's prompt time may leave open, for the client's
// clock to tell how fast the prompt was read.
const unexplained = 0.5

func (v *verdict) metrics() map[string]*float64 {
	m := figures{}
	for _, name := range MetricNames {
		m[name] = nil
	}
	if v.focus != nil {
		m.tokens(v.focus)
		m.clock(v.focus)
		m.engine(v.focus)
	}
	if level := v.level(); level != nil {
		m.level(level)
	}
	return m
}

// figures are the metrics under way.
type figures map[string]*float64

func (m figures) put(name string, x float64) {
	if !math.IsNaN(x) && !math.IsInf(x, 0) {
		m[name] = &x
	}
}

func (m figures) at(name string, d time.Duration) {
	m.put(name, float64(d)/float64(time.Millisecond))
}

// tokens are the counts of usage, where they can be true. A chunk that cannot be read takes nothing from the count of a
// reply that came to its end.
func (m figures) tokens(x *asked) {
	if u := x.t.Usage; u != nil && !x.f.OutputTokens.Known && unreadableButEnded(x) {
		for name, n := range map[string]*int64{"prompt_tokens": u.PromptTokens, "completion_tokens": u.CompletionTokens} {
			if n != nil && *n > 0 {
				m.put(name, float64(*n))
			}
		}
	}
	if n := x.f.InputTokens; n.Known {
		m.put("prompt_tokens", float64(n.Value))
	}
	if n := x.f.OutputTokens; n.Known {
		m.put("completion_tokens", float64(n.Value))
		if g := x.t.Timings; g != nil && g.PredictedN != nil {
			m.put("usage_minus_engine", float64(n.Value-*g.PredictedN))
		}
	}
	if n := x.f.CachedTokens; n.Known && !has(x.found, transcript.CachedExceedsPrompt) {
		m.put("cached_tokens", float64(n.Value))
	}
	if u := x.t.Usage; u != nil && u.ReasoningTokens != nil && x.f.OutputTokens.Known && !has(x.found, transcript.ReasoningTokensZero) {
		m.put("reasoning_tokens", float64(*u.ReasoningTokens))
	}
}

func unreadableButEnded(x *asked) bool {
	return x.t.FinishReason != nil && x.own() != Error &&
		(has(x.found, transcript.InvalidJSONChunk) || has(x.found, transcript.MalformedEvent))
}

// clock are the figures of the client's clock.
func (m figures) clock(x *asked) {
	if i := slices.IndexFunc(x.e.Pieces, func(p fixtures.Piece) bool { return len(p.Bytes) > 0 }); i >= 0 && x.ok() {
		m.at("first_byte_ms", x.e.Pieces[i].At)
	}
	m.end(x)
	d := x.t.Deltas
	if len(d) == 0 || !x.f.TTFT.Known {
		return
	}
	m.at("ttft_ms", d[0].At)
	m.at("last_token_ms", d[len(d)-1].At)
	if first := firstAnswer(d); first != nil && !has(x.found, transcript.PromptEcho) {
		m.at("first_answer_ms", first.At)
	}
	if x.t.Untimed || len(d) < 2 {
		return
	}
	m.gaps(x)
	if rate := x.f.ClientDecodeTPS; rate.Known {
		m.put("decode_tps", rate.Value)
		m.answerRate(x)
	}
}

// ok reports whether the server answered with success.
func (x *asked) ok() bool { return x.e.Response != nil && x.e.Response.Status/100 == 2 }

// end is when the reply ended: with its body, or with [DONE] where more came after it or the connection was not closed
// in order. A reply that broke off, and one that was left open, has no end.
func (m figures) end(x *asked) {
	done := x.t.DoneSeen && x.t.FinishReason != nil
	hung := has(x.found, transcript.StreamNotTerminated) || has(x.found, transcript.Stalled)
	switch {
	case !x.ok() || hung || byFindings(x.t.Findings, x.t.FinishReason == nil, false) == Error:
	case x.t.EventsAfterDone > 0, !x.e.Whole() && done:
		m.at("e2e_ms", x.t.DoneAt)
	case x.e.Whole():
		m.at("e2e_ms", x.e.End.At)
	}
}

func firstAnswer(deltas []transcript.Delta) *transcript.Delta {
	for i, d := range deltas {
		if d.Kind == transcript.Content && strings.TrimSpace(d.Text) != "" {
			return &deltas[i]
		}
	}
	return nil
}

// gaps are the times between pieces of output; between tokens only where each piece is one. The token that ends a reply
// may count without a piece.
func (m figures) gaps(x *asked) {
	d := x.t.Deltas
	span := d[len(d)-1].At - d[0].At
	if span <= 0 {
		return
	}
	longest, pieces, together := time.Duration(0), 1, 0
	for i := 1; i < len(d); i++ {
		gap := d[i].At - d[i-1].At
		longest = max(longest, gap)
		if d[i].Event != d[i-1].Event {
			pieces++
			if gap == 0 {
				together++
			}
		}
	}
	m.at("max_gap_ms", longest)
	// Tokens that arrive in heaps show the time between heaps.
	if n := x.f.OutputTokens; n.Known && pieces > 1 && 4*together <= pieces && (n.Value == int64(pieces) || n.Value == int64(pieces)+1) {
		m.at("itl_ms", span/time.Duration(pieces-1))
	}
}

// answerRate is the decode rate of the answer alone, where the answer is one stretch and its tokens are counted.
func (m figures) answerRate(x *asked) {
	tokens := float64(x.f.OutputTokens.Value)
	if x.t.Reasoning != "" {
		if m["reasoning_tokens"] == nil || has(x.found, transcript.ReasoningAfterAnswer) || has(x.found, transcript.ReasoningDuplicatedAsContent) {
			return
		}
		tokens -= *m["reasoning_tokens"]
	}
	first := firstAnswer(x.t.Deltas)
	if first == nil || tokens < 2 {
		return
	}
	last := x.t.Deltas[len(x.t.Deltas)-1]
	if span := last.At - first.At; last.Kind == transcript.Content && span > 0 {
		m.put("answer_tps", (tokens-1)/span.Seconds())
	}
}

// engine are the figures of the engine's clock, and those that compare it with the client's.
func (m figures) engine(x *asked) {
	if rate := x.f.EnginePromptTPS; rate.Known {
		m.put("engine_prefill_tps", rate.Value)
		if cached := x.f.CachedTokens; cached.Known && cached.Value == 0 {
			m.put("cold_prefill_tps", rate.Value)
		}
	}
	if rate := x.f.EngineDecodeTPS; rate.Known {
		m.put("engine_decode_tps", rate.Value)
	}
	first, g := m["ttft_ms"], x.t.Timings
	if x.t.Untimed || first == nil || g == nil || m["engine_prefill_tps"] == nil {
		return
	}
	wait := max(0, *first-*g.PromptMS)
	m.put("unexplained_wait_ms", wait)
	cached, prompt := m["cached_tokens"], m["prompt_tokens"]
	if cached != nil && *cached == 0 && prompt != nil && *first > 0 && wait < unexplained*(*first) && !has(x.found, PromptTruncated) {
		m.put("prefill_tps", *prompt/(*first/1000))
	}
}

// level are the figures of requests that were under way together. Its times and rate stand for all of them, so they are
// unknown as soon as one was not served.
func (m figures) level(level []*asked) {
	served := servedOf(level)
	m.put("served", float64(len(served)))
	m.put("refused", float64(len(level)-len(served)))
	m.put("failure_rate", float64(len(level)-len(served))/float64(len(level)))
	if len(served) < len(level) {
		return
	}
	var firsts []float64
	tokens, begin, end := int64(0), level[0].begin(), level[0].end()
	for _, x := range level {
		if x.t.Untimed || !x.f.TTFT.Known || !x.f.OutputTokens.Known {
			return
		}
		firsts = append(firsts, x.f.TTFT.Value*1000)
		tokens += x.f.OutputTokens.Value
		begin, end = min(begin, x.begin()), max(end, x.end())
	}
	slices.Sort(firsts)
	n := len(firsts)
	m.put("level_ttft_p50", (firsts[(n-1)/2]+firsts[n/2])/2)
	if end > begin {
		m.put("level_throughput_tps", float64(tokens)/(end-begin).Seconds())
	}
}

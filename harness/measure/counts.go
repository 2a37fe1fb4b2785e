package measure

import (
	"encoding/json"
	"fmt"

	"plumbline/harness/transcript"
)

const (
	noUsage   = "the server sent no usage"
	noTimings = "the server sent no timings"
)

// tokens reads the counts of both accounts: usage of the interface, timings of the engine.
func (m *measurer) tokens() {
	f, t := &m.f, m.t
	u := t.Usage
	if u == nil {
		u = &transcript.Usage{}
	}
	g := t.Timings
	if g == nil {
		g = &transcript.Timings{}
	} else if g.PromptMS != nil || g.PredictedMS != nil { // a block without them tells no time
		f.Basis = EngineBasis
	}
	usage, timings := account{t.Usage != nil, noUsage, u.Raw}, account{t.Timings != nil, noTimings, g.Raw}
	f.InputTokens = usage.count(u.PromptTokens, "usage.prompt_tokens of the last usage object", "prompt_tokens")
	f.OutputTokens = usage.count(u.CompletionTokens, "usage.completion_tokens of the last usage object", "completion_tokens")
	f.ReadTokens = timings.count(g.PromptN, "timings.prompt_n", "prompt_n")
	f.DecodeTokens = timings.count(g.PredictedN, "timings.predicted_n", "predicted_n")
	f.CachedTokens = usage.count(u.CachedTokens, "usage.prompt_tokens_details.cached_tokens", "prompt_tokens_details", "cached_tokens")
	if !f.CachedTokens.Known {
		if cached := timings.count(g.CacheN, "timings.cache_n", "cache_n"); cached.Known {
			f.CachedTokens = cached
		}
	}
	if f.InputTokens.Known && f.InputTokens.Value == 0 {
		f.InputTokens = Unknown[int64]("usage counts 0 prompt tokens although a prompt was sent")
	}
	output := t.Content != "" || t.Reasoning != "" || len(t.ToolCalls) > 0
	switch thought := u.ReasoningTokens; {
	case f.OutputTokens.Known && f.OutputTokens.Value == 0 && output:
		f.OutputTokens = Unknown[int64]("usage counts 0 completion tokens although there is output")
	case f.OutputTokens.Known && thought != nil && *thought > f.OutputTokens.Value && m.found(transcript.UsageTotalMismatch, "") == nil:
		f.OutputTokens = Unknown[int64](fmt.Sprintf("usage contradicts itself: %d reasoning tokens of %d completion tokens",
			*thought, f.OutputTokens.Value))
	}
}

// account is one of the two accounts of a reply's tokens.
type account struct {
	sent    bool
	notSent string // the reason of every figure when it was not
	raw     json.RawMessage
}

// count makes a figure of a count that may be missing; path names its member.
func (a account) count(n *int64, source string, path ...string) Maybe[int64] {
	switch {
	case !a.sent:
		return Unknown[int64](a.notSent)
	case n == nil && !transcript.Sent(a.raw, path...):
		return Unknown[int64](source + " was not sent")
	case n == nil:
		return Unknown[int64](source + " was not sent as a whole number")
	case *n < 0:
		return Unknown[int64](source + " is negative")
	}
	return Known(*n, source)
}

// agreement compares the two accounts with each other. A difference of one completion token is a matter of the end
// token; more, and any difference in the prompt, is broken accounting.
func (m *measurer) agreement() {
	f := &m.f
	f.AccountingNote = Unknown[string]("there is only one account of the tokens")
	if !f.InputTokens.Known && !f.OutputTokens.Known || !f.ReadTokens.Known && !f.DecodeTokens.Known {
		m.cache()
		return
	}
	f.AccountingNote = Unknown[string]("both accounts agree")
	note := ""
	if f.OutputTokens.Known && f.DecodeTokens.Known && f.OutputTokens.Value != f.DecodeTokens.Value {
		difference := f.OutputTokens.Value - f.DecodeTokens.Value
		note = fmt.Sprintf("usage.completion_tokens is %d and timings.predicted_n is %d (%+d)",
			f.OutputTokens.Value, f.DecodeTokens.Value, difference)
		if difference > 1 || difference < -1 {
			m.broken(note)
		}
	}
	if f.InputTokens.Known && f.CachedTokens.Known && f.ReadTokens.Known {
		if due := f.InputTokens.Value - f.CachedTokens.Value; due >= 0 && due != f.ReadTokens.Value {
			s := fmt.Sprintf("usage leaves %d prompt tokens to read (%d less %d cached) and timings.prompt_n is %d (%+d)",
				due, f.InputTokens.Value, f.CachedTokens.Value, f.ReadTokens.Value, due-f.ReadTokens.Value)
			m.broken(s)
			m.promptUntrue = "the accounts differ on how many prompt tokens were read"
			if note != "" {
				note += "; "
			}
			note += s
		}
	}
	if note != "" {
		f.AccountingNote = Known(note, "usage against timings")
	}
	m.cache()
}

func (m *measurer) cache() {
	f := &m.f
	if f.InputTokens.Known && f.CachedTokens.Known && f.CachedTokens.Value > f.InputTokens.Value {
		m.broken(fmt.Sprintf("%d tokens came from a cache, of a prompt of %d", f.CachedTokens.Value, f.InputTokens.Value))
		m.promptUntrue = "more tokens are said to be cached than the prompt has"
	}
}

func (m *measurer) broken(sentence string) { m.f.Broken = append(m.f.Broken, sentence) }

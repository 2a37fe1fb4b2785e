package measure

import (
	"encoding/json"
	"fmt"

	"plumbline/fixtures"
)

// mostTokens is more than any prompt or reply has: a count above it is an overflow or an invention.
const mostTokens = 1_000_000_000

// plausible looks for counts that cannot be true, each alone. They stay in the record as the server's word, but make no
// rate.
func (m *measurer) plausible() {
	f := &m.f
	var unrated string // of counts that make no rate
	for _, c := range []struct {
		name   string
		count  Maybe[int64]
		untrue *string
	}{
		{"usage.prompt_tokens", f.InputTokens, &unrated},
		{"usage.completion_tokens", f.OutputTokens, &m.outputUntrue},
		{"the count of cached tokens", f.CachedTokens, &unrated},
		{"timings.prompt_n", f.ReadTokens, &m.promptUntrue},
		{"timings.predicted_n", f.DecodeTokens, &m.decodeUntrue},
	} {
		if c.count.Known && c.count.Value > mostTokens {
			*c.untrue = fmt.Sprintf("%s is %d, more than any request can have", c.name, c.count.Value)
			m.broken(*c.untrue)
		}
	}
	if !f.OutputTokens.Known || m.outputUntrue != "" {
		return
	}
	// One more than allowed is a matter of the end token.
	if limit := outputLimit(m.e.Request); limit > 0 && float64(f.OutputTokens.Value) > limit+1 {
		m.outputUntrue = fmt.Sprintf("usage.completion_tokens is %d, and the request allows %.0f", f.OutputTokens.Value, limit)
		m.broken(m.outputUntrue)
	}
}

// outputLimit is how many tokens of output the request allows, over all of its choices; 0 for no limit. Of two limits
// the smaller holds.
func outputLimit(r fixtures.Request) float64 {
	var body map[string]any
	if json.Unmarshal(r.Body, &body) != nil {
		return 0
	}
	limit := 0.0
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if n, ok := body[name].(float64); ok && n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	if n, ok := body["n"].(float64); ok && n > 1 {
		limit *= n
	}
	return limit
}

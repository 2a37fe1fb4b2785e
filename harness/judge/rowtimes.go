package judge

import (
	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

const (
	msPerSecond = 1000

	sourceUsage  = "usage"
	sourceChunks = "content_chunks"
)

// mostRowTokens is more than any prompt or reply has: a count above it is an overflow or an invention.
const mostRowTokens = 1_000_000_000

// usageCounts are the counts of usage that can be true; null for the others. There was a prompt, and where there is output
// it had tokens, so 0 is no count of them; and no more of a prompt can come from a cache than it has.
func usageCounts(t *transcript.Transcript) (prompt, completion, cached *int64) {
	u := t.Usage
	prompt, completion, cached = u.PromptTokens, u.CompletionTokens, u.CachedTokens
	if !countable(prompt) || *prompt == 0 {
		prompt = nil
	}
	output := t.ContentSent != "" || t.Reasoning != "" || len(t.ToolCalls) > 0
	if !countable(completion) || *completion == 0 && output {
		completion = nil
	}
	if !countable(cached) || prompt != nil && *cached > *prompt {
		cached = nil
	}
	return prompt, completion, cached
}

func countable(n *int64) bool { return n != nil && *n >= 0 && *n <= mostRowTokens }

// timeRow computes the times and rates of a row from its counts and from when the first output, the first content and the end
// came, in seconds from dispatch. The order of operations is that of the protocol, so that the same moments give the same
// bits: subtract in seconds, then multiply.
func timeRow(row *fixtures.Row, first, content *float64, end float64) {
	row.E2EMS = end * msPerSecond
	if content != nil {
		row.TTFTMS = new(*content * msPerSecond)
		if end >= *content {
			row.VisibleGenerationMS = new((end - *content) * msPerSecond)
		}
	}
	if first == nil {
		return
	}
	f := *first
	row.TimeToFirstOutputMS = new(f * msPerSecond)
	if row.PromptTokens != nil && f > 0 {
		row.EffectivePrefillTokS = new(float64(*row.PromptTokens) / f)
	}
	if end < f {
		return
	}
	row.GenerationMS = new((end - f) * msPerSecond)
	if row.OutputTokenSource == sourceUsage && row.OutputTokens > 1 && end > f {
		later := float64(row.OutputTokens - 1)
		row.DecodeTokS = new(later / (end - f))
		row.TPOTMS = new((end - f) * msPerSecond / later)
	}
}

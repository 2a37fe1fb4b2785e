package capacity

import (
	"fmt"

	"plumbline/fixtures"
)

// family is one of the eleven figures whose distribution the document describes: where it stands in a row, and how its
// keys are named.
type family struct {
	name string
	tail string // of the unit, behind the statistic; "" where the name holds the unit
	row  string // the key of a row
	of   func(*fixtures.Row) *float64
}

// families are the figures of the document, each over the rows that have it.
var families = []family{
	{"ttft", "_ms", "ttft_ms", func(r *fixtures.Row) *float64 { return r.TTFTMS }},
	{"e2e", "_ms", "e2e_ms", func(r *fixtures.Row) *float64 { return &r.E2EMS }},
	{"generation", "_ms", "generation_ms", func(r *fixtures.Row) *float64 { return r.GenerationMS }},
	{"time_to_first_output", "_ms", "time_to_first_output_ms", func(r *fixtures.Row) *float64 { return r.TimeToFirstOutputMS }},
	{"tpot", "_ms", "tpot_ms", func(r *fixtures.Row) *float64 { return r.TPOTMS }},
	{"mean_time_per_output_token", "_ms", "mean_time_per_output_token_ms", func(r *fixtures.Row) *float64 { return r.TPOTMS }},
	{"mean_inter_token_latency_ms", "", "mean_inter_token_latency_ms", func(r *fixtures.Row) *float64 { return r.TPOTMS }},
	{"decode_tok_s", "", "decode_tok_s", func(r *fixtures.Row) *float64 { return r.DecodeTokS }},
	{"effective_prefill_tok_s", "", "effective_prefill_tok_s", func(r *fixtures.Row) *float64 { return r.EffectivePrefillTokS }},
	{"prompt_tokens", "", "prompt_tokens", func(r *fixtures.Row) *float64 { return count(r.PromptTokens) }},
	{"completion_tokens", "", "output_tokens", func(r *fixtures.Row) *float64 {
		if r.OutputTokenSource != sourceUsage {
			return nil
		}
		return new(float64(r.OutputTokens))
	}},
}

// The sources of a row's output_tokens.
const (
	sourceUsage  = "usage"
	sourceChunks = "content_chunks"
)

func count(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// key is the name of one of the family's statistics among the metrics. The count of samples has no unit.
func (f family) key(statistic string) string {
	if statistic == "samples" {
		return f.name + "_samples"
	}
	return f.name + "_" + statistic + f.tail
}

// put writes the family's statistics into the metrics.
func (f family) put(metrics object, s statistics) {
	metrics[f.key("mean")], metrics[f.key("stddev")] = s.mean, s.deviation
	metrics[f.key("mean_ci95_low")], metrics[f.key("mean_ci95_high")] = s.low, s.high
	metrics[f.key("min")], metrics[f.key("max")] = s.min, s.max
	for _, q := range percentiles {
		metrics[f.key(fmt.Sprintf("p%d", q))] = s.ranks[q]
	}
	metrics[f.key("samples")] = s.samples
}

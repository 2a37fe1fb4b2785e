package capacity

import (
	"fmt"
)

// roundings is how many neighbouring float64 a figure may lie from what is computed of figures that were rounded
// themselves: rows hold milliseconds, and were computed in seconds.
const roundings = 8

// rowFigures holds the figures of every valid reply against each other.
func (v *validation) rowFigures() {
	for _, row := range v.rows {
		v.figures(row)
	}
	for _, f := range v.failed {
		if t := f.get("response_timing"); t.object() {
			v.figures(t)
		}
	}
}

// figures follows the formulas of a row. It passes over what a failed reply does not have.
func (v *validation) figures(row place) {
	first, hasFirst := row.get("time_to_first_output_ms").number()
	content, hasContent := row.get("ttft_ms").number()
	end, hasEnd := row.get("e2e_ms").number()
	generation, hasGeneration := row.get("generation_ms").number()
	if hasFirst && hasContent && content < first {
		v.problem(row.get("ttft_ms"), "expected no text before the first output (%v ms), received %v", first, content)
	}
	if hasContent && hasEnd && end < content {
		v.problem(row.get("e2e_ms"), "expected no end before the first text (%v ms), received %v", content, end)
	}
	if hasEnd && hasFirst && hasGeneration {
		v.wantNumber(row.get("generation_ms"), end-first, ulps(roundings, end), "(e2e_ms less time_to_first_output_ms)")
	}
	if hasEnd && hasContent && row.get("visible_generation_ms").some() {
		v.wantNumber(row.get("visible_generation_ms"), end-content, ulps(roundings, end), "(e2e_ms less ttft_ms)")
	}
	if hasFirst {
		var rate *float64
		if tokens, ok := row.get("prompt_tokens").number(); ok && first > 0 {
			rate = new(tokens / (first / 1000))
		}
		v.wantFigure(row.get("effective_prefill_tok_s"), rate, "(prompt_tokens over time_to_first_output_ms)")
	}
	if hasGeneration {
		v.perToken(row, generation)
	}
	if source, _ := row.get("output_token_source").text(); source == sourceChunks {
		if chunks, ok := row.get("content_chunks").whole(); ok && row.get("output_tokens").some() {
			v.wantWhole(row.get("output_tokens"), chunks, "by content_chunks")
		}
	}
}

// perToken checks what divides the generation time by tokens, and its three names.
func (v *validation) perToken(row place, generation float64) {
	source, _ := row.get("output_token_source").text()
	tokens, _ := row.get("output_tokens").number()
	var rate, each *float64
	if source == sourceUsage && tokens > 1 && generation > 0 {
		rate, each = new((tokens-1)/(generation/1000)), new(generation/(tokens-1))
	}
	v.wantFigure(row.get("decode_tok_s"), rate, "(output_tokens less one over generation_ms)")
	for _, name := range []string{"tpot_ms", "mean_inter_token_latency_ms", "mean_time_per_output_token_ms"} {
		v.wantFigure(row.get(name), each, "(generation_ms over output_tokens less one)")
	}
}

func (v *validation) wantFigure(p place, want *float64, what string) {
	tolerance := 0.0
	if want != nil {
		tolerance = ulps(roundings, *want)
	}
	v.wantMaybe(p, want, tolerance, what)
}

// canaries holds every canary against itself, its request and the run. A valid reply has passed.
func (v *validation) canaries() {
	asked, known := v.root.get("request_canaries").truth()
	if !known {
		return
	}
	seed, _ := v.root.get("context_seed").whole()
	for _, row := range v.rows {
		c := row.get("request_canary")
		switch {
		case asked && c.null():
			v.problem(c, "expected the canary that was asked for, received null")
		case !asked && c.some():
			v.problem(c, "expected null: no canaries were asked for")
		}
		v.canary(row, c, seed)
		v.wantTruth(c.get("passed"), true, "of a valid reply")
		if truncated, ok := row.get("visible_content_truncated").truth(); ok {
			v.wantTruth(c.get("capture_complete"), !truncated, "by visible_content_truncated")
		}
	}
	for _, f := range v.failed {
		c := f.get("request_canary")
		if !asked && c.some() {
			v.problem(c, "expected null: no canaries were asked for")
		}
		v.canary(f, c, seed)
	}
}

func (v *validation) canary(row, c place, seed int64) {
	if !c.object() {
		return
	}
	atStart, _ := c.get("marker_at_start").truth()
	complete, _ := c.get("capture_complete").truth()
	foreign, _ := c.get("foreign_marker_count").whole()
	observed, _ := c.get("observed_marker_count").whole()
	v.wantTruth(c.get("passed"), atStart && complete && foreign == 0, "by the canary's other members")
	if atStart && observed == 0 {
		v.problem(c.get("observed_marker_count"), "expected at least 1 of a marker at the start, received 0")
	}
	index, ok := row.get("request_index").whole()
	want := fmt.Sprintf("ANVIL_REQ_%d_%05d", seed, index)
	if marker, told := c.get("marker").text(); ok && told && marker != want {
		v.problem(c.get("marker"), "expected %q by seed and index, received %q", want, marker)
	}
}

// words holds the counted words against the run's settings.
func (v *validation) words() {
	asked, known := v.root.get("response_words").whole()
	policy, _ := v.root.get("controlled_output_policy").text()
	if !known {
		return
	}
	for _, row := range v.rows {
		c := row.get("controlled_output")
		switch exact, ok := c.get("exact_adherence").truth(); {
		case asked > 0 && c.null():
			v.problem(c, "expected the count of the words that were asked for, received null")
		case asked == 0 && c.some():
			v.problem(c, "expected null: no number of words was asked for")
		case policy == "strict" && c.object() && !(ok && exact):
			v.problem(c.get("exact_adherence"), "expected true of a valid reply under the strict policy")
		}
		v.wordCount(c, asked)
	}
	for _, f := range v.failed {
		v.wordCount(f.get("controlled_output"), asked)
	}
}

func (v *validation) wordCount(c place, asked int64) {
	v.wantWhole(c.get("requested_words"), asked, "by response_words")
	if observed, ok := c.get("observed_words").whole(); ok {
		v.wantTruth(c.get("exact_adherence"), observed == asked, "by the words observed")
	}
}

// failures holds every failure against its class.
func (v *validation) failures() {
	for _, f := range v.failed {
		received, told := f.get("response_received").truth()
		for _, name := range []string{"response_timing", "response_metadata", "request_canary", "controlled_output"} {
			if told && !received && f.get(name).some() {
				v.problem(f.get(name), "expected nothing of a response that was not received")
			}
		}
		if received && !f.get("response_metadata").object() {
			v.problem(f.get("response_metadata"), "expected what is known of the response received")
		}
		v.wantSame(f.get("response_timing", "request_index"), f.get("request_index"))
		v.wantSame(f.get("response_timing", "planned_context_tokens"), f.get("planned_context_tokens"))
		v.class(f)
	}
}

func (v *validation) wantSame(got, want place) {
	if n, ok := want.whole(); ok {
		v.wantWhole(got, n, "as outside")
	}
}

// class checks what a failure of its class must hold.
func (v *validation) class(f place) {
	class, _ := f.get("failure_class").text()
	received, _ := f.get("response_received").truth()
	passed, judged := f.get("request_canary", "passed").truth()
	exact, counted := f.get("controlled_output", "exact_adherence").truth()
	policy, _ := v.root.get("controlled_output_policy").text()
	switch {
	case class == "stream_validation_failed" && !received:
		v.problem(f.get("response_received"), "expected true of %s, received false", class)
	case class == "request_canary_failed" && !(judged && !passed):
		v.problem(f.get("request_canary"), "expected a canary that did not pass, of %s", class)
	case class == "controlled_output_failed" && policy != "strict":
		v.problem(f.get("failure_class"), "expected no %s under the policy %q", class, policy)
	case class == "controlled_output_failed" && judged && !passed:
		v.problem(f.get("failure_class"), "expected request_canary_failed, which comes before %s", class)
	case class == "controlled_output_failed" && counted && exact:
		v.problem(f.get("controlled_output", "exact_adherence"), "expected false of %s, received true", class)
	}
}

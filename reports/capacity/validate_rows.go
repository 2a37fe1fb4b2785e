package capacity

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// roundings is how many neighbouring float64 a figure may lie from what is computed of figures that were rounded
// themselves: rows hold milliseconds, and were computed in seconds.
const roundings = 8

// capturedText is how many characters of visible text are looked at. A complete capture holds no more.
const capturedText = 8192

// rowFigures holds the figures of every reply against each other.
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
	firstAt, contentAt, endAt := row.get("time_to_first_output_ms"), row.get("ttft_ms"), row.get("e2e_ms")
	first, hasFirst := firstAt.number()
	content, hasContent := contentAt.number()
	end, hasEnd := endAt.number()
	v.beginnings(row)
	if hasContent && hasEnd && end < content {
		v.contradiction(endAt, []place{contentAt},
			"expected no end before the first text (%v ms), received %v", content, end)
	}
	if hasFirst && hasEnd && end < first {
		v.contradiction(endAt, []place{firstAt}, "expected no end before the first output (%v ms), received %v", first, end)
	}
	if p := row.get("generation_ms"); hasEnd && hasFirst && p.some() {
		v.wantNumber(p, end-first, ulps(roundings, end), "(e2e_ms less time_to_first_output_ms)", endAt, firstAt)
	}
	if p := row.get("visible_generation_ms"); hasEnd && hasContent && p.some() {
		v.wantNumber(p, end-content, ulps(roundings, end), "(e2e_ms less ttft_ms)", endAt, contentAt)
	}
	if hasFirst {
		var rate *float64
		if tokens, ok := row.get("prompt_tokens").number(); ok && first > 0 {
			rate = new(tokens / (first / 1000))
		}
		v.wantFigure(row.get("effective_prefill_tok_s"), rate, "(prompt_tokens over time_to_first_output_ms)",
			row.get("prompt_tokens"), firstAt)
	}
	if generation, ok := row.get("generation_ms").number(); ok {
		v.perToken(row, generation)
	}
	if source, _ := row.get("output_token_source").text(); source == sourceChunks {
		if chunks, ok := row.get("content_chunks").whole(); ok && row.get("output_tokens").some() {
			v.wantWhole(row.get("output_tokens"), chunks, "by content_chunks", row.get("content_chunks"),
				row.get("output_token_source"))
		}
	}
}

// beginnings holds the two first moments against the chunks that they are the moments of: text is the first output where
// no reasoning came, and what came has chunks.
func (v *validation) beginnings(row place) {
	firstAt, contentAt := row.get("time_to_first_output_ms"), row.get("ttft_ms")
	first, hasFirst := firstAt.number()
	content, hasContent := contentAt.number()
	reasoning, counted := row.get("reasoning_chunks").whole()
	switch {
	case hasFirst && hasContent && content < first:
		v.contradiction(contentAt, []place{firstAt},
			"expected no text before the first output (%v ms), received %v", first, content)
	case hasFirst && hasContent && content > first && counted && reasoning == 0:
		v.contradiction(row.get("reasoning_chunks"), []place{firstAt, contentAt},
			"expected the reasoning that came before the first text (%v ms and %v ms), received 0", first, content)
	case hasFirst && contentAt.null() && counted && reasoning == 0:
		v.contradiction(firstAt, []place{row.get("reasoning_chunks"), contentAt},
			"expected null of a reply without reasoning and without text, received %v", first)
	}
	if chunks, ok := row.get("content_chunks").whole(); ok && chunks > 0 {
		if contentAt.null() {
			v.contradiction(contentAt, []place{row.get("content_chunks")},
				"expected the moment of the first of %d chunks, received null", chunks)
		}
	} else if ok && hasContent {
		v.contradiction(row.get("content_chunks"), []place{contentAt},
			"expected the chunks of the text that came after %v ms, received 0", content)
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
	by := []place{row.get("output_tokens"), row.get("output_token_source"), row.get("generation_ms")}
	v.wantFigure(row.get("decode_tok_s"), rate, "(output_tokens less one over generation_ms)", by...)
	for _, name := range []string{"tpot_ms", "mean_inter_token_latency_ms", "mean_time_per_output_token_ms"} {
		v.wantFigure(row.get(name), each, "(generation_ms over output_tokens less one)", by...)
	}
}

func (v *validation) wantFigure(p place, want *float64, what string, others ...place) {
	tolerance := 0.0
	if want != nil {
		tolerance = ulps(roundings, *want)
	}
	v.wantMaybe(p, want, tolerance, what, others...)
}

// canaries holds every canary against itself, its request and the run. A valid reply has passed.
func (v *validation) canaries() {
	setting := v.root.get("request_canaries")
	asked, known := setting.truth()
	if !known {
		return
	}
	for _, row := range v.rows {
		c := row.get("request_canary")
		if asked && c.null() {
			v.contradiction(c, []place{setting}, "expected the canary that was asked for, received null")
		}
		v.canary(row, c, asked)
		v.wantTruth(c.get("passed"), true, "of a valid reply")
		if truncated, ok := row.get("visible_content_truncated").truth(); ok {
			v.wantTruth(c.get("capture_complete"), !truncated, "by visible_content_truncated", row.get("visible_content_truncated"))
		}
	}
	for _, f := range v.failed {
		v.canary(f, f.get("request_canary"), asked)
		if truncated, ok := f.get("response_metadata", "visible_content_truncated").truth(); ok {
			v.wantTruth(f.get("request_canary", "capture_complete"), !truncated, "by visible_content_truncated",
				f.get("response_metadata", "visible_content_truncated"))
		}
	}
}

func (v *validation) canary(row, c place, asked bool) {
	if !asked {
		v.wantNull(c, "without request_canaries", v.root.get("request_canaries"))
	}
	if !c.object() {
		return
	}
	atStart, _ := c.get("marker_at_start").truth()
	complete, _ := c.get("capture_complete").truth()
	foreign, _ := c.get("foreign_marker_count").whole()
	v.wantTruth(c.get("passed"), atStart && complete && foreign == 0, "by the canary's other members",
		c.get("marker_at_start"), c.get("capture_complete"), c.get("foreign_marker_count"))
	marker, told := c.get("marker").text()
	if !told {
		return
	}
	v.markerCounts(c, int64(capturedText/max(1, utf8.RuneCountInString(marker))), atStart, complete)
	v.marker(row, c.get("marker"), marker)
}

// markerCounts holds the count of the own marker to what a text that was looked at as a whole has room for.
func (v *validation) markerCounts(c place, room int64, atStart, complete bool) {
	if n, ok := c.get("observed_marker_count").whole(); ok && complete && n > room {
		v.contradiction(c.get("observed_marker_count"), []place{c.get("capture_complete")},
			"expected at most %d markers in %d characters, received %d", room, capturedText, n)
	}
	if n, ok := c.get("observed_marker_count").whole(); ok && atStart && n == 0 {
		v.contradiction(c.get("observed_marker_count"), []place{c.get("marker_at_start")},
			"expected at least 1 of a marker at the start, received 0")
	}
}

// marker holds a marker against the seed and the request's index, which it is made of.
func (v *validation) marker(row, p place, marker string) {
	seedAt, indexAt := v.root.get("context_seed"), row.get("request_index")
	seed, ok1 := seedAt.whole()
	index, ok2 := indexAt.whole()
	want := fmt.Sprintf("ANVIL_REQ_%d_%05d", seed, index)
	if !ok1 || !ok2 || marker == want {
		return
	}
	var others []place
	if !strings.HasPrefix(marker, fmt.Sprintf("ANVIL_REQ_%d_", seed)) {
		others = append(others, seedAt)
	}
	if !strings.HasSuffix(marker, fmt.Sprintf("_%05d", index)) {
		others = append(others, indexAt)
	}
	v.contradiction(p, others, "expected %q by seed and index, received %q", want, marker)
}

// words holds the counted words against the run's settings.
func (v *validation) words() {
	setting := v.root.get("response_words")
	asked, known := setting.whole()
	policyAt := v.root.get("controlled_output_policy")
	policy, _ := policyAt.text()
	if !known {
		return
	}
	for _, row := range v.rows {
		c := row.get("controlled_output")
		if asked > 0 && c.null() {
			v.contradiction(c, []place{setting}, "expected the count of the words that were asked for, received null")
		}
		if exact, ok := c.get("exact_adherence").truth(); policy == "strict" && c.object() && !(ok && exact) {
			v.contradiction(c.get("exact_adherence"), []place{policyAt},
				"expected true of a valid reply under the strict policy, received %s", c.get("exact_adherence"))
		}
		v.wordCount(c, asked, setting)
	}
	for _, f := range v.failed {
		v.wordCount(f.get("controlled_output"), asked, setting)
	}
}

func (v *validation) wordCount(c place, asked int64, setting place) {
	if asked == 0 {
		v.wantNull(c, "without response_words", setting)
		return
	}
	v.wantWhole(c.get("requested_words"), asked, "by response_words", setting)
	if policy, _ := v.root.get("controlled_output_policy").text(); c.get("policy").some() {
		if got, ok := c.get("policy").text(); ok && policy != "" && got != policy {
			v.contradiction(c.get("policy"), []place{v.root.get("controlled_output_policy")},
				"expected %q as outside, received %q", policy, got)
		}
	}
	seen := c.get("observed_words")
	if observed, ok := seen.whole(); ok && observed != asked {
		v.wantTruth(c.get("exact_adherence"), false, "by the words observed", seen)
	}
	if seen.present && c.get("exact_adherence").null() != seen.null() {
		v.contradiction(seen, []place{c.get("exact_adherence")},
			"expected null where exact_adherence is null, and only there, received %s", seen)
	}
	if seen.present {
		v.wantTruth(c.get("capture_complete"), seen.some(), "by observed_words", seen)
	}
}

// failures holds every failure against its class, and what is said of it twice against itself.
func (v *validation) failures() {
	for _, f := range v.failed {
		received, told := f.get("response_received").truth()
		for _, name := range []string{"response_timing", "response_metadata", "request_canary", "controlled_output"} {
			if told && !received {
				v.wantNull(f.get(name), "of a response that was not received", f.get("response_received"))
			}
		}
		needed := []string{"response_metadata"}
		if v.ours.some() {
			needed = append(needed, "response_timing")
		}
		for _, name := range needed {
			if received && !f.get(name).object() {
				v.contradiction(f.get(name), []place{f.get("response_received")},
					"expected what is known of the response received, received %s", f.get(name))
			}
		}
		timing := f.get("response_timing")
		for _, name := range []string{"request_index", "planned_context_tokens"} {
			v.wantSame(timing.get(name), f.get(name))
		}
		for _, name := range []string{"content_chunks", "reasoning_chunks", "output_token_source", "visible_content_truncated"} {
			v.wantSame(f.get("response_metadata", name), timing.get(name))
		}
		v.elapsed(f.get("elapsed_ms"), timing.get("e2e_ms"))
		v.class(f)
	}
}

// elapsed holds the time that a failed request took against the end of its response, which came within it.
func (v *validation) elapsed(p, end place) {
	took, ok1 := p.number()
	ended, ok2 := end.number()
	if ok1 && ok2 && took < ended-timeSlackMS {
		v.contradiction(p, []place{end},
			"expected at least the time to the response's end (%v ms), received %v", ended, took)
	}
}

// wantSame faults a plain value that is said twice and not the same.
func (v *validation) wantSame(got, want place) {
	if got.some() && want.some() && !want.object() && got.value != want.value {
		v.contradiction(got, []place{want}, "expected %s as at %s, received %s", want, want.at, got)
	}
}

// class checks what a failure of its class must hold.
func (v *validation) class(f place) {
	classAt := f.get("failure_class")
	class, _ := classAt.text()
	received, _ := f.get("response_received").truth()
	passedAt, exactAt, policyAt := f.get("request_canary", "passed"), f.get("controlled_output", "exact_adherence"),
		v.root.get("controlled_output_policy")
	passed, judged := passedAt.truth()
	exact, counted := exactAt.truth()
	policy, _ := policyAt.text()
	switch {
	case class == "stream_validation_failed" && !received:
		v.contradiction(f.get("response_received"), []place{classAt}, "expected true of %s, received false", class)
	case class == "request_canary_failed" && !(judged && !passed):
		v.contradiction(f.get("request_canary"), []place{classAt, passedAt},
			"expected a canary that did not pass, of %s", class)
	case class == "controlled_output_failed" && policy != "strict":
		v.contradiction(classAt, []place{policyAt}, "expected no %s under the policy %q", class, policy)
	case class == "controlled_output_failed" && judged && !passed:
		v.contradiction(classAt, []place{passedAt}, "expected request_canary_failed, which comes before %s", class)
	case class == "controlled_output_failed" && counted && exact:
		v.contradiction(exactAt, []place{classAt}, "expected false of %s, received true", class)
	}
}

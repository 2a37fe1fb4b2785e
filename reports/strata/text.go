package strata

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plumbline/corpus"
)

// Text is the document in a few lines, to read at the end of a run or to paste beside a shared result: what ran, median
// (and range) of the rates and first-token times, the sanity score, what failed and what deviated on the wire, and why a
// run does not conform.
func (d *Document) Text() string {
	var b strings.Builder
	model, _ := d.Model.ID.Get()
	fmt.Fprintf(&b, "%s · %s · %s · run %s: %s\n", d.Protocol.ID, d.Protocol.Profile, cmp.Or(model, "unknown model"), d.Run.ID, d.Run.Status)
	fmt.Fprintf(&b, "%-12s%-30s%-28s%s\n", "", "prefill tokens/s", "decode tokens/s", "TTFT s")
	for _, c := range d.performanceCases() {
		fmt.Fprintf(&b, "%-12s%-30s%-28s%s\n", c, d.cell(c, "prompt_tps", 1), d.cell(c, "decode_tps", 1), d.cell(c, "ttft_s", 3))
	}
	if hasRate(d.Summaries, shortCase, "prompt_tps") {
		fmt.Fprintf(&b, "(%s)\n", textFixedCost)
	}
	b.WriteString(d.sanity() + "\n")
	for _, round := range d.ConcurrencyRounds {
		fmt.Fprintf(&b, "%d at once, round %d: %s tokens/s together", round.Concurrency, round.Round, show(round.OutputTPS, 1))
		if n := len(round.ForeignMarkers); n > 0 {
			fmt.Fprintf(&b, ", markers of other requests in the replies: %d", n)
		}
		b.WriteString("\n")
	}
	if failures := d.failures(); failures != "" {
		b.WriteString(failures + "\n")
	}
	if deviations := d.deviations(); deviations != "" {
		fmt.Fprintf(&b, "deviations on the wire: %s\n", deviations)
	}
	for _, reason := range d.Extensions.StatusReasons {
		fmt.Fprintf(&b, "%s because: %s\n", d.Run.Status, reason)
	}
	return b.String()
}

// sanity is the line on the sanity answers.
func (d *Document) sanity() string {
	if d.RequestCounts.Sanity.Attempted == 0 {
		return "sanity: none asked"
	}
	line := fmt.Sprintf("sanity %d of %d", d.Quality.Passed, d.Quality.Total)
	for _, category := range corpus.Categories {
		if s, ok := d.Quality.Categories.Get(category); ok {
			line += fmt.Sprintf(" · %s %d/%d", category, s.Passed, s.Total)
		}
	}
	return line
}

// performanceCases are the cases that have summaries, in order.
func (d *Document) performanceCases() []string {
	var cases []string
	for _, s := range d.Summaries {
		if !slices.Contains(cases, s.CaseID) {
			cases = append(cases, s.CaseID)
		}
	}
	return cases
}

// cell is the median of a case's metric with its range, and with its number of values where the protocol has more; "-"
// when no repetition gave it.
func (d *Document) cell(caseID, metric string, decimals int) string {
	for _, s := range d.Summaries {
		if s.CaseID != caseID || s.Metric != metric || s.N == 0 {
			continue
		}
		var beside []string
		if s.N > 1 {
			beside = append(beside, fmt.Sprintf("%s–%s", show(s.Min, decimals), show(s.Max, decimals)))
		}
		if s.N < corpus.Repetitions {
			beside = append(beside, fmt.Sprintf("n=%d", s.N))
		}
		return fmt.Sprintf("%s (%s)", show(s.Median, decimals), strings.Join(beside, ", "))
	}
	return "-"
}

func show(n Null[Number], decimals int) string {
	if v, ok := n.Get(); ok {
		return fmt.Sprintf("%.*f", decimals, v.Float64())
	}
	return "-"
}

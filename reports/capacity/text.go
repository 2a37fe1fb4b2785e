package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Text is the run in a few lines, to read at its end: what was asked, how many succeeded, the latencies and rates, the
// canaries, what failed, and everything that casts doubt on the figures.
func Text(s *Summary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "capacity · %s · %s · %d at once · %s\n", cmp.Or(s.Engine, "unnamed engine"), s.Model, s.Concurrency, s.RunID)
	fmt.Fprintf(&b, "%d of %d requests succeeded in %.1f s", s.Completed, s.Requests, s.Wall)
	if s.Failed > 0 {
		fmt.Fprintf(&b, ", %d failed (%s)", s.Failed, counts(s.FailureClasses))
	}
	if s.WithoutResult > 0 {
		fmt.Fprintf(&b, ", %d have no result", s.WithoutResult)
	}
	b.WriteString("\n")
	if s.Completed > 0 {
		s.figures(&b)
	}
	s.checks(&b)
	s.stages(&b)
	if s.Overloaded {
		fmt.Fprintf(&b, "the client did not keep up: %s\n", strings.Join(s.OverloadReasons, "; "))
	}
	if s.Aborted != "" {
		fmt.Fprintf(&b, "stage %s ended early: %s\n", s.AbortedStage, s.Aborted)
	}
	for _, why := range s.IncompleteBecause {
		fmt.Fprintf(&b, "incomplete: %s\n", why)
	}
	return b.String()
}

// figures writes the table of latencies and rates.
func (s *Summary) figures(b *strings.Builder) {
	fmt.Fprintf(b, "%-22s%12s%12s%10s\n", "", "p50", "p95", "replies")
	line := func(name string, p Percentiles, decimals int) {
		fmt.Fprintf(b, "%-22s%12s%12s%10d\n", name, shown(p.P50, decimals), shown(p.P95, decimals), p.Samples)
	}
	line("TTFT ms", s.TTFT, 1)
	if s.Reasoning {
		line("first output ms", s.FirstOutput, 1)
	}
	line("TPOT ms", s.TPOT, 2)
	line("E2E ms", s.E2E, 1)
	line("decode tokens/s", s.Decode, 1)
	line("prefill tokens/s", s.Prefill, 1)
	switch {
	case s.Throughput != nil:
		fmt.Fprintf(b, "throughput: %.1f tokens/s of all requests together\n", *s.Throughput)
	case s.Completed < s.Requests:
		b.WriteString("throughput: withheld, because not every request succeeded\n")
	default:
		b.WriteString("throughput: unknown, because not every reply counts its tokens\n")
	}
	if s.MeasuredToPlanned != nil {
		fmt.Fprintf(b, "prompts: %.3f of the planned tokens on average, as the engine counts them\n", *s.MeasuredToPlanned)
	}
}

// checks writes what was checked of the replies.
func (s *Summary) checks(b *strings.Builder) {
	if s.CanariesAttempted > 0 {
		fmt.Fprintf(b, "canaries: %d of %d passed", s.CanariesPassed, s.CanariesAttempted)
		if s.ForeignMarkers+s.ForeignInThinking > 0 {
			fmt.Fprintf(b, "; markers of other requests: %d in answers, %d in thinking (%s)",
				s.ForeignMarkers, s.ForeignInThinking, strings.Join(s.ForeignSeen, ", "))
		}
		b.WriteString("\n")
	}
	if s.WordsSamples > 0 {
		fmt.Fprintf(b, "asked number of words: %d of %d replies\n", s.WordsExact, s.WordsSamples)
	}
	if s.GoodputOf > 0 {
		fmt.Fprintf(b, "goodput: %d of %d requests met the objective\n", s.GoodputMet, s.GoodputOf)
	}
	if len(s.Findings) > 0 {
		fmt.Fprintf(b, "deviations on the wire: %s\n", counts(s.Findings))
	}
}

// stages writes the open loop and the sweep.
func (s *Summary) stages(b *strings.Builder) {
	if o := s.Open; o != nil {
		fmt.Fprintf(b, "open loop (%s, %g/s wanted, %s/s had): %d failed of %d; from the scheduled time p95 TTFT %s ms, E2E %s ms",
			o.Arrival, o.Rate, shown(o.Achieved, 2), o.Failed, o.Requests, shown(o.TTFTP95, 1), shown(o.E2EP95, 1))
		b.WriteString(doubt(o.Overloaded))
	}
	for _, l := range s.Levels {
		fmt.Fprintf(b, "%d at once: %s tokens/s, p95 TTFT %s ms, p95 TPOT %s ms, %d failed of %d", l.Concurrency,
			shown(l.Throughput, 1), shown(l.TTFTP95, 1), shown(l.TPOTP95, 2), l.Failed, l.Requests)
		b.WriteString(doubt(l.Overloaded))
	}
	switch {
	case s.Knee != nil:
		fmt.Fprintf(b, "knee: %d at once (%s)\n", *s.Knee, s.KneeReason)
	case len(s.Levels) > 0:
		fmt.Fprintf(b, "knee: none (%s)\n", s.KneeReason)
	}
}

func doubt(overloaded bool) string {
	if overloaded {
		return "; the client did not keep up\n"
	}
	return "\n"
}

func shown(v *float64, decimals int) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.*f", decimals, *v)
}

// counts lists counts by name.
func counts(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(parts, ", ")
}

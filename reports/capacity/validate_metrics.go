package capacity

import (
	"fmt"
	"math"
	"strings"
)

// lastDigits is how far a mean, deviation or interval may lie from ours, as a part of the family's greatest value: sums
// that are rounded on the way miss the last digits, as other writers' may.
const lastDigits = 1e-12

// metrics computes every metric anew from the rows.
func (v *validation) metrics() {
	m := v.root.get("metrics")
	for _, f := range families {
		v.family(m, f)
	}
	v.sums(m)
	v.contracts(m)
}

// values are the family's values in the rows.
func (v *validation) values(f family) []float64 {
	var values []float64
	for _, row := range v.rows {
		if f.name == "completion_tokens" {
			if source, _ := row.get("output_token_source").text(); source != sourceUsage {
				continue
			}
		}
		if x, ok := row.get(f.row).number(); ok {
			values = append(values, x)
		}
	}
	return values
}

func (v *validation) family(m place, f family) {
	values := v.values(f)
	s := describe(values)
	size := 0.0
	for _, x := range values {
		size = max(size, math.Abs(x))
	}
	v.wantWhole(m.get(f.key("samples")), int64(s.samples), "by the rows")
	for _, w := range []struct {
		statistic string
		value     *float64
		tolerance float64
	}{
		{"mean", s.mean, size * lastDigits}, {"stddev", s.deviation, size * lastDigits},
		{"mean_ci95_low", s.low, size * lastDigits}, {"mean_ci95_high", s.high, size * lastDigits},
		{"min", s.min, 0}, {"max", s.max, 0},
	} {
		v.wantMaybe(m.get(f.key(w.statistic)), w.value, w.tolerance, "by the rows")
	}
	for _, q := range percentiles {
		v.wantMaybe(m.get(f.key(fmt.Sprintf("p%d", q))), s.ranks[q], 0, "by the rows")
	}
}

// sums checks what is added up over the rows, and the two rates of the whole run.
func (v *validation) sums(m place) {
	var chunks, reasoning, output, prompt, prompts int64
	sources := map[string]int64{}
	for _, row := range v.rows {
		add := func(to *int64, name string) bool {
			n, ok := row.get(name).whole()
			*to += n
			return ok
		}
		add(&chunks, "content_chunks")
		add(&reasoning, "reasoning_chunks")
		add(&output, "output_tokens")
		if add(&prompt, "prompt_tokens") {
			prompts++
		}
		source, _ := row.get("output_token_source").text()
		sources[source]++
	}
	counted := sources[sourceUsage] == int64(len(v.rows))
	v.wantWhole(m.get("content_chunks"), chunks, "by the rows")
	v.wantWhole(m.get("reasoning_chunks"), reasoning, "by the rows")
	v.wantWhole(m.get("prompt_token_samples"), prompts, "by the rows")
	v.wantMaybe(m.get("prompt_tokens"), when(prompts > 0, float64(prompt)), 0, "by the rows")
	v.wantMaybe(m.get("output_tokens"), when(counted, float64(output)), 0, "by the rows")
	got := m.get("output_token_sources")
	for name, n := range sources {
		if p := got.get(name); got.object() && !p.present {
			v.problem(p, "expected %d by the rows, received nothing", n)
		}
	}
	for name, p := range got.fields() {
		v.wantWhole(p, sources[name], "by the rows")
	}
	v.rates(m, counted, output, chunks)
	if share, ok := m.get("prefix_cache_hit_avg").number(); ok && (share > 1 || prompts == 0) {
		v.problem(m.get("prefix_cache_hit_avg"), "expected a share, of the %d prompts whose tokens are known, received %v",
			prompts, share)
	}
}

func (v *validation) rates(m place, counted bool, output, chunks int64) {
	wall, ok := v.root.get("wall_clock_ms").number()
	requests, known := v.root.get("requests").whole()
	if !ok || !known {
		return
	}
	seconds := wall / 1000
	eligible := int64(len(v.rows)) == requests && counted && wall > 0
	v.wantTruth(m.get("throughput_performance_eligible"), eligible, "by the rows")
	v.wantTruth(v.root.get("metric_population", "aggregate_throughput_eligible"), eligible, "by the rows")
	rate := float64(output) / seconds
	v.wantMaybe(m.get("throughput_tok_s"), when(eligible, rate), ulps(roundings, rate), "(output_tokens over wall_clock_ms)")
	rate = float64(chunks) / seconds
	v.wantMaybe(m.get("content_chunks_s"), when(!counted && wall > 0, rate), ulps(roundings, rate),
		"(content_chunks over wall_clock_ms)")
}

func when(known bool, value float64) *float64 {
	if known {
		return &value
	}
	return nil
}

// contracts recounts canaries and words of the valid replies.
func (v *validation) contracts(m place) {
	var canaries, passed, words, exact, unseen int64
	for _, row := range v.rows {
		if c := row.get("request_canary"); c.object() {
			canaries++
			if ok, _ := c.get("passed").truth(); ok {
				passed++
			}
		}
		if c := row.get("controlled_output"); c.object() {
			words++
			switch kept, ok := c.get("exact_adherence").truth(); {
			case !ok:
				unseen++
			case kept:
				exact++
			}
		}
	}
	v.wantWhole(m.get("request_canary_samples"), canaries, "by the rows")
	v.wantWhole(m.get("request_canary_passed"), passed, "by the rows")
	v.wantWhole(m.get("controlled_output_samples"), words, "by the rows")
	v.wantWhole(m.get("controlled_output_exact_adherence"), exact, "by the rows")
	v.wantWhole(m.get("controlled_output_unobservable"), unseen, "by the rows")
	rate := ratio(int(exact), int(words-unseen))
	v.wantMaybe(m.get("controlled_output_exact_adherence_rate"), rate, ulps(1, 1), "by the rows")
}

// wholeMetrics are the metrics that are written as whole numbers, besides all that end in _samples.
var wholeMetrics = map[string]bool{
	"content_chunks": true, "reasoning_chunks": true, "output_tokens": true, "prompt_tokens": true,
	"request_canary_passed": true, "controlled_output_exact_adherence": true, "controlled_output_unobservable": true,
}

// forms checks how the known numbers of the metrics and rows are written: counts as whole numbers, all else as floats in
// Python's shortest form.
func (v *validation) forms() {
	m := v.root.get("metrics")
	for _, f := range families {
		for _, statistic := range []string{"mean", "stddev", "mean_ci95_low", "mean_ci95_high", "min", "max"} {
			v.float(m.get(f.key(statistic)))
		}
		for _, q := range percentiles {
			v.float(m.get(f.key(fmt.Sprintf("p%d", q))))
		}
	}
	for name, p := range m.fields() {
		raw, _ := p.raw()
		if (wholeMetrics[name] || strings.HasSuffix(name, "_samples")) && strings.ContainsAny(raw, ".eE") {
			v.problem(p, "expected a whole number, received %s", raw)
		}
	}
	for _, name := range []string{
		"throughput_tok_s", "content_chunks_s", "prefix_cache_hit_avg", "controlled_output_exact_adherence_rate",
	} {
		v.float(m.get(name))
	}
	v.float(v.root.get("wall_clock_ms"))
	for _, row := range v.rows {
		for _, f := range families {
			if !strings.HasSuffix(f.row, "_tokens") {
				v.float(row.get(f.row))
			}
		}
		v.float(row.get("visible_generation_ms"))
	}
}

func (v *validation) float(p place) {
	raw, ok := p.raw()
	if !ok {
		return
	}
	x, _ := p.number()
	if want, err := floatText(x); err == nil && raw != want {
		v.problem(p, "expected a float written as %s, received %s", want, raw)
	}
}

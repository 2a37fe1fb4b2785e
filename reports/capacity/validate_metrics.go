package capacity

import (
	"fmt"
	"math"
	"strings"
)

// lastDigits is how many neighbouring float64 a deviation or interval of another writer may lie from ours, which is exact:
// sums that are rounded on the way miss the last digits. A mean is the same whoever computes it, as the format has it.
const lastDigits = 4

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
	s := describe(v.values(f))
	const by = "by the rows"
	before := len(v.problems)
	v.wantWhole(m.get(f.key("samples")), int64(s.samples), by)
	for name, value := range map[string]*float64{"mean": s.mean, "min": s.min, "max": s.max} {
		v.wantMaybe(m.get(f.key(name)), value, 0, by)
	}
	for _, q := range percentiles {
		v.wantMaybe(m.get(f.key(fmt.Sprintf("p%d", q))), s.ranks[q], 0, by)
	}
	v.spread(m, f, s)
	// What is wrong with a row is wrong with more than one statistic; what is wrong with one statistic is no row's fault.
	if len(v.problems)-before < 2 {
		return
	}
	for _, p := range members(v.rows, f.row) {
		v.problem(p, "contradicts the metrics of %s: several of them are not those of the rows", f.name)
	}
}

// spread checks the deviation and the interval. Those of one value are null; other writers may give no deviation.
func (v *validation) spread(m place, f family, s statistics) {
	values := map[string]*float64{"stddev": s.deviation, "mean_ci95_low": s.low, "mean_ci95_high": s.high}
	foreign := !v.ours.some()
	for name, want := range values {
		p, tolerance := m.get(f.key(name)), 0.0
		if foreign && s.samples == 1 && p.some() {
			want = s.mean
			if name == "stddev" {
				want = new(0.0)
			}
		} else if foreign && want != nil {
			tolerance = ulps(lastDigits, max(math.Abs(*want), math.Abs(*s.mean)))
			if name == "stddev" {
				tolerance = ulps(lastDigits, *want)
			}
		}
		v.wantMaybe(p, want, tolerance, "by the rows")
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
	const by = "by the rows"
	v.wantWhole(m.get("content_chunks"), chunks, by, members(v.rows, "content_chunks")...)
	v.wantWhole(m.get("reasoning_chunks"), reasoning, by, members(v.rows, "reasoning_chunks")...)
	v.wantWhole(m.get("prompt_token_samples"), prompts, by, members(v.rows, "prompt_tokens")...)
	v.wantMaybe(m.get("prompt_tokens"), when(prompts > 0, float64(prompt)), 0, by, members(v.rows, "prompt_tokens")...)
	v.wantMaybe(m.get("output_tokens"), when(counted, float64(output)), 0, by, members(v.rows, "output_tokens")...)
	v.tallies(m.get("output_token_sources"), sources, by, members(v.rows, "output_token_source"))
	v.rates(m, counted, output, chunks)
	if share, ok := m.get("prefix_cache_hit_avg").number(); ok && (share > 1 || prompts == 0) {
		v.problem(m.get("prefix_cache_hit_avg"), "expected a share, of the %d prompts whose tokens are known, received %v",
			prompts, share)
	}
}

// tallies holds counts by name against those expected.
func (v *validation) tallies(p place, want map[string]int64, what string, others []place) {
	if !p.object() {
		return
	}
	for name, n := range want {
		if got := p.get(name); !got.present {
			v.contradiction(got, others, "expected %d %s, received nothing", n, what)
		}
	}
	for name, got := range p.fields() {
		v.wantWhole(got, want[name], what, others...)
	}
}

func (v *validation) rates(m place, counted bool, output, chunks int64) {
	p := v.root.get("wall_clock_ms")
	wall, ok := p.number()
	requests, known := v.root.get("requests").whole()
	if !ok || !known {
		return
	}
	seconds := wall / 1000
	eligible := int64(len(v.rows)) == requests && counted && wall > 0
	v.wantTruth(m.get("throughput_performance_eligible"), eligible, "by the rows")
	v.wantTruth(v.root.get("metric_population", "aggregate_throughput_eligible"), eligible, "by the rows")
	rate := float64(output) / seconds
	v.wantMaybe(m.get("throughput_tok_s"), when(eligible, rate), ulps(roundings, rate), "(output_tokens over wall_clock_ms)", p)
	rate = float64(chunks) / seconds
	v.wantMaybe(m.get("content_chunks_s"), when(!counted && wall > 0, rate), ulps(roundings, rate),
		"(content_chunks over wall_clock_ms)", p)
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
	kept, counted := members(v.rows, "request_canary"), members(v.rows, "controlled_output")
	v.wantWhole(m.get("request_canary_samples"), canaries, "by the rows", kept...)
	v.wantWhole(m.get("request_canary_passed"), passed, "by the rows", kept...)
	v.wantWhole(m.get("controlled_output_samples"), words, "by the rows", counted...)
	v.wantWhole(m.get("controlled_output_exact_adherence"), exact, "by the rows", counted...)
	v.wantWhole(m.get("controlled_output_unobservable"), unseen, "by the rows", counted...)
	rate := ratio(int(exact), int(words-unseen))
	v.wantMaybe(m.get("controlled_output_exact_adherence_rate"), rate, ulps(1, 1), "by the rows")
}

// forms checks how the known figures of the metrics and rows are written: as floats in Python's shortest form.
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
	x += 0 // of the two zeros the one without a sign
	if want, err := floatText(x); err == nil && raw != want {
		v.problem(p, "expected a float written as %s, received %s", want, raw)
	}
}

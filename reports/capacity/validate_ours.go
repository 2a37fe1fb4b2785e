package capacity

import (
	"math"
	"slices"
)

// reasons holds the extensions to their rule: a null has its reason beside it, and what is not null has none, but for the
// knee, which is explained in either case.
func (v *validation) reasons() {
	v.explained(v.ours)
}

func (v *validation) explained(p place) {
	for _, item := range p.items() {
		v.explained(item)
	}
	for name, member := range p.fields() {
		reason := p.get(name + "_reason")
		text, _ := reason.text()
		switch {
		case member.null() && text == "":
			v.problem(reason, "expected a reason for the null beside it")
		case !member.null() && reason.present && name != "concurrency":
			v.problem(reason, "expected no reason beside a value")
		}
		v.explained(member)
	}
}

// extension holds what is ours against the rest of the document.
func (v *validation) extension() {
	o := v.ours
	if !o.object() {
		return
	}
	completed, failed := int64(len(v.rows)), int64(len(v.failed))
	requests, _ := v.root.get("requests").whole()
	missing := requests - completed - failed
	v.wantWhole(o.get("without_result"), missing, "by the counts")
	if n, ok := o.get("not_sent").whole(); ok && n > missing {
		v.problem(o.get("not_sent"), "expected at most the %d requests without a result, received %d", missing, n)
	}
	because, listed := o.get("incomplete_because").length()
	incomplete, _ := o.get("incomplete").truth()
	if listed {
		v.wantTruth(o.get("incomplete"), because > 0, "by incomplete_because")
	}
	if !incomplete && (missing > 0 || o.get("interrupted").some()) {
		v.problem(o.get("incomplete"), "expected true: %d requests have no result, or the run was interrupted", missing)
	}
	if n := v.root.get("configuration_fingerprint"); n.null() {
		v.problem(n, "expected the fingerprint of the configuration, received null")
	}
	v.classes(o.get("failure_classes"))
	v.allCanaries(o.get("canaries"))
	reused, ok1 := o.get("connections", "reused").whole()
	opened, ok2 := o.get("connections", "new").whole()
	if ok1 && ok2 && reused+opened != completed+failed {
		v.problem(o.get("connections", "new"), "expected new and reused together to be the %d requests, received %d",
			completed+failed, reused+opened)
	}
	v.cachedTokens(o.get("cached_tokens"))
	v.allIntervals(o.get("intervals"))
	v.gpuStates(o.get("gpu_states"))
	v.closedGoodput(o.get("goodput"))
	v.openLoop(o.get("open_loop"))
	v.sweep(o.get("sweep"))
}

// classes recounts the failures by class.
func (v *validation) classes(p place) {
	if !p.object() {
		return
	}
	want := map[string]int64{}
	for _, f := range v.failed {
		class, _ := f.get("failure_class").text()
		want[class]++
	}
	for name, n := range want {
		if got := p.get(name); !got.present {
			v.problem(got, "expected %d by failures, received nothing", n)
		}
	}
	for name, got := range p.fields() {
		v.wantWhole(got, want[name], "by failures")
	}
}

// allCanaries recounts the canaries of valid and of failed replies.
func (v *validation) allCanaries(p place) {
	var attempted, passed, foreign int64
	for _, row := range append(v.rows[:len(v.rows):len(v.rows)], v.failed...) {
		c := row.get("request_canary")
		if !c.object() {
			continue
		}
		attempted++
		if ok, _ := c.get("passed").truth(); ok {
			passed++
		}
		n, _ := c.get("foreign_marker_count").whole()
		foreign += n
	}
	v.wantWhole(p.get("attempted"), attempted, "by the rows")
	v.wantWhole(p.get("passed"), passed, "by the rows")
	v.wantWhole(p.get("failed"), attempted-passed, "by the rows")
	v.wantWhole(p.get("foreign_markers"), foreign, "by the rows")
}

func (v *validation) cachedTokens(p place) {
	samples, ok := p.get("samples").whole()
	if !ok {
		return
	}
	if samples > int64(len(v.rows)) {
		v.problem(p.get("samples"), "expected at most the %d valid replies, received %d", len(v.rows), samples)
	}
	sum, _ := p.get("sum").number()
	v.wantMaybe(p.get("mean"), when(samples > 0, sum/float64(samples)), ulps(1, sum), "(sum over samples)")
	if share := v.root.get("metrics", "prefix_cache_hit_avg"); samples == 0 && share.some() {
		v.problem(share, "expected null: no valid reply tells its cached tokens")
	}
}

// intervalDigits is lastDigits for the intervals: arctangent and root differ in the last digits between machines.
const intervalDigits = 1000 * lastDigits

// allIntervals computes the intervals anew. Those of the bootstrap are the same wherever the same numbers are drawn.
func (v *validation) allIntervals(p place) {
	means := p.get("means")
	if !means.object() {
		return
	}
	for _, f := range families {
		if !slices.Contains(intervalFamilies, f.name) {
			continue
		}
		got := means.get(f.row)
		if !got.present {
			v.problem(got, "expected the intervals of %s, received nothing", f.row)
			continue
		}
		values := v.values(f)
		want := interval(describe(values), values)
		if want == nil || !got.object() {
			if (want == nil) != got.null() {
				v.problem(got, "expected intervals where the rows have the figure, and null elsewhere")
			}
			continue
		}
		v.wantWhole(got.get("samples"), int64(len(values)), "by the rows")
		size := max(math.Abs(values[0]), math.Abs(values[len(values)-1]))
		for name, value := range want {
			if x, ok := value.(float64); ok {
				v.wantNumber(got.get(name), x, size*intervalDigits, "by the rows")
			} else if value == nil && got.get(name).some() {
				v.problem(got.get(name), "expected null: %s", want[name+"_reason"])
			}
		}
	}
}

// goodputParts checks what every goodput says of itself.
func (v *validation) goodputParts(p place, results int64, wallMS float64) {
	met, ok := p.get("met").whole()
	if !ok {
		return
	}
	v.wantWhole(p.get("of"), results, "requests with a result")
	if met > results {
		v.problem(p.get("met"), "expected at most %d, received %d", results, met)
	}
	v.wantMaybe(p.get("share"), ratio(int(met), int(results)), ulps(1, 1), "(met over of)")
	rate := float64(met) / (wallMS / 1000)
	v.wantMaybe(p.get("requests_per_s"), when(wallMS > 0, rate), ulps(roundings, rate), "(met over the wall time)")
}

// closedGoodput holds every reply of the closed loop against the objective anew.
func (v *validation) closedGoodput(p place) {
	if !p.object() {
		return
	}
	var met, unknown int64
	for _, row := range v.rows {
		all, lacks := true, false
		for _, o := range p.get("objective").items() {
			figure, _ := o.get("figure").text()
			limit, _ := o.get("limit_ms").number()
			x, ok := row.get(figure + "_ms").number()
			all, lacks = all && ok && x <= limit, lacks || !ok
		}
		if all {
			met++
		}
		if lacks {
			unknown++
		}
	}
	v.wantWhole(p.get("met"), met, "by the rows")
	v.wantWhole(p.get("unknown"), unknown, "by the rows")
	wall, _ := v.root.get("wall_clock_ms").number()
	v.goodputParts(p, int64(len(v.rows)+len(v.failed)), wall)
}

// openLoop holds the open loop's counts against each other, and latency from the schedule against latency from dispatch.
func (v *validation) openLoop(p place) {
	if !p.object() {
		return
	}
	requests, _ := p.get("requests").whole()
	completed, _ := p.get("completed").whole()
	failed, _ := p.get("failed").whole()
	results := p.get("results")
	v.wantWhole(results, completed+failed, "(completed and failed)")
	n, ok := results.whole()
	if ok && n > requests {
		v.problem(results, "expected at most the %d requests planned, received %d", requests, n)
	}
	for _, figure := range []string{"ttft_ms", "e2e_ms"} {
		for _, statistic := range []string{"mean", "p50", "p95", "p99", "max"} {
			late := p.get("from_schedule", figure, statistic)
			due, ok1 := late.number()
			sent, ok2 := p.get("from_dispatch", figure, statistic).number()
			if ok1 && ok2 && due < sent-ulps(roundings, sent) {
				v.problem(late, "expected at least what it is from dispatch (%v), received %v", sent, due)
			}
		}
	}
	wall, _ := p.get("wall_ms").number()
	v.goodputParts(p.get("goodput"), n, wall)
}

// sweep finds the knee anew.
func (v *validation) sweep(p place) {
	if !p.object() {
		return
	}
	var levels []Level
	for _, l := range p.get("levels").items() {
		concurrency, _ := l.get("concurrency").whole()
		requests, _ := l.get("requests").whole()
		results, ok := l.get("results").whole()
		if ok && results > requests {
			v.problem(l.get("results"), "expected at most the %d requests planned, received %d", requests, results)
		}
		if failed, _ := l.get("failed").whole(); ok && failed > results {
			v.problem(l.get("failed"), "expected at most the %d results, received %d", results, failed)
		}
		level := Level{Concurrency: int(concurrency)}
		level.Overloaded, _ = l.get("client_overloaded").truth()
		if rate, ok := l.get("throughput_tok_s").number(); ok {
			level.Throughput = &rate
		}
		levels = append(levels, level)
		wall, _ := l.get("wall_ms").number()
		v.goodputParts(l.get("goodput"), results, wall)
	}
	knee, reason := findKnee(levels)
	got := p.get("knee", "concurrency")
	switch n, ok := got.whole(); {
	case knee == nil && got.some():
		v.problem(got, "expected null by the levels: %s", reason)
	case knee != nil && got.null():
		v.problem(got, "expected %d by the levels, received null", *knee)
	case knee != nil && ok && int(n) != *knee:
		v.problem(got, "expected %d by the levels, received %d", *knee, n)
	}
}

package capacity

import (
	"fmt"
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
			v.problem(reason, "expected a reason for the null beside it, received %s", reason)
		case !member.null() && reason.present && name != "concurrency":
			v.problem(reason, "expected no reason beside a value, received %s", reason)
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
	v.connections(o.get("connections"))
	v.cachedTokens(o.get("cached_tokens"))
	v.allIntervals(o.get("intervals"))
	v.gpuStates(o.get("gpu_states"))
	v.closedGoodput(o.get("goodput"))
	v.openLoop(o.get("open_loop"))
	v.sweep(o.get("sweep"))
}

// connections holds the connections to the requests: one that had a response had a connection, another need not.
func (v *validation) connections(p place) {
	reused, ok1 := p.get("reused").whole()
	opened, ok2 := p.get("new").whole()
	if !ok1 || !ok2 {
		return
	}
	answered := int64(len(v.rows))
	for _, f := range v.failed {
		if received, _ := f.get("response_received").truth(); received {
			answered++
		}
	}
	all := int64(len(v.rows) + len(v.failed))
	if n := reused + opened; n < answered || n > all {
		v.contradiction(p.get("new"), []place{p.get("reused")},
			"expected new and reused together to be from %d, the responses, to %d, the requests, received %d", answered, all, n)
	}
	v.wantWhole(p.get("connect_ms", "samples"), reused+opened, "(new and reused)", p.get("new"), p.get("reused"))
}

// classes recounts the failures by class.
func (v *validation) classes(p place) {
	want := map[string]int64{}
	for _, f := range v.failed {
		class, _ := f.get("failure_class").text()
		want[class]++
	}
	v.tallies(p, want, "by failures", members(v.failed, "failure_class"))
}

// allCanaries recounts the canaries of valid and of failed replies.
func (v *validation) allCanaries(p place) {
	var attempted, passed, foreign int64
	for _, row := range v.results() {
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
	kept := members(v.failed, "request_canary")
	v.wantWhole(p.get("attempted"), attempted, "by the rows", kept...)
	v.wantWhole(p.get("passed"), passed, "by the rows", kept...)
	v.wantWhole(p.get("failed"), attempted-passed, "by the rows", kept...)
	v.wantWhole(p.get("foreign_markers"), foreign, "by the rows", members(v.failed, "request_canary",
		"foreign_marker_count")...)
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
	v.wantMaybe(p.get("mean"), when(samples > 0, sum/float64(samples)), ulps(1, sum), "(sum over samples)", p.get("sum"), p.get("samples"))
	if samples == 0 {
		v.wantNull(v.root.get("metrics", "prefix_cache_hit_avg"), "where no valid reply tells its cached tokens", p.get("samples"))
	}
}

// intervalDigits is how far an interval may lie from ours, as a part of the family's greatest value: arctangent and root
// differ in the last digits between machines.
const intervalDigits = 1e-9

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
			tolerance := size * intervalDigits
			if name == "mean" {
				tolerance = 0
			}
			if x, ok := value.(float64); ok {
				v.wantNumber(got.get(name), x, tolerance, "by the rows")
			} else if value == nil {
				v.wantNull(got.get(name), fmt.Sprintf("(%s)", want[name+"_reason"]))
			}
		}
	}
}

// goodputParts checks what every goodput says of itself.
func (v *validation) goodputParts(p place, results int64, resultsAt, wallAt place) {
	wallMS, _ := wallAt.number()
	met, ok := p.get("met").whole()
	if !ok {
		return
	}
	v.wantWhole(p.get("of"), results, "requests with a result", resultsAt)
	if met > results {
		v.contradiction(p.get("met"), []place{resultsAt}, "expected at most %d, received %d", results, met)
	}
	v.wantMaybe(p.get("share"), ratio(int(met), int(results)), ulps(1, 1), "(met over of)")
	rate := float64(met) / (wallMS / 1000)
	v.wantMaybe(p.get("requests_per_s"), when(wallMS > 0, rate), ulps(roundings, rate), "(met over the wall time)", p.get("met"), wallAt)
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
	objective := []place{p.get("objective")}
	for _, o := range p.get("objective").items() {
		objective = append(objective, o.get("figure"), o.get("limit_ms"))
	}
	v.wantWhole(p.get("met"), met, "by the rows", objective...)
	v.wantWhole(p.get("unknown"), unknown, "by the rows", objective...)
	v.goodputParts(p, int64(len(v.rows)+len(v.failed)), v.root.get("request_timings"), v.root.get("wall_clock_ms"))
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
	v.wantWhole(results, completed+failed, "(completed and failed)", p.get("completed"), p.get("failed"))
	n, ok := results.whole()
	if ok && n > requests {
		v.contradiction(results, []place{p.get("requests")},
			"expected at most the %d requests planned, received %d", requests, n)
	}
	for _, figure := range []string{"ttft_ms", "e2e_ms"} {
		for _, statistic := range []string{"mean", "p50", "p95", "p99", "max"} {
			late := p.get("from_schedule", figure, statistic)
			from := p.get("from_dispatch", figure, statistic)
			due, ok1 := late.number()
			sent, ok2 := from.number()
			if ok1 && ok2 && due < sent-ulps(roundings, sent) {
				v.contradiction(late, []place{from},
					"expected at least what it is from dispatch (%v), received %v", sent, due)
			}
		}
	}
	v.goodputParts(p.get("goodput"), n, results, p.get("wall_ms"))
}

// sweep finds the knee anew.
func (v *validation) sweep(p place) {
	if !p.object() {
		return
	}
	var levels []Level
	by := []place{p.get("levels")}
	for _, l := range p.get("levels").items() {
		by = append(by, l.get("concurrency"), l.get("throughput_tok_s"))
		concurrency, _ := l.get("concurrency").whole()
		requests, _ := l.get("requests").whole()
		results, ok := l.get("results").whole()
		if ok && results > requests {
			v.contradiction(l.get("results"), []place{l.get("requests")},
				"expected at most the %d requests planned, received %d", requests, results)
		}
		if failed, _ := l.get("failed").whole(); ok && failed > results {
			v.contradiction(l.get("failed"), []place{l.get("results")},
				"expected at most the %d results, received %d", results, failed)
		}
		level := Level{Concurrency: int(concurrency)}
		level.Overloaded, _ = l.get("client_overloaded").truth()
		if rate, ok := l.get("throughput_tok_s").number(); ok {
			level.Throughput = &rate
		}
		levels = append(levels, level)
		v.goodputParts(l.get("goodput"), results, l.get("results"), l.get("wall_ms"))
	}
	knee, reason := findKnee(levels)
	got := p.get("knee", "concurrency")
	switch n, ok := got.whole(); {
	case knee == nil && got.some():
		v.wantNull(got, fmt.Sprintf("by the levels (%s)", reason), by...)
	case knee != nil && got.null():
		v.contradiction(got, by, "expected %d by the levels, received null", *knee)
	case knee != nil && ok && int(n) != *knee:
		v.contradiction(got, by, "expected %d by the levels, received %d", *knee, n)
	}
}

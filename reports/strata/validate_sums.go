package strata

import (
	"slices"

	"plumbline/corpus"
	"plumbline/harness/measure"
)

// counts recounts the requests and checks the two equations of each phase.
func (v *validation) counts() {
	var want RequestCounts
	for _, r := range v.rows {
		want.phase(r.phase).add(r.status)
	}
	for _, name := range corpus.Phases {
		n, c := v.root.get("request_counts", name), want.phase(name)
		for field, value := range map[string]int{
			"planned": c.Planned, "attempted": c.Attempted, "completed": c.Completed,
			"truncated": c.Truncated, "failed": c.Failed, "skipped": c.Skipped,
		} {
			v.wantWhole(n.get(field), int64(value), "by the list of requests")
		}
		got := func(field string) int64 { x, _ := n.get(field).whole(); return x }
		if p := n.get("planned"); p != nil && got("planned") != got("attempted")+got("skipped") {
			v.fault(p, "expected attempted and skipped together (%d), received %d", got("attempted")+got("skipped"), got("planned"))
		}
		if sum := got("completed") + got("truncated") + got("failed"); n.get("attempted") != nil && got("attempted") != sum {
			v.fault(n.get("attempted"), "expected completed, truncated and failed together (%d), received %d", sum, got("attempted"))
		}
	}
}

// summaries recomputes every summary from the requests.
func (v *validation) summaries() {
	list := v.root.get("summaries")
	if !list.is('[') {
		return
	}
	var observations []observation
	for _, r := range v.rows {
		if r.phase == corpus.PhasePerformance {
			observations = append(observations, r.observe())
		}
	}
	want := summarise(observations)
	if len(want) != len(list.items) {
		v.fault(list, "expected %d summaries (%d metrics for each performance case), received %d", len(want), len(metrics), len(list.items))
	}
	for i, n := range list.items {
		if i < len(want) {
			v.summary(n, want[i])
		}
	}
}

func (r row) observe() observation {
	o := observation{id: r.id, caseID: r.caseID, status: r.status, values: map[string]float64{}, reasons: map[string]string{}}
	for _, m := range metrics {
		part := "timings"
		if m.unit != "s" {
			part = "metrics"
		}
		if value, ok := r.get(part, m.name).num(); ok {
			o.values[m.name] = value
		} else {
			o.reasons[m.name] = "null"
		}
	}
	o.clientRate = r.get("metrics", "decode_tps").is('0') && !r.get("timings", "decode_s").is('0')
	return o
}

func (v *validation) summary(n *node, want summary) {
	for _, w := range []struct{ name, value string }{
		{"case_id", want.caseID}, {"metric", want.metric.name}, {"unit", want.metric.unit},
	} {
		if got, ok := n.get(w.name).str(); ok && got != w.value {
			v.fault(n.get(w.name), "expected %q here, received %q", w.value, got)
			return
		}
	}
	v.wantWhole(n.get("n"), int64(len(want.included)), "included requests")
	for name, value := range map[string]float64{"median": want.median, "min": want.min, "max": want.max} {
		x := n.get(name)
		switch {
		case len(want.included) == 0 && x.is('0'):
			v.fault(x, "expected null without an included request, received %s", x.raw)
		case len(want.included) > 0 && x.null():
			v.fault(x, "expected a number over %d requests, received null", len(want.included))
		case len(want.included) > 0:
			v.wantNumber(x, value, rateDecimals, "recomputed from the requests")
		}
	}
	v.wantIDs(n.get("included_request_ids"), want.included, func(x *node) *node { return x })
	excluded := make([]string, len(want.excluded))
	for i, e := range want.excluded {
		excluded[i] = e.RequestID
	}
	v.wantIDs(n.get("excluded"), excluded, func(x *node) *node { return x.get("request_id") })
}

// wantIDs checks a list of request ids.
func (v *validation) wantIDs(list *node, want []string, id func(*node) *node) {
	if !list.is('[') {
		return
	}
	if len(list.items) != len(want) {
		v.fault(list, "expected %d requests %q, received %d", len(want), want, len(list.items))
		return
	}
	for i, item := range list.items {
		if n := id(item); n.is('"') && n.text != want[i] {
			v.fault(n, "expected %q, received %q", want[i], n.text)
		}
	}
}

// quality recounts the verdicts.
func (v *validation) quality() {
	var passed, total int64
	byCategory := map[string]*Score{}
	for _, name := range corpus.Categories {
		byCategory[name] = &Score{}
	}
	for _, r := range v.rows {
		e := r.get("evaluation")
		if !e.is('{') {
			continue
		}
		total++
		score := byCategory[e.get("category").word()]
		if score == nil {
			score = &Score{}
		}
		score.Total++
		if ok, _ := e.get("passed").truth(); ok {
			passed++
			score.Passed++
		}
	}
	q := v.root.get("quality")
	v.wantWhole(q.get("passed"), passed, "passed by the verdicts")
	v.wantWhole(q.get("total"), total, "verdicts")
	for name, score := range byCategory {
		v.wantWhole(q.get("categories", name, "passed"), int64(score.Passed), "passed by the verdicts")
		v.wantWhole(q.get("categories", name, "total"), int64(score.Total), "verdicts")
	}
}

// rounds holds the rounds of the concurrency stage against the requests.
func (v *validation) rounds() {
	list := v.root.get("concurrency_rounds")
	if !list.is('[') {
		return
	}
	type round struct{ level, number int64 }
	var want []round
	rows := map[round][]row{}
	for _, r := range v.rows {
		level, ok1 := r.get("concurrency").whole()
		number, ok2 := r.get("round").whole()
		if r.phase != corpus.PhaseConcurrency || !ok1 || !ok2 {
			continue
		}
		key := round{level, number}
		if !slices.Contains(want, key) {
			want = append(want, key)
		}
		rows[key] = append(rows[key], r)
	}
	if len(want) != len(list.items) {
		v.fault(list, "expected %d rounds by the list of requests, received %d", len(want), len(list.items))
	}
	for i, n := range list.items {
		if i < len(want) {
			v.wantWhole(n.get("concurrency"), want[i].level, "here")
			v.wantWhole(n.get("round"), want[i].number, "here")
			v.round(n, rows[want[i]])
		}
	}
}

// round recomputes what a round says of its requests. The times when all were decoding are in the record only.
func (v *validation) round(n *node, rows []row) {
	var ids []string
	var tokens int64
	var longest float64
	var rates []float64
	sent, counted := false, false
	for _, r := range rows {
		ids = append(ids, r.id)
		sent = sent || r.status != "" && r.status != string(measure.Skipped)
		total, _ := r.get("timings", "total_s").num()
		longest = max(longest, total)
		if r.status != string(measure.Completed) && r.status != string(measure.Truncated) {
			continue
		}
		if output, ok := r.get("tokens", "output_tokens").whole(); ok {
			tokens += output
			counted = true
		}
		if rate, ok := r.get("metrics", "decode_tps").num(); ok && rate > 0 {
			rates = append(rates, rate)
		}
	}
	v.wantIDs(n.get("request_ids"), ids, func(x *node) *node { return x })
	v.wantKnown(n.get("wall_s"), sent)
	v.wantKnown(n.get("output_tokens"), counted)
	v.wantWhole(n.get("output_tokens"), tokens, "by the list of requests")
	wall, ok := n.get("wall_s").num()
	if ok && wall < longest-1e-6 {
		v.fault(n.get("wall_s"), "expected at least the longest total_s of the round (%.6f), received %s", longest, n.get("wall_s").raw)
	}
	v.wantKnown(n.get("output_tps"), counted && wall > 0)
	if ok && wall > 0 {
		v.wantNumber(n.get("output_tps"), float64(tokens)/wall, rateDecimals, "(output_tokens over wall_s)")
	}
	if together, known := n.get("all_decoding_s").num(); ok && known && together > wall {
		v.fault(n.get("all_decoding_s"), "expected at most wall_s (%s), received %s", n.get("wall_s").raw, n.get("all_decoding_s").raw)
	}
	v.foreignMarkers(n.get("foreign_markers"), ids)
	for _, name := range []string{"slowest_decode_tps", "fastest_decode_tps", "slowest_to_fastest"} {
		v.wantKnown(n.get(name), len(rates) > 0)
	}
	if len(rates) == 0 {
		return
	}
	v.wantNumber(n.get("slowest_decode_tps"), slices.Min(rates), rateDecimals, "by the list of requests")
	v.wantNumber(n.get("fastest_decode_tps"), slices.Max(rates), rateDecimals, "by the list of requests")
	v.wantNumber(n.get("slowest_to_fastest"), slices.Min(rates)/slices.Max(rates), rateDecimals, "(slowest over fastest)")
}

// wantKnown faults a number that cannot be known, and a null in place of one that can.
func (v *validation) wantKnown(n *node, known bool) {
	switch {
	case known && n.null():
		v.fault(n, "expected a number: the requests of the round give it")
	case !known && n.is('0'):
		v.fault(n, "expected null: the requests of the round do not give it, received %s", n.raw)
	}
}

// foreignMarkers checks that each was found in a reply of the round and belongs to another request of the stage.
func (v *validation) foreignMarkers(list *node, ids []string) {
	for _, m := range list.list() {
		holder, owner := m.get("request_id"), m.get("owner")
		if id, ok := holder.str(); ok && !slices.Contains(ids, id) {
			v.fault(holder, "expected a request of the round, received %q", id)
		}
		if id, ok := owner.str(); ok && (id == holder.word() || !slices.ContainsFunc(v.rows, func(r row) bool { return r.id == id && !r.required() })) {
			v.fault(owner, "expected another request of the concurrency stage, received %q", id)
		}
	}
}

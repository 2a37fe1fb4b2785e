package capacity

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// How far the time by the host's clock may lie from the monotonic one where a document does not tell: the two are read one
// after the other, and steering the host's clock changes its pace by a twentieth of a percent (adjtimex(2) allows 500
// parts in a million).
const (
	clockSlackMS    = 50
	clockSlackShare = 0.0005
)

// timeSlackMS is what two times may differ by that were read one after the other; stepSlackMS what rounding makes of three
// that add up.
const (
	timeSlackMS = 1
	stepSlackMS = 0.001
)

// times holds the time stamps against each other and the wall time.
func (v *validation) times() {
	r := v.root
	for _, name := range []string{"started_at", "finished_at"} {
		at := r.get(name + "_unix_ns")
		if ns, ok := at.whole(); ok {
			v.wantText(r.get(name), time.Unix(0, ns).UTC().Format(labelLayout), "by "+name+"_unix_ns", at)
		}
	}
	startAt, endAt, wallAt := r.get("started_at_unix_ns"), r.get("finished_at_unix_ns"), r.get("wall_clock_ms")
	start, ok1 := startAt.whole()
	end, ok2 := endAt.whole()
	if ok1 {
		v.wantText(r.get("run_id"), time.Unix(0, start).UTC().Format(runIDLayout), "by the start", startAt)
	}
	if !ok1 || !ok2 {
		return
	}
	between := float64(end-start) / 1e6
	others := []place{startAt, endAt}
	step := v.ours.get("clock_step_ms")
	if moved, ok := step.number(); ok {
		v.wantNumber(wallAt, between-moved, stepSlackMS, "ms between start and end, less clock_step_ms", append(others, step)...)
		return
	}
	if end < start {
		v.contradiction(endAt, others[:1], "expected no time before the start (%d), received %d", start, end)
	}
	v.wantNumber(wallAt, between, clockSlackMS+math.Abs(between)*clockSlackShare, "ms between start and end", others...)
}

// wantText is wantWhole for a text.
func (v *validation) wantText(p place, want, what string, others ...place) {
	if got, ok := p.text(); ok && got != want {
		v.contradiction(p, others, "expected %q %s, received %q", want, what, got)
	}
}

// results are the entries of both lists.
func (v *validation) results() []place { return append(v.rows[:len(v.rows):len(v.rows)], v.failed...) }

// idlePerRequest is the time in ms that a client may take between two requests of a closed loop, far above what one needs.
const idlePerRequest = 1000

// wall holds the wall time against the times of the requests, of which so many are under way at once. It is no shorter than
// the valid ones need, nor, where all succeeded, longer than a closed loop takes that always has its next request under way.
func (v *validation) wall() {
	wallAt, concurrencyAt := v.root.get("wall_clock_ms"), v.root.get("concurrency")
	wall, ok := wallAt.number()
	if !ok {
		return
	}
	took := func(p place) float64 {
		ms, _ := p.number()
		if ms > wall+timeSlackMS {
			v.contradiction(p, []place{wallAt}, "expected at most the run's wall time (%v ms), received %v", wall, ms)
		}
		return ms
	}
	var sum, longest float64
	for _, row := range v.rows {
		ms := took(row.get("e2e_ms"))
		sum, longest = sum+ms, max(longest, ms)
	}
	for _, f := range v.failed {
		took(f.get("elapsed_ms"))
	}
	concurrency, ok := concurrencyAt.whole()
	if !ok || concurrency < 1 || len(v.rows) == 0 {
		return
	}
	others := append([]place{concurrencyAt}, members(v.rows, "e2e_ms")...)
	atOnce := float64(min(concurrency, int64(len(v.rows))))
	if least := sum / atOnce; wall < least-timeSlackMS {
		v.contradiction(wallAt, others, "expected at least %v ms for the requests, %v at once, received %v", least, atOnce, wall)
	}
	if requests, ok := v.root.get("requests").whole(); !ok || requests != int64(len(v.rows)) || v.ours.object() {
		return // ours tells how late its client was, and is held to that client's own figures
	}
	idle := idlePerRequest * float64(len(v.rows))
	if most := (sum+idle)/atOnce + longest; wall > most {
		v.contradiction(wallAt, others, "expected at most %v ms for the requests, %v at once, received %v", most, atOnce, wall)
	}
}

// runCounts holds the counts of the run against its rows.
func (v *validation) runCounts() {
	r := v.root
	completed, failed := int64(len(v.rows)), int64(len(v.failed))
	requestsAt, rowsAt, failedAt := r.get("requests"), r.get("request_timings"), r.get("failures")
	requests, ok := requestsAt.whole()
	v.wantWhole(r.get("completed"), completed, "by request_timings", v.lacking(rowsAt, r.get("completed"), v.rows)...)
	v.wantWhole(r.get("failed"), failed, "by failures", v.lacking(failedAt, r.get("failed"), v.failed)...)
	if ok && completed+failed > requests {
		v.contradiction(requestsAt, []place{rowsAt, failedAt},
			"expected at least the %d requests that have a result, received %d", completed+failed, requests)
	}
	received := completed
	for _, f := range v.failed {
		if had, _ := f.get("response_received").truth(); had {
			received++
		}
	}
	v.wantWhole(r.get("responses_received"), received, "by the rows", members(v.failed, "response_received")...)
	if ok {
		v.wantTruth(r.get("performance_eligible"), completed == requests, "by the counts", requestsAt, rowsAt)
	}
	p := r.get("metric_population")
	v.wantWhole(p.get("attempted_requests"), completed+failed, "by the rows", rowsAt, failedAt)
	v.wantWhole(p.get("successful_requests"), completed, "by request_timings", rowsAt)
	v.wantWhole(p.get("performance_eligible_requests"), completed, "by request_timings", rowsAt)
	v.wantWhole(p.get("excluded_requests"), failed, "by failures", failedAt)
	v.p99(p.get("p99_interpretation"), completed, rowsAt)
	for _, name := range p99Families {
		at := r.get("metrics", name+"_samples")
		if n, ok := at.whole(); ok {
			v.wantWhole(p.get("p99_samples_by_metric", name), n, "by the metrics", at)
			v.p99(p.get("p99_interpretation_by_metric", name), n, at)
		}
	}
}

// lacking are a list and, where it has fewer entries than are counted, the places at which the requests without any entry
// would stand in it.
func (v *validation) lacking(list, counted place, entries []place) []place {
	all := []place{list}
	n, _ := counted.whole()
	requests, _ := v.root.get("requests").whole()
	missing := n - int64(len(entries))
	had, here := map[int64]bool{}, map[int64]bool{}
	for _, row := range v.results() {
		index, _ := row.get("request_index").whole()
		had[index] = true
	}
	for _, row := range entries {
		index, _ := row.get("request_index").whole()
		here[index] = true
	}
	at := int64(0)
	for index := int64(0); index < requests && missing > 0 && len(all) < namedRows; index++ {
		if !had[index] {
			all, missing = append(all, list.get(strconv.FormatInt(at, 10))), missing-1
		}
		if !had[index] || here[index] {
			at++
		}
	}
	return all
}

func (v *validation) p99(p place, samples int64, by place) {
	v.wantText(p, p99Meaning(int(samples)), fmt.Sprintf("of %d samples", samples), by)
}

// protocol holds the protocol's name against the reasoning that was seen. Documents of the tool look at valid replies
// only, ours at all that were received.
func (v *validation) protocol() {
	p := v.root.get("measurement_protocol")
	got, ok := p.text()
	reasoned := func(rows []place, path ...string) bool {
		for _, row := range rows {
			if n, _ := row.get(path...).whole(); n > 0 {
				return true
			}
		}
		return false
	}
	inValid := reasoned(v.rows, "reasoning_chunks")
	inAny := inValid || reasoned(v.failed, "response_metadata", "reasoning_chunks")
	others := append(members(v.rows, "reasoning_chunks"), members(v.failed, "response_metadata", "reasoning_chunks")...)
	switch {
	case !ok:
	case got == ProtocolReasoning && !inAny:
		v.contradiction(p, others, "expected %q: no reply held reasoning, received %q", ProtocolPlain, got)
	case got == ProtocolPlain && (inValid || inAny && v.ours.some()):
		v.contradiction(p, others, "expected %q: a reply held reasoning, received %q", ProtocolReasoning, got)
	}
}

// readRows lists the entries of both lists.
func (v *validation) readRows() {
	for _, row := range v.root.get("request_timings").items() {
		v.rows = append(v.rows, row)
	}
	for _, row := range v.root.get("failures").items() {
		v.failed = append(v.failed, row)
	}
}

// order holds both lists to the order of their indices, and every index to one entry.
func (v *validation) order() {
	requestsAt := v.root.get("requests")
	requests, known := requestsAt.whole()
	if !known {
		requests = math.MaxInt64
	}
	seen := map[int64]place{}
	for _, rows := range [][]place{v.rows, v.failed} {
		last := int64(-1)
		for _, row := range rows {
			p := row.get("request_index")
			index, ok := p.whole()
			first, twice := seen[index]
			switch {
			case !ok:
				continue
			case twice:
				v.contradiction(p, []place{first}, "expected every request once, received %d twice", index)
			case index < last:
				v.contradiction(p, []place{seen[last]}, "expected rows in the order of their index, received %d after %d", index, last)
			case index >= requests:
				v.contradiction(p, []place{requestsAt}, "expected an index below the %d requests, received %d", requests, index)
			}
			seen[index], last = p, max(last, index)
		}
	}
}

package capacity

import (
	"math"
	"strconv"
	"time"
)

// settings holds the settings against each other.
func (v *validation) settings() {
	r := v.root
	words, _ := r.get("response_words").whole()
	if policy, _ := r.get("controlled_output_policy").text(); policy == "strict" && words == 0 {
		v.problem(r.get("controlled_output_policy"), `expected "observe" without response_words, received "strict"`)
	}
	canaries, _ := r.get("request_canaries").truth()
	if tokens, ok := r.get("max_tokens").whole(); ok && canaries && tokens < 16 {
		v.problem(r.get("max_tokens"), "expected at least 16 with request canaries, received %d", tokens)
	}
	burst, _ := r.get("serve_flags", "shared_prefix_burst").truth()
	if mode, _ := r.get("prompt_cache_mode").text(); mode == cacheUnique {
		v.wantWhole(r.get("shared_prefix_tokens"), 0, "in unique mode")
		if burst {
			v.problem(r.get("serve_flags", "shared_prefix_burst"), "expected false in unique mode, received true")
		}
	}
	thinking, told := r.get("serve_flags", "thinking_mode").text()
	if off, ok := r.get("serve_flags", "no_thinking").truth(); ok && told && off && thinking != thinkingOff {
		v.problem(r.get("serve_flags", "no_thinking"), "expected false with thinking_mode %q, received true", thinking)
	}
	for _, s := range r.get("sampling").fields() {
		sent, ok := s.get("sent").truth()
		requested, effective := s.get("requested"), s.get("effective_request")
		switch {
		case !ok:
		case !sent && effective.some():
			v.problem(effective, "expected null of what was not sent")
		case sent && effective.null():
			v.problem(effective, "expected the value that was sent, received null")
		case sent && requested.some():
			want, _ := requested.number()
			v.wantNumber(effective, want, 0, "as requested")
		}
	}
}

// How far the time by the host's clock may lie from the monotonic one: the two are read one after the other, between which
// a loaded machine may do something else, and steering the host's clock changes its pace by a twentieth of a percent
// (adjtimex(2) allows 500 parts in a million).
const (
	clockSlackMS    = 500
	clockSlackShare = 0.001
)

// times holds the time stamps against each other and the wall time.
func (v *validation) times() {
	r := v.root
	for _, name := range []string{"started_at", "finished_at"} {
		if ns, ok := r.get(name + "_unix_ns").whole(); ok {
			want := time.Unix(0, ns).UTC().Format(labelLayout)
			if label, ok := r.get(name).text(); ok && label != want {
				v.problem(r.get(name), "expected %q by %s_unix_ns, received %q", want, name, label)
			}
		}
	}
	start, ok1 := r.get("started_at_unix_ns").whole()
	end, ok2 := r.get("finished_at_unix_ns").whole()
	if ok1 {
		want := time.Unix(0, start).UTC().Format(runIDLayout)
		if id, ok := r.get("run_id").text(); ok && id != want {
			v.problem(r.get("run_id"), "expected %q by the start, received %q", want, id)
		}
	}
	if !ok1 || !ok2 {
		return
	}
	if end < start {
		v.problem(r.get("finished_at_unix_ns"), "expected no time before the start (%d), received %d", start, end)
		return
	}
	wall := r.get("wall_clock_ms")
	between := float64(end-start) / 1e6
	v.wantNumber(wall, between, clockSlackMS+between*clockSlackShare, "ms between start and end")
	for _, row := range append(v.rows[:len(v.rows):len(v.rows)], v.failed...) {
		took := row.get("e2e_ms")
		if !took.present {
			took = row.get("elapsed_ms")
		}
		longest, known := wall.number()
		if got, ok := took.number(); ok && known && got > longest+1 {
			v.problem(took, "expected at most the run's wall time (%v ms), received %v", longest, got)
		}
	}
}

// runCounts holds the counts of the run against its rows.
func (v *validation) runCounts() {
	r := v.root
	completed, failed := int64(len(v.rows)), int64(len(v.failed))
	requests, ok := r.get("requests").whole()
	v.wantWhole(r.get("completed"), completed, "by request_timings")
	v.wantWhole(r.get("failed"), failed, "by failures")
	if ok && completed+failed > requests {
		v.problem(r.get("requests"), "expected at least the %d requests that have a result, received %d", completed+failed, requests)
	}
	received := completed
	for _, f := range v.failed {
		if had, _ := f.get("response_received").truth(); had {
			received++
		}
	}
	v.wantWhole(r.get("responses_received"), received, "by the rows")
	eligible := completed == requests
	if ok {
		v.wantTruth(r.get("performance_eligible"), eligible, "by the counts")
	}
	p := r.get("metric_population")
	v.wantWhole(p.get("attempted_requests"), completed+failed, "by the rows")
	v.wantWhole(p.get("successful_requests"), completed, "by request_timings")
	v.wantWhole(p.get("performance_eligible_requests"), completed, "by request_timings")
	v.wantWhole(p.get("excluded_requests"), failed, "by failures")
	v.p99(p.get("p99_interpretation"), completed)
	for _, name := range p99Families {
		if n, ok := r.get("metrics", name+"_samples").whole(); ok {
			v.wantWhole(p.get("p99_samples_by_metric", name), n, "by the metrics")
			v.p99(p.get("p99_interpretation_by_metric", name), n)
		}
	}
}

func (v *validation) p99(p place, samples int64) {
	if got, ok := p.text(); ok && got != p99Meaning(int(samples)) {
		v.problem(p, "expected %q of %d samples, received %q", p99Meaning(int(samples)), samples, got)
	}
}

// distribution holds the planned sizes against the requests and their rows.
func (v *validation) distribution() {
	d := v.root.get("context_distribution")
	if !d.object() {
		return
	}
	var sum int64
	sizes := map[int64]int64{}
	for name, p := range d.fields() {
		size, err := strconv.ParseInt(name, 10, 64)
		n, ok := p.whole()
		if err != nil || !ok {
			continue
		}
		sizes[size], sum = n, sum+n
		if fixed, ok := v.root.get("context_tokens").whole(); ok && size > fixed {
			v.problem(p, "expected no prompt above context_tokens (%d)", fixed)
		}
	}
	if requests, ok := v.root.get("requests").whole(); ok && sum != requests {
		v.problem(d, "expected %d prompts together, one for each request, received %d", requests, sum)
	}
	used := map[int64]int64{}
	for _, row := range append(v.rows[:len(v.rows):len(v.rows)], v.failed...) {
		p := row.get("planned_context_tokens")
		size, ok := p.whole()
		if !ok {
			continue
		}
		if used[size]++; used[size] > sizes[size] {
			v.problem(p, "expected at most %d prompts of %d tokens by context_distribution, received one more", sizes[size], size)
		}
	}
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
	switch {
	case !ok:
	case got == ProtocolReasoning && !inAny:
		v.problem(p, "expected %q: no reply held reasoning", ProtocolPlain)
	case got == ProtocolPlain && (inValid || inAny && v.ours.some()):
		v.problem(p, "expected %q: a reply held reasoning", ProtocolReasoning)
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
	requests, known := v.root.get("requests").whole()
	if !known {
		requests = math.MaxInt64
	}
	seen := map[int64]bool{}
	for _, rows := range [][]place{v.rows, v.failed} {
		last := int64(-1)
		for _, row := range rows {
			p := row.get("request_index")
			index, ok := p.whole()
			switch {
			case !ok:
				continue
			case seen[index]:
				v.problem(p, "expected every request once, received %d twice", index)
			case index < last:
				v.problem(p, "expected rows in the order of their index, received %d after %d", index, last)
			case index >= requests:
				v.problem(p, "expected an index below the %d requests, received %d", requests, index)
			}
			seen[index], last = true, max(last, index)
		}
	}
}

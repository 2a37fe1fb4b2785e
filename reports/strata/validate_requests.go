package strata

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plumbline/corpus"
	"plumbline/harness/measure"
)

// row is one request of a document under examination.
type row struct {
	*node
	id, phase, caseID, status string
	repetition                int64
}

func readRows(root *node) []row {
	var rows []row
	for _, n := range root.get("requests").list() {
		repetition, _ := n.get("repetition").whole()
		rows = append(rows, row{n, n.get("id").word(), n.get("phase").word(), n.get("case_id").word(), n.get("status").word(), repetition})
	}
	return rows
}

func (r row) required() bool { return r.phase != corpus.PhaseConcurrency }

// requestID is the id of a request of the serial phases (ref).
func requestID(phase, caseID string, repetition int64) string {
	switch phase {
	case corpus.PhaseWarmup:
		return phase
	case corpus.PhaseSanity:
		return phase + "-" + caseID
	}
	return fmt.Sprintf("%s-%s-r%d", phase, caseID, repetition)
}

// requestOrder checks that no id comes twice, and that requests stand in the order of the protocol: by phase; the
// performance cases by repetition, the protocol's own cases in its order and others as they first come; the concurrency
// stage by level and round.
func (v *validation) requestOrder() {
	seen := map[string]bool{}
	for _, r := range v.rows {
		if r.id != "" && seen[r.id] {
			v.fault(r.get("id"), "another request has this id")
		}
		seen[r.id] = true
	}
	known := slices.Concat(corpus.PerformanceCases, corpus.SanityCases)
	for _, r := range v.rows {
		if !slices.Contains(known, r.caseID) {
			known = append(known, r.caseID)
		}
	}
	sorted := slices.Clone(v.rows)
	slices.SortStableFunc(sorted, func(a, b row) int {
		level := func(r row) int64 { n, _ := r.get("concurrency").whole(); return n }
		round := func(r row) int64 { n, _ := r.get("round").whole(); return n }
		c := cmp.Compare(slices.Index(corpus.Phases, a.phase), slices.Index(corpus.Phases, b.phase))
		if c != 0 || a.phase == corpus.PhaseConcurrency {
			return cmp.Or(c, cmp.Compare(level(a), level(b)), cmp.Compare(round(a), round(b)))
		}
		return cmp.Or(cmp.Compare(a.repetition, b.repetition),
			cmp.Compare(slices.Index(known, a.caseID), slices.Index(known, b.caseID)))
	})
	for i, r := range v.rows {
		if r.id != sorted[i].id {
			v.fault(r.node, "out of order: expected %q here, received %q", sorted[i].id, r.id)
			return // what follows is shifted by it
		}
	}
}

// requests checks each request by itself.
func (v *validation) requests() {
	for _, r := range v.rows {
		v.identity(r)
		v.outcome(r)
		v.tokens(r)
		v.timings(r)
		v.rates(r)
		v.evaluation(r)
	}
}

// identity checks id, seed, concurrency and round.
func (v *validation) identity(r row) {
	if r.get("repetition") != nil {
		v.wantWhole(r.get("seed"), r.repetition, "(the repetition)")
	}
	if r.phase == corpus.PhaseWarmup && r.caseID != corpus.PhaseWarmup && r.caseID != "" {
		v.fault(r.get("case_id"), "expected %q, received %q", corpus.PhaseWarmup, r.caseID)
	}
	if r.phase == corpus.PhaseWarmup || r.phase == corpus.PhaseSanity {
		v.wantWhole(r.get("repetition"), 1, "(the phase asks once)")
	}
	round := r.get("round")
	if r.phase != corpus.PhaseConcurrency {
		if want := requestID(r.phase, r.caseID, r.repetition); r.phase != "" && r.caseID != "" && r.id != "" && r.id != want {
			v.fault(r.get("id"), "expected %q from phase, case and repetition, received %q", want, r.id)
		}
		v.wantWhole(r.get("concurrency"), 1, "(outside the concurrency stage)")
		if round.is('0') {
			v.fault(round, "expected null outside the concurrency stage, received %s", round.raw)
		}
		return
	}
	if head := requestID(r.phase, r.caseID, r.repetition) + "-"; r.id != "" && r.caseID != "" && !strings.HasPrefix(r.id, head) {
		v.fault(r.get("id"), "expected %q and a number, received %q", head, r.id)
	}
	if n, ok := r.get("concurrency").whole(); ok && n < 2 {
		v.fault(r.get("concurrency"), "expected 2 or more in the concurrency stage, received %d", n)
	}
	if round.null() {
		v.fault(round, "expected a round in the concurrency stage, received null")
	}
	v.wantWhole(round, r.repetition, "(the repetition)")
}

// finishes says which finish reasons a status can have; a failed request can have any. The older interface's
// function_call ends a reply as tool_calls does (ours).
var finishes = map[measure.Status][]string{
	measure.Completed: {"stop", "tool_calls", "function_call"},
	measure.Truncated: {"length"},
	measure.Skipped:   {},
}

// outcome checks the status against the finish reason, the error and the figures.
func (v *validation) outcome(r row) {
	status := measure.Status(r.status)
	finish, failure := r.get("finish_reason"), r.get("error")
	if allowed, ruled := finishes[status]; ruled && finish != nil && !slices.Contains(allowed, finish.word()) {
		if len(allowed) > 0 || !finish.null() {
			v.fault(finish, "%s contradicts the status %q", cmp.Or(finish.raw, "this"), status)
		}
	}
	wrong := status == measure.Failed || status == measure.Skipped
	switch {
	case r.status == "":
	case wrong && failure.null():
		v.fault(failure, "expected the cause of the status %q, received null", status)
	case !wrong && failure.is('"'):
		v.fault(failure, "expected null for the status %q, received a cause", status)
	}
	if status == measure.Skipped {
		for _, part := range []string{"tokens", "timings", "metrics"} {
			for _, n := range r.get(part).fields() {
				if n.is('0') {
					v.fault(n, "expected null for a request that was not sent, received %s", n.raw)
				}
			}
		}
	}
	ttft, kind := r.get("timings", "ttft_s"), r.get("first_delta_kind")
	if ttft.is('0') && kind.null() {
		v.fault(kind, "expected the kind of the delta that ttft_s is the time of, received null")
	}
}

// tokens checks that counts add up. A server whose counts do not must have a note that says so.
func (v *validation) tokens(r row) {
	count := func(name string) (int64, bool) { return r.get("tokens", name).whole() }
	note := r.get("token_accounting_note")
	input, ok1 := count("input_tokens")
	cached, ok2 := count("cached_tokens")
	read, ok3 := count("read_tokens")
	output, ok4 := count("output_tokens")
	decode, ok5 := count("decode_tokens")
	differ := false
	if ok1 && ok2 && cached > input {
		differ = true
		if note.null() {
			v.fault(r.get("tokens", "cached_tokens"), "expected at most the %d input tokens, received %d, and no note says why", input, cached)
		}
	} else if ok1 && ok2 && ok3 && read != input-cached {
		differ = true
		if note.null() {
			v.fault(r.get("tokens", "read_tokens"), "expected %d (input less cached), received %d, and no note says why", input-cached, read)
		}
	}
	if ok4 && ok5 && output != decode {
		differ = true
		if note.null() {
			v.fault(note, "expected a note: output_tokens is %d and decode_tokens %d", output, decode)
		}
	}
	if budget, ok := r.get("max_output_tokens").whole(); ok && ok4 && output > budget {
		differ = true
		if note.null() {
			v.fault(r.get("tokens", "output_tokens"), "expected at most the %d tokens of the budget, received %d, and no note says why", budget, output)
		}
	}
	if note.is('"') && !differ {
		v.fault(note, "expected null: no two counts of this request differ, and its output keeps to the budget")
	}
}

// timings checks the order of the client's moments, and the engine's clock against the client's.
func (v *validation) timings(r row) {
	at := func(name string) (*node, float64, bool) {
		n := r.get("timings", name)
		value, ok := n.num()
		return n, value, ok
	}
	ttft, first, ok1 := at("ttft_s")
	answer, second, ok2 := at("first_answer_s")
	total, third, ok3 := at("total_s")
	if ok1 && ok2 && first > second {
		v.fault(answer, "expected at least ttft_s (%s), received %s", ttft.raw, answer.raw)
	}
	if ok2 && ok3 && second > third {
		v.fault(answer, "expected at most total_s (%s), received %s", total.raw, answer.raw)
	}
	if ok1 && ok3 && first > third {
		v.fault(ttft, "expected at most total_s (%s), received %s", total.raw, ttft.raw)
	}
	if ok2 && !ok1 && ttft.null() {
		v.fault(ttft, "expected a time: an answer arrived")
	}
	for _, name := range []string{"prompt_s", "decode_s"} {
		// Half a unit of the engine's last decimal on top of the tolerance: the limit was held before rounding.
		if n, seconds, ok := at(name); ok && ok3 && seconds > third+corpus.EngineOverClient+0.51e-4 {
			v.fault(n, "expected no more than total_s (%s), received %s: the engine's part cannot be longer than the whole", total.raw, n.raw)
		}
	}
}

// rates recomputes the rates from the tokens and seconds of the document.
func (v *validation) rates(r row) {
	basis := v.root.get("extensions", "timing_basis")
	clientRates := basis != nil && basis.word() != string(measure.EngineBasis)
	for _, rate := range []struct {
		name, tokens, seconds string
		client                bool // the client's clock may stand in for the engine's
	}{
		{"prompt_tps", "read_tokens", "prompt_s", false},
		{"decode_tps", "decode_tokens", "decode_s", clientRates},
	} {
		n := r.get("metrics", rate.name)
		if !n.is('0') {
			continue
		}
		tokens, ok1 := r.get("tokens", rate.tokens).whole()
		seconds, ok2 := r.get("timings", rate.seconds).num()
		switch {
		case ok1 && ok2 && seconds > 0:
			v.wantNumber(n, float64(tokens)/seconds, rateDecimals, fmt.Sprintf("(%s over %s)", rate.tokens, rate.seconds))
		case ok2 || !rate.client: // a rate of the client's clock stands beside no engine seconds
			v.fault(n, "expected null: %s over %s gives no rate, received %s", rate.tokens, rate.seconds, n.raw)
		}
	}
}

// evaluation checks that the sanity requests are judged, and only they.
func (v *validation) evaluation(r row) {
	n := r.get("evaluation")
	switch {
	case n == nil || r.phase == "":
	case r.phase != corpus.PhaseSanity && n.is('{'):
		v.fault(n, "expected null outside the sanity phase, received a verdict")
	case r.phase == corpus.PhaseSanity && n.null():
		v.fault(n, "expected a verdict, received null")
	}
	category := n.get("category")
	if slices.Contains(corpus.SanityCases, r.caseID) && category.word() != "" && category.word() != categoryOf[r.caseID[0]] {
		v.fault(category, "expected %q for the case %q, received %q", categoryOf[r.caseID[0]], r.caseID, category.word())
	}
	if passed, _ := n.get("passed").truth(); passed && r.status != "" && r.status != string(measure.Completed) {
		v.fault(n.get("passed"), "expected false for the status %q, received true", r.status)
	}
}

package strata

import (
	"slices"
	"strings"
	"time"

	"plumbline/corpus"
	"plumbline/harness/measure"
)

// runFacts checks the run's identity and durations.
func (v *validation) runFacts() {
	run := v.root.get("run")
	id, started := run.get("id"), run.get("started_at")
	if text, ok := started.str(); ok {
		if at, err := time.Parse("2006-01-02T15:04:05Z", text); err != nil {
			v.fault(started, "expected a date and time that exist, received %q", text)
		} else if stamp := at.Format("20060102T150405Z"); id.word() != "" && !strings.HasPrefix(id.word(), stamp+"-") {
			v.fault(id, "expected the start %s and 8 hex digits, received %q", stamp, id.word())
		}
	}
	asked, known := run.get("optional_concurrency").truth()
	if known && !asked {
		if d := run.get("optional_duration_s"); d.is('0') {
			v.fault(d, "expected null without the concurrency stage, received %s", d.raw)
		}
		for _, r := range v.rows {
			if r.phase == corpus.PhaseConcurrency {
				v.fault(r.get("phase"), "expected no request of the concurrency stage: it was not asked for")
			}
		}
	}
	v.requiredDuration(run.get("required_duration_s"))
}

// requiredDuration holds the wall time against the requests in it, which were sent one after the other.
func (v *validation) requiredDuration(n *node) {
	total, ok := n.num()
	if !ok {
		return
	}
	sum := 0.0
	for _, r := range v.rows {
		if r.required() {
			seconds, _ := r.get("timings", "total_s").num()
			sum += seconds
		}
	}
	// Half a unit of the duration's last decimal, and of each total's.
	if slack := 0.5e-3 + 0.5e-6*float64(len(v.rows)); total < sum-slack {
		v.fault(n, "expected at least %.3f, the sum of total_s of the required requests, received %s", sum, n.raw)
	}
}

// status holds the run's status against the reasons given and the requests.
func (v *validation) status() {
	n := v.root.get("run", "status")
	status, ok := n.str()
	if !ok {
		return
	}
	required := func(s measure.Status) bool {
		return slices.ContainsFunc(v.rows, func(r row) bool { return r.required() && r.status == string(s) })
	}
	skipped, failed := required(measure.Skipped), required(measure.Failed)
	if (RunStatus(status) == Incomplete) != skipped {
		v.fault(n, "%q contradicts the requests: a run is incomplete if, and only if, a required request was skipped", status)
	}
	reasons := v.root.get("extensions", "status_reasons")
	if given := len(reasons.list()) > 0; reasons.is('[') && given == (RunStatus(status) == Conforming) {
		v.fault(n, "%q contradicts the %d status reasons: a conforming run has none, any other has one at least", status, len(reasons.items))
	}
	if RunStatus(status) != Conforming {
		return
	}
	if failed {
		v.fault(n, "a required request failed, so the run does not conform")
	}
	if !v.followsProtocol() {
		v.fault(n, "the required requests are not those of the protocol, so the run does not conform")
	}
	for id, check := range v.root.get("extensions", "request_checks").fields() {
		for _, name := range []string{"unexpected_payload_reuse", "length_outside_tolerance"} {
			if bad, _ := check.get(name).truth(); bad && !strings.HasPrefix(id, corpus.PhaseConcurrency+"-") {
				v.fault(check.get(name), "this speaks against the status %q", status)
			}
		}
	}
}

func (v *validation) followsProtocol() bool {
	required := slices.DeleteFunc(slices.Clone(v.rows), func(r row) bool { return !r.required() })
	return slices.EqualFunc(required, protocolPlan(), func(r row, want requirement) bool {
		budget, _ := r.get("max_output_tokens").whole()
		return r.id == want.id && budget == int64(want.budget)
	})
}

// reasonCodes checks that reasons and codes stand side by side, where there are codes.
func (v *validation) reasonCodes() {
	reasons, codes := v.root.get("extensions", "status_reasons"), v.root.get("extensions", "status_reason_codes")
	if codes.is('[') && len(codes.items) != len(reasons.list()) {
		v.fault(codes, "expected one code for each of the %d status reasons, received %d", len(reasons.list()), len(codes.items))
	}
}

// requestChecks holds the checks of the extensions against the requests.
func (v *validation) requestChecks() {
	checks := v.root.get("extensions", "request_checks")
	if !checks.is('{') {
		return
	}
	for id, check := range checks.fields() {
		i := slices.IndexFunc(v.rows, func(r row) bool { return r.id == id })
		if i < 0 {
			v.fault(check, "there is no request of this id")
			continue
		}
		reuse := check.get("unexpected_payload_reuse")
		prefix, ok1 := check.get("max_shared_prefix_tokens").whole()
		cached, ok2 := v.rows[i].get("tokens", "cached_tokens").whole()
		if reused, ok := reuse.truth(); ok && ok1 && ok2 && reused != (cached > prefix) {
			v.fault(reuse, "expected %t for %d cached tokens and a shared prefix of %d, received %t", cached > prefix, cached, prefix, reused)
		}
		off := check.get("length_outside_tolerance")
		frozen, ok1 := check.get("frozen_input_tokens").whole()
		input, ok2 := v.rows[i].get("tokens", "input_tokens").whole()
		if outside, ok := off.truth(); ok && ok1 && ok2 {
			if want := max(input-frozen, frozen-input) > corpus.OverheadTolerance; outside != want {
				v.fault(off, "expected %t for %d input tokens and a pinned length of %d, received %t", want, input, frozen, outside)
			}
		}
	}
	for _, r := range v.rows {
		if r.id != "" && checks.get(r.id) == nil {
			v.faultAt(checks.at.AppendToken(r.id), "the checks of this request are not there")
		}
	}
}

// drift recomputes the change of each rate over the repetitions.
func (v *validation) drift() {
	for caseID, d := range v.root.get("extensions", "repetition_drift").fields() {
		var first, last *row
		for i := range v.rows {
			r := &v.rows[i]
			if r.phase != corpus.PhasePerformance || r.caseID != caseID {
				continue
			}
			if first == nil {
				first = r
			}
			if last == nil || r.repetition > last.repetition {
				last = r
			}
		}
		if first == nil {
			v.fault(d, "there is no performance case of this name")
			continue
		}
		for name, n := range d.fields() {
			from, ok1 := first.get("metrics", name).num()
			to, ok2 := last.get("metrics", name).num()
			if ok1 && ok2 && from > 0 && first != last {
				v.wantNumber(n, to/from-1, rateDecimals, "(last repetition over first, less one)")
				if n.null() {
					v.fault(n, "expected a number: the first and the last repetition have this rate")
				}
			} else if n.is('0') {
				v.fault(n, "expected null: two repetitions with this rate are needed, received %s", n.raw)
			}
		}
	}
}

package judge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"plumbline/fixtures"
)

// Tolerances of an expectation: times may be late, for machines are busy, and hardly early; rates may be off by a part.
const (
	lateMS    = 80
	earlyMS   = 10
	rateShare = 0.1
)

// Against lists every difference between the judgement and what a case expects, in sentences; none is agreement.
// Findings beyond the expected ones are no difference. Where the expectation says what must not be concluded, the phrases that
// can be checked are.
func (j Judgement) Against(e *fixtures.CaseExpect) []string {
	if e == nil {
		return nil
	}
	var all []string
	differ := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if string(j.Outcome) != e.Outcome {
		differ("outcome is %s, expected %s", j.Outcome, e.Outcome)
	}
	for _, id := range e.Findings {
		if !has(j.Findings, id) {
			differ("finding %s is missing", id)
		}
	}
	all = append(all, j.checksAgainst(e.Checks)...)
	all = append(all, j.parsedAgainst(e.Parsed)...)
	all = append(all, j.metricsAgainst(e.Metrics)...)
	for _, phrase := range e.MustNot {
		if j.concludes(phrase) {
			differ("concluded what must not be: %s", phrase)
		}
	}
	return all
}

func (j Judgement) checksAgainst(want map[string]string) []string {
	var all []string
	for _, name := range checkNames {
		if state, ok := want[name]; ok && j.Checks[name] != state {
			all = append(all, fmt.Sprintf("check %s is %s, expected %s", name, j.Checks[name], state))
		}
	}
	for name := range want {
		if !slices.Contains(checkNames, name) {
			all = append(all, fmt.Sprintf("check %s is expected, and there is none", name))
		}
	}
	return all
}

func (j Judgement) parsedAgainst(want map[string]json.RawMessage) []string {
	raw, err := json.Marshal(j.Parsed)
	if err != nil {
		return []string{fmt.Sprintf("what was parsed cannot be written: %v", err)}
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(raw, &got); err != nil {
		return []string{fmt.Sprintf("what was parsed cannot be read: %v", err)}
	}
	var all []string
	for name, expected := range want {
		if !covers(expected, got[name]) {
			all = append(all, fmt.Sprintf("parsed %s is %s, expected %s", name, cut(string(got[name])), cut(string(expected))))
		}
	}
	slices.Sort(all)
	return all
}

// covers reports whether got has all that want has: an object may have more members, at any depth.
func covers(want, got json.RawMessage) bool {
	if got == nil {
		return false
	}
	w, err := readJSON(want)
	if err != nil {
		return false
	}
	g, err := readJSON(got)
	return err == nil && w.in(g)
}

func (w value) in(g value) bool {
	if w.kind != g.kind || w.text != g.text || len(w.items) != len(g.items) {
		return false
	}
	for i, item := range w.items {
		if !item.in(g.items[i]) {
			return false
		}
	}
	for name, member := range w.members {
		if other, ok := g.members[name]; !ok || !member.in(other) {
			return false
		}
	}
	return true
}

func (j Judgement) metricsAgainst(want fixtures.CaseMetrics) []string {
	var all []string
	for _, name := range want.Null {
		if x, ok := j.Metrics[name]; !ok || x != nil {
			all = append(all, fmt.Sprintf("metric %s is %s, expected null", name, number(x, ok)))
		}
	}
	for _, name := range want.MustCompute {
		if x, ok := j.Metrics[name]; x == nil || math.IsNaN(*x) || math.IsInf(*x, 0) {
			all = append(all, fmt.Sprintf("metric %s is %s, expected a number", name, number(x, ok)))
		}
	}
	for name, value := range want.Values {
		if x, ok := j.Metrics[name]; x == nil || !within(name, *x, value) {
			all = append(all, fmt.Sprintf("metric %s is %s, expected %v", name, number(x, ok), value))
		}
	}
	slices.Sort(all)
	return all
}

func number(x *float64, ok bool) string {
	switch {
	case !ok:
		return "not there"
	case x == nil:
		return "null"
	}
	return fmt.Sprint(*x)
}

// within compares a metric with the value that is expected of it, in the tolerance of its kind; counts must be equal.
func within(name string, got, want float64) bool {
	switch {
	case strings.HasSuffix(name, "_ms"), name == "level_ttft_p50":
		return got >= want-earlyMS && got <= want+lateMS
	case strings.HasSuffix(name, "_tps"):
		return math.Abs(got-want) <= rateShare*math.Abs(want)
	}
	return math.Abs(got-want) <= 1e-9
}

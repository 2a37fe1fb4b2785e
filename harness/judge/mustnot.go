package judge

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The phrases of a case's must_not that can be checked. Others are for people.
var (
	valuePhrase   = regexp.MustCompile(`^(\w+) (?:=|near) (.+)$`)
	findingPhrase = regexp.MustCompile(`^([a-z0-9-]+)(?: finding)?$`)
	emptyPhrase   = regexp.MustCompile(`^(\w+) empty$`)
	outcomePhrase = regexp.MustCompile(`^(?:outcome )?(pass|fail|error|inconclusive|success)$`)
	numberPhrase  = regexp.MustCompile(`-?[0-9]+(?:\.[0-9]+)?`)
	quotedPhrase  = regexp.MustCompile(`^'(.*)'$`)
)

// concludes reports whether the judgement says what a phrase forbids.
func (j Judgement) concludes(phrase string) bool {
	if m := outcomePhrase.FindStringSubmatch(phrase); m != nil {
		if m[1] == "pass" || m[1] == "success" {
			return j.Outcome == Pass || j.Outcome == PassWithFinding
		}
		return string(j.Outcome) == m[1]
	}
	if m := valuePhrase.FindStringSubmatch(phrase); m != nil {
		return j.hasValue(m[1], m[2])
	}
	if m := emptyPhrase.FindStringSubmatch(phrase); m != nil {
		switch m[1] {
		case "content":
			return j.Parsed.Content == ""
		case "reasoning":
			return j.Parsed.Reasoning == ""
		case "tool_calls":
			return len(j.Parsed.ToolCalls) == 0
		}
		return false
	}
	if m := findingPhrase.FindStringSubmatch(phrase); m != nil {
		_, known := kinds[m[1]]
		return known && has(j.Findings, m[1])
	}
	return false
}

func (j Judgement) hasValue(name, value string) bool {
	if q := quotedPhrase.FindStringSubmatch(value); q != nil {
		switch name {
		case "name":
			return slices.ContainsFunc(j.Parsed.ToolCalls, func(c ParsedCall) bool { return c.Name == q[1] })
		case "content":
			return j.Parsed.Content == q[1]
		case "reasoning":
			return j.Parsed.Reasoning == q[1]
		}
		return false
	}
	x := j.Metrics[name]
	if x == nil {
		return false
	}
	if strings.Contains(value, "timeout") {
		return true // where the wait ran into a time-out, no time is a measurement
	}
	for _, n := range numberPhrase.FindAllString(value, -1) {
		if want, err := strconv.ParseFloat(n, 64); err == nil && within(name, *x, want) {
			return true
		}
	}
	return false
}

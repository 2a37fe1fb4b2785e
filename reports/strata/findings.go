package strata

import (
	"fmt"
	"slices"
	"strings"

	"plumbline/corpus"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

// Finding is one kind of deviation of a reply from the interface, as it came over the wire.
type Finding struct {
	ID       string `json:"id"`       // one of transcript.FindingIDs
	Severity string `json:"severity"` // info, warning, fault: the gravest of its kind in the reply
	Count    int    `json:"count"`    // at how many different places of the reply
	Sentence string `json:"sentence"` // of the first of them
}

// Bounds on what a document holds of a reply's findings: a reply can be made of nothing else.
const (
	maxFindings = 20  // a request
	maxSentence = 300 // bytes
)

// severities from the lightest to the gravest.
var severities = []transcript.Severity{transcript.Info, transcript.Warning, transcript.Fault}

// findingsOf sums up a reply's findings by kind, in the order in which they were seen.
func findingsOf(t *transcript.Transcript) []Finding {
	var found []Finding
	for _, f := range t.Findings {
		i := slices.IndexFunc(found, func(x Finding) bool { return x.ID == f.ID })
		if i < 0 {
			if len(found) == maxFindings {
				continue
			}
			i = len(found)
			sentence := cut(strings.ToValidUTF8(f.Sentence, "\uFFFD"), maxSentence)
			found = append(found, Finding{ID: f.ID, Severity: string(f.Severity), Sentence: sentence})
		}
		x := &found[i]
		x.Count++
		if slices.Index(severities, f.Severity) > slices.Index(severities, transcript.Severity(x.Severity)) {
			x.Severity = string(f.Severity)
		}
	}
	return found
}

// findings are those of each request that has any, in the order of the plan.
func (b *builder) findings() Ordered[[]Finding] {
	all := Ordered[[]Finding]{}
	for _, p := range b.run.Header.Plan {
		if found := b.replies[p.ID].findings; len(found) > 0 {
			all = append(all, Member[[]Finding]{p.ID, found})
		}
	}
	return all
}

// findings checks that findings are of requests that were sent, in their order, and that each is of a kind that there
// is, once.
func (v *validation) findings(d *Document) {
	last := -1
	for id, list := range v.root.get("extensions", "findings").fields() {
		place := slices.IndexFunc(d.Requests, func(r Request) bool { return r.ID == id })
		switch {
		case place < 0:
			v.fault(list, "there is no request of this id")
			continue
		case d.Requests[place].Status == string(measure.Skipped):
			v.fault(list, "expected no findings: the request was not sent")
		case place < last:
			v.fault(list, "out of order: findings stand in the order of the requests")
		}
		last = max(last, place)
		if n := len(list.list()); n < 1 || n > maxFindings {
			v.fault(list, "expected 1 to %d findings, received %d", maxFindings, n)
		}
		seen := map[string]bool{}
		for _, f := range list.list() {
			switch kind := f.get("id").word(); {
			case !slices.Contains(transcript.FindingIDs(), kind):
				v.fault(f.get("id"), "there is no finding of this name")
			case seen[kind]:
				v.fault(f.get("id"), "%q stands twice", kind)
			default:
				seen[kind] = true
			}
		}
	}
}

// deviations is a line on the warnings and faults of all replies, the most frequent first; "" when there are none.
func (d *Document) deviations() string {
	type kind struct {
		id       string
		requests int
	}
	var kinds []kind
	for _, m := range d.Extensions.Findings {
		for _, f := range m.Value {
			if f.Severity == string(transcript.Info) {
				continue
			}
			i := slices.IndexFunc(kinds, func(k kind) bool { return k.id == f.ID })
			if i < 0 {
				i, kinds = len(kinds), append(kinds, kind{id: f.ID})
			}
			kinds[i].requests++
		}
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return b.requests - a.requests })
	words := make([]string, len(kinds))
	for i, k := range kinds {
		plural := "s"
		if k.requests == 1 {
			plural = ""
		}
		words[i] = fmt.Sprintf("%s (%d request%s)", k.id, k.requests, plural)
	}
	return strings.Join(words, ", ")
}

// failures is a line on the required requests that failed; "" when none did.
func (d *Document) failures() string {
	attempted, failed, first := 0, 0, ""
	for _, r := range d.Requests {
		if r.Phase == corpus.PhaseConcurrency || r.Status == string(measure.Skipped) {
			continue
		}
		attempted++
		if r.Status != string(measure.Failed) {
			continue
		}
		if failed++; failed == 1 {
			cause, _ := r.Error.Get()
			first = r.ID + ": " + cut(strings.Join(strings.Fields(cause), " "), maxSentence)
		}
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d requests failed, first: %s", failed, attempted, first)
}

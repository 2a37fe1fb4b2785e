package judge

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega/types"

	"plumbline/fixtures"
)

// Leak is another request's marker in a reply.
type Leak struct {
	ID, Marker string // the reply it was found in, and the foreign marker
	Owner      string // the request that the marker belongs to
	InThinking bool
}

// Leaks returns every marker of the plan that stands in an answer, or its thinking, to another request than its own.
func Leaks(plan []fixtures.Planned, replies []Reply) []Leak {
	var leaks []Leak
	for _, r := range replies {
		for _, owner := range plan {
			if owner.ID == r.Planned.ID || owner.Marker == "" {
				continue
			}
			for _, channel := range []struct {
				text     string
				thinking bool
			}{{r.Transcript.Content, false}, {r.Transcript.Reasoning, true}} {
				if containsMarker(channel.text, owner.Marker) {
					leaks = append(leaks, Leak{r.Planned.ID, owner.Marker, owner.ID, channel.thinking})
				}
			}
		}
	}
	return leaks
}

// containsMarker looks for the marker as a whole word: "PLB-A-2-1-1" does not stand in "PLB-A-2-1-12".
func containsMarker(text, marker string) bool {
	for rest := text; ; {
		i := strings.Index(rest, marker)
		if i < 0 {
			return false
		}
		rest = rest[i+len(marker):]
		if rest == "" || rest[0] < '0' || rest[0] > '9' {
			return true
		}
	}
}

// KeepApart demands of replies to requests of a plan that none holds another's marker.
func KeepApart(plan []fixtures.Planned) types.GomegaMatcher { return apart{plan} }

type apart struct{ plan []fixtures.Planned }

func (a apart) Match(actual any) (bool, error) {
	replies, ok := actual.([]Reply)
	if !ok {
		return false, fmt.Errorf("judge replies: expected a []judge.Reply, received %T", actual)
	}
	return len(Leaks(a.plan, replies)) == 0, nil
}

func (a apart) FailureMessage(actual any) string {
	var b strings.Builder
	b.WriteString("expected replies served together to keep apart, but:")
	for _, l := range Leaks(a.plan, actual.([]Reply)) {
		where := "the answer"
		if l.InThinking {
			where = "the thinking"
		}
		fmt.Fprintf(&b, "\n  %s of %s holds %s, the marker of %s", where, l.ID, l.Marker, l.Owner)
	}
	return b.String()
}

func (apart) NegatedFailureMessage(any) string { return "expected some reply to hold another's marker" }

package judge

import (
	"fmt"
	"strings"
)

// Leak is another request's marker in a reply.
type Leak struct {
	ID, Marker string // the reply it was found in, and the foreign marker
	Owner      string // the request that the marker belongs to
	InThinking bool
}

// Leaks returns every marker of another reply's request that stands in an answer or its thinking.
func Leaks(replies []Reply) []Leak {
	var leaks []Leak
	for _, r := range replies {
		for _, other := range replies {
			if other.Planned.ID == r.Planned.ID || other.Planned.Marker == "" {
				continue
			}
			for _, channel := range []struct {
				text     string
				thinking bool
			}{{r.Transcript.Content, false}, {r.Transcript.Reasoning, true}} {
				if containsMarker(channel.text, other.Planned.Marker) {
					leaks = append(leaks, Leak{r.Planned.ID, other.Planned.Marker, other.Planned.ID, channel.thinking})
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

// KeepApart demands of replies that were served together that none holds another's marker.
func KeepApart() apart { return apart{} }

type apart struct{}

func (apart) Match(actual any) (bool, error) {
	replies, ok := actual.([]Reply)
	if !ok {
		return false, fmt.Errorf("judge replies: expected a []judge.Reply, received %T", actual)
	}
	return len(Leaks(replies)) == 0, nil
}

func (apart) FailureMessage(actual any) string {
	var b strings.Builder
	b.WriteString("expected replies served together to keep apart, but:")
	for _, l := range Leaks(actual.([]Reply)) {
		where := "the answer"
		if l.InThinking {
			where = "the thinking"
		}
		fmt.Fprintf(&b, "\n  %s of %s holds %s, the marker of %s", where, l.ID, l.Marker, l.Owner)
	}
	return b.String()
}

func (apart) NegatedFailureMessage(any) string { return "expected some reply to hold another's marker" }

package corpus

import (
	"fmt"
	"strings"
	"testing"
)

func TestEveryCaseHasNearMisses(t *testing.T) {
	misses, err := NearMisses()
	if err != nil {
		t.Fatal(err)
	}
	_, byID := defaultPrompts(t)
	right, wrong := map[string]int{}, map[string]int{}
	seen := map[string]bool{}
	for _, m := range misses {
		prompt, ok := byID[m.ID]
		if !ok || prompt.Expect == nil {
			t.Errorf("%s is not a prompt that is judged", m.ID)
			continue
		}
		if m.Why == "" || seen[m.ID+m.Why] || seen[fmt.Sprint(m.ID, m.Reply)] {
			t.Errorf("%s: %q says nothing new", m.ID, m.Why)
		}
		seen[m.ID+m.Why], seen[fmt.Sprint(m.ID, m.Reply)] = true, true
		if m.Right {
			right[m.ID]++
		} else {
			wrong[m.ID]++
		}
		if plain := m.Reply.Text; m.Reply.Reasoning == "" && len(m.Reply.Calls) == 0 && plain != "" && plain == prompt.Answer.Text {
			t.Errorf("%s: %q is the pack's answer itself", m.ID, m.Why)
		}
	}
	for _, c := range SanityCases {
		if id := "sanity-" + c; right[id] < 1 || wrong[id] < 5 {
			t.Errorf("%s has %d right and %d wrong near-misses, expected 1 and 5 or more", id, right[id], wrong[id])
		}
	}
}

// Rightness is settled here without the judge, by the plainest reading of each kind of key.
func TestANearMissIsRightExactlyIfItMeansTheSame(t *testing.T) {
	misses, err := NearMisses()
	if err != nil {
		t.Fatal(err)
	}
	_, byID := defaultPrompts(t)
	for _, m := range misses {
		expect, same := byID[m.ID].Expect, false
		switch expect.Kind {
		case ExpectJSON:
			same = sameJSON(expect.JSON, []byte(m.Reply.Text))
		case ExpectText:
			same = strings.TrimSpace(m.Reply.Text) == expect.Text
		case ExpectToolCall:
			same = len(m.Reply.Calls) == 1 && m.Reply.Calls[0].Name == expect.Call.Name &&
				sameJSON(expect.Call.Arguments, []byte(m.Reply.Calls[0].Arguments))
		}
		if same != m.Right {
			t.Errorf("%s: %q is marked right = %v, its meaning says %v", m.ID, m.Why, m.Right, same)
		}
	}
}

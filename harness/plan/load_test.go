package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"plumbline/corpus"
	"plumbline/fixtures"
)

// capacityRun is a run with the protocol's usual settings, edited.
func capacityRun(edits ...func(*fixtures.CapacityRun)) fixtures.CapacityRun {
	run := fixtures.CapacityRun{
		Requests: 60, Concurrency: 20, SharedPrefixTokens: 8000, PromptCacheMode: "shared", MaxTokens: 64,
		ControlledOutputPolicy: "observe", MaxModelLen: 262144, Margin: 1024, ThinkingMode: "default", Calibration: Assumed,
	}
	for _, edit := range edits {
		edit(&run)
	}
	return run
}

func unique(run *fixtures.CapacityRun) { run.PromptCacheMode, run.SharedPrefixTokens = "unique", 0 }

// allStages gives a run an open loop and a sweep.
func allStages(run *fixtures.CapacityRun) {
	run.Arrival, run.Rate, run.OpenRequests = "poisson", 2, 7
	run.Sweep, run.SweepRequests = []int{4, 2}, 5
}

func load(t testing.TB, edits ...func(*fixtures.CapacityRun)) *Load {
	t.Helper()
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	l, err := Capacity(capacityRun(edits...), "a-model", pack)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func message(body []byte) string { return gjson.GetBytes(body, "messages.0.content").String() }

// messages are all user messages of a plan, by stage and index.
func messages(l *Load) map[string]string {
	all := map[string]string{}
	for _, stage := range l.Stages() {
		for i := range stage.Requests {
			all[fmt.Sprintf("%s %d", stage.Name, i)] = message(l.Body(stage.Name, i))
		}
	}
	return all
}

// commonStart is how many characters two texts begin with in common.
func commonStart(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// ownPart is a message from its heading on.
func ownPart(t testing.TB, text string) string {
	t.Helper()
	at := strings.Index(text, " is the shelf mark of")
	if at < 16 {
		t.Fatalf("no heading in %.80q", text)
	}
	return text[at-16:]
}

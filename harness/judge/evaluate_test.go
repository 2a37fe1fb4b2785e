package judge

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

// said puts a reply of the near-misses into the form in which the judge sees one.
func said(r corpus.Reply) *transcript.Transcript {
	t := &transcript.Transcript{Content: r.Text, Reasoning: r.Reasoning}
	for i, c := range r.Calls {
		t.ToolCalls = append(t.ToolCalls, transcript.ToolCall{Index: i, Name: c.Name, Arguments: c.Arguments})
	}
	return t
}

var completed = measure.Figures{Status: measure.Completed}

func answerKeys(t *testing.T) map[string]corpus.Prompt {
	t.Helper()
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]corpus.Prompt{}
	for _, p := range pack.Prompts {
		if p.Expect != nil {
			keys[p.ID] = p
		}
	}
	return keys
}

func TestEveryNearMissIsJudgedRightly(t *testing.T) {
	keys := answerKeys(t)
	misses, err := corpus.NearMisses()
	if err != nil {
		t.Fatal(err)
	}
	wrong, right := map[string]int{}, map[string]int{}
	for _, m := range misses {
		t.Run(m.ID+"/"+m.Why, func(t *testing.T) {
			key, ok := keys[m.ID]
			if !ok {
				t.Fatalf("no answer key for %q", m.ID)
			}
			verdict := Evaluate(key.Expect, said(m.Reply), completed)
			if verdict.Passed != m.Right {
				t.Errorf("passed = %v, expected %v: %s", verdict.Passed, m.Right, verdict.Reason)
			}
			if verdict.Reason == "" {
				t.Error("the verdict has no reason")
			}
		})
		if m.Right {
			right[m.ID]++
		} else {
			wrong[m.ID]++
		}
	}
	for id := range keys {
		if right[id] < 1 || wrong[id] < 5 {
			t.Errorf("%s has %d right and %d wrong near-misses, expected at least 1 and 5", id, right[id], wrong[id])
		}
	}
}

func TestThePacksOwnAnswersPass(t *testing.T) {
	for id, p := range answerKeys(t) {
		reply := corpus.Reply{Text: p.Answer.Text}
		if p.Answer.Call != nil {
			reply.Calls = []corpus.ReplyCall{{Name: p.Answer.Call.Name, Arguments: string(p.Answer.Call.Arguments)}}
		}
		if v := Evaluate(p.Expect, said(reply), completed); !v.Passed {
			t.Errorf("%s: the pack's own answer does not pass: %s", id, v.Reason)
		}
	}
}

func TestOnlyACompletedReplyIsJudgedByItsText(t *testing.T) {
	key := &corpus.Expect{Kind: corpus.ExpectText, Text: "harbour"}
	right := &transcript.Transcript{Content: "harbour"}
	for status, reason := range map[measure.Status]string{
		measure.Failed: "failed", measure.Skipped: "not sent", measure.Truncated: "budget",
	} {
		v := Evaluate(key, right, measure.Figures{Status: status})
		if v.Passed || !strings.Contains(v.Reason, reason) {
			t.Errorf("%s: passed = %v, reason %q; expected a reason that names %q", status, v.Passed, v.Reason, reason)
		}
	}
}

func TestEvidenceIsCutAtACharacter(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("é", evidenceLength) // two bytes each, so the limit falls inside one for an odd offset
	for _, s := range []string{long, "x" + long} {
		v := Evaluate(&corpus.Expect{Kind: corpus.ExpectText, Text: "no"}, &transcript.Transcript{Content: s}, completed)
		g.Expect(v.Reason).NotTo(ContainSubstring(`\x`))
		g.Expect(len(v.Reason)).To(BeNumerically("<", 3*evidenceLength))
	}
}

func TestJSONIsComparedByValue(t *testing.T) {
	for _, c := range []struct {
		want, got string
		differs   string // "" for equal, else a part of what is said
	}{
		{`{"a":1,"b":[true,null]}`, ` {"b" : [true, null], "a" : 1.0} `, ""},
		{`1`, `10e-1`, ""},
		{`0`, `-0.00`, ""},
		{`1200`, `1.2E3`, ""},
		{`0.5`, `5e-1`, ""},
		{`"é"`, `"\u00e9"`, ""},
		{`1`, `-1`, "not the expected number"},
		{`1`, `1e99999999999`, "not the expected number"},
		{`1`, `"1"`, "is a string, expected a number"},
		{`[1,2]`, `[2,1]`, "/0"},
		{`[1,2]`, `[1,2,3]`, "3 items, expected 2"},
		{`{"a":{"b":1}}`, `{"a":{"b":2}}`, "/a/b"},
		{`{"a/b":1}`, `{"a/b":2}`, "/a~1b"},
		{`{"a":1}`, `{}`, `lacks the member "a"`},
		{`{"a":1}`, `{"a":1,"b":2}`, "not asked for"},
		{`{"a":1}`, `{"a":1,"a":1}`, "named twice"},
		{`1`, `1 2`, "more than one JSON value"},
		{`{"a":1}`, `{"a":1`, "ends too early"},
		{`{"a":1}`, "```json\n{\"a\":1}\n```", "not JSON"},
		{`true`, `True`, "not JSON"},
		{`1`, strings.Repeat("[", 100), "nested deeper"},
	} {
		err := diffJSON([]byte(c.want), []byte(c.got))
		switch {
		case c.differs == "" && err != nil:
			t.Errorf("%s and %s: expected no difference, received %v", c.want, c.got, err)
		case c.differs != "" && (err == nil || !strings.Contains(err.Error(), c.differs)):
			t.Errorf("%s and %s: expected a difference with %q, received %v", c.want, c.got, c.differs, err)
		}
	}
}

func FuzzReadingAReplyNeverPanics(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50e3,"x"]}`, `[[[`, `{"a":1,"a":2}`, "\xff", `1e-400`, ``, `nul`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if diffJSON([]byte(s), []byte(s)) != nil {
			return // not JSON: said so
		}
		if err := diffJSON([]byte(s), []byte("["+s+"]")); err == nil {
			t.Errorf("%q equals the array that holds it", s)
		}
	})
}

func replies(texts ...string) []Reply {
	var all []Reply
	for i, text := range texts {
		r := Reply{Transcript: &transcript.Transcript{Content: text}}
		r.Planned.ID = string(rune('a' + i))
		r.Planned.Marker = "PLB-X-" + string(rune('1'+i))
		all = append(all, r)
	}
	return all
}

func TestAnothersMarkerIsALeak(t *testing.T) {
	g := NewWithT(t)
	apart := replies("PLB-X-1 one", "PLB-X-2 two", "PLB-X-3 and PLB-X-12, a longer number")
	earlier := fixtures.Planned{ID: "earlier", Marker: "PLB-X-9"} // of another level, long answered
	plan := []fixtures.Planned{earlier}
	for _, r := range apart {
		plan = append(plan, r.Planned)
	}
	g.Expect(apart).To(KeepApart(plan))

	mixed := slices.Clone(apart)
	mixed[0].Transcript = &transcript.Transcript{Content: "PLB-X-1 one, PLB-X-9"}
	mixed[1].Transcript = &transcript.Transcript{Content: "PLB-X-2 two", Reasoning: "as PLB-X-3 said"}
	g.Expect(mixed).NotTo(KeepApart(plan))
	g.Expect(Leaks(plan, mixed)).To(ConsistOf(
		Leak{ID: "a", Marker: "PLB-X-9", Owner: "earlier"},
		Leak{ID: "b", Marker: "PLB-X-3", Owner: "c", InThinking: true},
	))
	g.Expect(KeepApart(plan).FailureMessage(mixed)).To(ContainSubstring("the thinking of b holds PLB-X-3, the marker of c"))
}

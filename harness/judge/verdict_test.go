package judge_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/judge"
	"plumbline/harness/plan"
	"plumbline/harness/transcript"
)

// cases are all cases of the project.
func cases(t *testing.T) []*fixtures.Case {
	t.Helper()
	names, err := fs.Glob(fixtures.Cases(), "*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var all []*fixtures.Case
	for _, name := range names {
		f, err := fixtures.Cases().Open(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := fixtures.ReadCase(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, c)
	}
	return all
}

// played are the exchanges that a client with the case's deadlines records, without sockets: the offsets are those of the
// script.
func played(t *testing.T, c *fixtures.Case) []*fixtures.Exchange {
	t.Helper()
	calls, err := plan.Case(c, "")
	if err != nil {
		t.Fatal(err)
	}
	var all []*fixtures.Exchange
	for i, call := range calls {
		reply := c.CaseReply
		if len(c.Exchanges) > 0 {
			reply = c.Exchanges[i].CaseReply
		}
		e := play(reply.Script(), c.Client)
		e.ID = c.ID + "/" + call.Name
		e.SinceStart = call.Start
		e.Request = fixtures.Request{Method: call.Method, Path: call.Path, Body: call.Body}
		all = append(all, e)
	}
	return all
}

// play runs a script against a client's deadlines.
func play(s fixtures.Script, client *fixtures.CaseClient) *fixtures.Exchange {
	e := &fixtures.Exchange{Response: &fixtures.Response{Status: s.Status, Header: s.Header, At: time.Millisecond}}
	at := time.Millisecond
	for _, step := range s.Steps {
		at += step.After
		if len(step.Bytes) > 0 {
			e.Pieces = append(e.Pieces, fixtures.Piece{At: at, Bytes: step.Bytes})
		}
	}
	kinds := map[fixtures.ScriptEnd]fixtures.EndKind{fixtures.ScriptClose: fixtures.EndClose,
		fixtures.ScriptTruncate: fixtures.EndTruncate, fixtures.ScriptReset: fixtures.EndReset}
	e.End = fixtures.End{Kind: kinds[s.End], At: at}
	if s.End == fixtures.ScriptHang {
		giveUp(e, client)
	}
	return e
}

// giveUp ends an exchange whose server says nothing more, as the first deadline to run out does.
func giveUp(e *fixtures.Exchange, client *fixtures.CaseClient) {
	const never = time.Hour
	limit := func(ms float64, from time.Duration) time.Duration {
		if ms == 0 {
			return never
		}
		return from + fixtures.Milliseconds(ms)
	}
	firstByte, firstToken, progress := never, never, time.Duration(0)
	w := transcript.NewWatcher()
	idle := never
	for _, p := range e.Pieces {
		if firstByte == never {
			firstByte = p.At
		}
		if p.At > idle {
			break
		}
		s := w.Piece(p.At, p.Bytes)
		if s.Token && firstToken == never {
			firstToken = p.At
		}
		if s.Data || !s.Token {
			progress = p.At
		}
		idle = limit(client.IdleMS, progress)
	}
	ends := []fixtures.End{{Kind: fixtures.EndTotal, At: limit(client.TotalMS, 0)}, {Kind: fixtures.EndIdle, At: idle}}
	if d := limit(client.FirstByteMS, 0); d < firstByte {
		ends = append(ends, fixtures.End{Kind: fixtures.EndFirstByte, At: d})
	}
	if d := limit(client.FirstTokenMS, 0); d < firstToken {
		ends = append(ends, fixtures.End{Kind: fixtures.EndFirstToken, At: d})
	}
	e.End = slices.MinFunc(ends, func(a, b fixtures.End) int { return int(a.At - b.At) })
	e.Pieces = slices.DeleteFunc(e.Pieces, func(p fixtures.Piece) bool { return p.At > e.End.At })
}

func TestEveryCaseGetsItsVerdict(t *testing.T) {
	for _, c := range cases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			j := judge.Verdict(c, played(t, c))
			NewWithT(t).Expect(j.Against(c.Expect)).To(BeEmpty(), "findings: %s", listed(j.Findings))
		})
	}
}

// alsoThere are deviations that a case's transcript has beside those that the case is about.
var alsoThere = map[string]string{"shape-06-finish-stop-on-every-chunk": transcript.RoleRepeated}

func TestNoCaseGetsAFindingThatItDoesNotExpect(t *testing.T) {
	for _, c := range cases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			for _, f := range judge.Verdict(c, played(t, c)).Findings {
				if !slices.Contains(c.Expect.Findings, f.ID) && alsoThere[c.ID] != f.ID {
					t.Errorf("%s: %s", f.ID, f.Sentence)
				}
			}
		})
	}
}

func listed(found []transcript.Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "\n  %s (%s): %s", f.ID, f.Severity, f.Sentence)
	}
	return b.String()
}

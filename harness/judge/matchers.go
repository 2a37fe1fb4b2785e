package judge

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega/types"

	"plumbline/fixtures"
	"plumbline/harness/measure"
)

// The matchers below match a Reply; KeepApart matches a []Reply. Each says on failure what was demanded, what came, and
// where: the request, the end of the exchange, the event.

// ArriveWhole demands that a reply arrived to its end and could be read.
func ArriveWhole() types.GomegaMatcher {
	return demand{"arrive whole and readable", func(r Reply) []string {
		if r.Figures.Status != measure.Failed {
			return nil
		}
		return []string{r.Figures.Error.Value}
	}}
}

// SaySomething demands that a reply that ended by itself holds an answer: text, or a tool call. One that ran out of its
// budget may still have been thinking.
func SaySomething() types.GomegaMatcher {
	return demand{"say something", silence}
}

func silence(r Reply) []string {
	t := r.Transcript
	if r.Figures.Status != measure.Completed || strings.TrimSpace(t.Content) != "" || len(t.ToolCalls) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("it ended with %q and no answer text (%d bytes of thinking)", r.Figures.FinishReason.Value, len(t.Reasoning))}
}

// AddUp demands that a reply's accounting does not contradict itself: counts, engine times and the client's clock. It
// demands no speed.
func AddUp() types.GomegaMatcher {
	return demand{"have accounting that adds up", func(r Reply) []string { return r.Figures.Broken }}
}

// AnswerAsAsked demands the right answer.
func AnswerAsAsked() types.GomegaMatcher {
	return demand{"give the one right answer", func(r Reply) []string {
		if r.Evaluation == nil || r.Evaluation.Passed {
			return nil
		}
		return []string{r.Evaluation.Reason}
	}}
}

// demand is a matcher made of a check that returns what is wrong, in sentences.
type demand struct {
	what  string
	check func(Reply) []string
}

func (d demand) Match(actual any) (bool, error) {
	r, ok := actual.(Reply)
	if !ok {
		return false, fmt.Errorf("judge reply: expected a judge.Reply, received %T", actual)
	}
	return len(d.check(r)) == 0, nil
}

func (d demand) FailureMessage(actual any) string {
	r := actual.(Reply)
	return fmt.Sprintf("expected the reply to %s to %s, but:\n  %s\n%s",
		r.Planned.ID, d.what, strings.Join(d.check(r), "\n  "), evidence(r))
}

func (d demand) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("expected the reply to %s not to %s", actual.(Reply).Planned.ID, d.what)
}

// evidence says where to look: how the exchange went, and the last event that arrived.
func evidence(r Reply) string {
	var b strings.Builder
	e := r.Exchange
	status := "no response"
	if e.Response != nil {
		status = fmt.Sprintf("HTTP %d", e.Response.Status)
	}
	fmt.Fprintf(&b, "exchange: %s, %d bytes in %d events, ended %q after %.3f s", status, e.Size(), len(r.Transcript.Events),
		e.End.Kind, e.End.At.Seconds())
	if n := len(r.Transcript.Events); n > 0 {
		fmt.Fprintf(&b, "\nlast event (index %d): %s", n-1, cut(string(r.Transcript.Events[n-1].Data)))
	} else if text := body(e); text != "" {
		fmt.Fprintf(&b, "\nbody: %s", cut(text))
	}
	fmt.Fprintf(&b, "\nkept as the line with \"id\":%q in outputs.jsonl", e.ID)
	return b.String()
}

func body(e *fixtures.Exchange) string {
	var b strings.Builder
	for _, p := range e.Pieces {
		b.Write(p.Bytes)
		if b.Len() > evidenceLength {
			break
		}
	}
	return b.String()
}

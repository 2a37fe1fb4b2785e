package judge

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

func reply() Reply {
	return Reply{
		Planned:    fixtures.Planned{ID: "performance-short-r1"},
		Exchange:   &fixtures.Exchange{ID: "performance-short-r1", End: fixtures.End{Kind: fixtures.EndClose, At: 2 * time.Second}},
		Transcript: &transcript.Transcript{Content: "yes", Events: []transcript.Event{{Data: []byte("[DONE]")}}},
		Figures:    measure.Figures{Status: measure.Completed},
	}
}

func TestMatchersFailWithTheirEvidence(t *testing.T) {
	for _, c := range []struct {
		claim    string
		matcher  interface{ FailureMessage(any) string }
		spoil    func(*Reply)
		evidence string
	}{
		{"arrives whole", ArriveWhole(), func(r *Reply) {
			r.Figures.Status, r.Figures.Error = measure.Failed, measure.Known("HTTP 503: loading", "response")
		}, "HTTP 503: loading"},
		{"adds up", AddUp(), func(r *Reply) { r.Figures.Broken = []string{"cached exceeds prompt"} }, "cached exceeds prompt"},
		{"says something", SaySomething(), func(r *Reply) {
			r.Transcript.Content, r.Transcript.Reasoning = " ", "so"
			r.Figures.FinishReason = measure.Known("stop", "choice 0")
		}, "no answer text (2 bytes of thinking)"},
		{"answers", AnswerAsAsked(), func(r *Reply) { r.Evaluation = &Evaluation{Reason: "no answer text"} }, "no answer text"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			g := NewWithT(t)
			matcher := c.matcher.(demand)
			good := reply()
			g.Expect(good).To(matcher)
			bad := reply()
			c.spoil(&bad)
			g.Expect(bad).NotTo(matcher)
			message := matcher.FailureMessage(bad)
			for _, part := range []string{c.evidence, "performance-short-r1", "last event (index 0)", `ended "close" after 2.000 s`} {
				g.Expect(message).To(ContainSubstring(part))
			}
		})
	}
}

func TestAMatcherRefusesWhatIsNoReply(t *testing.T) {
	g := NewWithT(t)
	for _, matcher := range []interface{ Match(any) (bool, error) }{AddUp(), KeepApart(nil)} {
		_, err := matcher.Match("text")
		g.Expect(err).To(MatchError(ContainSubstring("received string")))
	}
}

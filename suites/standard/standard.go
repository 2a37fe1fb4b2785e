// Package standard holds the specs of the standard protocol: one per request of the plan, phase after phase in the
// protocol's order. A performance spec never fails on a number; a sanity spec fails on a wrong answer. It holds no
// prompt, path or field of the interface: those come from the corpus and the plan.
package standard

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/judge"
	"plumbline/harness/plan"
	"plumbline/suites/session"
)

// Describe adds the protocol's specs to the tree. Call it before the specs are run; an engine's own suite may call it too.
func Describe(s *session.Session) {
	phase(s, corpus.PhaseWarmup, "the engine answers before anything is measured")
	phase(s, corpus.PhasePerformance, "the engine reads and writes with figures that can be relied on")
	phase(s, corpus.PhaseSanity, "the engine still answers rightly")
	if s.Settings().ConcurrencyStage {
		concurrency(s)
	}
}

// inOrder keeps the phases in the protocol's order under every flag of Ginkgo: Serial alone does not mean "last", and a
// failed request must not take the phase's others with it.
func inOrder(phase string) []any {
	for i, p := range corpus.Phases {
		if p == phase {
			return []any{ginkgo.Serial, ginkgo.Ordered, ginkgo.ContinueOnFailure, ginkgo.SpecPriority(-100 * (i + 1)),
				ginkgo.Label("protocol:standard", "phase:"+phase)}
		}
	}
	panic(fmt.Sprintf("unknown phase %q", phase))
}

func phase(s *session.Session, name, claim string) {
	ginkgo.Describe(name+": "+claim, inOrder(name), func() {
		for _, r := range s.Requests(name) {
			ginkgo.It(r.ID+" "+claims[name](r), ginkgo.Label(labels(r)...), func(ctx ginkgo.SpecContext) {
				reply := send(ctx, s, r.ID)
				gomega.Expect(reply).To(demands[name])
				if name == corpus.PhasePerformance {
					if faults := s.PromptFaults(r.ID); len(faults) > 0 {
						ginkgo.Fail("expected the prompt of " + r.ID + " to be read whole and anew, but:\n  " + strings.Join(faults, "\n  "))
					}
				}
			})
		}
	})
}

// claims name what a phase's spec claims of its request.
var claims = map[string]func(plan.Request) string{
	corpus.PhaseWarmup: func(plan.Request) string { return "is answered" },
	corpus.PhasePerformance: func(r plan.Request) string {
		return fmt.Sprintf("is answered whole, its accounting adds up, and nothing of its prompt was read before (repetition %d)", r.Repetition)
	},
	corpus.PhaseSanity: func(r plan.Request) string { return "gives the one right answer (" + r.Category + ")" },
}

// demands are what a reply of each phase must meet.
var demands = map[string]gomega.OmegaMatcher{
	corpus.PhaseWarmup:      gomega.SatisfyAll(judge.ArriveWhole(), judge.SaySomething()),
	corpus.PhasePerformance: gomega.SatisfyAll(judge.ArriveWhole(), judge.SaySomething(), judge.AddUp()),
	corpus.PhaseSanity:      gomega.SatisfyAll(judge.ArriveWhole(), judge.AnswerAsAsked()),
}

func labels(r plan.Request) []string {
	of := []string{"case:" + r.CaseID}
	if r.Category != "" {
		of = append(of, "category:"+r.Category)
	}
	return of
}

// send sends one request and notes in Ginkgo's report which line of the record holds it.
func send(ctx ginkgo.SpecContext, s *session.Session, id string) judge.Reply {
	ginkgo.GinkgoHelper()
	reply, err := s.Send(ctx, id)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	note(reply)
	saveOnFailure(s, id)
	return reply
}

// saveOnFailure keeps the exchange of a failing spec for itself, and shows the command that replays and judges it again.
func saveOnFailure(s *session.Session, ids ...string) {
	ginkgo.DeferOnFailure(func() {
		for _, id := range ids {
			command, err := s.SaveFailure(id)
			if errors.Is(err, fixtures.ErrNothingToReplay) {
				continue
			}
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			ginkgo.AddReportEntry("replay it and judge it again", command, ginkgo.ReportEntryVisibilityFailureOrVerbose)
		}
	})
}

// note adds a short JSON string: Ginkgo's report loses digits of anything else that crosses processes.
func note(r judge.Reply) {
	entry, err := json.Marshal(map[string]string{"request": r.Planned.ID, "status": string(r.Figures.Status)})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.AddReportEntry("exchange", string(entry), ginkgo.ReportEntryVisibilityNever)
}

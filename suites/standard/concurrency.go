package standard

import (
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/harness/judge"
	"plumbline/harness/plan"
	"plumbline/suites/session"
)

// concurrency adds a spec for every level that a server may have. How many it has is known only when the engine has
// been asked, after the tree was built: a level beyond it is skipped, and says so.
func concurrency(s *session.Session) {
	name := corpus.PhaseConcurrency
	ginkgo.Describe(name+": requests served together stay apart", inOrder(name), func() {
		for _, level := range corpus.ConcurrencyLevels(corpus.MaxConcurrencyLevel) {
			ginkgo.It(fmt.Sprintf("answers %d at once, and no answer holds what belongs to another", level), func(ctx ginkgo.SpecContext) {
				serveLevel(ctx, s, level)
			})
		}
		ginkgo.It("answers as many at once as it says it can serve, and no answer holds what belongs to another", func(ctx ginkgo.SpecContext) {
			capacity, known := s.ServerCapacity()
			gomega.Expect(known).To(gomega.BeTrue(), "the server does not say how many requests it serves at once: pass --server-capacity")
			gomega.Expect(capacity).To(gomega.BeNumerically(">=", 2), "a server that serves one request at a time has no concurrency to check")
			levels := corpus.ConcurrencyLevels(capacity)
			if top := levels[len(levels)-1]; top&(top-1) != 0 { // else it is one of the levels above
				serveLevel(ctx, s, top)
			}
		})
	})
}

func serveLevel(ctx ginkgo.SpecContext, s *session.Session, level int) {
	ginkgo.GinkgoHelper()
	rounds := plan.Level(s.Requests(corpus.PhaseConcurrency), level)
	if rounds == nil {
		ginkgo.Skip(fmt.Sprintf("level %d is beyond what the server says it can serve", level))
	}
	saveOnFailure(s, slices.Concat(rounds...)...)
	var all []judge.Reply
	for _, ids := range rounds {
		replies, err := s.SendTogether(ctx, ids)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		all = append(all, replies...)
	}
	for _, reply := range all {
		note(reply)
	}
	gomega.Expect(all).To(gomega.SatisfyAll(gomega.HaveEach(judge.ArriveWhole()), gomega.HaveEach(judge.SaySomething()), judge.KeepApart(s.Plan())))
}

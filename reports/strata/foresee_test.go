package strata

import (
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func codesOf(f Foresight, of Likelihood) []string {
	codes := []string{}
	for _, r := range f.Reasons {
		if r.Likelihood == of {
			codes = append(codes, r.Code)
		}
	}
	return codes
}

func TestWhatIsForeseenOfAHeaderIsWhatItsDocumentSays(t *testing.T) {
	g := NewWithT(t)
	run := referenceRun(t)
	h := run.Header
	h.Engine.ServedModels = []string{h.Model}
	h.Engine.ChatTemplate = "{{ messages }}"
	f, err := Foresee(&h, Foretold{})
	g.Expect(err).NotTo(HaveOccurred())
	_, null := f.Missing.Get("/configuration/template")
	g.Expect(null).To(BeFalse(), "a run keeps what it is told")
	g.Expect(h.Artifacts).To(Equal(run.Header.Artifacts), "the header is the caller's")
	for _, m := range f.Missing {
		g.Expect(m.Value).NotTo(BeEmpty(), m.Key)
	}
	certain := codesOf(f, Certain)
	g.Expect(codesOf(f, Perhaps)).To(BeEmpty())

	f, err = Foresee(&h, Foretold{RequestFails: Perhaps, UsageUntold: Certain, ReuseUnchecked: Certain, LengthUnchecked: Perhaps})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(codesOf(f, Certain)).To(ConsistOf(append([]string{"reuse_unchecked", "usage_untold"}, certain...)))
	g.Expect(codesOf(f, Perhaps)).To(Equal([]string{"required_request_failed", "length_unchecked"}))
}

func TestARefusedEngineIsForeseenAsItsRunWillSay(t *testing.T) {
	g := NewWithT(t)
	h := referenceRun(t).Header
	h.Refusal, h.Engine = "ask engine: nothing listens there", fixtures.EngineFacts{Kind: "live", URL: "http://127.0.0.1:1"}
	f, err := Foresee(&h, Foretold{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(codesOf(f, Certain)).To(Equal([]string{"engine_refused", "required_request_skipped"}))
}

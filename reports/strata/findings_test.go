package strata

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

func TestDeviationsOnTheWireStandInTheDocument(t *testing.T) {
	g := NewWithT(t)
	run := referenceRun(t)
	whole := []string{chunk(`{"role":"assistant","content":"a"}`, "null"), chunk(`{"content":"b"}`, `"stop"`), accounts}
	run.Exchanges = []fixtures.Exchange{
		streamed("warmup", 0, append(whole, "[DONE]")...),
		streamed("performance-short-r1", time.Minute, whole...),
	}
	d, err := Build(run, outputsDigest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Extensions.Findings).To(HaveLen(1), "a reply without findings is left out")
	found := d.Extensions.Findings[0]
	g.Expect(found.Key).To(Equal("performance-short-r1"))
	g.Expect(found.Value).To(ContainElement(And(HaveField("ID", transcript.MissingDone), HaveField("Count", 1), HaveField("Sentence", Not(BeEmpty())))))
	g.Expect(d.Text()).To(ContainSubstring("\ndeviations on the wire: missing-done (1 request)\n"))
	data, err := d.Marshal()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Validate(data, nil)).To(BeEmpty())
}

func TestFindingsOfOneKindAreOneEntryAndThereAreTwentyAtMost(t *testing.T) {
	g := NewWithT(t)
	x := &transcript.Transcript{Findings: []transcript.Finding{
		{ID: "a", Severity: transcript.Info, Sentence: "first"}, {ID: "b", Severity: transcript.Fault, Sentence: strings.Repeat("é", 400)},
		{ID: "a", Severity: transcript.Warning, Sentence: "second"}, {ID: "a", Severity: transcript.Info, Sentence: "third \xff"},
	}}
	g.Expect(findingsOf(x)).To(HaveExactElements(
		Finding{"a", "warning", 3, "first"}, Finding{"b", "fault", 1, strings.Repeat("é", maxSentence/2) + "…"}))
	for i := range 50 {
		x.Findings = append(x.Findings, transcript.Finding{ID: fmt.Sprint(i), Severity: transcript.Info, Sentence: "s"})
	}
	g.Expect(findingsOf(x)).To(HaveLen(maxFindings))
	g.Expect(findingsOf(&transcript.Transcript{})).To(BeEmpty())
}

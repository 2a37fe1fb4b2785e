package strata

import (
	"testing"

	. "github.com/onsi/gomega"
)

func observed(id string, values map[string]float64) observation {
	return observation{id: id, caseID: "short", status: "completed", values: values, reasons: map[string]string{"prompt_tps": "untold"}}
}

func TestTheMedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 5}, 5}, {[]float64{10.695498, 10.813452}, 10.754475},
		{[]float64{4, 1, 100, 2}, 3},
	} {
		NewWithT(t).Expect(median(c.values)).To(BeNumerically("~", c.want, 1e-12))
	}
}

func TestSummariesLeaveOutFailedRequestsAndKeepTruncatedOnes(t *testing.T) {
	g := NewWithT(t)
	a := observed("a", map[string]float64{"ttft_s": 1, "decode_tps": 50})
	b := observed("b", map[string]float64{"ttft_s": 2, "decode_tps": 60})
	b.status = "truncated"
	c := observed("c", map[string]float64{"ttft_s": 9})
	c.status = "failed"
	all := summarise([]observation{a, b, c})
	g.Expect(all).To(HaveLen(len(metrics)))
	ttft := all[2]
	g.Expect(ttft.metric.name).To(Equal("ttft_s"))
	g.Expect(ttft.included).To(Equal([]string{"a", "b"}))
	g.Expect(ttft.median).To(Equal(1.5))
	g.Expect(ttft.excluded).To(Equal([]Exclusion{{"c", "the status of the request is failed"}}))
	g.Expect(all[0].included).To(BeEmpty())
	g.Expect(all[0].excluded[0]).To(Equal(Exclusion{"a", "untold"}))
}

func TestCasesStandInOrderOfTheirFirstRequest(t *testing.T) {
	g := NewWithT(t)
	var observations []observation
	for _, c := range []string{"zeta", "alpha", "zeta", "alpha"} {
		o := observed(c, nil)
		o.caseID = c
		observations = append(observations, o)
	}
	all := summarise(observations)
	g.Expect(all).To(HaveLen(2 * len(metrics)))
	g.Expect(all[0].caseID).To(Equal("zeta"))
	g.Expect(all[len(metrics)].caseID).To(Equal("alpha"))
}

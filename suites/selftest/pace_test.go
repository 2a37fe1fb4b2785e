package selftest

import (
	"flag"
	"math"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/mockserver"
	"plumbline/reports/strata"
)

var checkPace = flag.Bool("pace", false, "also check a whole run against a paced mock; takes two minutes and an idle machine")

// How far a measured figure may lie from the pace that the mock was set to.
const (
	maxTTFTError = 0.005 // seconds
	maxRateError = 0.02  // relative
)

func TestBothClocksShowThePaceThatTheMockWasSetTo(t *testing.T) {
	if !*checkPace {
		t.Skip("a check of times: `make pace` runs it")
	}
	g := NewWithT(t)
	pace, err := mockserver.ParsePace("rtx3090")
	g.Expect(err).NotTo(HaveOccurred())
	r := run(t, nil, "--mock-pace", "rtx3090")
	g.Expect(r.exit).To(BeZero(), r.output)
	doc := r.document(t)
	rate := 1 / pace.PerToken().Seconds()
	for _, request := range doc.Requests {
		input, _ := request.Tokens.Input.Get()
		prefill := pace.Prefill(int(input)).Seconds()
		for clock, seconds := range map[string]strata.Null[strata.Number]{"client": request.Timings.TTFT, "engine": request.Timings.Prompt} {
			n, known := seconds.Get()
			g.Expect(known).To(BeTrue(), request.ID)
			g.Expect(math.Abs(n.Float64()-prefill)).To(BeNumerically("<", maxTTFTError), "%s, %s's clock", request.ID, clock)
		}
		client, _ := doc.Extensions.ClientDecodeTPS.Get(request.ID)
		for clock, tps := range map[string]strata.Null[strata.Number]{"client": client, "engine": request.Metrics.DecodeTPS} {
			n, known := tps.Get()
			g.Expect(known).To(BeTrue(), request.ID)
			g.Expect(math.Abs(n.Float64()/rate-1)).To(BeNumerically("<", maxRateError), "%s, %s's clock", request.ID, clock)
		}
	}
}

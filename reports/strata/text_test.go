package strata

import (
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/harness/transcript"
)

func TestTheTextIsTheGoldenOne(t *testing.T) {
	g := NewWithT(t)
	run, all := referenceRun(t), referenceReplies(t)
	withStage(run, all, 2, 1)
	run.Header.Plan[22].Marker = "M-1"
	all.say("concurrency-c2-r1-2", &transcript.Transcript{Content: "as M-1 said"})
	run.Header.Engine.Kind, run.After = "mock", nil
	all.fail("performance-prompt-16k-r1")
	all.find("warmup", transcript.UsageMissing, transcript.Warning)
	for _, id := range []string{"warmup", "sanity-I1", "concurrency-c2-r1-1"} {
		all.find(id, transcript.MissingDone, transcript.Warning)
	}
	all.find("sanity-I2", transcript.RoleRepeated, transcript.Info)
	d, _ := mustBuild(t, run, all)
	g.Expect(d.Text()).To(Equal(`strata-open-thinking-v1-draft.1 · qwen3.8-flash-next-thinking · tiny · run 20261130T101112Z-00c0ffee: nonconforming
            prefill tokens/s              decode tokens/s             TTFT s
short       165.4 (162.9–204.6)           121.1 (107.1–121.8)         0.480 (0.393–0.490)
prompt-4k   1699.4 (1541.2–1740.4)        121.7 (95.1–125.9)          2.427 (2.372–2.674)
prompt-16k  2251.0 (2242.5–2259.4, n=2)   115.1 (113.4–116.8, n=2)    7.310 (7.282–7.337, n=2)
(prefill of short is a fixed cost, not a rate)
sanity 12 of 12 · instruction 4/4 · retrieval 4/4 · tool_call 4/4
2 at once, round 1: 40.0 tokens/s together, markers of other requests in the replies: 1
1 of 22 requests failed, first: performance-prompt-16k-r1: the connection was reset
deviations on the wire: missing-done (3 requests), usage-missing (1 request)
nonconforming because: the engine is the mock built into this program, so nothing here describes a real one
nonconforming because: a required request failed
nonconforming because: the engine did not say after the last request which models it serves, so that a change would go unseen
`))
}

func TestTheTextOfARunThatMeasuredNothingHasNoFigures(t *testing.T) {
	g := NewWithT(t)
	d, _ := mustBuild(t, goldenRuns(t)["refused"], nil)
	g.Expect(d.Text()).To(Equal(`strata-open-thinking-v1-draft.1 · qwen3.8-flash-next-thinking · unknown model · run 20261130T101112Z-00c0ffee: incomplete
            prefill tokens/s              decode tokens/s             TTFT s
short       -                             -                           -
prompt-4k   -                             -                           -
prompt-16k  -                             -                           -
sanity: none asked
incomplete because: the engine could not be used at all
incomplete because: a required request was not sent
`))
}

func TestASingleRepetitionHasNoRange(t *testing.T) {
	g := NewWithT(t)
	run := referenceRun(t)
	run.Exchanges = run.Exchanges[:2]
	d, _ := mustBuild(t, run, referenceReplies(t))
	g.Expect(d.Text()).To(ContainSubstring("\nshort       204.6 (n=1)                   107.1 (n=1)                 0.393 (n=1)\n"))
}

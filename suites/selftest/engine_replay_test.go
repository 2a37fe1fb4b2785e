package selftest

import (
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/reports/strata"
	"plumbline/suites/session"
)

func TestARecordedRunIsReplayedWithoutItsEngine(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	recorded := run(t, nil)
	g.Expect(recorded.exit).To(BeZero(), recorded.output)
	first := recorded.document(t)
	binary, err := program()
	g.Expect(err).NotTo(HaveOccurred())
	doctor := exec.CommandContext(t.Context(), binary, "doctor", "--engine=replay", "--replay=out/latest/outputs.jsonl")
	doctor.Dir, doctor.Env = recorded.dir, cleanEnvironment()
	said, err := doctor.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(said))
	g.Expect(string(said)).To(And(ContainSubstring("a replay of what was recorded"), ContainSubstring("engine_replay")))

	cmd, _ := command(t, nil, "--engine=replay", "--replay", "out/latest/outputs.jsonl")
	cmd.Dir = recorded.dir // where out/latest is the recorded run until this one begins
	again := finish(t, cmd, recorded.dir)
	g.Expect(again.exit).To(BeZero(), again.output)

	g.Expect(again.output).To(And(ContainSubstring("THIS IS A REPLAY"), Not(ContainSubstring("MOCK ENGINE"))))
	second := again.document(t)
	g.Expect(second.Run.ID).NotTo(Equal(first.Run.ID))
	g.Expect(second.Quality).To(Equal(first.Quality))
	g.Expect(second.Run.Status).To(Equal(strata.Nonconforming))
	g.Expect(second.Extensions.StatusReasonCodes).To(And(ContainElement("engine_replay"), Not(ContainElement("engine_mock"))))
	for i, r := range second.Requests {
		g.Expect(r.Tokens).To(Equal(first.Requests[i].Tokens), r.ID)
		g.Expect(r.Timings.Decode).To(Equal(first.Requests[i].Timings.Decode), "by the engine's clock, as recorded")
	}
	g.Expect(again.record(t).Header.Engine.Kind).To(Equal("replay"))
}

func TestAReplayAnswersWhatWasRecordedAndNothingElse(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	recorded := run(t, nil, "--ginkgo.label-filter=!phase:sanity")
	g.Expect(recorded.exit).To(BeZero(), recorded.output)
	again := run(t, nil, "--engine=replay", "--replay", filepath.Join(recorded.runDir(), session.OutputsName))
	g.Expect(again.exit).To(Equal(1))
	doc := again.document(t)
	g.Expect(doc.RequestCounts.Performance.Completed + doc.RequestCounts.Performance.Truncated).To(Equal(9))
	g.Expect(doc.RequestCounts.Sanity.Failed).To(Equal(12))
	why, _ := doc.Requests[len(doc.Requests)-1].Error.Get()
	g.Expect(why).To(ContainSubstring("replay"))
}

func TestARecordThatIsNotThereIsRedWithTheReasonAndADocument(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := run(t, nil, "--engine=replay", "--replay=no-such-file.jsonl")
	g.Expect(r.exit).To(Equal(1))
	why, _ := r.document(t).Requests[0].Error.Get()
	g.Expect(why).To(And(ContainSubstring("start replay engine"), ContainSubstring("no-such-file.jsonl")))
}

package session

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/judge"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

// screen is an output that may be read while it is written.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func running(mode string, every time.Duration) (*Progress, *screen) {
	out := &screen{}
	p := NewProgress(out, mode)
	p.every = every
	p.total = 2
	p.start()
	return p, out
}

func TestALongRequestIsShownWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p, out := running("plain", writeEvery)
		w := transcript.NewWatcher()
		p.sending(waiting("performance-short-r1", corpus.PhasePerformance, 50, 500), w)
		time.Sleep(writeEvery + time.Second)
		g.Expect(out.String()).To(ContainSubstring("performance-short-r1: reading the prompt for 10.0 s"))

		event := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
		w.Piece(0, []byte(strings.Repeat(event, 30)))
		time.Sleep(writeEvery)
		w.Piece(0, []byte(strings.Repeat(event, 20)))
		time.Sleep(writeEvery)
		g.Expect(out.String()).To(ContainSubstring("about 2 tokens/s, 50 tokens so far"))
		p.stop()
	})
}

func TestTheLiveLineEndsWithTheRun(t *testing.T) {
	for range 200 { // the ticker and the end of the run race, and neither may wait for ever
		p, _ := running("plain", time.Microsecond)
		p.stop()
		p.stop()
	}
}

func TestAPlanThatDoesNotFitIsCounted(t *testing.T) {
	g := NewWithT(t)
	plan := []fixtures.Planned{waiting("a", corpus.PhaseSanity, 100, 2048), waiting("b", corpus.PhaseSanity, 4000, 2048), {ID: "c", MaxOutputTokens: 9000}}
	n, need := tooLong(plan, new(4096))
	g.Expect([]int{n, need}).To(Equal([]int{1, 6048}))
	n, _ = tooLong(plan, nil)
	g.Expect(n).To(BeZero())
}

func TestNothingIsShownWhenNothingIsWanted(t *testing.T) {
	g := NewWithT(t)
	p, out := running("none", writeEvery)
	r := waiting("warmup", corpus.PhaseWarmup, 20, 128)
	p.sending(r, transcript.NewWatcher())
	p.sent([]judge.Reply{*finished(r, 10, 1, 2)})
	p.stop()
	g.Expect(out.String()).To(BeEmpty())
}

func TestAFinishedRequestIsOneLine(t *testing.T) {
	g := NewWithT(t)
	p, out := running("plain", writeEvery)
	r := waiting("sanity-I1", corpus.PhaseSanity, 20, 128)
	reply := finished(r, 10, 0.25, 2)
	reply.Figures.Status = measure.Completed
	reply.Figures.InputTokens = measure.Known[int64](70, "usage")
	reply.Evaluation = &judge.Evaluation{Reason: "no answer text"}
	p.sending(r, transcript.NewWatcher())
	p.sent([]judge.Reply{*reply})
	g.Expect(strings.TrimSpace(out.String())).To(Equal(
		"[ 1/2] sanity      sanity-I1                 completed      70 in   10 out  TTFT 0.250 s  WRONG: no answer text  0s left"))

	failed := fixtures.Planned{ID: "sanity-I2", Phase: corpus.PhaseSanity}
	p.sending(failed, transcript.NewWatcher())
	p.sent([]judge.Reply{{Planned: failed, Figures: measure.Figures{Status: measure.Failed, Error: measure.Known("HTTP 503", "status")}}})
	g.Expect(out.String()).To(HaveSuffix("sanity-I2                 failed    HTTP 503  0s left "))
	p.stop()
}

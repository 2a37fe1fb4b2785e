package selftest

import (
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/mockserver"
)

// keepsAlive sends a role, a token, and then nothing but comments, more often than any time-out.
func keepsAlive(w io.Writer, until <-chan struct{}) {
	_, _ = io.WriteString(w, chunk(roleChunk)+chunk(`{"content":"a"}`))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-until:
			return
		case <-tick.C:
			_, _ = io.WriteString(w, ": keep-alive\n\n")
		}
	}
}

func TestEachFaultUnderLoadIsInItsClassAndInNoFigure(t *testing.T) {
	for _, c := range []struct {
		name     string
		defect   string                           // of the mock, with its share
		bad      func(io.Writer, <-chan struct{}) // in its place: how every tenth request is answered
		class    string                           // of the failures
		kind     string                           // their error type
		failures int64                            // of sixty
		red      []string                         // specs
		foreign  bool                             // markers of others were seen
		replays  string                           // the outcome of a saved case's replay; "" where a case by itself does not show the fault
		more     func(g Gomega, doc loadDocument) // further claims
	}{
		{name: "streams cut", defect: "cut-stream=5%", class: fixtures.FailRequest, kind: "truncate", failures: 3, red: []string{"valid"}, replays: "error"},
		{name: "a fifth of the streams cut", defect: "cut-stream=20%", class: fixtures.FailRequest, kind: "truncate", failures: 12, red: []string{"valid"}, replays: "error"},
		{name: "errors inside 200", defect: "error-event=10%", class: fixtures.FailStream, kind: "in_band_error", failures: 6, red: []string{"valid"}, replays: "error"},
		{name: "bursts of 429", defect: "rate-limit=20%", class: fixtures.FailRequest, kind: "http_429", failures: 10, red: []string{"valid"}, replays: "error"},
		{name: "stalls", defect: "stall=5%", class: fixtures.FailRequest, kind: "idle-timeout", failures: 3, red: []string{"valid"}, replays: "error"},
		{name: "stalls behind keep-alives", bad: keepsAlive, class: fixtures.FailRequest, kind: "idle-timeout", failures: 6, red: []string{"valid"}, replays: "error"},
		{name: "chunks of another request", defect: "foreign-chunks=10%", class: fixtures.FailStream, kind: "foreign_chunks", failures: 6, red: []string{"isolation", "valid"}, foreign: true, replays: "fail"},
		{name: "NaN", defect: "nan=10%", class: fixtures.FailRequest, kind: "non_finite_number", failures: 6, red: []string{"valid"}, replays: "fail"},
		{name: "nothing but NaN", bad: says("data: NaN\n\n"), class: fixtures.FailRequest, kind: "malformed_event", failures: 6, red: []string{"valid"}, replays: "error"},
		{name: "another's marker", defect: "foreign-marker=10%", class: fixtures.FailCanary, kind: "canary_foreign", failures: 6, red: []string{"canary", "isolation"}, foreign: true, replays: "fail"},
		{name: "no marker", defect: "no-canary=10%", class: fixtures.FailCanary, kind: "canary_missing", failures: 6, red: []string{"canary"}, replays: "fail"},
		{name: "a word too many", defect: "wrong-words=10%", class: fixtures.FailControlled, kind: "word_count", failures: 6, red: []string{"words"}, replays: "fail"},
		{name: "no end marker", defect: "no-done=10%", class: fixtures.FailStream, kind: "missing_done", failures: 6, red: []string{"valid"}, replays: "fail"},
		{name: "no finish reason", defect: "no-finish=10%", class: fixtures.FailStream, kind: "missing_finish_reason", failures: 6, red: []string{"valid"}, replays: "fail"},
		{name: "no usage", defect: "usage-missing=10%", red: []string{}, more: func(g Gomega, doc loadDocument) {
			g.Expect(doc.Metrics["output_token_sources"].String()).To(MatchJSON(`{"content_chunks":6,"usage":54}`))
			for _, timing := range doc.RequestTimings {
				if *timing.OutputTokenSource == "content_chunks" {
					g.Expect(timing.TPOTMS).To(BeNil(), "what the server did not count has no time per token")
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			o := mockserver.Options{}
			if c.defect != "" {
				d, err := mockserver.ParseDefect(c.defect)
				g.Expect(err).NotTo(HaveOccurred())
				o.Defects = []mockserver.Defect{d}
			}
			var asked atomic.Int64
			url, log := loadServer(t, o, func(w http.ResponseWriter, r *http.Request, mock http.Handler) {
				if c.bad == nil || asked.Add(1)%10 != 5 {
					mock.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				c.bad(flushing{w}, r.Context().Done())
			})
			r := run(t, nil, with(strictLoad, "--url", url, "--timeout-idle", "1s", "--capacity-calibrate=false")...)
			g.Expect(r.red(t)).To(Equal(c.red), r.output)

			doc := r.capacityDocument(t)
			completed := 60 - c.failures
			g.Expect([]int64{*doc.Completed, *doc.Failed}).To(Equal([]int64{completed, c.failures}), r.output)
			g.Expect(*doc.PerformanceEligible).To(Equal(c.failures == 0))
			g.Expect(doc.Failures).To(HaveLen(int(c.failures)))
			for _, f := range doc.Failures {
				g.Expect([]string{f.FailureClass, f.ErrorType}).To(Equal([]string{c.class, c.kind}), f.ErrorMessage)
			}
			g.Expect(doc.RequestTimings).To(HaveLen(int(completed)))
			for _, name := range []string{"ttft_samples", "e2e_samples", "request_canary_samples"} {
				g.Expect(doc.metric(t, name)).To(BeEquivalentTo(completed), name)
			}
			g.Expect(doc.ours.Get("canaries.foreign_markers").Int() > 0).To(Equal(c.foreign))
			if c.more != nil {
				c.more(g, doc)
			}

			all, most := log.times()
			g.Expect([]int{all, most}).To(Equal([]int{60, 1}), "no request is sent twice")
			g.Expect(rows(t, r.runDir())).To(HaveLen(60))
			r.replay(t, doc, c.replays)
		})
	}
}

// failuresKept is how many failures of a class are saved as cases.
const failuresKept = 3

// replay runs the command that was printed for each saved failure of a load, and demands the outcome.
func (r result) replay(t *testing.T, doc loadDocument, outcome string) {
	t.Helper()
	g := NewWithT(t)
	saved, err := filepath.Glob(filepath.Join(r.runDir(), "failures", "*.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(saved).To(HaveLen(min(failuresKept, len(doc.Failures))))
	var failed []string
	for _, f := range doc.Failures {
		failed = append(failed, fixtures.LoadID(fixtures.StageClosed, int(*f.RequestIndex))+".json")
	}
	for _, file := range saved {
		g.Expect(failed).To(ContainElement(filepath.Base(file)))
		file, err := filepath.EvalSymlinks(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.output).To(ContainSubstring("plumbline probe " + file))
	}
	if len(saved) == 0 {
		return
	}
	command, err := program()
	g.Expect(err).NotTo(HaveOccurred())
	probe := exec.CommandContext(t.Context(), command, "probe", saved[0])
	out, _ := probe.CombinedOutput()
	if outcome == "" {
		g.Expect(probe.ProcessState.ExitCode()).NotTo(Equal(2), string(out))
		return
	}
	g.Expect(probe.ProcessState.ExitCode()).To(Equal(1), string(out))
	g.Expect(string(out)).To(ContainSubstring("outcome is " + outcome))
}

func TestALoadThatMostlyFailsIsStoppedEarlyAndSaysSo(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	url, log := loadServer(t, mockserver.Options{Defects: []mockserver.Defect{{Name: "rate-limit", Share: 1}}}, nil)
	r := run(t, nil, with(smallLoad, "--url", url, "--capacity-calibrate=false", "--capacity-requests", "2000", "--capacity-abort-error-rate", "0.2")...)
	g.Expect(r.red(t)).To(Equal([]string{"sent", "valid"}), r.output)
	all, most := log.times()
	g.Expect(all).To(And(BeNumerically(">=", 20), BeNumerically("<", 2000)))
	g.Expect(most).To(Equal(1))
	doc := r.capacityDocument(t)
	g.Expect(*doc.Requests).To(BeEquivalentTo(2000))
	g.Expect(*doc.Failed).To(BeEquivalentTo(all))
	for path, want := range map[string]int{"not_sent": 2000 - all, "without_result": 2000 - all, "aborted.sent": all, "aborted.requests": 2000} {
		g.Expect(doc.ours.Get(path).Int()).To(BeEquivalentTo(want), path)
	}
	g.Expect(doc.ours.Get("aborted.stage").String()).To(Equal(fixtures.StageClosed))
	g.Expect(doc.ours.Get("aborted.limit").Float()).To(Equal(0.2))
	g.Expect(doc.ours.Get("incomplete").Bool()).To(BeTrue())
	g.Expect(r.output).To(ContainSubstring("more than the abort error rate of 0.2"))
}

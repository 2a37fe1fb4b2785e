package selftest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/harness/plan"
	"plumbline/reports/strata"
	"plumbline/suites/session"
)

func serve(t *testing.T, mock http.Handler, chat func(http.ResponseWriter, *http.Request, http.Handler)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == plan.ChatPath {
			chat(w, r, mock)
			return
		}
		mock.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// holdAt lets requests through until the n-th, which it holds after its head; reached then says so.
func holdAt(n int64) (chat func(http.ResponseWriter, *http.Request, http.Handler), reached chan struct{}) {
	reached = make(chan struct{})
	var count atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, mock http.Handler) {
		if count.Add(1) != n {
			mock.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		close(reached)
		<-r.Context().Done()
	}, reached
}

// interrupted starts the suite against a server that holds the n-th request, and sends it a signal there.
func interrupted(t *testing.T, n int64, with syscall.Signal) result {
	t.Helper()
	chat, reached := holdAt(n)
	cmd, dir := command(t, nil, "--url", faulty(t, chat))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reached:
	case <-t.Context().Done():
		t.Fatal("the held request was never sent")
	}
	if err := cmd.Process.Signal(with); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("the suite is green although it was stopped by %v", with)
	}
	return result{dir, cmd.ProcessState.ExitCode(), out.String()}
}

func TestAKillAtAnyMomentLeavesARecordThatReportsAsIncomplete(t *testing.T) {
	for _, n := range []int64{1, 2, 7, 11, 22} {
		t.Run(planned(t)[n-1], func(t *testing.T) {
			g := NewWithT(t)
			r := interrupted(t, n, syscall.SIGKILL)
			_, err := os.Stat(filepath.Join(r.runDir(), session.ResultsName))
			g.Expect(err).To(MatchError(os.ErrNotExist))

			_, err = session.Report(r.runDir())
			g.Expect(err).NotTo(HaveOccurred())
			doc := r.document(t)
			g.Expect(doc.Run.Status).To(Equal(strata.Incomplete))
			for i, request := range doc.Requests {
				if i < int(n)-1 {
					g.Expect(request.Status).To(BeElementOf("completed", "truncated"), request.ID)
				} else {
					g.Expect(request.Status).To(Equal("skipped"), request.ID)
				}
			}
		})
	}
}

func TestALineCutAnywhereLosesOnlyItself(t *testing.T) {
	r := run(t, nil)
	record, err := os.ReadFile(filepath.Join(r.runDir(), session.OutputsName))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(record, []byte("\n"))
	whole := 0
	for i, line := range lines[:5] { // the header, and four exchanges
		for _, cut := range []int{1, len(line) / 2, len(line) - 1} {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, session.OutputsName), record[:whole+cut], 0o644); err != nil {
				t.Fatal(err)
			}
			doc, err := session.Report(dir)
			switch {
			case i == 0 && err == nil:
				t.Error("a record without a whole header gave a document")
			case i == 0 && !strings.Contains(err.Error(), "header"):
				t.Errorf("the error does not name the header: %v", err)
			case i > 0 && err != nil:
				t.Errorf("line %d cut at %d: %v", i, cut, err)
			case i > 0 && doc.RequestCounts.Warmup.Attempted+doc.RequestCounts.Performance.Attempted != i-1:
				t.Errorf("line %d cut at %d: %d exchanges are in the document, expected %d", i, cut,
					doc.RequestCounts.Warmup.Attempted+doc.RequestCounts.Performance.Attempted, i-1)
			}
		}
		whole += len(line)
	}
}

func TestATimeOutOfTheSuiteIsNotTakenForAFilter(t *testing.T) {
	g := NewWithT(t)
	chat, _ := holdAt(3)
	r := run(t, nil, "--url", faulty(t, chat), "--ginkgo.timeout=2s")
	g.Expect(r.exit).NotTo(BeZero())
	doc := r.document(t)
	g.Expect(doc.Extensions.StatusReasonCodes).To(ContainElement("run_interrupted"))
	why, _ := doc.Requests[3].Error.Get()
	g.Expect(why).NotTo(ContainSubstring("filter"))
}

func TestTwoSignalsAtOnceStillLeaveADocument(t *testing.T) {
	g := NewWithT(t)
	chat, reached := holdAt(2)
	cmd, dir := command(t, nil, "--url", faulty(t, chat))
	g.Expect(cmd.Start()).To(Succeed())
	<-reached
	g.Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
	g.Expect(cmd.Process.Signal(syscall.SIGINT)).To(Succeed())
	g.Expect(cmd.Wait()).NotTo(Succeed())
	doc := result{dir: dir}.document(t)
	g.Expect(doc.Run.Status).To(Equal(strata.Incomplete))
}

func TestAnInterruptStillWritesTheDocument(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			g := NewWithT(t)
			r := interrupted(t, 3, signal)
			doc := r.document(t)
			g.Expect(doc.Run.Status).To(Equal(strata.Incomplete))
			g.Expect(doc.Requests[2].Status).To(Equal("failed"))
			why, _ := doc.Requests[3].Error.Get()
			g.Expect(why).To(ContainSubstring("interrupted"))
		})
	}
}

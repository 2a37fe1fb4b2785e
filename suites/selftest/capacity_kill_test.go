package selftest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/journal"
	"plumbline/mockserver"
	"plumbline/suites/session"
)

// slowLoad starts a load that takes seconds, and returns once some of its replies are on disk and others under way.
func slowLoad(t *testing.T) (cmd *exec.Cmd, r result, output *bytes.Buffer) {
	t.Helper()
	pace, err := mockserver.ParsePace("ttft=50ms,tpot=10ms")
	if err != nil {
		t.Fatal(err)
	}
	url, _ := loadServer(t, mockserver.Options{Pace: pace}, nil)
	cmd, dir := command(t, nil, with(strictLoad, "--url", url)...)
	output = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r = result{dir: dir}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		data, err := os.ReadFile(filepath.Join(r.runDir(), journal.CapacityFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || t.Context().Err() != nil {
			t.Fatalf("wait for the record: %v\n%s", err, output)
		}
		if bytes.Count(data, []byte("\n")) > 10 {
			break
		}
	}
	return cmd, r, output
}

func TestAnInterruptedLoadHasADocumentOfAllThatCame(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			cmd, r, output := slowLoad(t)
			g.Expect(cmd.Process.Signal(signal)).To(Succeed())
			g.Expect(cmd.Wait()).NotTo(Succeed())
			g.Expect(cmd.ProcessState.ExitCode()).To(Equal(1), output.String())
			r.output = output.String()

			doc := r.capacityDocument(t)
			g.Expect(doc.ours.Get("interrupted").String()).To(ContainSubstring("signal"))
			g.Expect(doc.ours.Get("incomplete").Bool()).To(BeTrue())
			finished, cut := 0, 0
			for _, row := range rows(t, r.runDir()) {
				if row.Failure == nil {
					finished++
					continue
				}
				cut++
				g.Expect(row.Failure.Class).To(Equal(fixtures.FailRunner))
				g.Expect(row.Failure.Type).To(Equal("canceled"))
			}
			g.Expect(finished).To(BeNumerically(">=", 10))
			g.Expect(cut).To(BeNumerically("<=", 8), "those under way")
			g.Expect(doc.RequestTimings).To(HaveLen(finished))
			g.Expect(doc.Failures).To(HaveLen(cut))
			g.Expect(doc.ours.Get("without_result").Int()).To(BeEquivalentTo(60 - finished - cut))
			g.Expect(*doc.PerformanceEligible).To(BeFalse())

			_, err := session.ReportCapacity(r.runDir())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bytes.Equal(doc.data, r.capacityDocument(t).data)).To(BeTrue(), "the rebuilt document differs")
		})
	}
}

func TestAKilledLoadReportsAsIncompleteWithAllThatCame(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	cmd, r, _ := slowLoad(t)
	before := len(rows(t, r.runDir()))
	g.Expect(cmd.Process.Kill()).To(Succeed())
	_ = cmd.Wait()
	g.Expect(filepath.Join(r.runDir(), session.CapacityName)).NotTo(BeAnExistingFile())

	report, err := program()
	g.Expect(err).NotTo(HaveOccurred())
	out, err := exec.CommandContext(t.Context(), report, "report", r.runDir()).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	doc := r.capacityDocument(t)
	g.Expect(doc.ours.Get("incomplete").Bool()).To(BeTrue())
	g.Expect(doc.ours.Get("incomplete_because.0").String()).To(ContainSubstring("killed"))
	g.Expect(before).To(BeNumerically(">=", 10))
	g.Expect(len(doc.RequestTimings)).To(BeNumerically(">=", before))
	g.Expect(doc.Failures).To(BeEmpty(), "what was under way left nothing")
}

func TestRowsThatAKillLostAreJudgedAgainFromTheirExchanges(t *testing.T) {
	g := NewWithT(t)
	d := mockserver.Defect{Name: "cut-stream", Share: 0.1}
	url, _ := loadServer(t, mockserver.Options{Defects: []mockserver.Defect{d}}, nil)
	r := run(t, nil, with(strictLoad, "--url", url, "--capacity-arrival", "constant", "--capacity-rate", "200", "--capacity-open-requests", "10")...)
	g.Expect(r.red(t)).To(Equal([]string{"valid"}), r.output)
	whole := r.capacityDocument(t)
	record, err := os.ReadFile(filepath.Join(r.runDir(), journal.CapacityFile))
	g.Expect(err).NotTo(HaveOccurred())
	lines := bytes.SplitAfter(record, []byte("\n"))
	header := lines[0]

	cuts := map[string][]byte{"all rows": header}
	for n, at := range map[string]int{"the first row torn": 1, "the tenth row torn": 10, "a late row torn": 55, "an open loop's row torn": 67} {
		before := bytes.Join(lines[:at], nil)
		cuts[n] = slices.Concat(before, lines[at][:1])
		cuts[n+" in its middle"] = slices.Concat(before, lines[at][:len(lines[at])/2])
		cuts[n+" before its line end"] = slices.Concat(before, lines[at][:len(lines[at])-1])
	}
	holes := slices.Clone(lines[:50])
	cuts["rows missing in between"] = bytes.Join(slices.Concat(holes[:3], holes[9:20], holes[21:]), nil)
	for name, kept := range cuts {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(dir, journal.CapacityFile), kept, 0o644)).To(Succeed())
			g.Expect(os.Symlink(filepath.Join(r.runDir(), journal.CapacityOutputs), filepath.Join(dir, journal.CapacityOutputs))).To(Succeed())
			_, err := session.ReportCapacity(dir)
			g.Expect(err).NotTo(HaveOccurred())
			doc := readCapacity(t, dir, "")
			g.Expect(doc.ours.Get("incomplete").Bool()).To(BeTrue())
			g.Expect(doc.RequestTimings).To(Equal(whole.RequestTimings))
			g.Expect(doc.Failures).To(Equal(whole.Failures))
			g.Expect(figures(doc)).To(Equal(figures(whole)))
			// When the loop began is known exactly from any row of it, and else within the least wait of its requests.
			const latency, wait = "open_loop.from_schedule.e2e_ms.mean", "open_loop.dispatch_wait_ms.mean"
			slack := whole.ours.Get(wait).Float()
			if strings.HasPrefix(name, "an open") {
				slack = 0
			}
			g.Expect(doc.ours.Get("open_loop.results").Int()).To(BeEquivalentTo(10))
			g.Expect(doc.ours.Get(latency).Float()).To(And(BeNumerically("<=", whole.ours.Get(latency).Float()+1e-9),
				BeNumerically(">=", whole.ours.Get(latency).Float()-slack-1e-9)))
		})
	}
}

// figures are a document's metrics but for those that the end of a stage has a part in.
func figures(d loadDocument) map[string]string {
	all := map[string]string{}
	for name, value := range d.Metrics {
		if !strings.HasPrefix(name, "throughput") && name != "content_chunks_s" {
			all[name] = value.String()
		}
	}
	return all
}

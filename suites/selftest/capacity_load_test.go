package selftest

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/journal"
	"plumbline/harness/transcript"
)

var checkLoad = flag.Bool("load", false, "also check loads of 100,000 requests and of a thousand streams against the mock as a process of its own; takes minutes and an idle machine")

// maxLoadMemory is what the suite may take for the longest load, as the largest resident size that the kernel saw.
const maxLoadMemory = 300 << 20

// mockProcess starts the mock as a process of its own, so that it does not share this one's scheduler, and returns its URL.
func mockProcess(t *testing.T, args ...string) string {
	t.Helper()
	command, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command, append([]string{"mock", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, after, found := strings.Cut(line, "mock engine at ")
	if err != nil || !found {
		t.Fatalf("the mock said %q: %v", line, err)
	}
	url, _, _ := strings.Cut(after, ",")
	return url
}

func TestTheLongestLoadTakesBoundedMemory(t *testing.T) {
	if !*checkLoad {
		t.Skip("a check of long loads: `make load` runs it")
	}
	g := NewWithT(t)
	url := mockProcess(t, "--slots", "64")
	cmd, dir := command(t, nil, "--protocols", "capacity", "--url", url, "--ginkgo.no-color", "--capacity-requests", "100000",
		"--capacity-concurrency", "64", "--capacity-ctx-tokens", "64", "--capacity-max-tokens", "4", "--capacity-thinking-mode", "disabled")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	g.Expect(cmd.Start()).To(Succeed())
	peak := watchMemory(cmd.Process.Pid)
	_ = cmd.Wait()
	took := time.Since(began)
	r := result{dir, cmd.ProcessState.ExitCode(), out.String()}
	doc := r.capacityDocument(t)
	t.Logf("%v in all; %.0f requests/s; peak %d MiB; the client was overloaded: %v; %d bytes of document\n%s", took.Round(time.Second),
		1e5/(*doc.WallClockMS/1000), peak()>>20, doc.ours.Get("client.client_overloaded"), len(doc.data), r.output)
	g.Expect(*doc.Completed).To(BeEquivalentTo(100_000))
	g.Expect(doc.RequestTimings).To(HaveLen(100_000))
	g.Expect(r.red(t)).To(BeEmpty(), r.output)
	g.Expect(peak()).To(And(BeNumerically(">", 0), BeNumerically("<", maxLoadMemory)))
}

func TestFiguresUnderLoadAreThoseThatTheMockWasSetTo(t *testing.T) {
	if !*checkLoad {
		t.Skip("a check of times: `make load` runs it")
	}
	const ttft, tpot = 50.0, 10.0 // ms
	url := mockProcess(t, "--slots", "1024", "--pace", "ttft=50ms,tpot=10ms")
	for _, c := range []struct {
		streams          int
		maxTTFT, maxTPOT float64 // ms that the means may be off; 0 for no bound
	}{{100, 2, 0.2}, {500, 20, 1}, {1000, 0, 0}} {
		t.Run(fmt.Sprint(c.streams), func(t *testing.T) {
			g := NewWithT(t)
			// Without thinking the first token is the first output, and the end comes one token's time after the last.
			r := run(t, nil, "--protocols", "capacity", "--url", url, "--ginkgo.no-color", "--capacity-ctx-tokens", "256",
				"--capacity-concurrency", strconv.Itoa(c.streams), "--capacity-requests", strconv.Itoa(5*c.streams),
				"--capacity-response-words", "100", "--capacity-max-tokens", "100", "--capacity-thinking-mode", "disabled")
			doc := r.capacityDocument(t)
			g.Expect(*doc.Completed).To(BeEquivalentTo(5 * c.streams))
			g.Expect(doc.metric(t, "completion_tokens_mean")).To(BeEquivalentTo(100))
			// The reply lasts for as many steps as it has tokens after its first one shows, and the client divides by one less.
			truth := tpot * 100 / 99
			prompt, decode := toldTimes(t, r)
			first, each := doc.metric(t, "ttft_mean_ms")-ttft, doc.metric(t, "tpot_mean_ms")-truth
			t.Logf("%4d streams: TTFT %+.2f ms (first output %+.2f, p95 %+.2f; the mock itself %+.2f), TPOT %+.3f ms (the mock itself %+.3f), client overloaded: %v, read lag %.2f ms, cpu %.2f",
				c.streams, first, doc.metric(t, "time_to_first_output_mean_ms")-ttft, doc.metric(t, "ttft_p95_ms")-ttft, prompt-ttft, each, decode-tpot,
				doc.ours.Get("client.client_overloaded"), doc.ours.Get("client.read_lag_ms.mean").Float(), doc.ours.Get("client.cpu_share").Float())
			if c.maxTTFT > 0 {
				// What the mock was late by itself is no error of the client's.
				g.Expect(math.Abs(first - (prompt - ttft))).To(BeNumerically("<", c.maxTTFT))
				g.Expect(math.Abs(each - (decode - tpot))).To(BeNumerically("<", c.maxTPOT))
			}
		})
	}
}

// toldTimes are the mean times of prefill and of a token by the mock's own clock, in milliseconds.
func toldTimes(t *testing.T, r result) (prompt, decode float64) {
	t.Helper()
	n := 0.0
	err := journal.Unread(r.runDir(), nil, func(x *fixtures.Exchange) error {
		if told := transcript.Read(x).Timings; told != nil && told.PromptMS != nil && told.PredictedMS != nil {
			prompt, decode, n = prompt+*told.PromptMS, decode+*told.PredictedMS/100, n+1
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Fatalf("read the mock's times: %v", err)
	}
	return prompt / n, decode / n
}

package selftest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// chunk is an event of a stream with one delta.
func chunk(delta string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"plumbline-mock","choices":[{"index":0,"delta":` +
		delta + `,"finish_reason":null}]}` + "\n\n"
}

const (
	roleChunk = `{"role":"assistant","content":""}`
	finishes  = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"plumbline-mock","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	done      = "data: [DONE]\n\n"
)

func usage(counts string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"plumbline-mock","choices":[],"usage":` + counts + "}\n\n"
}

// maxMemory is what the suite may take, as the largest resident size that the kernel saw. The program itself, with what it
// needs to start containers, is some 40 MB of it; and a collector that gets little of a busy machine comes late.
const maxMemory = 240 << 20

func TestBadInputEndsInTheRightStatusAndLosesNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		// serve answers one chat request; until lasts as long as the client listens.
		serve  func(w io.Writer, until <-chan struct{})
		status string
		says   string // a part of the request's error; "" when it has none
		args   []string
	}{
		{"malformed events", says("data: {\"choices\":[{\"del\n\ndata: nonsense\n\n" + done), "failed", "not legal JSON", nil},
		{"no event stream at all", says("\x00\x01\x02 not an event stream\n"), "failed", "", nil},
		{"a line of a gigabyte", endless("data: ", "x"), "failed", "67108864 bytes", nil},
		{"a body that never ends", endless("", chunk(`{"content":"more "}`)), "failed", "67108864 bytes", nil},
		{"comments for ever", endless("", ": still here\n\n"), "failed", "", []string{"--timeout-first-token", "3s", "--timeout-idle", "3s"}},
		{"a stall after the role", stalls(chunk(roleChunk)), "failed", "time-out", []string{"--timeout-idle", "3s"}},
		{"a stall before the first byte", stalls(""), "failed", "time-out", []string{"--timeout-first-byte", "3s"}},
		{"a stall inside a line", stalls(chunk(roleChunk) + chunk(`{"content":"a"}`) + `data: {"choi`), "failed", "time-out", []string{"--timeout-idle", "3s"}},
		{"no end in time", drips(chunk(roleChunk), chunk(`{"content":"a"}`)), "failed", "time-out", []string{"--timeout-total", "4s"}},
		{"invalid UTF-8", says(chunk(roleChunk) + chunk("{\"content\":\"\xff\xfe\"}") + finishes + done), "completed", "", nil},
		{"numbers as strings", says(chunk(roleChunk) + chunk(`{"content":"a"}`) + finishes + usage(`{"prompt_tokens":"7","completion_tokens":"1","total_tokens":"8"}`) + done), "completed", "", nil},
		{"usage as a list", says(chunk(roleChunk) + chunk(`{"content":"a"}`) + finishes + usage(`[7,1]`) + done), "completed", "", nil},
		{"deep nesting", says("data: " + strings.Repeat("[", 1<<20) + "\n\n" + finishes + done), "failed", "not legal JSON", nil},
		{"a great many events", repeats(chunk(roleChunk), chunk(`{"content":"word "}`), 200_000, finishes+usage(`{"prompt_tokens":7,"completion_tokens":200000,"total_tokens":200007}`)+done), "completed", "", nil},
		{"a body cut in the middle", says(chunk(roleChunk) + chunk(`{"content":"a"}`) + `data: {"choi`), "failed", "ended inside an event", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var asked atomic.Int64
			url := faulty(t, func(w http.ResponseWriter, r *http.Request, mock http.Handler) {
				if asked.Add(1) != 2 { // the warm-up, and what comes after
					mock.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				c.serve(flushing{w}, r.Context().Done())
			})
			args := append([]string{"--url", url, "--ginkgo.focus=warmup|performance-short-r1|sanity-I1"}, c.args...)
			cmd, dir := command(t, nil, args...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			g.Expect(cmd.Start()).To(Succeed())
			peak := watchMemory(cmd.Process.Pid)
			_ = cmd.Wait() // red, for most of these
			r := result{dir, cmd.ProcessState.ExitCode(), out.String()}

			doc := r.document(t)
			g.Expect(doc.Requests[0].Status).To(BeElementOf("completed", "truncated"), "the warm-up is kept")
			g.Expect(doc.Requests[1].Status).To(Equal(c.status), r.output)
			why, _ := doc.Requests[1].Error.Get()
			g.Expect(why).To(ContainSubstring(c.says))
			g.Expect(doc.Requests[10].Status).To(Equal("completed"), "the suite goes on")
			g.Expect(sent(r.record(t))).To(Equal([]string{"warmup", "performance-short-r1", "sanity-I1"}))
			g.Expect(peak()).To(And(BeNumerically(">", 0), BeNumerically("<", maxMemory)))
		})
	}
}

// watchMemory reads the peak of a process's resident size again and again until it is gone. What wait(2) tells is no
// use here: a process begins as a copy of its parent, and so does its peak.
func watchMemory(pid int) (peak func() int) {
	last, gone := 0, make(chan struct{})
	go func() {
		defer close(gone)
		for range time.Tick(2 * time.Millisecond) {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, after, found := strings.Cut(string(status), "VmHWM:")
			if err != nil || !found { // gone, or about to be
				return
			}
			var kib int
			if _, err := fmt.Sscan(after, &kib); err == nil {
				last = kib << 10
			}
		}
	}()
	return func() int {
		<-gone
		return last
	}
}

// flushing sends what is written at once.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}

func says(body string) func(io.Writer, <-chan struct{}) {
	return func(w io.Writer, _ <-chan struct{}) { _, _ = io.WriteString(w, body) }
}

func stalls(body string) func(io.Writer, <-chan struct{}) {
	return func(w io.Writer, until <-chan struct{}) {
		_, _ = io.WriteString(w, body)
		<-until
	}
}

// repeats sends an event many times. It is made while it is sent, to keep this process small.
func repeats(head, event string, n int, tail string) func(io.Writer, <-chan struct{}) {
	return func(w io.Writer, _ <-chan struct{}) {
		const block = 1000
		events := strings.Repeat(event, block)
		fmt.Fprint(w, head)
		for range n / block {
			fmt.Fprint(w, events)
		}
		fmt.Fprint(w, tail)
	}
}

// endless repeats a body until the client leaves.
func endless(head, body string) func(io.Writer, <-chan struct{}) {
	block := bytes.Repeat([]byte(body), 1+(1<<16)/len(body))
	return func(w io.Writer, until <-chan struct{}) {
		_, _ = io.WriteString(w, head)
		for {
			select {
			case <-until:
				return
			default:
			}
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
}

// drips sends an event again and again, waiting for nothing but the client to read it.
func drips(head, event string) func(io.Writer, <-chan struct{}) {
	return func(w io.Writer, until <-chan struct{}) {
		fmt.Fprint(w, head)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-until:
				return
			case <-tick.C:
				fmt.Fprint(w, event)
			}
		}
	}
}

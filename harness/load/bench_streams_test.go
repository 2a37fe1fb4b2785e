package load_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"plumbline/fixtures"
	"plumbline/harness/client"
	"plumbline/harness/load"
	"plumbline/harness/transcript"
)

// BenchmarkStreams measures by how much the client's figures differ from a server's own, at so many streams at once, and
// what the stage's own check says of it. Run it on an idle machine, as `go test -run='^$' -bench=Streams ./harness/load`.
func BenchmarkStreams(b *testing.B) {
	for _, n := range []int{100, 500, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			url := startPaced(b)
			for b.Loop() {
				stream(b, url, n).report(b)
			}
		})
	}
}

// startPaced starts the server as a process of its own and returns its base URL.
func startPaced(b *testing.B) string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// deviations are the differences between the client's figures and the server's, summed over streams, in milliseconds.
type deviations struct {
	mu                     sync.Mutex
	n                      float64
	ttft, readLag, tpot    float64 // readLag is the part of ttft after the server's write
	tpotSize, slip, ttftMx float64 // slip is how late the server was by its own plan
	result                 load.Result
}

func (e *deviations) report(b *testing.B) {
	c := e.result.Client
	for unit, v := range map[string]float64{
		"ttft-err-ms":  e.ttft / e.n,
		"ttft-max-ms":  e.ttftMx,
		"read-err-ms":  e.readLag / e.n,
		"tpot-err-ms":  e.tpot / e.n,
		"tpot-abs-ms":  e.tpotSize / e.n,
		"slip-ms":      e.slip / e.n,
		"lag-mean-ms":  *c.ReadLag.Mean,
		"lag-p99-ms":   *c.ReadLag.P99,
		"late-p99-ms":  *c.DispatchLate.P99,
		"late-mean-ms": *c.DispatchLate.Mean,
		"cpu":          *c.CPUShare,
		"overloaded":   map[bool]float64{true: 1}[c.Overloaded],
	} {
		b.ReportMetric(v, unit)
	}
}

// stream runs a closed loop of three replies a worker.
func stream(b *testing.B, url string, n int) *deviations {
	epoch := time.Now()
	c, err := client.New(client.Options{BaseURL: url, Epoch: epoch, Header: http.Header{"Authorization": {"Bearer sk-0123456789"}},
		Timeouts: client.Timeouts{Connect: time.Minute, FirstByte: time.Minute, FirstToken: time.Minute, Idle: time.Minute, Total: time.Hour}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	body := fmt.Appendf(nil, `{"stream":true,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("lorem ", 300))
	e, live := &deviations{}, &load.Live{}
	r, err := load.Run(b.Context(), load.Plan{Workers: n, Requests: 3 * n, Live: live},
		func(ctx context.Context, i int, due time.Time) load.Outcome {
			x := c.Do(ctx, client.Call{ID: strconv.Itoa(i), Method: "POST", Path: "/v1/chat/completions", Body: body,
				Watcher: watcher{transcript.NewWatcher()}})
			dispatched := epoch.Add(x.SinceStart)
			ok := x.Whole() && e.add(x, dispatched)
			if !ok {
				b.Errorf("request %d ended as %q (%s) in %d pieces", i, x.End.Kind, x.End.Error, len(x.Pieces))
			}
			live.Judged(x.End.At, !ok)
			return load.Outcome{Dispatched: dispatched, Waited: wait(x), Ended: dispatched.Add(x.End.At)}
		})
	if err != nil || r.Sent != 3*n {
		b.Fatal(r, err)
	}
	e.result = r
	return e
}

type watcher struct{ *transcript.Watcher }

func (w watcher) Piece(at time.Duration, b []byte) client.Signal {
	return client.Signal(w.Watcher.Piece(at, b))
}

func wait(x *fixtures.Exchange) time.Duration {
	if x.Connection == nil {
		return 0
	}
	return x.Connection.Wait
}

// add compares one exchange's figures with the moments in its chunks.
func (e *deviations) add(x *fixtures.Exchange, dispatched time.Time) bool {
	if len(x.Pieces) < 2 {
		return false
	}
	head := x.Pieces[0].Bytes
	head = head[:bytes.IndexByte(head, '\n')+2]
	tail := x.Pieces[len(x.Pieces)-1]
	tailBytes := bytes.TrimSuffix(tail.Bytes, []byte("data: [DONE]\n\n"))
	if len(tailBytes) == 0 { // the end came in a piece of its own
		tail = x.Pieces[len(x.Pieces)-2]
		tailBytes = tail.Bytes
	}
	first, last := moments(head), moments(tailBytes)
	ttft := inMS(x.Pieces[0].At) - (first.sent-first.read)/1e6
	readLag := float64(dispatched.Add(x.Pieces[0].At).UnixNano())/1e6 - first.sent/1e6
	tpot := (inMS(tail.At-x.Pieces[0].At) - (last.sent-first.sent)/1e6) / (perStream - 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
	e.ttft += ttft
	e.ttftMx = max(e.ttftMx, ttft)
	e.readLag += readLag
	e.tpot += tpot
	e.tpotSize += math.Abs(tpot)
	e.slip += (first.sent - first.due) / 1e6
	return true
}

func inMS(d time.Duration) float64 { return float64(d) / 1e6 }

// moment are the server's moments in a chunk, in nanoseconds.
type moment struct{ read, due, sent float64 }

func moments(chunk []byte) moment {
	at := func(from int) float64 {
		n, _ := strconv.ParseInt(string(chunk[from:from+19]), 10, 64)
		return float64(n)
	}
	from := len(chunk) - momentsFromEnd
	return moment{at(from), at(from + len(`0000000000000000000,"due":`)), at(from + len(`0000000000000000000,"due":0000000000000000000,"sent":`))}
}

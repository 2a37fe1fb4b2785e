package mockserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func TestEveryCaseIsReplayedByteForByte(t *testing.T) {
	var all []fixtures.Replay
	for _, c := range embeddedCases(t) {
		all = append(all, c.Replays()...)
	}
	NewWithT(t).Expect(all).To(HaveLen(136))
	p := replay(t, ReplayOptions{Replays: all})
	for _, r := range all {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			w := dial(t, p)
			w.send(r.Request.Method, r.Request.Path, r.Name, `{}`)
			expectScript(t, w, r.Script)
		})
	}
}

// expectScript holds what comes on the wire to a script without a stated length.
func expectScript(t *testing.T, w *wire, s fixtures.Script) {
	t.Helper()
	g := NewWithT(t)
	status, head := w.head()
	g.Expect(status).To(Equal(fmt.Sprintf("HTTP/1.1 %d %s", s.Status, http.StatusText(s.Status))))
	want := []string{"Transfer-Encoding: chunked"}
	for name, values := range s.Header {
		for _, v := range values {
			want = append(want, name+": "+v)
		}
	}
	sort.Strings(want)
	sort.Strings(head)
	g.Expect(head).To(Equal(want), "nothing but what the script states, and the framing")
	for i, step := range s.Steps {
		if len(step.Bytes) == 0 {
			continue
		}
		got, err := w.chunk()
		g.Expect(err).NotTo(HaveOccurred(), "step %d", i)
		g.Expect(got == string(step.Bytes)).To(BeTrue(), "step %d: want %q, got %q", i, step.Bytes, got)
	}
	switch s.End {
	case fixtures.ScriptClose:
		_, err := w.chunk()
		g.Expect(err).To(MatchError(io.EOF))
		w.send("GET", "/health", "", "")
		status, _ := w.head()
		g.Expect(status).To(Equal("HTTP/1.1 200 OK"), "the connection is good for the next request")
	case fixtures.ScriptTruncate:
		_, err := w.in.ReadByte()
		g.Expect(err).To(MatchError(io.EOF))
	case fixtures.ScriptReset:
		_, err := w.in.ReadByte()
		g.Expect(errors.Is(err, syscall.ECONNRESET)).To(BeTrue(), "%v", err)
	case fixtures.ScriptHang:
		g.Expect(w.conn.(*net.TCPConn).CloseWrite()).To(Succeed())
		_, err := w.in.ReadByte()
		g.Expect(err).To(MatchError(io.EOF), "it ends when the client leaves")
	default:
		t.Fatalf("unknown end %q", s.End)
	}
}

func TestRecordedExchangesAreFoundByTheirRequestsAndReplayedAsTheyCame(t *testing.T) {
	var all []fixtures.Replay
	for _, e := range recordedFile(t) {
		r, err := e.Replay()
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		all = append(all, r)
	}
	p := replay(t, ReplayOptions{Replays: all})
	for _, r := range all { // in order: some were sent more than once
		t.Run(r.Name, func(t *testing.T) {
			g := NewWithT(t)
			w := dial(t, p)
			w.send(r.Request.Method, r.Request.Path, "", string(r.Request.Body), "Content-Type: application/json")
			if r.Script.Header["Content-Length"] == nil {
				stated := r.Script
				stated.Header = map[string][]string{}
				for name, values := range r.Script.Header {
					if name != "Transfer-Encoding" {
						stated.Header[name] = values
					}
				}
				expectScript(t, w, stated)
				return
			}
			status, head := w.head()
			g.Expect(status).To(HavePrefix(fmt.Sprintf("HTTP/1.1 %d ", r.Script.Status)))
			var want []string
			for name, values := range r.Script.Header {
				want = append(want, name+": "+values[0])
			}
			g.Expect(head).To(ConsistOf(want))
			var body strings.Builder
			for _, step := range r.Script.Steps {
				body.Write(step.Bytes)
			}
			g.Expect(w.sized(head)).To(Equal(body.String()))
			if slices.Contains(head, "Connection: close") {
				_, err := w.in.ReadByte()
				g.Expect(err).To(MatchError(io.EOF))
			}
		})
	}
}

func TestStepsComeAtTheirMomentsWhateverTheClientDoes(t *testing.T) {
	s := fixtures.Script{
		HeadAfter: 100 * time.Millisecond, Status: 200, End: fixtures.ScriptClose,
		Steps: []fixtures.ScriptStep{step(50*time.Millisecond, "a"), step(0, "b"), step(27*time.Second, "c"), step(time.Second, "")},
	}
	for _, c := range []struct {
		speed              float64
		head, a, c, finish time.Duration
	}{
		{1, 100 * time.Millisecond, 150 * time.Millisecond, 27150 * time.Millisecond, 28150 * time.Millisecond},
		{2, 50 * time.Millisecond, 75 * time.Millisecond, 13575 * time.Millisecond, 14075 * time.Millisecond},
		{0.5, 200 * time.Millisecond, 300 * time.Millisecond, 54300 * time.Millisecond, 56300 * time.Millisecond},
		{0, 0, 0, 0, 0},
	} {
		for _, slow := range []time.Duration{0, 20 * time.Millisecond} {
			t.Run(fmt.Sprintf("speed %g, client slow by %v", c.speed, slow), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := NewWithT(t)
					client, stop := inMemory(t, ReplayOptions{Speed: c.speed, Replays: []fixtures.Replay{scripted("x", s)}})
					w := client()
					w.send("POST", "/v1/chat/completions", "x", `{}`)
					sent := time.Now()
					w.head()
					g.Expect(time.Since(sent)).To(Equal(c.head))
					for i, want := range []string{"a", "b", "c"} {
						got, err := w.chunk()
						g.Expect(err).NotTo(HaveOccurred())
						g.Expect(got).To(Equal(want))
						switch {
						case i == 0:
							g.Expect(time.Since(sent)).To(Equal(c.a))
							time.Sleep(slow) // virtual: a client that is late takes nothing from later moments
						case i == 2 && c.speed > 0:
							g.Expect(time.Since(sent)).To(Equal(c.c))
						}
					}
					_, err := w.chunk()
					g.Expect(err).To(MatchError(io.EOF))
					if c.speed > 0 {
						g.Expect(time.Since(sent)).To(Equal(c.finish))
					}
					w.conn.Close()
					stop()
				})
			})
		}
	}
}

func TestAHangingResponseStaysOpenUntilTheClientLeaves(t *testing.T) {
	for name, s := range map[string]fixtures.Script{
		"after a piece": {Status: 200, End: fixtures.ScriptHang, Steps: []fixtures.ScriptStep{step(0, "a")}},
		"without bytes": {Status: 200, End: fixtures.ScriptHang},
		"without head":  {End: fixtures.ScriptHang},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				client, stop := inMemory(t, ReplayOptions{Replays: []fixtures.Replay{scripted("x", s)}})
				w := client()
				w.send("POST", "/v1/chat/completions", "x", `{}`)
				if s.Status != 0 {
					w.head()
				}
				for range s.Steps {
					_, err := w.chunk()
					g.Expect(err).NotTo(HaveOccurred())
				}
				more := make(chan error, 1)
				go func() { _, err := w.in.ReadByte(); more <- err }()
				time.Sleep(24 * time.Hour) // virtual
				synctest.Wait()
				g.Expect(more).NotTo(Receive())
				w.conn.Close()
				g.Expect(<-more).To(HaveOccurred())
				synctest.Wait()
				stop()
			})
		})
	}
}

func TestAClientThatLeavesEndsTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := fixtures.Script{Status: 200, End: fixtures.ScriptClose, Steps: []fixtures.ScriptStep{step(time.Hour, "a")}}
		p, err := newReplayer(t.Context(), ReplayOptions{Speed: 1, Replays: []fixtures.Replay{scripted("x", s)}})
		g.Expect(err).NotTo(HaveOccurred())
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		p.start(t.Context(), l)
		ours, theirs := net.Pipe()
		l.conns <- theirs
		fmt.Fprintf(ours, "POST / HTTP/1.1\r\nHost: x\r\n%s: x\r\n\r\n", CaseHeader)
		began := time.Now()
		_, err = ours.Read(make([]byte, 4096))
		g.Expect(err).NotTo(HaveOccurred())
		ours.Close()
		g.Expect(p.Close(t.Context())).To(Succeed(), "nothing runs any more")
		g.Expect(time.Since(began)).To(BeZero())
	})
}

func TestWithoutAHeadTheConnectionJustEnds(t *testing.T) {
	p := replay(t, ReplayOptions{Replays: []fixtures.Replay{
		scripted("cut", fixtures.Script{End: fixtures.ScriptTruncate}), scripted("reset", fixtures.Script{End: fixtures.ScriptReset}),
	}})
	g := NewWithT(t)
	w := dial(t, p)
	w.send("POST", "/", "cut", "")
	_, err := w.in.ReadByte()
	g.Expect(err).To(MatchError(io.EOF))
	w = dial(t, p)
	w.send("POST", "/", "reset", "")
	_, err = w.in.ReadByte()
	g.Expect(errors.Is(err, syscall.ECONNRESET)).To(BeTrue(), "%v", err)
}

func TestAStatedLengthIsKeptWhereItIsTrue(t *testing.T) {
	script := func(length string, end fixtures.ScriptEnd) fixtures.Script {
		return fixtures.Script{Status: 200, Header: map[string][]string{"content-length": {length}}, End: end,
			Steps: []fixtures.ScriptStep{step(0, "four")}}
	}
	p := replay(t, ReplayOptions{Replays: []fixtures.Replay{
		scripted("true", script("4", fixtures.ScriptClose)), scripted("long", script("9", fixtures.ScriptClose)),
		scripted("cut", script("9", fixtures.ScriptTruncate)), scripted("short", script("2", fixtures.ScriptTruncate)),
		scripted("odd", script("x", fixtures.ScriptClose)),
	}})
	for name, want := range map[string]string{
		"true":  "content-length: 4\r\nConnection: close\r\n\r\nfour",
		"long":  "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
		"cut":   "content-length: 9\r\nConnection: close\r\n\r\nfour",
		"short": "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\nfour\r\n",
		"odd":   "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := dial(t, p)
			w.send("POST", "/", name, "", "Connection: close")
			all, err := io.ReadAll(w.in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(all)).To(Equal("HTTP/1.1 200 OK\r\n" + want))
		})
	}
}

func TestBodiesThatHTTPForbidsAreLeftOut(t *testing.T) {
	s := fixtures.Script{Status: 200, Header: map[string][]string{"Content-Length": {"4"}}, End: fixtures.ScriptClose, Steps: []fixtures.ScriptStep{step(0, "four")}}
	empty := s
	empty.Status = 204
	p := replay(t, ReplayOptions{Replays: []fixtures.Replay{scripted("x", s), scripted("empty", empty)}})
	g := NewWithT(t)
	w := dial(t, p)
	w.send("HEAD", "/", "x", "")
	status, head := w.head()
	g.Expect(status).To(Equal("HTTP/1.1 200 OK"))
	g.Expect(head).To(Equal([]string{"Content-Length: 4"}))
	w.send("POST", "/", "empty", "")
	status, _ = w.head()
	g.Expect(status).To(Equal("HTTP/1.1 204 No Content"))

	old := dial(t, p)
	s.Header = nil
	fmt.Fprintf(old.conn, "POST / HTTP/1.0\r\n%s: x\r\n\r\n", CaseHeader)
	all, err := io.ReadAll(old.in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(all)).To(HaveSuffix("\r\n\r\nfour"), "a client of HTTP/1.0 gets no chunks")
}

func TestWhatIsNotHTTPIsRefused(t *testing.T) {
	p := replay(t, ReplayOptions{Replays: []fixtures.Replay{scripted("x", fixtures.Script{Status: 200, End: fixtures.ScriptClose})}})
	for name, c := range map[string]struct{ sent, status string }{
		"nonsense":          {"hello\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"a head too large":  {"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 2*maxHead), "HTTP/1.1 413 Request Entity Too Large"},
		"a body of a lie":   {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 Bad Request"},
		"an awaited go on ": {"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 100 Continue"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := dial(t, p)
			_, err := io.WriteString(w.conn, c.sent)
			g.Expect(err).NotTo(HaveOccurred())
			status, _ := w.head()
			g.Expect(status).To(Equal(c.status))
		})
	}
}

func TestTheReplayerCutsOffWhatHangsWhenItIsClosed(t *testing.T) {
	g := NewWithT(t)
	p, err := StartReplay(t.Context(), ReplayOptions{Replays: []fixtures.Replay{scripted("x", fixtures.Script{Status: 200, End: fixtures.ScriptHang})}})
	g.Expect(err).NotTo(HaveOccurred())
	w, idle := dial(t, p), dial(t, p)
	idle.send("GET", "/health", "", "")
	idle.head()
	w.send("POST", "/", "x", "")
	w.head()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = p.Close(ctx)
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(err).To(MatchError(ContainSubstring("cut off")))
	_, err = w.in.ReadByte()
	g.Expect(err).To(HaveOccurred())
	_, err = net.Dial("tcp", p.ln.Addr().String())
	g.Expect(err).To(HaveOccurred())
}

func TestTheReplayerEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	p, err := StartReplay(ctx, ReplayOptions{Replays: []fixtures.Replay{scripted("x", fixtures.Script{Status: 200, End: fixtures.ScriptHang})}})
	g.Expect(err).NotTo(HaveOccurred())
	w := dial(t, p)
	w.send("POST", "/", "x", "")
	w.head()
	cancel()
	_, err = w.in.ReadByte()
	g.Expect(err).To(HaveOccurred())
	g.Expect(p.Close(t.Context())).To(Succeed())
}

func TestWhatCannotBeReplayedIsRefusedAtTheStart(t *testing.T) {
	ok := fixtures.Script{Status: 200, End: fixtures.ScriptClose}
	for says, opts := range map[string]ReplayOptions{
		"at least one":      {},
		"a speed":           {Speed: -1, Replays: []fixtures.Replay{scripted("x", ok)}},
		"received NaN":      {Speed: math.NaN(), Replays: []fixtures.Replay{scripted("x", ok)}},
		"received +Inf":     {Speed: math.Inf(1), Replays: []fixtures.Replay{scripted("x", ok)}},
		"256.0.0.1":         {Listen: "256.0.0.1:0", Replays: []fixtures.Replay{scripted("x", ok)}},
		"status from 200":   {Replays: []fixtures.Replay{scripted("x", fixtures.Script{Status: 99, End: fixtures.ScriptClose})}},
		`"eof"`:             {Replays: []fixtures.Replay{scripted("x", fixtures.Script{Status: 200, End: "eof"})}},
		"than close":        {Replays: []fixtures.Replay{scripted("x", fixtures.Script{End: fixtures.ScriptClose})}},
		"no body":           {Replays: []fixtures.Replay{scripted("x", fixtures.Script{End: fixtures.ScriptHang, Steps: []fixtures.ScriptStep{{}}})}},
		"negative":          {Replays: []fixtures.Replay{scripted("x", fixtures.Script{Status: 200, End: fixtures.ScriptClose, HeadAfter: -1})}},
		"a header's name":   {Replays: []fixtures.Replay{scripted("x", fixtures.Script{Status: 200, End: fixtures.ScriptClose, Header: map[string][]string{"A B": {"1"}}})}},
		"expected one line": {Replays: []fixtures.Replay{scripted("x", fixtures.Script{Status: 200, End: fixtures.ScriptClose, Header: map[string][]string{"A": {"1\r\nB: 2"}}})}},
	} {
		t.Run(says, func(t *testing.T) {
			_, err := StartReplay(t.Context(), opts)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
		})
	}
}

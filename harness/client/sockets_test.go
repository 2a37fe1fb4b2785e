package client_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"plumbline/fixtures"
	"plumbline/harness/client"
)

// serve runs a handler on a real socket, over HTTP/2 without TLS when asked, and returns the base URL. It checks that
// nothing of client and server is left running.
func serve(t testing.TB, http2 bool, handler http.HandlerFunc) string {
	t.Helper()
	before := gleak.Goroutines()
	s := httptest.NewUnstartedServer(handler)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(!http2)
	s.Config.Protocols.SetUnencryptedHTTP2(http2)
	s.Start()
	t.Cleanup(func() {
		s.Close()
		NewWithT(t).Eventually(gleak.Goroutines).WithTimeout(30 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	})
	return s.URL
}

// raw answers each request on a socket of its own with text, then ends the connection with end.
func raw(t *testing.T, text string, end func(*net.TCPConn)) string {
	return listen(t, func(conn net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		req.Body.Close() // reads the body, so that closing the socket does not reset it
		conn.Write([]byte(text))
		if end != nil {
			end(conn.(*net.TCPConn))
		}
	})
}

func TestAnEndIsToldByWhatHappenedOnTheWire(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	reset := func(c *net.TCPConn) { c.SetLinger(0) }
	for name, c := range map[string]struct {
		text   string
		end    func(*net.TCPConn)
		kind   fixtures.EndKind
		status int
	}{
		"length":                   {ok + "Content-Length: 2\r\n\r\nab", nil, fixtures.EndClose, 200},
		"to the connection's end":  {"HTTP/1.0 200 OK\r\n\r\nab", nil, fixtures.EndClose, 200},
		"chunked":                  {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", nil, fixtures.EndClose, 200},
		"no content":               {"HTTP/1.1 204 No Content\r\n\r\n", nil, fixtures.EndClose, 204},
		"length not reached":       {ok + "Content-Length: 3\r\n\r\nab", nil, fixtures.EndTruncate, 200},
		"no last chunk":            {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", nil, fixtures.EndTruncate, 200},
		"inside a chunk":           {ok + "Transfer-Encoding: chunked\r\n\r\n9\r\nab", nil, fixtures.EndTruncate, 200},
		"closed without an answer": {"", nil, fixtures.EndTruncate, 0},
		"closed inside the head":   {ok + "Content-Length: 2\r\n", nil, fixtures.EndTruncate, 0},
		"reset without an answer":  {"", reset, fixtures.EndReset, 0},
		"another protocol":         {"SSH-2.0-OpenSSH_9.2\r\n\r\n", nil, fixtures.EndMalformed, 0},
		"bad status":               {"HTTP/1.1 abc\r\n\r\n", nil, fixtures.EndMalformed, 0},
		"bad header":               {ok + "no colon here\r\n\r\n", nil, fixtures.EndMalformed, 0},
		"bad length":               {ok + "Content-Length: two\r\n\r\nab", nil, fixtures.EndMalformed, 0},
		"bad chunk size":           {ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", nil, fixtures.EndMalformed, 200},
		"endless head":             {ok + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 3000), nil, fixtures.EndTooLarge, 0},
		"endless header in a line": {ok + "X-A: " + strings.Repeat("a", 3<<20), nil, fixtures.EndTooLarge, 0},
		"endless status line":      {strings.Repeat("a", 3<<20), nil, fixtures.EndTooLarge, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			x := newClient(t, client.Options{BaseURL: raw(t, c.text, c.end)}).Do(background, post("x"))
			g.Expect(x.End.Kind).To(Equal(c.kind), x.End.Error)
			g.Expect(x.End.Error == "").To(Equal(c.kind == fixtures.EndClose), x.End.Error)
			g.Expect(len(x.End.Error)).To(BeNumerically("<", 600))
			g.Expect(x.Connection).NotTo(BeNil())
			if c.status == 0 {
				g.Expect(x.Response).To(BeNil())
				return
			}
			g.Expect(x.Response.Status).To(Equal(c.status))
			if c.kind == fixtures.EndClose && c.status == 200 || c.kind == fixtures.EndTruncate {
				g.Expect(body(x)).To(Equal("ab"))
			}
		})
	}
}

func TestAResetInAStreamKeepsWhatCameBefore(t *testing.T) {
	g := NewWithT(t)
	got := make(chan struct{})
	url := raw(t, head+token, func(c *net.TCPConn) { <-got; c.SetLinger(0) })
	call := post("x")
	call.Watcher = pieceFunc(func([]byte) { close(got) })
	x := newClient(t, client.Options{BaseURL: url}).Do(background, call)
	g.Expect(x.End.Kind).To(Equal(fixtures.EndReset), x.End.Error)
	g.Expect(body(x)).To(Equal(token))
}

type pieceFunc func([]byte)

func (f pieceFunc) Piece(_ time.Duration, b []byte) client.Signal { f(b); return client.Signal{} }

func TestAServerThatIsNotThereIsRefused(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.Close()).To(Succeed())
	x := newClient(t, client.Options{BaseURL: "http://" + l.Addr().String()}).Do(background, post("x"))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndRefused), x.End.Error)
	g.Expect(x.Connection).To(BeNil())
	g.Expect(x.Response).To(BeNil())
}

func TestAServerWithoutTLSIsRefusedOverHTTPS(t *testing.T) {
	g := NewWithT(t)
	url := listen(t, func(c net.Conn) { c.Write([]byte("HTTP/1.0 400 Bad Request\r\n\r\n")) })
	x := newClient(t, client.Options{BaseURL: strings.Replace(url, "http:", "https:", 1)}).Do(background, post("x"))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndRefused), x.End.Error)
}

func TestAConnectionIsReusedAndItsCostIsNotCountedTwice(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("http2=", http2), func(t *testing.T) {
			g := NewWithT(t)
			url := serve(t, http2, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) })
			c := newClient(t, client.Options{BaseURL: url, HTTP2: http2})
			first, second := c.Do(background, post("a")), c.Do(background, post("b"))
			protocol := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]
			for _, x := range []*fixtures.Exchange{first, second} {
				g.Expect(x.End.Kind).To(Equal(fixtures.EndClose), x.End.Error)
				g.Expect(body(x)).To(Equal(protocol))
				g.Expect(x.Connection.Protocol).To(Equal(protocol))
			}
			g.Expect(first.Connection.Reused).To(BeFalse())
			g.Expect(first.Connection.Connect).NotTo(BeNil())
			g.Expect(first.Connection.Wait).To(BeNumerically(">=", *first.Connection.Connect))
			g.Expect(first.Connection.TLS).To(BeNil())
			g.Expect(second.Connection.Reused).To(BeTrue())
			g.Expect(second.Connection.Connect).To(BeNil())
			g.Expect(second.SinceStart).To(BeNumerically(">", first.SinceStart))
		})
	}
}

func TestTheTLSHandshakeIsTimedAndHTTP2IsNegotiated(t *testing.T) {
	g := NewWithT(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := newClient(t, client.Options{BaseURL: s.URL, Transport: s.Client().Transport})
	x := c.Do(background, post("x"))
	g.Expect(body(x)).To(Equal("HTTP/2.0"))
	g.Expect(x.Connection.TLS).To(HaveValue(BeNumerically(">", 0)))
}

func TestAnHTTP2StreamEndsInTheSameWords(t *testing.T) {
	g := NewWithT(t)
	url := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "ab")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	c := newClient(t, client.Options{BaseURL: url, HTTP2: true})
	x := c.Do(background, post("x"))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndReset), x.End.Error)

	x = newClient(t, client.Options{BaseURL: raw(t, "HTTP/1.1 400 Bad Request\r\n\r\n", hear), HTTP2: true}).Do(background, post("x"))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndMalformed), x.End.Error)
}

func TestRequestsRunSideBySide(t *testing.T) {
	g := NewWithT(t)
	const n = 8
	var all sync.WaitGroup
	all.Add(n)
	url := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		all.Done()
		all.Wait() // answers only once every request is here
		fmt.Fprint(w, r.Header.Get("X-Name"))
	})
	c := newClient(t, client.Options{BaseURL: url})
	got := make([]*fixtures.Exchange, n)
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			call := post(fmt.Sprint(i))
			call.Header = http.Header{"X-Name": {fmt.Sprint(i)}}
			got[i] = c.Do(background, call)
		})
	}
	calls.Wait()
	for i, x := range got {
		g.Expect(body(x)).To(Equal(fmt.Sprint(i)))
	}
}

func TestEveryConnectionOfABurstIsKept(t *testing.T) {
	g := NewWithT(t)
	const n = 300
	var all sync.WaitGroup
	url := serve(t, false, func(http.ResponseWriter, *http.Request) { all.Done(); all.Wait() })
	c := newClient(t, client.Options{BaseURL: url})
	for _, reused := range []bool{false, true} {
		all.Add(n)
		got := make([]*fixtures.Exchange, n)
		var calls sync.WaitGroup
		for i := range n {
			calls.Go(func() { got[i] = c.Do(background, post(fmt.Sprint(i))) })
		}
		calls.Wait()
		for _, x := range got {
			g.Expect(x.Whole()).To(BeTrue(), x.End.Error)
			g.Expect(x.Connection.Reused).To(Equal(reused))
		}
	}
}

func TestABodyWithoutEndIsCutAtTheCapAndMemoryStaysBounded(t *testing.T) {
	g := NewWithT(t)
	block := []byte(strings.Repeat("x", 64<<10)) // one line of a gigabyte, were it let
	url := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		for range 1 << 30 / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	c := newClient(t, client.Options{BaseURL: url})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x := c.Do(background, post("x"))
	runtime.ReadMemStats(&after)
	g.Expect(x.End.Kind).To(Equal(fixtures.EndTooLarge))
	g.Expect(x.End.Error).To(ContainSubstring("longer than 67108864 bytes"))
	g.Expect(x.Size()).To(Equal(1 << 20))
	g.Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", client.DefaultMaxBody+16<<20))

	runtime.GC()
	runtime.ReadMemStats(&after)
	g.Expect(after.HeapAlloc).To(BeNumerically("<", before.HeapAlloc+8<<20), "what is over the cap is let go")
	g.Expect(x.Pieces).NotTo(BeEmpty())

	x = c.Do(background, post("y"))
	g.Expect(x.Connection.Reused).To(BeFalse(), "the connection of a reply that was cut")
}

func TestABodyAtTheCapIsWhole(t *testing.T) {
	g := NewWithT(t)
	for size, kind := range map[int]fixtures.EndKind{100: fixtures.EndClose, 101: fixtures.EndTooLarge} {
		c := newClient(t, client.Options{Transport: reply(strings.NewReader(strings.Repeat("a", size))), MaxBody: 100})
		x := c.Do(background, post("x"))
		g.Expect(x.End.Kind).To(Equal(kind))
		g.Expect(x.Size()).To(Equal(100))
	}
}

func TestABodyOfTooManyReadsIsCut(t *testing.T) {
	g := NewWithT(t)
	x := newClient(t, client.Options{Transport: reply(oneByte{})}).Do(background, post("x"))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndTooLarge))
	g.Expect(x.End.Error).To(ContainSubstring("reads"))
}

// oneByte is a body without end that comes byte by byte.
type oneByte struct{}

func (oneByte) Read(b []byte) (int, error) { b[0] = 'x'; return 1, nil }

// hear reads what the client still sends, so that closing the socket does not reset it.
func hear(c *net.TCPConn) { io.Copy(io.Discard, c) }

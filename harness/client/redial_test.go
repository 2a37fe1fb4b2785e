package client_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/client"
)

const kept = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// turns serves connections side by side on a real socket. The n-th request of the m-th connection is answered with
// script[m][n], raw; a connection without a further answer is closed, after end, once its next request has been read. It
// returns the base URL and, for a look at the end, the bodies of the requests by connection. Each answer waits for ready.
func turns(t *testing.T, end func(*net.TCPConn), ready func(), script ...[]string) (string, func() [][]string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var (
		mu    sync.Mutex
		heard [][]string
		open  sync.WaitGroup
	)
	serve := func(conn net.Conn, m int) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		for n := 0; ; n++ {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(req.Body)
			mu.Lock()
			heard[m] = append(heard[m], string(body))
			mu.Unlock()
			if m >= len(script) || n >= len(script[m]) {
				if end != nil {
					end(conn.(*net.TCPConn))
				}
				return
			}
			if ready != nil {
				ready()
			}
			io.WriteString(conn, script[m][n])
		}
	}
	open.Go(func() {
		for m := 0; ; m++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			heard = append(heard, nil)
			mu.Unlock()
			open.Go(func() { serve(conn, m) })
		}
	})
	t.Cleanup(open.Wait)
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String(), func() [][]string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(heard)
	}
}

func numbered(n int) client.Call {
	call := post(fmt.Sprint(n))
	call.Body = fmt.Append(nil, n)
	return call
}

func TestARequestOnAKeptConnectionThatTheServerClosedIsSentOnceMoreOnANewOne(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn){
		"closed": nil,
		"reset":  func(c *net.TCPConn) { c.SetLinger(0) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			url, heard := turns(t, end, nil, []string{kept}, []string{kept})
			c := newClient(t, client.Options{BaseURL: url})
			first, second := c.Do(background, numbered(1)), c.Do(background, numbered(2))
			g.Expect(first.Connection.Redialed).To(BeFalse())
			g.Expect(second.End.Kind).To(Equal(fixtures.EndClose), second.End.Error)
			g.Expect(body(second)).To(Equal("ok"))
			g.Expect(second.Connection.Redialed).To(BeTrue())
			g.Expect(second.Connection.Reused).To(BeFalse())
			g.Expect(second.Connection.Connect).NotTo(BeNil(), "the new connection's own cost")
			g.Expect(second.Connection.Wait).To(BeNumerically(">", *second.Connection.Connect))
			g.Expect(heard()).To(Equal([][]string{{"1", "2"}, {"2"}}))
		})
	}
}

func TestARequestIsNeverSentAThirdTime(t *testing.T) {
	g := NewWithT(t)
	url, heard := turns(t, nil, nil, []string{kept})
	c := newClient(t, client.Options{BaseURL: url})
	c.Do(background, numbered(1))
	x := c.Do(background, numbered(2))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndTruncate), x.End.Error)
	g.Expect(x.Connection.Redialed).To(BeTrue())
	g.Expect(x.Connection.Reused).To(BeFalse())
	g.Expect(heard()).To(Equal([][]string{{"1", "2"}, {"2"}}))
}

func TestTheNewConnectionIsNotAnotherKeptOne(t *testing.T) {
	g := NewWithT(t)
	var both sync.WaitGroup // two requests are there at once, so that two connections are kept
	both.Add(2)
	var arrived atomic.Int32
	ready := func() {
		if arrived.Add(1) <= 2 {
			both.Done()
			both.Wait()
		}
	}
	url, heard := turns(t, nil, ready, []string{kept}, []string{kept}, []string{kept})
	c := newClient(t, client.Options{BaseURL: url})
	var side sync.WaitGroup
	for n := range 2 {
		side.Go(func() { c.Do(background, numbered(n)) })
	}
	side.Wait()
	x := c.Do(background, numbered(3))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndClose), x.End.Error)
	g.Expect(x.Connection.Redialed).To(BeTrue())
	g.Expect(heard()).To(HaveLen(3))
	g.Expect(heard()[2]).To(Equal([]string{"3"}))
}

func TestARequestOnAFreshConnectionIsNotSentAgain(t *testing.T) {
	g := NewWithT(t)
	url, heard := turns(t, nil, nil)
	x := newClient(t, client.Options{BaseURL: url}).Do(background, numbered(1))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndTruncate), x.End.Error)
	g.Expect(x.Connection.Redialed).To(BeFalse())
	g.Expect(heard()).To(Equal([][]string{{"1"}}))
}

func TestARequestThatGotAByteIsNotSentAgain(t *testing.T) {
	for _, part := range []string{"H", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", strings.TrimSuffix(kept, "k"), "SSH-2.0\r\n\r\n"} {
		t.Run(part, func(t *testing.T) {
			g := NewWithT(t)
			var requests atomic.Int32
			url := listen(t, func(conn net.Conn) {
				in := bufio.NewReader(conn)
				for _, answer := range []string{kept, part} {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					requests.Add(1)
					io.Copy(io.Discard, req.Body)
					io.WriteString(conn, answer)
				}
			})
			c := newClient(t, client.Options{BaseURL: url})
			c.Do(background, numbered(1))
			x := c.Do(background, numbered(2))
			g.Expect(x.End.Kind).NotTo(Equal(fixtures.EndClose))
			g.Expect(x.Connection.Reused).To(BeTrue())
			g.Expect(x.Connection.Redialed).To(BeFalse())
			g.Expect(requests.Load()).To(BeEquivalentTo(2))
		})
	}
}

func TestAServerThatIsGoneAfterItClosedTheKeptConnectionIsToldAsBoth(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	var server sync.WaitGroup
	server.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		req, _ := http.ReadRequest(in)
		io.Copy(io.Discard, req.Body)
		l.Close()
		io.WriteString(conn, kept)
		req, _ = http.ReadRequest(in)
		io.Copy(io.Discard, req.Body)
	})
	c := newClient(t, client.Options{BaseURL: "http://" + l.Addr().String()})
	c.Do(background, numbered(1))
	x := c.Do(background, numbered(2))
	server.Wait()
	g.Expect(x.End.Kind).To(Equal(fixtures.EndRefused))
	g.Expect(x.End.Error).To(ContainSubstring("the server had closed the kept connection"))
	g.Expect(x.End.Error).To(ContainSubstring("connection refused"))
	g.Expect(x.Connection).To(BeNil())
}

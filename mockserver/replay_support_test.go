package mockserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"plumbline/fixtures"
)

// embeddedCases reads every case that comes with the program.
func embeddedCases(t *testing.T) []*fixtures.Case {
	t.Helper()
	names, err := fs.Glob(fixtures.Cases(), "*.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []*fixtures.Case
	for _, name := range names {
		f, err := fixtures.Cases().Open(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := fixtures.ReadCase(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// replay serves replays on a real socket for one test, which must leave no goroutine behind.
func replay(t *testing.T, opts ReplayOptions) *Replayer {
	t.Helper()
	before := gleak.Goroutines()
	p, err := StartReplay(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g := NewWithT(t)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		g.Expect(p.Close(ctx)).To(Succeed())
		g.Eventually(gleak.Goroutines).WithTimeout(30 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	})
	return p
}

// wire is a client that reads nothing into what it gets.
type wire struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, p *Replayer) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", p.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{t, conn, bufio.NewReader(conn)}
}

// send writes a request; name, when not "", goes into the header that names a replay.
func (w *wire) send(method, path, name, body string, headers ...string) {
	w.t.Helper()
	if name != "" {
		headers = append(headers, CaseHeader+": "+name)
	}
	_, err := fmt.Fprintf(w.conn, "%s %s HTTP/1.1\r\nHost: plumbline\r\nContent-Length: %d\r\n%s\r\n%s",
		method, path, len(body), strings.Join(append(headers, ""), "\r\n"), body)
	if err != nil {
		w.t.Fatal(err)
	}
}

// head reads a head and returns its first line and its other lines.
func (w *wire) head() (string, []string) {
	w.t.Helper()
	var all []string
	for {
		line, err := w.in.ReadString('\n')
		if err != nil {
			w.t.Fatalf("read the head after %q: %v", all, err)
		}
		line, ok := strings.CutSuffix(line, "\r\n")
		if !ok {
			w.t.Fatalf("want lines that end in CR LF, got %q", line)
		}
		if line == "" {
			return all[0], all[1:]
		}
		all = append(all, line)
	}
}

// chunk reads a chunk; the error is io.EOF after the last one, and that of the connection where the body is cut.
func (w *wire) chunk() (string, error) {
	size, err := w.in.ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", err
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(size, "\r\n"), 16, 31)
	if err != nil {
		w.t.Fatalf("want the size of a chunk, got %q", size)
	}
	data := make([]byte, n+2)
	if _, err := io.ReadFull(w.in, data); err != nil {
		return "", err
	}
	if string(data[n:]) != "\r\n" {
		w.t.Fatalf("want CR LF after %d bytes, got %q", n, data[n:])
	}
	if n == 0 {
		return "", io.EOF
	}
	return string(data[:n]), nil
}

// sized reads a body whose length the head states.
func (w *wire) sized(head []string) string {
	w.t.Helper()
	for _, line := range head {
		if length, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			n, err := strconv.Atoi(length)
			if err != nil {
				w.t.Fatal(err)
			}
			data := make([]byte, n)
			if _, err := io.ReadFull(w.in, data); err != nil {
				w.t.Fatal(err)
			}
			return string(data)
		}
	}
	w.t.Fatalf("want a Content-Length, got %q", head)
	return ""
}

// asked sends a request and returns the status line and the body of the sized answer.
func (w *wire) asked(method, path, name, body string) (string, string) {
	w.t.Helper()
	w.send(method, path, name, body)
	status, head := w.head()
	return status, w.sized(head)
}

// text reads the body of a chunked response.
func (w *wire) text() (string, error) {
	var all strings.Builder
	for {
		part, err := w.chunk()
		if errors.Is(err, io.EOF) {
			return all.String(), nil
		}
		if err != nil {
			return all.String(), err
		}
		all.WriteString(part)
	}
}

// pipes is a listener whose connections are in memory, for virtual time.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// inMemory serves replays without a socket. stop must be called before the test's bubble ends.
func inMemory(t *testing.T, opts ReplayOptions) (client func() *wire, stop func()) {
	t.Helper()
	p, err := newReplayer(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	p.start(t.Context(), l)
	client = func() *wire {
		ours, theirs := net.Pipe()
		l.conns <- theirs
		return &wire{t, ours, bufio.NewReader(ours)}
	}
	return client, func() {
		p.unhook()
		p.cutOff()
		p.running.Wait()
	}
}

// scripted is a replay that is found by its name.
func scripted(name string, s fixtures.Script) fixtures.Replay {
	return fixtures.Replay{Name: name, Case: name, AnyBody: true, Request: fixtures.Request{Method: "POST", Path: "/v1/chat/completions"}, Script: s}
}

// step is one write of a script.
func step(after time.Duration, bytes string) fixtures.ScriptStep {
	return fixtures.ScriptStep{After: after, Bytes: []byte(bytes)}
}

// recordedFile is the file of recorded exchanges that the readers are held to.
func recordedFile(t *testing.T) []fixtures.Exchange {
	t.Helper()
	f, err := os.Open("../fixtures/recorded/llamacpp-b10573.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := fixtures.ReadExchanges(f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

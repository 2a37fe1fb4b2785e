package client_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"plumbline/fixtures"
	"plumbline/harness/client"

	. "github.com/onsi/gomega"
)

// watch reports a data event for each blank line that ends a "data:" block, a token once an event holds "tok", and the
// end once one is the end marker.
type watch struct {
	rest  []byte
	token bool
	done  bool
	seen  []time.Duration
}

func (w *watch) Piece(at time.Duration, b []byte) client.Signal {
	w.seen = append(w.seen, at)
	w.rest = append(w.rest, b...)
	var s client.Signal
	for {
		event, rest, ok := bytes.Cut(w.rest, []byte("\n\n"))
		if !ok {
			break
		}
		w.rest = bytes.Clone(rest)
		s.Data = s.Data || bytes.HasPrefix(event, []byte("data:"))
		w.token = w.token || bytes.Contains(event, []byte("tok"))
		w.done = w.done || string(event) == "data: [DONE]"
	}
	s.Token, s.Done = w.token, w.done
	return s
}

func newClient(t testing.TB, o client.Options) *client.Client {
	t.Helper()
	if o.BaseURL == "" {
		o.BaseURL = "http://server.test"
	}
	c, err := client.New(o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(c.Close)
	return c
}

func post(id string) client.Call {
	return client.Call{ID: id, Method: "POST", Path: "/v1/chat/completions", Body: []byte(`{"stream":true}`)}
}

func body(x *fixtures.Exchange) string {
	var b strings.Builder
	for _, p := range x.Pieces {
		b.Write(p.Bytes)
	}
	return b.String()
}

// listen serves one connection after the other with serve, on a real socket, and returns the base URL.
func listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// transportFunc is a RoundTripper in memory.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func reply(body io.Reader) transportFunc {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Proto: "HTTP/1.1", Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
	}
}

// parts is a body that comes in the given reads.
type parts []string

func (p *parts) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; (*p)[0] == "" {
		*p = (*p)[1:]
	}
	return n, nil
}

var background = context.Background()

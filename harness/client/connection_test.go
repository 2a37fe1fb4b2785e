package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/client"
)

// oneConnection connects once, to a server that takes a second to answer each request; later dials look the name up
// and then take an hour.
func oneConnection(t *testing.T) *http.Transport {
	dials := 0
	var server sync.WaitGroup
	t.Cleanup(server.Wait)
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		trace := httptrace.ContextClientTrace(ctx)
		trace.DNSStart(httptrace.DNSStartInfo{})
		time.Sleep(time.Millisecond)
		trace.DNSDone(httptrace.DNSDoneInfo{})
		if dials++; dials > 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ours, theirs := net.Pipe()
		server.Go(func() {
			defer theirs.Close()
			in := bufio.NewReader(theirs)
			for {
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				io.Copy(io.Discard, req.Body)
				time.Sleep(time.Second)
				fmt.Fprint(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		return ours, nil
	}}
}

func TestAConnectionThatComesFreeIsNotChargedWithTheDialItSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newClient(t, client.Options{Transport: oneConnection(t)})
		var first, second *fixtures.Exchange
		var calls sync.WaitGroup
		calls.Go(func() { first = c.Do(background, post("a")) })
		calls.Go(func() {
			time.Sleep(500 * time.Millisecond)
			second = c.Do(background, post("b"))
		})
		calls.Wait()
		g.Expect(first.Connection).To(HaveValue(Equal(fixtures.Connection{Protocol: "HTTP/1.1", Wait: time.Millisecond,
			DNS: new(time.Millisecond)})))
		g.Expect(second.Connection).To(HaveValue(Equal(fixtures.Connection{Protocol: "HTTP/1.1", Reused: true,
			Wait: 501 * time.Millisecond})))
		g.Expect(second.End).To(Equal(fixtures.End{Kind: fixtures.EndClose, At: time.Second}), "the wait is not in it")
		g.Expect(second.SinceStart).To(Equal(1001 * time.Millisecond))
	})
}

type closing struct {
	io.Reader
	closed *bool
}

func (c closing) Close() error { *c.closed = true; return nil }

func TestTheBodyIsAlwaysClosed(t *testing.T) {
	for _, maxBody := range []int64{2, 0} { // cut, and whole
		closed := false
		c := newClient(t, client.Options{MaxBody: maxBody, Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: closing{strings.NewReader("text"), &closed}, Request: r}, nil
		})})
		x := c.Do(background, post("x"))
		NewWithT(t).Expect(closed).To(BeTrue(), string(x.End.Kind))
		NewWithT(t).Expect(x.Response.Header).To(BeEmpty())
	}
}

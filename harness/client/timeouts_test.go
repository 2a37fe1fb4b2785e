package client_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/client"
)

const (
	head  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	role  = "data: role\n\n"
	token = "data: tok\n\n"
	ping  = ": ping\n\n"
	done  = "data: [DONE]\n\n"
)

// step is what a server writes after a wait.
type step struct {
	after time.Duration
	text  string
}

func steps(n int, s step) []step {
	var all []step
	for range n {
		all = append(all, s)
	}
	return all
}

// piped is a transport whose connections are pipes to a server that reads a request, writes its steps and closes, or
// hangs until the client leaves. Connecting takes the given time.
func piped(t *testing.T, connect time.Duration, script []step, hang bool) *http.Transport {
	var servers sync.WaitGroup
	t.Cleanup(servers.Wait) // virtual time stands still once the test has returned
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case <-time.After(connect):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		ours, theirs := net.Pipe()
		servers.Go(func() {
			defer theirs.Close()
			in := bufio.NewReader(theirs)
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := in.Discard(int(req.ContentLength)); err != nil {
				return
			}
			for _, s := range script {
				time.Sleep(s.after)
				if _, err := theirs.Write([]byte(s.text)); err != nil {
					return
				}
			}
			if hang {
				in.ReadByte()
			}
		})
		return ours, nil
	}}
}

func TestEachTimeoutEndsTheExchangeAtItsOwnMoment(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		limits    client.Timeouts
		connect   time.Duration
		script    []step
		unwatched bool
		kind      fixtures.EndKind
		at        time.Duration
		says      string
		pieces    int
	}{
		"no connection": {
			limits:  client.Timeouts{Connect: 2 * time.Second, FirstByte: time.Second, Total: time.Minute},
			connect: time.Hour,
			kind:    fixtures.EndConnectTimeout, at: 2 * time.Second, says: "connect time-out of 2s",
		},
		"no connection, bounded by the total only": {
			limits:  client.Timeouts{Total: 3 * time.Second},
			connect: time.Hour,
			kind:    fixtures.EndTotal, at: 3 * time.Second, says: "total time-out of 3s",
		},
		"a slow connection takes nothing from the other limits": {
			limits:  client.Timeouts{Connect: 20 * time.Second, FirstByte: 800 * ms, Total: 900 * ms},
			connect: 700 * ms,
			script:  []step{{}},
			kind:    fixtures.EndFirstByte, at: 800 * ms, says: "first-byte time-out of 800ms",
		},
		"nothing at all": {
			limits: client.Timeouts{FirstByte: 800 * ms, Idle: 700 * ms, Total: 3 * time.Second},
			kind:   fixtures.EndFirstByte, at: 800 * ms, says: "first-byte time-out of 800ms",
		},
		"a head and nothing more": {
			limits: client.Timeouts{FirstByte: 800 * ms, Idle: 700 * ms, Total: 3 * time.Second},
			script: []step{{10 * ms, head}},
			kind:   fixtures.EndFirstByte, at: 800 * ms, says: "first-byte time-out of 800ms",
		},
		"pings and no token": {
			limits: client.Timeouts{FirstByte: time.Second, FirstToken: 5 * time.Second, Idle: 2 * time.Second},
			script: append([]step{{0, head}, {10 * ms, role}}, steps(100, step{time.Second, ping})...),
			kind:   fixtures.EndFirstToken, at: 5 * time.Second, says: "first-token time-out of 5s", pieces: 5,
		},
		"silence after the role": {
			limits: client.Timeouts{FirstToken: 50 * time.Second, Idle: 2 * time.Second},
			script: []step{{0, head}, {10 * ms, role}},
			kind:   fixtures.EndIdle, at: 2010 * ms, says: "idle time-out of 2s", pieces: 1,
		},
		"pings after a token": {
			limits: client.Timeouts{FirstToken: time.Second, Idle: time.Second, Total: 6 * time.Second},
			script: append([]step{{0, head}, {60 * ms, role + token}, {40 * ms, token}}, steps(99, step{150 * ms, ping})...),
			kind:   fixtures.EndIdle, at: 1100 * ms, says: "idle time-out of 1s", pieces: 8,
		},
		"half a line after a token": {
			limits: client.Timeouts{Idle: 800 * ms, Total: 4 * time.Second},
			script: []step{{0, head}, {60 * ms, token}, {40 * ms, "data: {"}},
			kind:   fixtures.EndIdle, at: 860 * ms, says: "idle time-out of 800ms", pieces: 2,
		},
		"two bytes at a time": {
			limits: client.Timeouts{Idle: time.Second, Total: 8 * time.Second},
			script: append([]step{{0, head}, {60 * ms, token}}, steps(99, step{110 * ms, "xx"})...),
			kind:   fixtures.EndIdle, at: 1060 * ms, says: "idle time-out of 1s", pieces: 10,
		},
		"bytes without a watcher": {
			limits:    client.Timeouts{FirstToken: time.Second, Idle: time.Second},
			script:    append([]step{{0, head}}, steps(20, step{900 * ms, "x"})...),
			unwatched: true,
			kind:      fixtures.EndIdle, at: 19 * time.Second, says: "idle time-out of 1s", pieces: 20,
		},
		"open after the end marker": {
			limits: client.Timeouts{FirstByte: time.Minute, FirstToken: time.Minute, Idle: 6 * time.Minute, Total: time.Hour},
			script: []step{{0, head}, {60 * ms, token}, {40 * ms, done}},
			kind:   fixtures.EndIdle, at: 2100 * ms, says: "left open after its end marker", pieces: 2,
		},
		"open after an end marker without a token": {
			limits: client.Timeouts{FirstToken: time.Minute},
			script: []step{{0, head}, {60 * ms, done}},
			kind:   fixtures.EndIdle, at: 2060 * ms, says: "left open after its end marker", pieces: 1,
		},
		"tokens after the end marker": {
			limits: client.Timeouts{Idle: 6 * time.Minute},
			script: append([]step{{0, head}, {0, done}}, steps(99, step{300 * ms, done})...),
			kind:   fixtures.EndIdle, at: 2 * time.Second, says: "left open after its end marker", pieces: 7,
		},
		"a shorter idle time-out holds after the end marker too": {
			limits: client.Timeouts{Idle: time.Second},
			script: []step{{0, head}, {60 * ms, token + done}},
			kind:   fixtures.EndIdle, at: 1060 * ms, says: "idle time-out of 1s", pieces: 1,
		},
		"tokens for ever": {
			limits: client.Timeouts{FirstByte: time.Second, FirstToken: time.Second, Idle: time.Second, Total: 10 * time.Second},
			script: append([]step{{0, head}}, steps(99, step{300 * ms, token})...),
			kind:   fixtures.EndTotal, at: 10 * time.Second, says: "total time-out of 10s", pieces: 33,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				cl := newClient(t, client.Options{Transport: piped(t, c.connect, c.script, true)})
				call := post("x")
				call.Timeouts = &c.limits
				if !c.unwatched {
					call.Watcher = &watch{}
				}
				x := cl.Do(background, call)
				g.Expect(x.End.Kind).To(Equal(c.kind), x.End.Error)
				g.Expect(x.End.At).To(Equal(c.at))
				g.Expect(x.End.Error).To(ContainSubstring(c.says))
				g.Expect(x.Pieces).To(HaveLen(c.pieces))
			})
		})
	}
}

func TestAPatientRequestGetsEveryTokenAtItsOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		script := []step{{0, head}, {time.Second, role}}
		script = append(script, steps(26, step{time.Second, ping})...)
		script = append(script, steps(50, step{20 * time.Millisecond, token})...)
		epoch := time.Now()
		time.Sleep(5 * time.Second)
		cl := newClient(t, client.Options{Transport: piped(t, 30*time.Millisecond, script, false), Epoch: epoch})
		w := &watch{}
		call := post("x")
		call.Watcher = w
		call.Timeouts = &client.Timeouts{Connect: time.Second, FirstByte: 2 * time.Second, FirstToken: 28 * time.Second,
			Idle: 2 * time.Second, Total: time.Minute}
		x := cl.Do(background, call)

		g.Expect(x.End).To(Equal(fixtures.End{Kind: fixtures.EndClose, At: 28 * time.Second}))
		g.Expect(x.SinceStart).To(Equal(5*time.Second + 30*time.Millisecond))
		g.Expect(x.StartedAt).To(BeTemporally("==", epoch.Add(x.SinceStart)))
		g.Expect(x.Connection.Wait).To(Equal(30 * time.Millisecond))
		g.Expect(x.Response.At).To(BeZero())
		g.Expect(x.Pieces).To(HaveLen(77))
		var offsets []time.Duration
		for i, p := range x.Pieces {
			want := time.Duration(min(i, 26)+1)*time.Second + time.Duration(max(i-26, 0))*20*time.Millisecond
			g.Expect(p.At).To(Equal(want), "piece %d", i)
			offsets = append(offsets, p.At)
		}
		g.Expect(w.seen).To(Equal(offsets))
	})
}

func TestAStreamThatEndsSoonAfterItsEndMarkerIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		script := []step{{0, head}, {0, token}, {time.Second, done}, {1900 * time.Millisecond, ping}}
		call := post("x")
		call.Watcher = &watch{}
		x := newClient(t, client.Options{Transport: piped(t, 0, script, false)}).Do(background, call)
		g.Expect(x.End).To(Equal(fixtures.End{Kind: fixtures.EndClose, At: 2900 * time.Millisecond}))
		g.Expect(body(x)).To(Equal(token + done + ping))
	})
}

func TestACanceledCallSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cl := newClient(t, client.Options{Transport: piped(t, 0, []step{{0, head}, {time.Second, token}}, true)})
		ctx, cancel := context.WithCancelCause(background)
		time.AfterFunc(3*time.Second, func() { cancel(errors.New("interrupt")) })
		x := cl.Do(ctx, post("x"))
		g.Expect(x.End).To(Equal(fixtures.End{Kind: fixtures.EndCanceled, At: 3 * time.Second, Error: "canceled: interrupt"}))
		g.Expect(body(x)).To(Equal(token))

		x = cl.Do(ctx, post("y"))
		g.Expect(x.End.Kind).To(Equal(fixtures.EndCanceled), "a call after the cancellation")
		g.Expect(x.Response).To(BeNil())
	})
}

func TestAConnectionThatWasCutIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		chunked := strings.Replace(head, "\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n", 1)
		cl := newClient(t, client.Options{Transport: piped(t, 0, []step{{0, chunked}, {time.Second, "1\r\nx\r\n"}}, true)})
		call := post("x")
		call.Timeouts = &client.Timeouts{Total: 2 * time.Second}
		for range 2 {
			x := cl.Do(background, call)
			g.Expect(x.End.Kind).To(Equal(fixtures.EndTotal))
			g.Expect(x.Connection.Reused).To(BeFalse())
			synctest.Wait()
		}
	})
}

func TestABodyThatKnowsNoContextIsCutAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ours, theirs := net.Pipe()
		defer theirs.Close()
		cl := newClient(t, client.Options{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: ours, Request: r}, nil
		})})
		call := post("x")
		call.Timeouts = &client.Timeouts{FirstByte: time.Second}
		x := cl.Do(background, call)
		g.Expect(x.End.Kind).To(Equal(fixtures.EndFirstByte))
		g.Expect(x.End.At).To(Equal(time.Second))
		g.Expect(x.Connection).To(BeNil())
	})
}

package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func problem(err error) Problem {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Problem
	}
	return ""
}

const key = "sk-topsecret"

func TestEachKindOfWrongServerIsToldApart(t *testing.T) {
	plain := always(t, 200, nil, `{"data":[]}`)
	secure := httptest.NewUnstartedServer(plain.Config.Handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it is right to complain, but not here
	secure.StartTLS()
	t.Cleanup(secure.Close)
	gone := always(t, 200, nil, "")
	gone.Close()
	cases := []struct {
		name    string
		url     string
		problem Problem
		words   []string
	}{
		{"nothing listens", gone.URL, Unreachable, []string{"refused", "--url"}},
		{"TLS asked of a plain server", strings.Replace(plain.URL, "http:", "https:", 1), NotHTTP, []string{"http://"}},
		{"certificate of nobody", secure.URL, Unreachable, []string{"certificate"}},
		{"plain asked of a TLS server", strings.Replace(secure.URL, "https:", "http:", 1), NotOurs, []string{"400"}},
		{"another protocol", rawServer(t, "SSH-2.0-OpenSSH_9.6\r\n"), NotHTTP, []string{"does not speak HTTP"}},
		{"closed without a word", rawServer(t, ""), NoAnswer, []string{"without an answer"}},
		{"a page", always(t, 200, map[string]string{"Content-Type": "text/html"}, "<html>").URL, NotOurs, []string{"not JSON", "text/html"}},
		{"other JSON", always(t, 200, nil, `{"data":{}}`).URL, NotOurs, []string{`"data"`}},
		{"no such path", always(t, 404, nil, `{"error":{"message":"File Not Found"}}`).URL, NotOurs, []string{"404", "File Not Found", "without /v1"}},
		{"an answer without end", always(t, 200, nil, `{"data":[`+strings.Repeat(" ", maxAnswer)+"]}").URL, NoAnswer, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			facts, err := Ask(t.Context(), c.url, nil, quick)
			g.Expect(problem(err)).To(Equal(c.problem), "%v", err)
			g.Expect(facts).To(Equal(fixtures.EngineFacts{URL: c.url}))
			for _, w := range append(c.words, c.url) {
				g.Expect(err.Error()).To(ContainSubstring(w))
			}
		})
	}
}

// rawServer says one thing to whoever asks, and hangs up.
func rawServer(t *testing.T, text string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			bufio.NewReader(conn).ReadString('\n')
			io.WriteString(conn, text)
			conn.Close()
		}
	}()
	return "http://" + ln.Addr().String()
}

func TestARefusedKeyIsToldFromAMissingOneAndShownInNeither(t *testing.T) {
	g := NewWithT(t)
	f := serve(t, map[string]string{"GET /v1/models": "llama.cpp/B00_v1_models_no_key.http"})
	_, err := Ask(t.Context(), f.URL, nil, quick)
	g.Expect(problem(err)).To(Equal(KeyRefused))
	g.Expect(err).To(MatchError(And(ContainSubstring("wants an API key"), ContainSubstring("--credential-env"))))
	for _, status := range []int{401, 403} {
		echo := always(t, status, nil, `{"error":{"message":"Incorrect API key provided: `+key+`"}}`)
		_, err = Ask(t.Context(), echo.URL, bearer(key), quick)
		g.Expect(problem(err)).To(Equal(KeyRefused))
		g.Expect(err).To(MatchError(And(ContainSubstring("refuses"), Not(ContainSubstring("topsecret")))))
	}
}

func TestAServerThatRepeatsTheKeyDoesNotBringItIntoAMessage(t *testing.T) {
	g := NewWithT(t)
	echo := always(t, 500, nil, `{"error":{"message":"bad header Bearer `+key+` or `+key+`"}}`)
	_, err := Ask(t.Context(), echo.URL, bearer(key), quick)
	g.Expect(err).To(MatchError(And(ContainSubstring("bad header"), Not(ContainSubstring("topsecret")))))
	page := always(t, 200, map[string]string{"Content-Type": "text/" + key}, "<html>")
	_, err = Ask(t.Context(), page.URL, bearer(key), quick)
	g.Expect(err).To(MatchError(And(ContainSubstring("text/[redacted]"), Not(ContainSubstring("topsecret")))))
	_, err = Ask(t.Context(), echo.URL, http.Header{"Authorization": {"Bearer " + key + "\n"}}, quick)
	g.Expect(err).To(HaveOccurred())
	g.Expect(fmt.Sprintf("%v %+v", err, errors.Unwrap(err))).NotTo(ContainSubstring("topsecret"))
}

func TestARedirectIsNotFollowed(t *testing.T) {
	g := NewWithT(t)
	target := serve(t, map[string]string{"GET /v1/models": "vllm/models.json"})
	s := always(t, 307, map[string]string{"Location": target.URL + "/v1/models"}, "")
	_, err := Ask(t.Context(), s.URL, bearer(key), quick)
	g.Expect(problem(err)).To(Equal(NotOurs))
	g.Expect(err).To(MatchError(ContainSubstring("redirects")))
	g.Expect(target.seen).To(BeEmpty(), "the key went to an address that nobody named")
}

// Causes that no test may make on a real network.
func TestCausesOfNoConnectionAreToldApart(t *testing.T) {
	c := newCaller("http://h:1", nil, Options{Connect: 3 * time.Second})
	get := func(err error) error { return &url.Error{Op: "Get", URL: "http://h:1", Err: err} }
	dial := func(err error) error { return get(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	for _, tc := range []struct {
		err     error
		problem Problem
		word    string
	}{
		{dial(&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}), Unreachable, "name is not known"},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), Unreachable, "refused"},
		{dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), Unreachable, "no route"},
		{dial(os.ErrDeadlineExceeded), Unreachable, "within 3s"},
		{get(context.DeadlineExceeded), NoAnswer, "within 10s"},
		{get(io.EOF), NoAnswer, "without an answer"},
	} {
		e := c.transportError(t.Context(), tc.err)
		if e.Problem != tc.problem || !strings.Contains(e.Error(), tc.word) || !errors.Is(e, tc.err) {
			t.Errorf("%v gives %q: %v", tc.err, e.Problem, e)
		}
	}
}

// piped makes a caller whose connections end in talk, on virtual time.
func piped(opts Options, talk func(net.Conn)) *caller {
	c := newCaller("http://engine", nil, opts)
	c.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			if _, err := http.ReadRequest(bufio.NewReader(far)); err == nil {
				talk(far)
			}
		}()
		return near, nil
	}
	return c
}

func silent(conn net.Conn) { io.Copy(io.Discard, conn) }

func TestASilentServerIsGivenUpAtTheEndpointsTimeOut(t *testing.T) {
	for name, head := range map[string]string{"silent": "", "stalled in the body": "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"data\":["} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				c := piped(Options{Endpoint: 7 * time.Second}, func(conn net.Conn) {
					io.WriteString(conn, head)
					silent(conn)
				})
				start := time.Now()
				_, err := c.whenReady(t.Context())
				g.Expect(problem(err)).To(Equal(NoAnswer), "%v", err)
				g.Expect(time.Since(start)).To(Equal(7 * time.Second))
			})
		})
	}
}

func TestAServerThatGoesOnLoadingIsGivenUpAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		asked := 0
		c := piped(Options{Ready: 5 * time.Second, Poll: time.Second}, func(conn net.Conn) {
			asked++
			io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 40\r\n\r\n"+`{"error":{"message":"Loading model"}}    `)
		})
		start := time.Now()
		_, err := c.whenReady(t.Context())
		g.Expect(problem(err)).To(Equal(NotReady))
		g.Expect(err).To(MatchError(And(ContainSubstring("Loading model"), ContainSubstring("5s"))))
		g.Expect(time.Since(start)).To(Equal(5 * time.Second))
		g.Expect(asked).To(Equal(6))
	})
}

func TestLoadingIsInterruptedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		c := piped(Options{Poll: time.Second}, func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
		})
		start := time.Now()
		_, err := c.whenReady(ctx)
		g.Expect(problem(err)).To(Equal(Interrupted))
		g.Expect(time.Since(start)).To(Equal(1500 * time.Millisecond))
	})
}

func TestTheModelIsResolvedAgainstWhatIsServed(t *testing.T) {
	one := fixtures.EngineFacts{URL: "http://h", ServedModels: []string{"a"}, ModelAliases: map[string]string{"nick": "a"}}
	two := fixtures.EngineFacts{URL: "http://h", ServedModels: []string{"a", "b"}}
	for _, c := range []struct {
		facts   fixtures.EngineFacts
		named   string
		want    string
		problem Problem
	}{
		{one, "", "a", ""}, {one, "a", "a", ""}, {one, "nick", "a", ""}, {two, "b", "b", ""},
		{one, "A", "", UnknownModel}, {one, "x", "", UnknownModel}, {two, "nick", "", UnknownModel},
		{two, "", "", NoModelNamed}, {fixtures.EngineFacts{URL: "http://h"}, "", "", NoneServed}, {fixtures.EngineFacts{}, "x", "", NoneServed},
	} {
		got, err := ResolveModel(c.facts, c.named)
		if got != c.want || problem(err) != c.problem {
			t.Errorf("ResolveModel(%v, %q) = %q, %v", c.facts.ServedModels, c.named, got, err)
		}
		if c.problem == UnknownModel || c.problem == NoModelNamed {
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(list(c.facts.ServedModels))))
		}
	}
}

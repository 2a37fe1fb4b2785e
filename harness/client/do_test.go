package client_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/jarcoal/httpmock"
	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/client"
)

func TestAnExchangeRecordsWhatWasSentAndWhatCame(t *testing.T) {
	g := NewWithT(t)
	mock := httpmock.NewMockTransport()
	var sent *http.Request
	mock.RegisterResponder("POST", "http://server.test/v1/chat/completions", func(r *http.Request) (*http.Response, error) {
		sent = r
		resp := httpmock.NewStringResponse(400, `{"error":{}}`)
		resp.Header.Set("X-Request-Id", "7")
		return resp, nil
	})
	c := newClient(t, client.Options{Transport: mock, Header: http.Header{"X-Suite": {"a"}, "X-Both": {"client"}}})
	call := post("one")
	call.Header = http.Header{"x-both": {"call"}}
	x := c.Do(background, call)

	g.Expect(sent.Header).To(Equal(http.Header{"Content-Type": {"application/json"}, "User-Agent": {"plumbline"},
		"X-Suite": {"a"}, "X-Both": {"call"}}))
	g.Expect(x.Format).To(Equal(fixtures.ExchangeFormat))
	g.Expect(x.ID).To(Equal("one"))
	g.Expect(x.Request).To(Equal(fixtures.Request{Method: "POST", Path: "/v1/chat/completions",
		Header: map[string][]string(sent.Header), Body: fixtures.Bytes(`{"stream":true}`)}))
	g.Expect(x.Response.Status).To(Equal(400))
	g.Expect(x.Response.Header).To(HaveKeyWithValue("X-Request-Id", []string{"7"}))
	g.Expect(body(x)).To(Equal(`{"error":{}}`))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndClose))
	g.Expect(x.End.Error).To(BeEmpty())
	g.Expect(x.StartedAt).To(BeTemporally("~", time.Now(), time.Minute))
}

func TestAHeaderOfTheCallWithoutValuesIsNotSent(t *testing.T) {
	g := NewWithT(t)
	mock := httpmock.NewMockTransport()
	mock.RegisterNoResponder(httpmock.NewStringResponder(200, "ok"))
	c := newClient(t, client.Options{Transport: mock, Header: http.Header{"Authorization": {"Bearer secret-key"}}})
	call := post("x")
	call.Header = http.Header{"Content-Type": nil, "Authorization": nil, "Host": {"elsewhere"}}
	x := c.Do(background, call)
	g.Expect(x.Request.Header).To(Equal(map[string][]string{"User-Agent": {"plumbline"}, "Host": {"elsewhere"}}))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndClose))
}

func TestARedirectIsRecordedAndNotFollowed(t *testing.T) {
	g := NewWithT(t)
	mock := httpmock.NewMockTransport()
	mock.RegisterResponder("GET", "http://server.test/old", func(*http.Request) (*http.Response, error) {
		resp := httpmock.NewStringResponse(307, "moved")
		resp.Header.Set("Location", "http://server.test/new")
		return resp, nil
	})
	x := newClient(t, client.Options{Transport: mock}).Do(background, client.Call{ID: "x", Method: "GET", Path: "/old"})
	g.Expect(x.Response.Status).To(Equal(307))
	g.Expect(mock.GetTotalCallCount()).To(Equal(1))
}

func TestACompressedReplyIsRecordedAsItCame(t *testing.T) {
	g := NewWithT(t)
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	zip.Write([]byte("data: [DONE]\n\n"))
	zip.Close()
	url := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Values("Accept-Encoding"); got != nil {
			t.Errorf("want no Accept-Encoding, got %q", got)
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed.Bytes())
	})
	x := newClient(t, client.Options{BaseURL: url}).Do(background, post("x"))
	g.Expect(body(x)).To(Equal(packed.String()))
	g.Expect(x.Response.Header).To(HaveKeyWithValue("Content-Encoding", []string{"gzip"}))
}

func TestWhatCannotBeSentIsUnsent(t *testing.T) {
	c := newClient(t, client.Options{BaseURL: "http://127.0.0.1:1"})
	for name, call := range map[string]client.Call{
		"method":           {Method: "NO WAY", Path: "/"},
		"path":             {Method: "GET", Path: "v1"},
		"path escape":      {Method: "GET", Path: "/%zz"},
		"header name":      {Method: "GET", Path: "/", Header: http.Header{"a b": {"x"}}},
		"header value":     {Method: "GET", Path: "/", Header: http.Header{"A": {"x\ny"}}},
		"negative timeout": {Method: "GET", Path: "/", Timeouts: &client.Timeouts{Idle: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			x := c.Do(background, call)
			g.Expect(x.End.Kind).To(Equal(fixtures.EndUnsent), x.End.Error)
			g.Expect(x.End.Error).NotTo(BeEmpty())
			g.Expect(x.Connection).To(BeNil())
			g.Expect(x.Response).To(BeNil())
		})
	}
}

func TestATransportInMemoryThatFailsIsOurOwnFault(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t, client.Options{Transport: transportFunc(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("no responder")
	})})
	x := c.Do(background, post("x"))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndUnsent))
	g.Expect(x.End.Error).To(ContainSubstring("no responder"))
}

func TestEachReadIsOnePieceWithItsOwnBytes(t *testing.T) {
	g := NewWithT(t)
	in := parts{"data: a\n\n", "\xc3", "\xa9", string(bytes.Repeat([]byte("x"), 12_000)), "", "end"}
	want := append(append(parts{}, in[:4]...), "end")
	x := newClient(t, client.Options{Transport: reply(&in)}).Do(background, post("x"))
	var got parts
	for _, p := range x.Pieces {
		got = append(got, string(p.Bytes))
	}
	g.Expect(got).To(Equal(want))
}

func TestABaseURLIsCheckedBeforeAnythingIsSent(t *testing.T) {
	for base, want := range map[string]string{
		"http://user:hunter22@host":   `user or password for "host"`,
		"http://user:hunter22@ho st/": "invalid character",
		"ftp://host":                  `got scheme "ftp"`,
		"host:8080":                   "scheme",
		"http://":                     "no host",
		"http://:80":                  "no host",
		"http://host?key=hunter22":    "no query",
		"":                            "scheme",
	} {
		_, err := client.New(client.Options{BaseURL: base})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)), base)
		NewWithT(t).Expect(err.Error()).NotTo(ContainSubstring("hunter22"))
	}
}

func TestPathsAreJoinedFromTheServersRoot(t *testing.T) {
	for _, c := range []struct{ base, path, want string }{
		{"http://h:1", "/health", "http://h:1/health"},
		{"http://h/", "/v1/models", "http://h/v1/models"},
		{"http://h/v1", "/v1/models", "http://h/v1/models"},
		{"http://h/v1/", "/props", "http://h/props"},
		{"https://h/openai/v1//", "/v1/chat/completions", "https://h/openai/v1/chat/completions"},
		{"http://h/v10", "/v1/models", "http://h/v10/v1/models"},
		{"http://h/a%2Fb", "/slots/0?action=save", "http://h/a%2Fb/slots/0?action=save"},
		{"http://[::1]:80/v1", "/", "http://[::1]:80/"},
	} {
		var got string
		transport := transportFunc(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})
		newClient(t, client.Options{BaseURL: c.base, Transport: transport}).Do(background, client.Call{Method: "GET", Path: c.path})
		NewWithT(t).Expect(got).To(Equal(c.want))
	}
	x := newClient(t, client.Options{}).Do(background, client.Call{Method: "GET", Path: "v1/models"})
	NewWithT(t).Expect(x.End.Error).To(ContainSubstring(`starts with a slash, got "v1/models"`))
}

func TestWrongOptionsAreRefused(t *testing.T) {
	g := NewWithT(t)
	_, err := client.New(client.Options{BaseURL: "http://h", MaxBody: -1})
	g.Expect(err).To(MatchError(ContainSubstring("got -1")))
	_, err = client.New(client.Options{BaseURL: "http://h", Timeouts: client.Timeouts{FirstByte: -time.Second}})
	g.Expect(err).To(MatchError(ContainSubstring("first-byte time-out of at least 0, got -1s")))
}

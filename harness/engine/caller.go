package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// maxAnswer bounds one endpoint's answer. The largest real ones hold a chat template or some hundred metrics.
const maxAnswer = 4 << 20

// caller asks one server. It is not the client that measures: it keeps no connection and stamps nothing.
type caller struct {
	base   string
	header http.Header
	opts   Options
	client *http.Client
	// secrets overwrites the values of our own headers in what the server wrote.
	secrets *strings.Replacer
}

func newCaller(base string, header http.Header, opts Options) *caller {
	opts = opts.withDefaults()
	transport := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: opts.Connect}).DialContext,
		TLSHandshakeTimeout:    opts.Connect,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true, // an idle connection of ours could take a slot of a small server
		Protocols:              new(http.Protocols),
	}
	switch {
	case !opts.HTTP2:
		transport.Protocols.SetHTTP1(true)
	case scheme(base) == "HTTPS":
		transport.Protocols.SetHTTP1(true)
		transport.Protocols.SetHTTP2(true)
	default:
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	if opts.Proxy {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &caller{base: strings.TrimRight(base, "/"), header: header, opts: opts, secrets: newScrubber(header), client: &http.Client{
		Transport: transport,
		// A redirect would carry the key to an address that nobody named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is an endpoint's reply. JSON is empty where the body is not JSON.
type answer struct {
	status int
	header http.Header
	body   []byte
	json   gjson.Result
}

func (c *caller) get(ctx context.Context, path string) (answer, error) {
	return c.call(ctx, http.MethodGet, path, nil)
}

func (c *caller) post(ctx context.Context, path string, body any) (answer, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return answer{}, fmt.Errorf("build question: %w", err)
	}
	return c.call(ctx, http.MethodPost, path, data)
}

func (c *caller) call(ctx context.Context, method, path string, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Endpoint)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("build question: %w", err)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return answer{}, err
	}
	if len(data) > maxAnswer {
		return answer{}, fmt.Errorf("the answer to %s is longer than %d bytes", path, maxAnswer)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: data}
	if gjson.ValidBytes(data) {
		a.json = gjson.ParseBytes(data)
	}
	return a, nil
}

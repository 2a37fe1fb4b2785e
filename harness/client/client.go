// Package client sends one request and records the exchange: it stamps every read with one monotonic clock and copies
// the bytes. It parses nothing, judges nothing and follows no redirect. Nothing is retried, but for a request that met a kept
// connection which the server had closed. Every outcome of a request, good or bad, is an exchange with its end.
package client

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"
)

// DefaultMaxBody is the cap on a response body in raw bytes where Options name none.
const DefaultMaxBody = 64 << 20

// maxHead is the cap on a response head in bytes.
const maxHead = 1 << 20

// Options say how a client reaches a server. They hold for all of its requests.
type Options struct {
	// BaseURL is the server, such as "http://127.0.0.1:8080". It may end in a slash or in "/v1", which paths name themselves.
	BaseURL string
	// Header is sent with every request.
	Header http.Header
	// Secrets are exact values that are overwritten wherever they would be recorded. Those shorter than four bytes are
	// left alone, for they would hide ordinary text. Credentials in Header are added by themselves.
	Secrets []string
	// Timeouts hold for calls that name none of their own.
	Timeouts Timeouts
	// MaxBody is the cap on a response body in raw bytes; 0 means DefaultMaxBody.
	MaxBody int64
	// Proxy says whether the environment's proxy settings are used.
	Proxy bool
	// HTTP2 asks for HTTP/2: without negotiation on http, offered by ALPN on https.
	HTTP2 bool
	// Transport replaces the client's own; Proxy and HTTP2 then have no effect. One that is not an *http.Transport is
	// taken to have a connection in hand at once.
	Transport http.RoundTripper
	// Epoch is the start of the run, with its monotonic reading; the zero value means the making of the client.
	Epoch time.Time
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	header    http.Header
	secrets   *scrubber
	limits    Timeouts
	maxBody   int64
	transport http.RoundTripper
	epoch     time.Time
}

// New makes a client. It opens no connection.
func New(o Options) (*Client, error) {
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	if o.MaxBody < 0 {
		return nil, fmt.Errorf("make client: want a cap on the body of at least 0 bytes, got %d", o.MaxBody)
	}
	if err := o.Timeouts.check(); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	c := &Client{
		base:      base,
		header:    o.Header.Clone(),
		secrets:   newScrubber(o.Secrets, o.Header),
		limits:    o.Timeouts,
		maxBody:   o.MaxBody,
		transport: o.Transport,
		epoch:     o.Epoch,
	}
	if c.maxBody == 0 {
		c.maxBody = DefaultMaxBody
	}
	if c.epoch.IsZero() {
		c.epoch = time.Now()
	}
	if c.transport == nil {
		c.transport = newTransport(o, base.Scheme)
	}
	return c, nil
}

// newTransport makes a transport that keeps connections and never asks for compression: a measured stream is read as
// the server wrote it.
func newTransport(o Options, scheme string) *http.Transport {
	// A connection is kept for each request that was ever under way at once: to dial again costs the next stream its time.
	const buffer, idle = readSize, math.MaxInt
	t := &http.Transport{
		DisableCompression:     true,
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHead,
		ReadBufferSize:         buffer,
		WriteBufferSize:        buffer,
		Protocols:              new(http.Protocols),
	}
	switch {
	case !o.HTTP2:
		t.Protocols.SetHTTP1(true)
	case scheme == "https":
		t.Protocols.SetHTTP1(true)
		t.Protocols.SetHTTP2(true)
	default:
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	if o.Proxy {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

// Close closes the connections that no request uses.
func (c *Client) Close() {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's own error repeats the address, and with it whatever secret it holds.
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fmt.Errorf("read base URL: %w", err)
	}
	switch {
	case u.User != nil:
		return nil, fmt.Errorf("read base URL: it holds a user or password for %q; give credentials as a header", u.Host)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("read base URL: want http:// or https://, got scheme %q", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("read base URL: no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("read base URL: want no query and no fragment for %q", u.Host)
	}
	return u, nil
}

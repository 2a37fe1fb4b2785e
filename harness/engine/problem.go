package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// Problem is why an engine cannot be run against.
type Problem string

// The problems.
const (
	Unreachable  Problem = "unreachable"     // no connection could be had
	NoAnswer     Problem = "no-answer"       // a connection, but no answer in time or none at all
	NotHTTP      Problem = "not-http"        // what came is not HTTP, or HTTP of the other scheme
	KeyRefused   Problem = "key-refused"     // no key, or a wrong one
	NotReady     Problem = "not-ready"       // it went on answering 503
	NotOurs      Problem = "not-an-engine"   // HTTP, but not this interface
	UnknownModel Problem = "unknown-model"   // the named model is not served
	NoModelNamed Problem = "no-model-named"  // several are served and none was named
	NoneServed   Problem = "no-model-served" // the server lists no model
	Interrupted  Problem = "interrupted"     // we were told to stop
)

// Error says in one sentence why an engine cannot be run against, and what would be right.
type Error struct {
	Problem Problem
	URL     string
	Text    string
	Err     error // the cause; nil where there is none beneath
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("ask engine at %q: %s", e.URL, e.Text) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// modelsPath is the one endpoint that every engine must have.
const modelsPath = "/v1/models"

// transportError puts a failed call into words. Nothing that a header carries is in them.
func (c *caller) transportError(ctx context.Context, err error) *Error {
	fail := func(p Problem, format string, args ...any) *Error {
		return &Error{Problem: p, URL: c.base, Text: fmt.Sprintf(format, args...), Err: err}
	}
	_, isDNS := errors.AsType[*net.DNSError](err)
	op, isOp := errors.AsType[*net.OpError](err)
	isDial := isOp && op.Op == "dial"
	_, isCert := errors.AsType[*tls.CertificateVerificationError](err)
	_, isRecord := errors.AsType[tls.RecordHeaderError](err)
	urlErr, isURL := errors.AsType[*url.Error](err)
	timedOut := isURL && urlErr.Timeout() || errors.Is(err, context.DeadlineExceeded)
	text := strings.ToLower(err.Error())
	switch {
	case ctx.Err() != nil:
		return fail(Interrupted, "the question was interrupted: %v", context.Cause(ctx))
	case isDNS:
		return fail(Unreachable, "its name is not known here: correct the host in --url")
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail(Unreachable, "nothing listens there (connection refused): start the server, or correct --url")
	case isDial && timedOut:
		return fail(Unreachable, "no connection within %v: correct --url, or raise --timeout-connect", c.opts.Connect)
	case isDial:
		return fail(Unreachable, "no connection can be had (%v): correct --url", op.Err)
	case isCert:
		return fail(Unreachable, "its certificate is not trusted here: install its authority, or use an address with a trusted one")
	case strings.Contains(text, "server gave http response to https client"):
		return fail(NotHTTP, "it speaks HTTP without TLS: give http:// in --url")
	case strings.Contains(text, "looked like an http/1.1 header"):
		return fail(NotHTTP, "it does not speak HTTP/2 without TLS: leave --http2 out")
	case strings.Contains(text, "malformed http"), isRecord, strings.Contains(text, "tls: "):
		return fail(NotHTTP, "what answers there does not speak %s: correct scheme and port in --url", scheme(c.base))
	case timedOut:
		return fail(NoAnswer, "it accepts connections but gives no answer to GET %s within %v", modelsPath, c.opts.Endpoint)
	case c.opts.HTTP2 && scheme(c.base) == "HTTP":
		// A server of HTTP/1.1 refuses the preface and closes; whether its words arrive before its close is a race.
		return fail(NotHTTP, "the connection ended without an answer: it may not speak HTTP/2 without TLS: leave --http2 out")
	}
	return fail(NoAnswer, "the connection ended without an answer to GET %s: want an HTTP server with this interface", modelsPath)
}

func scheme(base string) string {
	if strings.HasPrefix(base, "https:") {
		return "HTTPS"
	}
	return "HTTP"
}

// statusError puts an answer into words that is no list of models. The body of 401 and 403 is left out: servers
// repeat the key in it.
func (c *caller) statusError(a answer) *Error {
	fail := func(p Problem, format string, args ...any) *Error {
		return &Error{Problem: p, URL: c.base, Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		if c.header.Get("Authorization") == "" {
			return fail(KeyRefused, "it wants an API key (status %d): name it with --credential-env NAME or --credential-file FILE", a.status)
		}
		return fail(KeyRefused, "it refuses the API key (status %d): put the right one where --credential-env or --credential-file points to", a.status)
	case a.status == http.StatusServiceUnavailable:
		return fail(NotReady, "it still answered 503%s after %v: wait until it has loaded its model, and run again", c.message(a), c.opts.Ready)
	case a.status >= 300 && a.status < 400:
		return fail(NotOurs, "it redirects GET %s (status %d), which is not followed: give the final address in --url", modelsPath, a.status)
	case a.status != http.StatusOK:
		return fail(NotOurs, "GET %s answers status %d%s: want a server with this interface, its base address without /v1", modelsPath, a.status, c.message(a))
	case !a.json.Exists():
		return fail(NotOurs, "GET %s answers something that is not JSON (%s): want a server with this interface", modelsPath, c.contentType(a))
	}
	return fail(NotOurs, "GET %s answers JSON without a list \"data\" of models: want a server with this interface", modelsPath)
}

// maxMessage bounds what is shown of a server's own words.
const maxMessage = 200

func (c *caller) message(a answer) string {
	for _, path := range []string{"error.message", "message", "error", "detail"} {
		if m := a.json.Get(path); m.Type.String() == "String" && m.Str != "" {
			text := []rune(c.secrets.Replace(m.Str))
			return fmt.Sprintf(" (%q)", string(text[:min(len(text), maxMessage)]))
		}
	}
	return ""
}

func (c *caller) contentType(a answer) string {
	if t := a.header.Get("Content-Type"); t != "" {
		return c.secrets.Replace(t)
	}
	return "no content type"
}

package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"syscall"
)

// A server may close a kept connection at any moment, also while the next request is on its way: llama.cpp does so
// after some streams. That request then ends without a byte of a response, which says nothing of how the server answers
// it. It is sent once more, on a connection of a pool of its own: one that the server has not seen before. What ends so
// on a new connection, or after a byte, is the server's doing and stays as it is.

// closings are the errors of a connection that has ended.
var closings = []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE}

// closingTexts are such errors that the HTTP layer gives no value for.
var closingTexts = []string{"server closed idle connection", "client connection lost"}

// wasClosed reports whether a request met a kept connection that ended before anything came back.
func (c *connecting) wasClosed(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got && c.reused && !c.answered && (slices.ContainsFunc(closings, func(e error) bool { return errors.Is(err, e) }) ||
		slices.ContainsFunc(closingTexts, func(t string) bool { return strings.Contains(err.Error(), t) }))
}

func roundTrip(t http.RoundTripper, req *http.Request, conn *connecting) (*http.Response, error) {
	return t.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), conn.hooks())))
}

// again is the request with its body from the start.
func again(req *http.Request) *http.Request {
	req = req.Clone(req.Context())
	if req.GetBody != nil {
		req.Body, _ = req.GetBody() // the bytes are in memory: it cannot fail
	}
	return req
}

package client

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"plumbline/fixtures"
)

// maxError is how much of an error's text is recorded: some repeat what the server sent.
const maxError = 512

// ending says how an exchange ended that did not come to its proper end.
func ending(ctx context.Context, err error, at time.Duration, conn *connecting) fixtures.End {
	end := fixtures.End{At: at, Error: err.Error()}
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		end.Kind, end.Error = fixtures.EndCanceled, "canceled: "+cause.Error()
		if e, ok := errors.AsType[*expired](cause); ok {
			end.Kind, end.Error = e.kind, e.sentence
		}
		return end
	}
	asked, got := conn.progress()
	switch {
	case got:
		end.Kind = broken(err)
	case asked:
		end.Kind = fixtures.EndRefused
		if conn.redialed {
			end.Error = "the server had closed the kept connection, and no other could be had: " + end.Error
		}
	default:
		end.Kind = foreign(err)
	}
	return end
}

// foreign tells errors of a transport that is not an HTTP connection, and of our own requests, which the HTTP layer
// refuses before it asks for a connection.
func foreign(err error) fixtures.EndKind {
	if kind, ok := known(err); ok {
		return kind
	}
	return fixtures.EndUnsent
}

// broken tells the errors of a connection that was had. What neither the network nor we ended is a reply that the HTTP
// layer could not read.
func broken(err error) fixtures.EndKind {
	if kind, ok := known(err); ok {
		return kind
	}
	return fixtures.EndMalformed
}

func known(err error) (fixtures.EndKind, bool) {
	for _, e := range errorKinds {
		if errors.Is(err, e.is) {
			return e.kind, true
		}
	}
	for _, e := range errorTexts {
		if strings.Contains(err.Error(), e.text) {
			return e.kind, true
		}
	}
	return "", false
}

var errorKinds = []struct {
	is   error
	kind fixtures.EndKind
}{
	{syscall.ECONNREFUSED, fixtures.EndRefused},
	{syscall.ECONNRESET, fixtures.EndReset},
	{syscall.ECONNABORTED, fixtures.EndReset},
	{syscall.EPIPE, fixtures.EndReset},
	{io.EOF, fixtures.EndTruncate},
	{io.ErrUnexpectedEOF, fixtures.EndTruncate},
	{io.ErrClosedPipe, fixtures.EndTruncate},
	{net.ErrClosed, fixtures.EndTruncate},
}

// errorTexts are errors that the HTTP layer gives no type or value for.
var errorTexts = []struct {
	text string
	kind fixtures.EndKind
}{
	{"server closed idle connection", fixtures.EndTruncate},
	{"server sent GOAWAY", fixtures.EndTruncate},
	{"client connection lost", fixtures.EndTruncate},
	{"stream error:", fixtures.EndReset}, // an HTTP/2 stream that the server reset
	{"server response headers exceeded", fixtures.EndTooLarge},
	{"response header list larger than", fixtures.EndTooLarge},
}

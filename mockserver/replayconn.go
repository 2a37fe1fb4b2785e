package mockserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"plumbline/fixtures"
)

// The bounds of a replayer's connections besides those of a request.
const (
	maxHead     = 1 << 20 // bytes
	idleTimeout = 5 * time.Minute
	drainTime   = time.Second // for a client that is still sending what was refused
)

// errTooMuch ends the reading of a request that is larger than it may be.
var errTooMuch = errors.New("the request is larger than it may be")

// bounded reads no more than left bytes.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooMuch
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// serve answers the requests of one connection, one after the other.
func (p *Replayer) serve(conn net.Conn) {
	defer p.forget(conn)
	bound := &bounded{conn, maxHead}
	in := bufio.NewReader(bound)
	conn.SetReadDeadline(time.Now().Add(idleTimeout))
	if _, err := in.Peek(1); err != nil {
		return
	}
	for p.mark(conn, true) {
		request, refused := receive(conn, in, bound)
		if refused != nil {
			p.refuse(conn, bound, refused)
			return
		}
		// One byte more is awaited while the answer is given: its failure says that the client has left.
		conn.SetReadDeadline(time.Time{})
		bound.left = maxHead
		ctx, left := context.WithCancel(p.base)
		next := make(chan error, 1)
		go func() {
			_, err := in.Peek(1)
			if err != nil {
				left()
			}
			next <- err
		}()
		keep := p.answer(ctx, conn, request)
		if keep && p.mark(conn, false) {
			conn.SetReadDeadline(time.Now().Add(idleTimeout))
		} else {
			conn.Close() // ends the awaiting
			keep = false
		}
		err := <-next
		left()
		if !keep || err != nil {
			return
		}
	}
}

// received is a request that was read whole.
type received struct {
	*http.Request
	body []byte
	at   time.Time
}

// receive reads a request within the bounds.
func receive(conn net.Conn, in *bufio.Reader, bound *bounded) (*received, *apiError) {
	bound.left = maxHead
	conn.SetReadDeadline(time.Now().Add(headerTimeout))
	request, err := http.ReadRequest(in)
	if err != nil {
		return nil, unreadable(err)
	}
	bound.left = maxBody + maxHead // chunk heads and trailers are not counted apart
	conn.SetReadDeadline(time.Now().Add(bodyTimeout))
	if strings.EqualFold(request.Header.Get("Expect"), "100-continue") {
		conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return nil, unreadable(err)
		}
	}
	body, err := io.ReadAll(io.LimitReader(request.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errTooMuch
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return &received{request, body, time.Now()}, nil
}

func unreadable(err error) *apiError {
	if errors.Is(err, errTooMuch) {
		return &apiError{status: http.StatusRequestEntityTooLarge, kind: "invalid_request_error", code: "request_too_large",
			message: fmt.Sprintf("read the request: expected at most %d bytes, received more", maxBody)}
	}
	e := invalid("", "read the request: %v", err)
	e.code = "unreadable_request"
	return e
}

// refuse answers what could not be read and closes, after a moment in which the client can read the answer: a
// connection that is closed with bytes unread is reset.
func (p *Replayer) refuse(conn net.Conn, bound *bounded, err *apiError) {
	out := response{out: conn, closes: true}
	if out.give(p.base, p, jsonScript(err.status, err.body()), time.Now()) != nil {
		return
	}
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	conn.SetReadDeadline(time.Now().Add(drainTime))
	bound.left = maxBody
	io.Copy(io.Discard, bound)
}

// answer finds and gives the answer to a request, and says whether the connection can take another.
func (p *Replayer) answer(ctx context.Context, conn net.Conn, r *received) bool {
	script := p.answers.find(r.Header.Get(CaseHeader), fixtures.Request{Method: r.Method, Path: r.URL.RequestURI(), Body: r.body})
	out := response{out: conn, head: r.Method == http.MethodHead, old: !r.ProtoAtLeast(1, 1), closes: r.Close}
	return out.give(ctx, p, script, r.at) == nil && !out.closes
}

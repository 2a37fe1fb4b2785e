package mockserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"plumbline/fixtures"
)

// framing says how a body's end is told.
type framing int

const (
	chunked    framing = iota
	stated             // by the length that the script states
	untilClose         // by the end of the connection: a client of HTTP/1.0 knows no chunks
	noBody
)

// response is one response on the wire.
type response struct {
	out  net.Conn
	head bool // answers a HEAD request
	old  bool // answers HTTP/1.0
	// closes says that the connection ends with the response; give sets it where the response makes it so.
	closes bool
}

// give writes a script: the head in one write, then each step in one write at its moment, then the end. Moments are
// absolute, so that waits do not add up. An error says that the connection is of no more use.
func (w *response) give(ctx context.Context, p *Replayer, s fixtures.Script, received time.Time) error {
	offset := s.HeadAfter
	if err := waitUntil(ctx, p.due(received, offset)); err != nil {
		return err
	}
	frames := noBody
	if s.Status != 0 {
		frames = w.framing(s)
		if err := w.write(w.headOf(s, frames)); err != nil {
			return err
		}
	}
	for _, step := range s.Steps {
		offset += step.After
		if err := waitUntil(ctx, p.due(received, offset)); err != nil {
			return err
		}
		if err := w.write(framed(step.Bytes, frames)); err != nil {
			return err
		}
	}
	return w.end(ctx, s.End, frames)
}

// errEnded says that the script ended the connection.
var errEnded = errors.New("the script ended the connection")

// end ends the response as the script says.
func (w *response) end(ctx context.Context, end fixtures.ScriptEnd, frames framing) error {
	switch end {
	case fixtures.ScriptHang:
		<-ctx.Done()
		return ctx.Err()
	case fixtures.ScriptReset:
		if tcp, ok := w.out.(interface{ SetLinger(int) error }); ok {
			if err := tcp.SetLinger(0); err != nil {
				return err
			}
		}
		return errEnded
	case fixtures.ScriptTruncate:
		return errEnded
	}
	if frames == chunked {
		return w.write([]byte("0\r\n\r\n"))
	}
	return nil
}

func (w *response) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	w.out.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := w.out.Write(b)
	return err
}

// framed is a piece of the body as it is written.
func framed(b []byte, frames framing) []byte {
	switch {
	case frames == noBody:
		return nil
	case frames != chunked || len(b) == 0: // an empty chunk would be the last one
		return b
	}
	out := append(strconv.AppendInt(make([]byte, 0, len(b)+20), int64(len(b)), 16), "\r\n"...)
	return append(append(out, b...), "\r\n"...)
}

// framing keeps the length that a script states where it is true of the script: a body that comes to its proper end
// has it, and one that does not has no more.
func (w *response) framing(s fixtures.Script) framing {
	if w.head || s.Status == http.StatusNoContent || s.Status == http.StatusNotModified {
		return noBody
	}
	size := 0
	for _, step := range s.Steps {
		size += len(step.Bytes)
	}
	length, err := strconv.Atoi(get(s.Header, "Content-Length"))
	switch {
	case err == nil && (size == length || size < length && s.End != fixtures.ScriptClose):
		return stated
	case w.old:
		return untilClose
	default:
		return chunked
	}
}

// headOf is the head: what the script states, in the order of names, and what frames the body.
func (w *response) headOf(s fixtures.Script, frames framing) []byte {
	w.closes = w.closes || w.old || strings.EqualFold(get(s.Header, "Connection"), "close")
	head := fmt.Appendf(nil, "HTTP/1.1 %03d %s\r\n", s.Status, http.StatusText(s.Status))
	for _, name := range slices.Sorted(maps.Keys(s.Header)) {
		switch http.CanonicalHeaderKey(name) {
		case "Connection", "Transfer-Encoding":
			continue
		case "Content-Length":
			if frames == chunked || frames == untilClose {
				continue
			}
		}
		for _, value := range s.Header[name] {
			head = fmt.Appendf(head, "%s: %s\r\n", name, value)
		}
	}
	if frames == chunked {
		head = append(head, "Transfer-Encoding: chunked\r\n"...)
	}
	if w.closes {
		head = append(head, "Connection: close\r\n"...)
	}
	return append(head, "\r\n"...)
}

// get is the first value of a header, whatever the case of its name.
func get(header map[string][]string, name string) string {
	for n, values := range header {
		if http.CanonicalHeaderKey(n) == name && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// headerName holds the bytes that a header's name may have.
const headerName = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// checkScript refuses what cannot be written as HTTP.
func checkScript(s fixtures.Script) error {
	if s.Status == 0 && len(s.Steps) > 0 {
		return errors.New("expected no body where no head comes")
	}
	if s.Status != 0 && (s.Status < 200 || s.Status > 999) {
		return fmt.Errorf("expected a status from 200 to 999, received %d", s.Status)
	}
	if !slices.Contains(fixtures.ScriptEnds, s.End) {
		return fmt.Errorf("expected an end of %q, received %q", fixtures.ScriptEnds, s.End)
	}
	if s.Status == 0 && s.End == fixtures.ScriptClose {
		return errors.New("expected another end than close where no head comes")
	}
	if s.HeadAfter < 0 || slices.ContainsFunc(s.Steps, func(s fixtures.ScriptStep) bool { return s.After < 0 }) {
		return errors.New("expected waits of 0 and more, received a negative one")
	}
	for name, values := range s.Header {
		if name == "" || strings.Trim(name, headerName) != "" {
			return fmt.Errorf("expected a header's name, received %.80q", name)
		}
		for _, v := range values {
			if strings.ContainsAny(v, "\r\n\x00") {
				return fmt.Errorf("header %q: expected one line, received %.80q", name, v)
			}
		}
	}
	return nil
}

// jsonScript is an answer of the replayer itself.
func jsonScript(status int, v any) fixtures.Script {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // our own types
	}
	return fixtures.Script{
		Status: status, End: fixtures.ScriptClose, Steps: []fixtures.ScriptStep{{Bytes: body}},
		Header: map[string][]string{
			"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}, "Server": {buildInfo},
		},
	}
}

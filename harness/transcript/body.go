package transcript

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"time"

	"plumbline/fixtures"
)

// MaxDecoded bounds a body after content decoding, in bytes, so that a small answer cannot fill the memory.
const MaxDecoded = 64 << 20

var errTooLarge = fmt.Errorf("decoded body is larger than %d bytes", MaxDecoded)

// body yields a response body without its content coding, piece by piece. Each decoded piece carries the offset of the
// raw piece that made it available.
type body struct {
	pieces []fixtures.Piece
	coding string // "" for none
	// err is why the last decoding ended early, nil when it did not.
	err error
}

func newBody(e *fixtures.Exchange) *body {
	coding := strings.ToLower(strings.TrimSpace(header(e.Response, "Content-Encoding")))
	if coding == "identity" {
		coding = ""
	}
	return &body{pieces: e.Pieces, coding: coding}
}

// each calls f for each decoded piece until f says no. What f is given is valid during the call only.
func (b *body) each(f func(at time.Duration, p []byte) bool) {
	b.err = nil
	if b.coding == "" {
		for _, p := range b.pieces {
			if len(p.Bytes) > 0 && !f(p.At, p.Bytes) {
				return
			}
		}
		return
	}
	raw := &rawReader{pieces: b.pieces}
	r, err := decompressor(b.coding, raw)
	if err != nil {
		b.err = err
		return
	}
	buf := make([]byte, 32<<10)
	for total := 0; ; {
		n, err := r.Read(buf)
		if total += n; total > MaxDecoded {
			b.err = errTooLarge
			return
		}
		if n > 0 && !f(raw.at, buf[:n]) {
			return
		}
		if err != nil {
			if err != io.EOF {
				b.err = err
			}
			return
		}
	}
}

func decompressor(coding string, raw *rawReader) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(raw)
	case "deflate":
		// The name means the zlib format; some servers send the bare one.
		if b := raw.peek(2); len(b) == 2 && b[0]&0x0f == 8 && (uint(b[0])<<8|uint(b[1]))%31 == 0 {
			return zlib.NewReader(raw)
		}
		return flate.NewReader(raw), nil
	}
	return nil, fmt.Errorf("content coding %q is not one of gzip, deflate", coding)
}

// rawReader hands out the raw pieces byte by byte, so that a decompressor takes no byte before it needs it and at is
// the offset of the piece that its latest output depended on.
type rawReader struct {
	pieces []fixtures.Piece
	pos    int
	at     time.Duration
}

var _ flate.Reader = (*rawReader)(nil)

func (r *rawReader) ReadByte() (byte, error) {
	for len(r.pieces) > 0 {
		if p := r.pieces[0]; r.pos < len(p.Bytes) {
			r.at = p.At
			r.pos++
			return p.Bytes[r.pos-1], nil
		}
		r.pieces, r.pos = r.pieces[1:], 0
	}
	return 0, io.EOF
}

func (r *rawReader) Read(b []byte) (int, error) {
	for n := range b {
		c, err := r.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		b[n] = c
	}
	return len(b), nil
}

// peek returns up to n bytes without taking them.
func (r *rawReader) peek(n int) []byte {
	c := *r
	b := make([]byte, n)
	n, _ = io.ReadFull(&c, b)
	return b[:n]
}

// header is the first value of a response header field, "" for none. Field names are matched without regard to case,
// since an exchange may come from a capture.
func header(r *fixtures.Response, name string) string {
	if r == nil {
		return ""
	}
	for k, v := range r.Header {
		if strings.EqualFold(k, name) && len(v) > 0 {
			return v[0]
		}
	}
	return ""
}

package client

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"plumbline/fixtures"
)

const (
	// scrubbedHeader is added to the response of an exchange whose body is recorded decoded. Its value is the content
	// coding in which the body came.
	scrubbedHeader = "X-Plumbline-Scrubbed"
	// maxSearched bounds how many decoded bytes of a body are searched.
	maxSearched = 64 << 20
)

var errTooMuchDecoded = fmt.Errorf("it decodes to more than %d bytes, which cannot be searched for the key; at most its first %d are recorded, decoded",
	maxSearched, keptOfTooLarge)

// coded looks for secrets in a body that came in a content coding, and leaves one alone that holds none. Inside a coding
// nothing can be overwritten: a body that holds one is recorded decoded and scrubbed, each decoded piece at the offset of
// the read that brought its last byte, without the two headers that describe the coded bytes. What could not be decoded
// is dropped, and a reply that seemed whole is then malformed.
//
// A body too large to search is kept like any other that passed a cap, by its beginning. Codings other than gzip and
// deflate, which the client never asks for and no reader of the record undoes, are not looked into.
func (s *scrubber) coded(x *fixtures.Exchange) {
	if len(s.secrets) == 0 || x.Response == nil || len(x.Pieces) == 0 {
		return
	}
	header := http.Header(x.Response.Header)
	coding := strings.ToLower(strings.TrimSpace(header.Get("Content-Encoding")))
	decoded, err := decode(coding, x.Pieces)
	tooMuch := errors.Is(err, errTooMuchDecoded)
	if hit := s.pieces(decoded); !hit && !tooMuch {
		return
	}
	if tooMuch {
		decoded = firstBytes(decoded, keptOfTooLarge)
	}
	x.Pieces = decoded
	header.Del("Content-Encoding")
	header.Del("Content-Length")
	header.Set(scrubbedHeader, coding)
	if err == nil || x.End.Kind != fixtures.EndClose {
		return
	}
	x.End.Kind, x.End.Error = fixtures.EndMalformed, fmt.Sprintf("decode %s body: %v", coding, err)
	if tooMuch {
		x.End.Kind = fixtures.EndTooLarge
	}
}

// decode undoes a content coding. What could be decoded comes with the error that ended it; an unknown coding gives
// nothing.
func decode(coding string, pieces []fixtures.Piece) ([]fixtures.Piece, error) {
	raw := &source{pieces: pieces}
	r, err := raw.decoder(coding)
	if r == nil || err != nil {
		return nil, err
	}
	buf := buffers.Get().(*[readSize]byte)
	defer buffers.Put(buf)
	var blocks arena
	var decoded []fixtures.Piece
	for size := 0; ; {
		n, err := r.Read(buf[:])
		if size += n; size > maxSearched {
			return decoded, errTooMuchDecoded
		}
		if n > 0 {
			decoded = append(decoded, fixtures.Piece{At: raw.at, Bytes: blocks.keep(buf[:n])})
		}
		if err == io.EOF {
			return decoded, nil
		}
		if err != nil {
			return decoded, err
		}
	}
}

// source hands out the bytes of pieces one by one, so that a decoder takes none before it needs it.
type source struct {
	pieces []fixtures.Piece
	next   int           // in the first piece
	at     time.Duration // of the piece that held the last byte handed out
}

var _ flate.Reader = (*source)(nil)

// decoder gives the reader for a coding, nil for an unknown one.
func (s *source) decoder(coding string) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(s)
	case "deflate": // the zlib format by RFC 9110, section 8.4.1.2, which also tells of servers that leave its wrapper out
		start := *s
		r, err := zlib.NewReader(s)
		if errors.Is(err, zlib.ErrHeader) {
			*s = start
			return flate.NewReader(s), nil
		}
		return r, err
	}
	return nil, nil
}

// ReadByte implements io.ByteReader.
func (s *source) ReadByte() (byte, error) {
	for len(s.pieces) > 0 {
		if p := s.pieces[0]; s.next < len(p.Bytes) {
			s.at = p.At
			s.next++
			return p.Bytes[s.next-1], nil
		}
		s.pieces, s.next = s.pieces[1:], 0
	}
	return 0, io.EOF
}

// Read implements io.Reader: it gives the rest of one piece at most.
func (s *source) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	first, err := s.ReadByte()
	if err != nil {
		return 0, err
	}
	b[0] = first
	n := copy(b[1:], s.pieces[0].Bytes[s.next:])
	s.next += n
	return n + 1, nil
}

package transcript

import (
	"bytes"
	"time"
)

// Scanner cuts the bytes of an event stream into events as the WHATWG standard says: lines end in LF, CR or CRLF, one
// byte-order mark is dropped, several data lines join with LF, a blank line completes an event, comments and fields
// that it does not know count for nothing. It takes pieces of any size, cut anywhere, in time linear in their bytes,
// and keeps no more than the event under way.
type Scanner struct {
	event func(Event)
	// Other, when set, is told of each field that the standard ignores. The value is valid during the call only.
	Other func(at time.Duration, name string, value []byte)

	line    []byte // the line under way, from earlier pieces
	data    []byte // data lines of the event under way, each followed by LF
	name    string
	hasData bool
	started bool          // the first line has been seen
	skipLF  bool          // the last byte was a CR that ended a line: an LF now belongs to it
	last    time.Duration // stamp of the last piece that had bytes
	limit   int           // keep no more than so many bytes of a line and of an event; 0 keeps all
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// NewScanner returns a scanner that calls event for each completed event, stamped with the piece that completed it.
// The event's Data is valid during the call only. An event that ends in CR is complete at the CR, without waiting for
// an LF that may follow.
func NewScanner(event func(Event)) *Scanner { return &Scanner{event: event} }

// Feed reads the next piece, which arrived at the given offset. It keeps no reference to p.
func (s *Scanner) Feed(at time.Duration, p []byte) {
	if len(p) == 0 {
		return
	}
	s.last = at
	if s.skipLF {
		s.skipLF = false
		if p[0] == '\n' {
			p = p[1:]
		}
	}
	// Each search is kept until it is passed, so that a piece of CR-ended lines is not searched for LF once a line.
	lf, cr := -2, -2
	for pos := 0; pos < len(p); {
		lf, cr = next(p, '\n', pos, lf), next(p, '\r', pos, cr)
		end := lf
		if cr >= 0 && (lf < 0 || cr < lf) {
			end = cr
		}
		if end < 0 {
			s.line = s.keep(s.line, p[pos:])
			return
		}
		if len(s.line) == 0 {
			s.endLine(at, p[pos:end])
		} else {
			s.line = s.keep(s.line, p[pos:end])
			line := s.line
			s.line = s.line[:0]
			s.endLine(at, line)
		}
		pos = end + 1
		if p[end] == '\r' {
			if pos == len(p) {
				s.skipLF = true
			} else if p[pos] == '\n' {
				pos++
			}
		}
	}
}

// keep appends b to the bytes under way, up to the limit.
func (s *Scanner) keep(under, b []byte) []byte {
	if s.limit > 0 {
		b = b[:min(len(b), max(0, s.limit-len(under)))]
	}
	return append(under, b...)
}

// next is the index of the first c in p at or after pos, -1 for none; found is the answer of the search before.
func next(p []byte, c byte, pos, found int) int {
	if found == -1 || found >= pos {
		return found
	}
	if i := bytes.IndexByte(p[pos:], c); i >= 0 {
		return pos + i
	}
	return -1
}

func (s *Scanner) endLine(at time.Duration, line []byte) {
	if !s.started {
		s.started = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if len(line) == 0 {
		if s.hasData {
			s.event(s.take(at))
		}
		s.name = ""
		return
	}
	s.field(at, line)
}

// take returns the event under way and forgets it.
func (s *Scanner) take(at time.Duration) Event {
	ev := Event{At: at, Name: s.name}
	if n := len(s.data); n > 0 {
		ev.Data = s.data[:n-1] // without the LF of the last line
	}
	s.data, s.hasData, s.name = s.data[:0], false, ""
	return ev
}

func (s *Scanner) field(at time.Duration, line []byte) {
	name, value, colon := bytes.Cut(line, []byte(":"))
	if colon && len(name) == 0 {
		return // a comment
	}
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		s.hasData = true
		s.data = append(s.keep(s.data, value), '\n')
	case "event":
		if s.name != string(value) {
			s.name = string(value)
		}
	case "id", "retry": // about reconnecting, which no client of this interface does
	default:
		if s.Other != nil {
			s.Other(at, string(name), value)
		}
	}
}

// Close ends the stream. It returns the event that the stream ended inside, which the standard discards, and whether
// there was one: open is true also when the stream ended inside a line that is no comment. The event is stamped with
// the last piece that had bytes.
func (s *Scanner) Close() (tail Event, open bool) {
	line := s.line
	s.line = nil
	if !s.started {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	open = s.hasData
	if len(line) > 0 && line[0] != ':' {
		open = true
		s.field(s.last, line)
	}
	return s.take(s.last), open
}

package client

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"plumbline/fixtures"
)

const (
	redacted = "[redacted]"
	// minSecret is the shortest secret, in bytes, that is looked for.
	minSecret = 4
	// minDerived is the shortest value taken for a secret because a credential header holds it.
	minDerived = 8
)

// credentialHeaders are the header names whose values are never recorded, canonical.
var credentialHeaders = []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "Cookie", "Set-Cookie"}

// scrubber overwrites secrets in what is recorded.
type scrubber struct {
	secrets [][]byte // the longest first
	values  []string // as they are, to be found in JSON's escapes
	longest int      // bytes that a secret can take in any spelling
}

// newScrubber takes the secrets that are named and those that stand in the credential headers. Each is looked for as it
// is and as a JSON document, in any of its spellings, or a URL would spell it.
func newScrubber(secrets []string, header http.Header) *scrubber {
	values := slices.Clone(secrets)
	for name, list := range header {
		if !slices.Contains(credentialHeaders, http.CanonicalHeaderKey(name)) {
			continue
		}
		for _, v := range list {
			// Also without the scheme, as in "Bearer KEY".
			for _, v := range []string{v, v[strings.LastIndexByte(v, ' ')+1:]} {
				if len(v) >= minDerived {
					values = append(values, v)
				}
			}
		}
	}
	s := &scrubber{}
	for _, v := range values {
		if len(v) < minSecret {
			continue
		}
		s.values = append(s.values, v)
		s.longest = max(s.longest, len(v)*len(`\u0000`))
		quoted, _ := json.Marshal(v) // a string always can be
		inJSON := string(quoted[1 : len(quoted)-1])
		for _, f := range []string{v, inJSON, strings.ReplaceAll(inJSON, "/", `\/`), url.QueryEscape(v), url.PathEscape(v)} {
			s.secrets = append(s.secrets, []byte(f))
		}
	}
	slices.SortFunc(s.secrets, func(a, b []byte) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return bytes.Compare(a, b)
	})
	s.secrets = slices.CompactFunc(s.secrets, bytes.Equal)
	slices.Sort(s.values)
	s.values = slices.Compact(s.values)
	return s
}

// exchange makes x fit to be recorded.
func (s *scrubber) exchange(x *fixtures.Exchange) {
	s.header(x.Request.Header)
	x.Request.Path = s.text(x.Request.Path)
	x.Request.Body = s.body(x.Request.Body)
	if x.Response != nil {
		s.header(x.Response.Header)
	}
	s.coded(x)
	s.pieces(x.Pieces)
	x.End.Error = s.text(x.End.Error)
	if len(x.End.Error) > maxError {
		x.End.Error = strings.ToValidUTF8(x.End.Error[:maxError], "") + " …"
	}
}

// header replaces credentials and scrubs the other values, without touching the lists, which the HTTP layer may hold.
func (s *scrubber) header(h map[string][]string) {
	for name, values := range h {
		clean := make([]string, len(values))
		for i, v := range values {
			if clean[i] = s.text(v); slices.Contains(credentialHeaders, name) {
				clean[i] = redacted
			}
		}
		h[name] = clean
	}
}

func (s *scrubber) text(t string) string {
	return string(s.body([]byte(t)))
}

// body scrubs a copy of b when it holds a secret: the caller's request stays as it is.
func (s *scrubber) body(b []byte) []byte {
	found := s.find(b, 0)
	if len(found) == 0 {
		return b
	}
	b = bytes.Clone(b)
	mask([]fixtures.Piece{{Bytes: b}}, 0, found)
	return b
}

// match is a range of bytes that a secret takes, counted from the start of the body.
type match struct{ from, to int }

// pieces overwrites every secret in the pieces, also one that spans many of them, and reports whether there was one. It
// looks at the pieces through a window that overlaps the one before by all but one byte of the longest secret. The
// window is a copy: what is already overwritten does not hide a secret that overlaps it.
func (s *scrubber) pieces(pieces []fixtures.Piece) (hit bool) {
	if len(s.secrets) == 0 {
		return false
	}
	enough := max(64<<10, 2*s.longest)
	total := 0
	for _, p := range pieces {
		total += len(p.Bytes)
	}
	// Growing it step by step would be half of all that a stream allocates.
	window := make([]byte, 0, min(total, 2*enough))
	start, size := 0, 0    // of the window, of the pieces so far
	first, firstAt := 0, 0 // the piece in which the window starts, and where that piece starts
	for i, p := range pieces {
		window = append(window, p.Bytes...)
		size += len(p.Bytes)
		if len(window) < enough && i < len(pieces)-1 {
			continue
		}
		found := s.find(window, start)
		mask(pieces[first:i+1], firstAt, found)
		hit = hit || len(found) > 0
		keep := min(len(window), s.longest-1)
		window = append(window[:0], window[len(window)-keep:]...)
		for start = size - keep; first <= i && firstAt+len(pieces[first].Bytes) <= start; first++ {
			firstAt += len(pieces[first].Bytes)
		}
	}
	return hit
}

// find returns the places of the secrets in b, which starts at the given offset: in order, without overlap.
func (s *scrubber) find(b []byte, start int) []match {
	var found []match
	for _, secret := range s.secrets {
		for pos := 0; ; {
			i := bytes.Index(b[pos:], secret)
			if i < 0 {
				break
			}
			from := start + pos + i
			found = append(found, match{from, from + len(secret)})
			pos += i + 1
		}
	}
	if bytes.Contains(b, []byte(`\`)) {
		for _, v := range s.values {
			found = appendEscaped(found, b, start, v)
		}
	}
	slices.SortFunc(found, func(a, b match) int { return a.from - b.from })
	var merged []match
	for _, m := range found {
		if last := len(merged) - 1; last >= 0 && m.from <= merged[last].to {
			merged[last].to = max(merged[last].to, m.to)
			continue
		}
		merged = append(merged, m)
	}
	return merged
}

// mask overwrites the matches in the pieces, the first of which starts at the given offset.
func mask(pieces []fixtures.Piece, start int, found []match) {
	for _, p := range pieces {
		end := start + len(p.Bytes)
		for len(found) > 0 && found[0].to <= start {
			found = found[1:]
		}
		for _, m := range found {
			if m.from >= end {
				break
			}
			for i := max(m.from, start); i < min(m.to, end); i++ {
				p.Bytes[i-start] = '*'
			}
		}
		start = end
	}
}

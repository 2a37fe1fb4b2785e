package transcript

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// legality says what had to be forgiven to read a JSON text.
type legality struct {
	ok         bool // what follows could be read at all
	badUTF8    bool
	nonFinite  bool
	duplicates bool
}

// legal returns a JSON text that eachMember and its like can walk, and what is wrong with the one given. Text that is
// no UTF-8 gets U+FFFD, NaN and infinities become null, of members with one name all are kept and the last counts.
func legal(b []byte) ([]byte, legality) {
	b = bytes.TrimSpace(b)
	l := legality{ok: true}
	if jsontext.Value(b).IsValid() {
		return b, l
	}
	if !utf8.Valid(b) {
		l.badUTF8 = true
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	if !readable(b) {
		finite, n := withoutNonFinite(b)
		if n == 0 || !readable(finite) {
			return b, legality{badUTF8: l.badUTF8}
		}
		b, l.nonFinite = finite, true
	}
	// A lone surrogate is reported where a text is read; here it must not look like a duplicate.
	l.duplicates = !jsontext.Value(b).IsValid(jsontext.AllowInvalidUTF8(true))
	return b, l
}

func readable(b []byte) bool {
	return jsontext.Value(b).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// nonFiniteWords are the spellings that encoders without a rule for them write, longest first.
var nonFiniteWords = [][]byte{[]byte("-Infinity"), []byte("Infinity"), []byte("-NaN"), []byte("NaN"), []byte("-inf"),
	[]byte("inf"), []byte("-nan"), []byte("nan")}

// withoutNonFinite puts null where a value outside of strings is one of nonFiniteWords, and counts them.
func withoutNonFinite(b []byte) ([]byte, int) {
	out := make([]byte, 0, len(b))
	n := 0
next:
	for i := 0; i < len(b); {
		if b[i] == '"' {
			end := skipString(b, i)
			if end < 0 {
				return b, 0
			}
			out = append(out, b[i:end]...)
			i = end
			continue
		}
		for _, w := range nonFiniteWords {
			if bytes.HasPrefix(b[i:], w) {
				out = append(out, "null"...)
				i += len(w)
				n++
				continue next
			}
		}
		out = append(out, b[i])
		i++
	}
	return out, n
}

// valueCount counts the complete JSON values that follow each other in b; whole says that nothing else is there.
func valueCount(b []byte) (n int, whole bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for {
		switch err := d.SkipValue(); err {
		case nil:
			n++
		case io.EOF:
			return n, true
		default:
			return n, false
		}
	}
}

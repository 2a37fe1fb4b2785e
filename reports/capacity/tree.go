package capacity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of what is read, above what a run of 100,000 requests fills: they keep a text that is made to be large from
// filling memory.
const (
	// MaxDocument is the size in bytes of the largest text that is looked into.
	MaxDocument = 256 << 20

	maxDepth   = 512       // objects and lists in one another
	maxTokens  = 8_000_000 // values, names and closing brackets
	maxBeside  = 200_000   // of them outside the two lists of requests
	maxRequest = 10_000    // of them in one request's entry
	maxDigits  = 1000      // bytes of a number
)

// perRequest are the members that hold an entry for each request.
var perRequest = map[string]bool{"request_timings": true, "failures": true}

// strict says what keeps a text from being one JSON value in UTF-8 with no name twice in an object and no number that a
// float64 cannot hold, or from being read at all; nil for a good one.
func strict(data []byte) *Problem {
	if len(data) > MaxDocument {
		return &Problem{"", fmt.Sprintf("expected at most %d bytes, received %d", MaxDocument, len(data))}
	}
	r := bounded{d: jsontext.NewDecoder(bytes.NewReader(data))}
	for {
		token, err := r.d.ReadToken()
		if errors.Is(err, io.EOF) && r.tokens > 0 {
			return nil
		}
		if err != nil {
			return broken(err)
		}
		if message := r.take(token); message != "" {
			return &Problem{string(r.d.StackPointer()), message}
		}
		if r.d.StackDepth() == 0 && r.d.PeekKind() != 0 {
			return &Problem{"", fmt.Sprintf("more than one JSON value: the second begins after byte %d", r.d.InputOffset())}
		}
	}
}

// bounded counts what is read.
type bounded struct {
	d                       *jsontext.Decoder
	tokens, beside, request int
	member                  string // of the document
}

// take takes in a token, and says which bound it passes.
func (r *bounded) take(token jsontext.Token) string {
	depth := r.d.StackDepth()
	r.tokens, r.request = r.tokens+1, r.request+1
	if depth == 1 {
		if _, length := r.d.StackIndex(1); token.Kind() == '"' && length%2 == 1 {
			r.member = token.String()
		}
	}
	if depth < 3 {
		r.request = 0
	}
	if !perRequest[r.member] {
		r.beside++
	}
	switch {
	case depth > maxDepth:
		return fmt.Sprintf("expected at most %d levels of objects and lists, received more", maxDepth)
	case r.tokens > maxTokens:
		return fmt.Sprintf("expected at most %d names and values in all, received more", maxTokens)
	case r.beside > maxBeside:
		return fmt.Sprintf("expected at most %d names and values outside request_timings and failures, received more", maxBeside)
	case r.request > maxRequest && perRequest[r.member]:
		return fmt.Sprintf("expected at most %d names and values for one request, received more", maxRequest)
	case token.Kind() == '0' && !held(token.String()):
		return fmt.Sprintf("expected a number that a float64 holds, received %.80s", token.String())
	}
	return ""
}

// held reports whether a number is neither beyond the largest float64 nor so small that it would be read as 0.
func held(number string) bool {
	v, err := strconv.ParseFloat(number, 64)
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	return len(number) <= maxDigits && err == nil && (v != 0 || !strings.ContainsAny(digits, "123456789"))
}

func broken(err error) *Problem {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		return &Problem{string(syntax.JSONPointer), fmt.Sprintf("not JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)}
	case errors.Is(err, io.EOF):
		return &Problem{"", "no JSON value at all"}
	}
	return &Problem{"", err.Error()}
}

// place is a value of a document that is being checked, with its pointer; one that is not there has no value. Every
// method works on such a one, so that a check reads as a claim about a path.
type place struct {
	at      jsontext.Pointer
	value   any // nil also for a JSON null: there tells them apart
	present bool
}

func readPlaces(data []byte) (place, *Problem) {
	if problem := strict(data); problem != nil {
		return place{}, problem
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return place{}, &Problem{"", fmt.Sprintf("not JSON: %v", err)}
	}
	return place{value: value, present: true}, nil
}

// below is the pointer of a member or item. Most names need no escapes, and pointers are made for every row.
func below(at jsontext.Pointer, token string) jsontext.Pointer {
	if strings.ContainsAny(token, "~/") {
		return at.AppendToken(token)
	}
	return at + "/" + jsontext.Pointer(token)
}

// get follows member names.
func (p place) get(names ...string) place {
	for _, name := range names {
		members, _ := p.value.(map[string]any)
		value, present := members[name]
		p = place{below(p.at, name), value, present}
	}
	return p
}

// items yields the items of a list; nothing of anything else.
func (p place) items() iter.Seq2[int, place] {
	return func(yield func(int, place) bool) {
		all, _ := p.value.([]any)
		for i, value := range all {
			if !yield(i, place{below(p.at, strconv.Itoa(i)), value, true}) {
				return
			}
		}
	}
}

// fields yields the members of an object by name; nothing of anything else.
func (p place) fields() iter.Seq2[string, place] {
	return func(yield func(string, place) bool) {
		members, _ := p.value.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !yield(name, place{below(p.at, name), members[name], true}) {
				return
			}
		}
	}
}

func (p place) null() bool { return p.present && p.value == nil }

// some reports whether there is a value that is not null.
func (p place) some() bool { return p.value != nil }

func (p place) object() bool {
	_, ok := p.value.(map[string]any)
	return ok
}

// length is the number of items of a list.
func (p place) length() (int64, bool) {
	all, ok := p.value.([]any)
	return int64(len(all)), ok
}

func (p place) text() (string, bool) {
	s, ok := p.value.(string)
	return s, ok
}

func (p place) truth() (value, ok bool) {
	value, ok = p.value.(bool)
	return value, ok
}

// String is the value in short.
func (p place) String() string {
	switch value := p.value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return strconv.Quote(value)
	case nil:
		if !p.present {
			return "nothing"
		}
		return "null"
	}
	return fmt.Sprint(p.value)
}

// raw is a number as it is written.
func (p place) raw() (string, bool) {
	n, ok := p.value.(json.Number)
	return string(n), ok
}

func (p place) number() (float64, bool) {
	raw, ok := p.raw()
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(raw, 64)
	return v, err == nil
}

// whole is a number that is written without fraction and exponent; the schema tells of others.
func (p place) whole() (int64, bool) {
	raw, ok := p.raw()
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	return n, err == nil
}

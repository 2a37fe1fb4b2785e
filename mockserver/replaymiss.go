package mockserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"plumbline/fixtures"
)

// miss says why no replay answers a request. Nearest is the replay that comes closest. Pointer is the first place where
// the request differs from that one's, Expected and Received are what stands there, cut.
type miss struct {
	Message  string  `json:"message"`
	Type     string  `json:"type"`
	Code     string  `json:"code"`
	Nearest  string  `json:"nearest,omitempty"`
	Pointer  *string `json:"pointer,omitempty"`
	Expected string  `json:"expected,omitempty"`
	Received string  `json:"received,omitempty"`
}

func (m miss) script() fixtures.Script {
	m.Type = "replay_miss"
	return jsonScript(http.StatusNotFound, object{"error": m})
}

// unknown is the miss of a name: nearest is the one with the most bytes in common at its start.
func (a *answers) unknown(name string) miss {
	best, most := "", -1
	for _, n := range slices.Sorted(maps.Keys(a.named)) {
		if same := common(n, name); same > most {
			best, most = n, same
		}
	}
	return miss{Code: "unknown_replay", Nearest: best, Message: fmt.Sprintf(
		"find a replay: the header %s names %q, which there is not; the nearest is %q", CaseHeader, cutText(name), best)}
}

// nearest is the miss of a request. Requests with another method or path are further away than any with the same; among
// equals, the fewer places of the body differ the nearer; then the first one.
func (a *answers) nearest(r fixtures.Request) miss {
	got, isJSON := parse(r)
	var best *fixtures.Replay
	var where difference
	fewest := int(^uint(0) >> 1)
	for i := range a.all {
		recorded := &a.all[i]
		d, n := compare(recorded, r, got, isJSON, fewest)
		if n < fewest {
			best, where, fewest = recorded, d, n
		}
	}
	return miss{Code: "no_replay", Nearest: best.Name, Pointer: &where.pointer, Expected: where.expected, Received: where.received,
		Message: fmt.Sprintf("find a replay: no recorded request is this one; the nearest is %q, which differs in %s: expected %s, received %s",
			best.Name, where.what, where.expected, where.received)}
}

// difference is one place where a request is not the recorded one. pointer is "" where that is not inside the body.
type difference struct {
	what, pointer, expected, received string
}

// elsewhere is the distance of a request to another method or path.
const elsewhere = 1 << 30

// compare returns the first difference and the distance, which is at least fewest where it is not smaller.
func compare(recorded *fixtures.Replay, r fixtures.Request, got any, isJSON bool, fewest int) (difference, int) {
	switch {
	case recorded.Request.Path != r.Path:
		return differ("the path", recorded.Request.Path, r.Path), elsewhere + 1
	case recorded.Request.Method != r.Method:
		return differ("the method", recorded.Request.Method, r.Method), elsewhere
	}
	want, wantJSON := parse(recorded.Request)
	if !isJSON || !wantJSON {
		return differ("the body", string(recorded.Request.Body), string(r.Body)), elsewhere - 1
	}
	var first difference
	n := 0
	walk("", want, got, func(pointer string, want, got *any) bool {
		if n++; n == 1 {
			first = difference{what: "the body at " + strconv.Quote(pointer), pointer: pointer}
			first.expected, first.received = showTwo(want, got)
		}
		return n < fewest
	})
	return first, n
}

func differ(what, expected, received string) difference {
	d := difference{what: what}
	d.expected, d.received = window(expected, received)
	return d
}

// parse reads a body in its canonical form, so that what is equal for the digest is equal here. Numbers stay texts.
func parse(r fixtures.Request) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(r.CanonicalBody()))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	return v, true
}

// walk calls differs with each place where two values differ, members in the order of their names, until it returns
// false. A value that is not there is nil.
func walk(pointer string, want, got any, differs func(pointer string, want, got *any) bool) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		names := maps.Clone(w)
		maps.Copy(names, g)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			at := pointer + "/" + escapePointer.Replace(name)
			wv, inWant := w[name]
			gv, inGot := g[name]
			if !either(at, wv, inWant, gv, inGot, differs) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		for i := range max(len(w), len(g)) {
			var wv, gv any
			if i < len(w) {
				wv = w[i]
			}
			if i < len(g) {
				gv = g[i]
			}
			if !either(pointer+"/"+strconv.Itoa(i), wv, i < len(w), gv, i < len(g), differs) {
				return false
			}
		}
		return true
	default:
		switch got.(type) {
		case map[string]any, []any:
		default:
			if want == got {
				return true
			}
		}
	}
	return differs(pointer, &want, &got)
}

func either(at string, want any, inWant bool, got any, inGot bool, differs func(string, *any, *any) bool) bool {
	switch {
	case !inWant:
		return differs(at, nil, &got)
	case !inGot:
		return differs(at, &want, nil)
	}
	return walk(at, want, got, differs)
}

// escapePointer spells a name as a token of a JSON pointer.
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func showTwo(want, got *any) (string, string) {
	text := func(v *any) string {
		if v == nil {
			return "nothing"
		}
		b, err := json.Marshal(*v)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	return window(text(want), text(got))
}

// The bytes shown of a value, and those of them that stand before the first difference.
const (
	shownBytes = 80
	leadBytes  = 20
)

// window cuts two texts to what shows where they begin to differ.
func window(a, b string) (string, string) {
	from := max(0, common(a, b)-leadBytes)
	cut := func(s string) string {
		start := min(from, len(s))
		for start < len(s) && !utf8.RuneStart(s[start]) {
			start++
		}
		out := cutText(s[start:])
		if start > 0 {
			out = "…" + out
		}
		return out
	}
	return cut(a), cut(b)
}

// common is how many bytes two texts share at their start.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// cutText bounds a text in a message.
func cutText(s string) string {
	if len(s) <= shownBytes {
		return s
	}
	end := shownBytes
	for !utf8.RuneStart(s[end]) && end > 0 {
		end--
	}
	return s[:end] + "…"
}

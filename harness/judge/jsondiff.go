package judge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting that is read: an answer key has a handful of levels.
const maxDepth = 64

var errTooDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)

// value is a JSON value as it is compared: numbers by value, strings unescaped, objects without order.
type value struct {
	kind    jsontext.Kind
	text    string // a string's or a number's value; numbers in normal form
	items   []value
	members map[string]value
}

// diffJSON returns nil when got is one JSON value equal to want, else an error that names the first difference by its
// JSON pointer. Numbers are equal by value (1 and 1.0 and 10e-1); the order of members does not matter; a member named
// twice is a difference.
func diffJSON(want, got []byte) error {
	w, err := readJSON(want)
	if err != nil {
		return fmt.Errorf("the answer key itself is not JSON: %w", err)
	}
	g, err := readJSON(got)
	if err != nil {
		return err
	}
	return diff("", w, g)
}

func readJSON(data []byte) (value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	v, err := readValue(d, 0)
	if err != nil {
		return value{}, readError(err, d)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return value{}, fmt.Errorf("more than one JSON value (the first ends at byte %d)", d.InputOffset())
	}
	return v, nil
}

func readError(err error, d *jsontext.Decoder) error {
	if errors.Is(err, errTooDeep) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON ends too early")
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("a member is named twice at %q", d.StackPointer())
	}
	return fmt.Errorf("not JSON from byte %d on", d.InputOffset())
}

func readValue(d *jsontext.Decoder, depth int) (value, error) {
	if depth > maxDepth {
		return value{}, errTooDeep
	}
	tok, err := d.ReadToken()
	if err != nil {
		return value{}, err
	}
	v := value{kind: tok.Kind()}
	switch v.kind {
	case '"':
		v.text = tok.String()
	case '0':
		v.text = normalNumber(tok.String())
	case '[':
		for d.PeekKind() != ']' {
			item, err := readValue(d, depth+1)
			if err != nil {
				return value{}, err
			}
			v.items = append(v.items, item)
		}
		_, err = d.ReadToken()
	case '{':
		v.members = map[string]value{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return value{}, err
			}
			key := name.String()
			if v.members[key], err = readValue(d, depth+1); err != nil {
				return value{}, err
			}
		}
		_, err = d.ReadToken()
	}
	return v, err
}

// normalNumber writes a JSON number as digits without outer zeros and an exponent, so that equal values have equal
// texts whatever their size: no arithmetic is done that a long exponent could blow up.
func normalNumber(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	trimmed := strings.TrimRight(digits, "0")
	var exp int
	if exponent != "" {
		if _, err := fmt.Sscanf(exponent, "%d", &exp); err != nil || len(exponent) > 9 {
			return sign + digits + "e" + exponent // beyond any real answer: equal only to itself
		}
	}
	exp += len(digits) - len(trimmed) - len(fraction)
	return fmt.Sprintf("%s%se%d", sign, trimmed, exp)
}

var kindNames = map[jsontext.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '[': "an array", '{': "an object",
}

func diff(at string, want, got value) error {
	if want.kind != got.kind {
		return fmt.Errorf("%s is %s, expected %s", place(at), kindNames[got.kind], kindNames[want.kind])
	}
	switch want.kind {
	case '"', '0':
		if want.text != got.text {
			return fmt.Errorf("%s is not the expected %s", place(at), strings.TrimPrefix(kindNames[want.kind], "a "))
		}
	case '[':
		if len(want.items) != len(got.items) {
			return fmt.Errorf("%s has %d items, expected %d", place(at), len(got.items), len(want.items))
		}
		for i := range want.items {
			if err := diff(fmt.Sprintf("%s/%d", at, i), want.items[i], got.items[i]); err != nil {
				return err
			}
		}
	case '{':
		return diffMembers(at, want.members, got.members)
	}
	return nil
}

func diffMembers(at string, want, got map[string]value) error {
	for _, name := range sortedNames(want) {
		item, ok := got[name]
		if !ok {
			return fmt.Errorf("%s lacks the member %q", place(at), name)
		}
		if err := diff(at+"/"+string(jsontext.Pointer("").AppendToken(name)[1:]), want[name], item); err != nil {
			return err
		}
	}
	for _, name := range sortedNames(got) {
		if _, ok := want[name]; !ok {
			return fmt.Errorf("%s has a member %s that was not asked for", place(at), cut(name))
		}
	}
	return nil
}

func sortedNames(m map[string]value) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func place(at string) string {
	if at == "" {
		return "the value"
	}
	return at
}

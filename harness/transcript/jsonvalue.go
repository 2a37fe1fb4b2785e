package transcript

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The functions here walk one level of a JSON value without building anything, so that a hostile reply costs no more
// than its bytes. They expect legal JSON (see legal.go) and stay in bounds on anything else.

// kindOf is the first byte of a value: '{', '[', '"', 't', 'f', 'n', a digit or '-'; 0 for no value.
func kindOf(v []byte) byte {
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

func isNull(v []byte) bool   { return len(v) == 0 || string(v) == "null" }
func isString(v []byte) bool { return kindOf(v) == '"' }
func isObject(v []byte) bool { return kindOf(v) == '{' }
func isList(v []byte) bool   { return kindOf(v) == '[' }

// eachMember calls f with the unquoted name and the value of each member of an object, in order.
func eachMember(obj []byte, f func(name, value []byte)) {
	i := skipSpace(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return
	}
	for i++; ; i++ {
		i = skipSpace(obj, i)
		if i >= len(obj) || obj[i] != '"' {
			return
		}
		end := skipString(obj, i)
		if end < 0 {
			return
		}
		name := obj[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			s, _ := unquote(obj[i:end])
			name = []byte(s)
		}
		if i = skipSpace(obj, end); i >= len(obj) || obj[i] != ':' {
			return
		}
		i = skipSpace(obj, i+1)
		if end = skipValue(obj, i); end <= i {
			return
		}
		f(name, obj[i:end])
		if i = skipSpace(obj, end); i >= len(obj) || obj[i] != ',' {
			return
		}
	}
}

// eachElement calls f with the position and the value of each element of a list, in order.
func eachElement(list []byte, f func(n int, value []byte)) {
	i := skipSpace(list, 0)
	if i >= len(list) || list[i] != '[' {
		return
	}
	i++
	for n := 0; ; n++ {
		i = skipSpace(list, i)
		end := skipValue(list, i)
		if end <= i {
			return
		}
		f(n, list[i:end])
		if i = skipSpace(list, end); i >= len(list) || list[i] != ',' {
			return
		}
		i++
	}
}

// member is the value of the last member of that name, nil for none.
func member(obj []byte, name string) []byte {
	var found []byte
	eachMember(obj, func(n, v []byte) {
		if string(n) == name {
			found = v
		}
	})
	return found
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString is the index after the string that begins at i, -1 when it does not end.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// skipValue is the index after the value that begins at i, -1 when there is none or it does not end.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for ; i < len(b); i++ {
			switch b[i] {
			case '"':
				if i = skipString(b, i); i < 0 {
					return -1
				}
				i--
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return -1
	}
	for i < len(b) && strings.IndexByte(",]} \n\t\r:", b[i]) < 0 {
		i++
	}
	return i
}

// unquote reads a JSON string. Unpaired surrogate escapes are kept in the three-byte form that UTF-8 would give them,
// so that the halves of a pair that was cut between two strings can be joined (see text.go); lone reports them.
func unquote(v []byte) (s string, lone bool) {
	if len(v) < 2 {
		return "", false
	}
	v = v[1 : len(v)-1]
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v), false
	}
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' || i+1 >= len(v) {
			out = append(out, v[i])
			continue
		}
		i++
		switch c := v[i]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r := hex4(v, i+1)
			i += 4
			if isHigh(r) && i+2 < len(v) && v[i+1] == '\\' && v[i+2] == 'u' {
				if low := hex4(v, i+3); isLow(low) {
					r = pair(r, low)
					i += 6
				}
			}
			if isHigh(r) || isLow(r) {
				lone = true
			}
			out = appendAny(out, r)
		default:
			out = append(out, c)
		}
	}
	return string(out), lone
}

func hex4(v []byte, i int) rune {
	if i+4 > len(v) {
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(string(v[i:i+4]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

// text reads a value that should be a string; ok is false when it is something else and not null.
func text(v []byte) (s string, ok bool) {
	if !isString(v) {
		return "", isNull(v)
	}
	s, _ = unquote(v)
	return strings.ToValidUTF8(s, "\uFFFD"), true
}

// integer reads a whole number; 12.0 is one.
func integer(v []byte) *int64 {
	if c := kindOf(v); c != '-' && (c < '0' || c > '9') {
		return nil
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return &n
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return nil
	}
	n := int64(f)
	return &n
}

// number reads a finite number.
func number(v []byte) *float64 {
	if c := kindOf(v); c != '-' && (c < '0' || c > '9') {
		return nil
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// compact is a JSON value without white space between its tokens.
func compact(v []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

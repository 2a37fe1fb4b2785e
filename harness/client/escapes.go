package client

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// appendEscaped appends the places of a secret in b, which starts at the given offset, where any of its characters may
// be written as one of JSON's escapes.
func appendEscaped(found []match, b []byte, start int, secret string) []match {
	for i := range b {
		if b[i] != '\\' && b[i] != secret[0] {
			continue
		}
		if n := escapedPrefix(b[i:], secret); n > 0 {
			found = append(found, match{start + i, start + i + n})
		}
	}
	return found
}

// escapedPrefix is how many bytes at the start of b spell the secret, 0 when they do not.
func escapedPrefix(b []byte, secret string) int {
	rest := b
	for _, want := range secret {
		n := spelled(rest, want)
		if n == 0 {
			return 0
		}
		rest = rest[n:]
	}
	return len(b) - len(rest)
}

// shortEscapes are the characters that JSON escapes by one letter, each followed by it.
var shortEscapes = strings.NewReplacer("\"", `\"`, `\`, `\\`, "/", `\/`, "\b", `\b`, "\f", `\f`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// spelled is how many bytes at the start of b spell a character: as it is, or as an escape; 0 when they do not.
func spelled(b []byte, want rune) int {
	if len(b) > 1 && b[0] == '\\' {
		if n := hexSpelled(b, want); n > 0 {
			return n
		}
		if short := shortEscapes.Replace(string(want)); len(short) > 1 && bytes.HasPrefix(b, []byte(short)) {
			return len(short)
		}
	}
	if r, n := utf8.DecodeRune(b); r == want && n > 0 {
		return n
	}
	return 0
}

// hexSpelled is spelled for the escapes of four hexadecimal digits, of which a character may take two.
func hexSpelled(b []byte, want rune) int {
	first, ok := hexEscape(b)
	switch {
	case !ok:
		return 0
	case rune(first) == want:
		return 6
	case !utf16.IsSurrogate(rune(first)):
		return 0
	}
	if second, ok := hexEscape(b[6:]); ok && utf16.DecodeRune(rune(first), rune(second)) == want {
		return 12
	}
	return 0
}

// hexEscape reads the escape that b starts with.
func hexEscape(b []byte) (unit uint16, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return uint16(n), err == nil
}

package transcript

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func isHigh(r rune) bool { return r >= 0xd800 && r < 0xdc00 }
func isLow(r rune) bool  { return r >= 0xdc00 && r < 0xe000 }

func pair(high, low rune) rune { return utf16.DecodeRune(high, low) }

// appendAny is utf8.AppendRune that also writes surrogates, in three bytes.
func appendAny(b []byte, r rune) []byte {
	if isHigh(r) || isLow(r) {
		return append(b, 0xed, 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(b, r)
}

// surrogateAt reads a surrogate in its three-byte form at the start of s.
func surrogateAt(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
}

// joiner makes legal text of the strings of one channel: it joins the halves of a character that was cut between two
// strings, and puts U+FFFD for a half that stays alone. This is the one place of that repair.
type joiner struct{ high rune } // the half that the last string ended in, 0 for none

// add returns the text of s. A high half at its end is held back until the next call.
func (j *joiner) add(s string, lone bool) string {
	if s == "" || !lone && j.high == 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, ok := surrogateAt(s)
		switch {
		case ok && isLow(r) && j.high != 0:
			b.WriteRune(pair(j.high, r))
			j.high = 0
			s = s[3:]
			continue
		case j.high != 0:
			b.WriteRune(utf8.RuneError)
			j.high = 0
		}
		switch {
		case ok && isHigh(r):
			j.high = r
			s = s[3:]
		case ok:
			b.WriteRune(utf8.RuneError)
			s = s[3:]
		default:
			_, n := utf8.DecodeRuneInString(s)
			b.WriteString(s[:n])
			s = s[n:]
		}
	}
	return b.String()
}

// rest is what is still held back at the end of the channel.
func (j *joiner) rest() string {
	if j.high == 0 {
		return ""
	}
	j.high = 0
	return "\uFFFD"
}

package judge

import (
	"strings"
	"unicode"

	"plumbline/fixtures"
)

// controlledOutput counts the words of the visible reply behind the marker: what white space parts. Exact is a reply of just
// that many, each the word that was asked for in every letter: a comma, another case or a remark makes it another output than
// the one whose length was asked for.
func (x *loaded) controlledOutput() {
	if x.r.ResponseWords == 0 {
		return
	}
	c := &fixtures.ControlledOutput{RequestedWords: x.r.ResponseWords}
	x.row.ControlledOutput = c
	if x.row.VisibleContentTruncated {
		return
	}
	text := x.t.ContentSent
	if x.r.Marker != "" && beginsWith(text, x.r.Marker) {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)[len(x.r.Marker):]
	}
	n, same := 0, true
	for word := range strings.FieldsSeq(text) {
		n++
		same = same && word == x.r.Word
	}
	c.ObservedWords = &n
	c.Exact = same && n == x.r.ResponseWords
}

package mockserver

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// form holds the chunks of one streamed reply but for their tokens: what stands before a token's text and what stands
// after it, by channel. With it a token costs no encoding of a whole chunk, and waits for its moment as its text alone.
type form [channels]struct{ before, after string }

// blank stands for the token's text where a form is made. Behind it in a chunk nothing comes from outside.
const (
	blank        = "\x00"
	encodedBlank = `"\u0000"`
)

// newForm makes the form of a reply's chunks from their common head.
func newForm(head completion, r *reply) *form {
	var f form
	var b bytes.Buffer
	for c := reasoning; int(c) < channels; c++ {
		b.Reset()
		appendEvent(&b, chunk(head, r.delta(token{c, blank}), nil))
		text := b.String()
		at := strings.LastIndex(text, encodedBlank)
		f[c].before, f[c].after = text[:at], text[at+len(encodedBlank):]
	}
	return &f
}

// appendTo writes the event of one token.
func (f *form) appendTo(b *bytes.Buffer, c channel, text string) {
	b.WriteString(f[c].before)
	appendString(b, text)
	b.WriteString(f[c].after)
}

// appendString writes a string as appendJSON does.
func appendString(b *bytes.Buffer, s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			appendJSON(b, s)
			b.Truncate(b.Len() - 1) // the end of the line
			return
		}
	}
	b.WriteByte('"')
	b.WriteString(s)
	b.WriteByte('"')
}

// appendEvent writes a chunk as one event.
func appendEvent(b *bytes.Buffer, c *completion) {
	b.WriteString("data: ")
	appendJSON(b, c) // ends the line
	b.WriteByte('\n')
}

// chunk is one chunk of a streamed reply.
func chunk(head completion, delta any, finish *string) *completion {
	head.Choices = []choice{{Delta: delta, FinishReason: finish}}
	return &head
}

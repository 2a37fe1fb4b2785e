package transcript

import (
	"slices"
	"strings"
)

// repair joins the channels and mends what can be mended without guessing: text that was sent twice, thinking between
// tags. Each repair is a finding, and a reply that needs none is left as it was sent.
func (r *reader) repair() {
	last := Delta{Event: r.usageAt}
	if n := len(r.t.Deltas); n > 0 {
		last = r.t.Deltas[n-1]
	}
	r.output(Delta{Kind: Reasoning, At: last.At, Event: last.Event, Text: r.reason.rest()})
	r.output(Delta{Kind: Content, At: last.At, Event: last.Event, Text: r.content.rest()})
	r.t.ToolCalls = r.assembly.result()
	r.t.ContentSent = joined(r.t.Deltas, Content)
	r.t.ContentStrings = r.t.ContentSent
	if r.has(ContentNotString) {
		r.t.ContentStrings = joined(slices.DeleteFunc(slices.Clone(r.t.Deltas), func(d Delta) bool { return d.Recovered }), Content)
	}
	r.unrepeat()
	r.splitThinking()
	r.t.Content, r.t.Reasoning = joined(r.t.Deltas, Content), joined(r.t.Deltas, Reasoning)
	if !r.t.Stream {
		r.t.Deltas = nil // one document has one arrival: there is no time of a first token
	}
}

func joined(deltas []Delta, kind DeltaKind) string {
	n := 0
	for _, d := range deltas {
		if d.Kind == kind {
			n += len(d.Text)
		}
	}
	var b strings.Builder
	b.Grow(n)
	for _, d := range deltas {
		if d.Kind == kind {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

// Evidence needed before text counts as repeated: a model may well say one word twice.
const (
	repeatDeltas = 4  // answer deltas
	repeatBytes  = 16 // length of the text that comes twice
	// A first delta of so many bytes that all later ones begin with, each longer than the one before, is evidence from
	// growDeltas on.
	growBytes  = 3
	growDeltas = 3
)

// unrepeat takes out text that deltas repeat: either each delta holds all text so far and more, or the last delta holds
// the whole text once more.
func (r *reader) unrepeat() {
	var at []int
	for i, d := range r.t.Deltas {
		if d.Kind == Content {
			at = append(at, i)
		}
	}
	if len(at) < growDeltas {
		return
	}
	deltas := r.t.Deltas
	final := deltas[at[len(at)-1]]
	grown, growing := 0, len(final.Text) >= repeatBytes
	for i := 1; i < len(at) && growing; i++ {
		before, now := deltas[at[i-1]].Text, deltas[at[i]].Text
		growing = strings.HasPrefix(now, before)
		if len(now) > len(before) {
			grown++
		}
	}
	growing = growing && (grown >= repeatDeltas-1 || grown == len(at)-1 && len(deltas[at[0]].Text) >= growBytes)
	switch {
	case growing:
		r.add(CumulativeDelta, deltas[at[1]].Event, "choices[0].delta.content", "each delta holds the whole text so far")
		for i := len(at) - 1; i > 0; i-- {
			deltas[at[i]].Text = deltas[at[i]].Text[len(deltas[at[i-1]].Text):]
		}
	case len(at) >= repeatDeltas && len(final.Text) >= repeatBytes && final.Text == joined(deltas[:at[len(at)-1]], Content):
		r.add(CumulativeDelta, final.Event, "choices[0].delta.content", "the last delta holds the whole text once more")
		deltas[at[len(at)-1]].Text = ""
	default:
		return
	}
	r.t.Deltas = slices.DeleteFunc(deltas, func(d Delta) bool { return d.Text == "" })
}

// thinkTags are the pairs of markers between which models think.
var thinkTags = []struct{ open, close string }{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"[THINK]", "[/THINK]"},
}

// splitThinking moves thinking that stands in the answer channel to its own. It is not applied where the server used a
// field for the thinking, where the request wanted the tags, or where the prompt speaks of the tags: then a tag in the
// answer may be a word like any other.
func (r *reader) splitThinking() {
	sent := joined(r.t.Deltas, Content)
	if r.t.ReasoningField != "" || r.asked.tagsWanted || sent == "" {
		return
	}
	for _, tag := range thinkTags {
		if r.asked.mentions(tag.open) || r.asked.mentions(tag.close) {
			continue
		}
		body := strings.TrimLeft(sent, " \t\r\n")
		start := len(sent) - len(body)
		if strings.HasPrefix(body, tag.open) {
			from := start + len(tag.open)
			to, after := len(sent), len(sent)
			if i := strings.Index(sent[from:], tag.close); i >= 0 {
				to, after = from+i, from+i+len(tag.close)
			}
			r.add(ThinkTagsInContent, r.eventOf(start), "choices[0].delta.content", "")
			r.move(sent, from, to, after)
			return
		}
		if i := strings.Index(sent, tag.close); i >= 0 && !strings.Contains(sent[:i], tag.open) &&
			r.closes(sent, i, i+len(tag.close)) {
			r.add(ThinkCloseWithoutOpen, r.eventOf(i), "choices[0].delta.content", "")
			r.move(sent, 0, i, i+len(tag.close))
			return
		}
	}
}

// closes reports whether the closing tag at sent[from:to] ends thinking, and is no word of the answer: it stands at the
// end of a line, or came as a delta of its own as a control token does.
func (r *reader) closes(sent string, from, to int) bool {
	if from > 0 && strings.ContainsRune("`'\"", rune(sent[from-1])) {
		return false
	}
	if to == len(sent) || sent[to] == '\n' || sent[to] == '\r' {
		return true
	}
	pos := 0
	for _, d := range r.t.Deltas {
		if d.Kind != Content {
			continue
		}
		if pos == from && pos+len(d.Text) == to {
			return true
		}
		pos += len(d.Text)
	}
	return false
}

// eventOf is the event that brought the byte at pos of the answer as sent.
func (r *reader) eventOf(pos int) int {
	for _, d := range r.t.Deltas {
		if d.Kind != Content {
			continue
		}
		if pos < len(d.Text) {
			return d.Event
		}
		pos -= len(d.Text)
	}
	return -1
}

// move gives the answer text from … to to the thinking, and makes the tags and the blank lines between thinking and
// answer markup. White space around the thinking that only sets the tags off is markup too.
func (r *reader) move(sent string, from, to, after int) {
	thought := sent[from:to]
	inner := strings.Trim(thought, "\r\n")
	from += strings.Index(thought, inner)
	to = from + len(inner)
	after = len(sent) - len(strings.TrimLeft(sent[after:], "\r\n"))
	var out []Delta
	pos := 0
	for _, d := range r.t.Deltas {
		if d.Kind != Content {
			out = append(out, d)
			continue
		}
		for text := d.Text; text != ""; {
			kind, limit := Content, len(sent)
			switch {
			case pos < from:
				kind, limit = Markup, from
			case pos < to:
				kind, limit = Reasoning, to
			case pos < after:
				kind, limit = Markup, after
			}
			n := min(len(text), limit-pos)
			part := d
			part.Kind, part.Text = kind, text[:n]
			out = append(out, part)
			text = text[n:]
			pos += n
		}
	}
	r.t.Deltas = out
}

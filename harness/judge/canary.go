package judge

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"plumbline/fixtures"
)

const (
	markerLead = "ANVIL_REQ_"
	// Of the other requests' markers the first few are kept, each in short: a reply can make up one of any length.
	foreignKept  = 5
	markerLength = 64 // bytes
)

// canary judges how the reply kept its own marker, and looks for those of other requests. Those in the thinking are counted
// apart: a client does not show them.
func (x *loaded) canary() {
	own := x.r.Marker
	if own == "" {
		return
	}
	c := &fixtures.Canary{
		Marker:          own,
		MarkerAtStart:   beginsWith(x.t.ContentSent, own),
		CaptureComplete: !x.row.VisibleContentTruncated,
	}
	c.ObservedMarkerCount, c.ForeignMarkerCount = x.markers(x.t.ContentSent)
	if x.t.ReasoningField != "" {
		_, x.row.ForeignInThinking = x.markers(x.t.Reasoning)
	}
	c.Passed = c.MarkerAtStart && c.CaptureComplete && c.ForeignMarkerCount == 0
	x.row.Canary = c
}

// beginsWith reports whether a text, white space in front left out, begins with the marker and white space, or is the marker.
func beginsWith(text, marker string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeftFunc(text, unicode.IsSpace), marker)
	if !ok || rest == "" {
		return ok
	}
	next, _ := utf8.DecodeRuneInString(rest)
	return unicode.IsSpace(next)
}

// markers counts the request's own marker and all others in a text, and keeps the first few of those.
func (x *loaded) markers(text string) (own, foreign int) {
	for {
		i := strings.Index(text, markerLead)
		if i < 0 {
			return own, foreign
		}
		text = text[i:]
		n := markerAt(text)
		switch {
		case n == 0:
			n = len(markerLead)
		case text[:n] == x.r.Marker:
			own++
		case n == len(text) && strings.HasPrefix(x.r.Marker, text):
			// The reply broke off inside its own marker: nobody else's is in it.
		default:
			foreign++
			x.keepForeign(text[:min(n, markerLength)])
		}
		text = text[n:]
	}
}

// keepForeign keeps a copy, for the reply's text must not stay in memory for it.
func (x *loaded) keepForeign(marker string) {
	if kept := &x.row.ForeignMarkers; len(*kept) < foreignKept && !slices.Contains(*kept, marker) {
		*kept = append(*kept, strings.Clone(marker))
	}
}

// markerAt is the length of the marker that a text with markerLead in front begins with: two numbers, each with all of its
// digits, so that no marker stands in a longer one. It is 0 for none.
func markerAt(text string) int {
	seed := digits(text, len(markerLead))
	if seed == len(markerLead) || seed == len(text) || text[seed] != '_' {
		return 0
	}
	index := digits(text, seed+1)
	if index == seed+1 {
		return 0
	}
	return index
}

// digits is the index after the digits that begin at i.
func digits(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

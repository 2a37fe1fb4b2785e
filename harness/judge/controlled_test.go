package judge

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func TestWordsAreCountedBehindTheMarker(t *testing.T) {
	for claim, c := range map[string]struct {
		text   string
		marker string
		words  int // -1 for null
		exact  bool
	}{
		"just as many":             {"plumb plumb plumb", "", 3, true},
		"white space is free":      {"\nplumb\tplumb\n\n plumb \n", "", 3, true},
		"one less":                 {"plumb plumb", "", 2, false},
		"one more":                 {"plumb plumb plumb plumb", "", 4, false},
		"another word":             {"plumb plumb plum", "", 3, false},
		"another case":             {"Plumb plumb plumb", "", 3, false},
		"a full stop":              {"plumb plumb plumb.", "", 3, false},
		"commas":                   {"plumb,plumb,plumb", "", 1, false},
		"the marker is no word":    {" " + ownMarker + " plumb plumb plumb", ownMarker, 3, true},
		"elsewhere it is one":      {"plumb plumb plumb " + ownMarker, ownMarker, 4, false},
		"a cut text has no count":  {strings.Repeat("plumb ", 2000), "", -1, false},
		"leaked thinking is words": {"<think>hm</think> plumb plumb plumb", "", 4, false},
	} {
		t.Run(claim, func(t *testing.T) {
			g := NewWithT(t)
			row := Row(fixtures.LoadRequest{Marker: c.marker, ResponseWords: 3, Word: "plumb"}, answered(c.text))
			want := &fixtures.ControlledOutput{RequestedWords: 3, Exact: c.exact}
			if c.words >= 0 {
				want.ObservedWords = &c.words
			}
			g.Expect(row.ControlledOutput).To(Equal(want))
			if c.marker == "" || row.Canary.Passed {
				g.Expect(row.Failure).To(BeNil(), "the words are only observed")
				row = Row(fixtures.LoadRequest{Marker: c.marker, ResponseWords: 3, Word: "plumb", Strict: true}, answered(c.text))
				g.Expect(row.Failure == nil).To(Equal(c.exact), "strictly")
			}
		})
	}
	NewWithT(t).Expect(Row(fixtures.LoadRequest{}, answered("plumb")).ControlledOutput).To(BeNil())
}

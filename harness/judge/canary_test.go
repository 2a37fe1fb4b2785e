package judge

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

const ownMarker = "ANVIL_REQ_17_00002"

func TestACanaryIsJudgedByTheVisibleText(t *testing.T) {
	const foreign = "ANVIL_REQ_17_00003"
	exactly := ownMarker + " " + strings.Repeat("é", captureLimit-len(ownMarker)-1)
	for claim, c := range map[string]struct {
		e              *fixtures.Exchange
		atStart        bool
		own, foreign   int
		whole, passed  bool
		kept, thinking string // foreign markers, and how many stand in the thinking
	}{
		"marker and a space":                 {answered(ownMarker, " It is."), true, 1, 0, true, true, "", ""},
		"marker cut between chunks":          {answered("ANVIL_R", "EQ_17_00", "002 It is."), true, 1, 0, true, true, "", ""},
		"white space in front":               {answered("\n\n ", ownMarker+"\nIt is."), true, 1, 0, true, true, "", ""},
		"marker alone":                       {answered(ownMarker), true, 1, 0, true, true, "", ""},
		"marker twice":                       {answered(ownMarker + " " + ownMarker), true, 2, 0, true, true, "", ""},
		"a colon behind it":                  {answered(ownMarker + ": It is."), false, 1, 0, true, false, "", ""},
		"not at the start":                   {answered("It is. " + ownMarker), false, 1, 0, true, false, "", ""},
		"in quotes":                          {answered(`"` + ownMarker + `" it is`), false, 1, 0, true, false, "", ""},
		"no marker":                          {answered("It is."), false, 0, 0, true, false, "", ""},
		"its own, cut off":                   {answered(ownMarker[:len(ownMarker)-2]), false, 0, 0, true, false, "", ""},
		"another's too":                      {answered(ownMarker, " It is. ", foreign), true, 1, 1, true, false, foreign, ""},
		"another's only":                     {answered(foreign + " It is."), false, 0, 1, true, false, foreign, ""},
		"a longer one is another's":          {answered(ownMarker + "1 It is."), false, 0, 1, true, false, ownMarker + "1", ""},
		"a shorter one is another's":         {answered("ANVIL_REQ_17_0000 It is."), false, 0, 1, true, false, "ANVIL_REQ_17_0000", ""},
		"another seed's":                     {answered(ownMarker + " ANVIL_REQ_170_00002"), true, 1, 1, true, false, "ANVIL_REQ_170_00002", ""},
		"no digits make no marker":           {answered(ownMarker + " ANVIL_REQ_ ANVIL_REQ_17 ANVIL_REQ_17_ ANVIL_REQ__1"), true, 1, 0, true, true, "", ""},
		"each is kept once, five of them":    {answered(ownMarker + " ANVIL_REQ_1_1 ANVIL_REQ_1_1 ANVIL_REQ_1_2 ANVIL_REQ_1_3 ANVIL_REQ_1_4 ANVIL_REQ_1_5 ANVIL_REQ_1_6"), true, 1, 7, true, false, "ANVIL_REQ_1_1 ANVIL_REQ_1_2 ANVIL_REQ_1_3 ANVIL_REQ_1_4 ANVIL_REQ_1_5", ""},
		"another's in the thinking":          {events(piece("reasoning_content", "not "+foreign), piece("content", ownMarker), stopped, done), true, 1, 0, true, true, foreign, "1"},
		"its own in the thinking":            {events(piece("reasoning_content", ownMarker), piece("content", "It is."), stopped, done), false, 0, 0, true, false, "", ""},
		"leaked thinking is shown":           {answered("<think>", ownMarker, "</think>", ownMarker), false, 2, 0, true, false, "", ""},
		"another's in leaked thinking":       {answered("<think>", foreign, "</think>", ownMarker), false, 1, 1, true, false, foreign, ""},
		"as many characters as are captured": {answered(exactly), true, 1, 0, true, true, "", ""},
		"one more":                           {answered(exactly + "é"), true, 1, 0, false, false, "", ""},
		"another's behind what is captured":  {answered(exactly + " " + foreign), true, 1, 1, false, false, foreign, ""},
		"a made-up marker is kept in short":  {answered(ownMarker + " ANVIL_REQ_1_" + strings.Repeat("7", 1000)), true, 1, 1, true, false, "ANVIL_REQ_1_" + strings.Repeat("7", markerLength-12), ""},
	} {
		t.Run(claim, func(t *testing.T) {
			g := NewWithT(t)
			row := Row(fixtures.LoadRequest{Marker: ownMarker}, c.e)
			g.Expect(row.Canary).To(Equal(&fixtures.Canary{Marker: ownMarker, MarkerAtStart: c.atStart, ObservedMarkerCount: c.own,
				ForeignMarkerCount: c.foreign, CaptureComplete: c.whole, Passed: c.passed}))
			g.Expect(strings.Join(row.ForeignMarkers, " ")).To(Equal(c.kept))
			g.Expect(row.ForeignInThinking).To(Equal(len(c.thinking)))
			g.Expect(row.Failure == nil).To(Equal(c.passed))
			if !c.passed {
				g.Expect(row.Failure.Class).To(Equal(fixtures.FailCanary))
			}
		})
	}
}

func TestThereIsNoCanaryWhereNoneWasAskedForOrNothingCame(t *testing.T) {
	g := NewWithT(t)
	row := Row(fixtures.LoadRequest{}, answered("ANVIL_REQ_1_1"))
	g.Expect(row.Canary).To(BeNil())
	g.Expect(row.ForeignMarkers).To(BeEmpty())
	g.Expect(row.Failure).To(BeNil())
	refused := &fixtures.Exchange{End: fixtures.End{Kind: fixtures.EndRefused}}
	g.Expect(Row(fixtures.LoadRequest{Marker: ownMarker, ResponseWords: 3, Word: "plumb"}, refused).Canary).To(BeNil())
	g.Expect(Row(fixtures.LoadRequest{Marker: ownMarker, ResponseWords: 3, Word: "plumb"}, refused).ControlledOutput).To(BeNil())
}

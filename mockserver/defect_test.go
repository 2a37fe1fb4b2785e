package mockserver

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

func TestDefectIsReadWithItsShare(t *testing.T) {
	for text, want := range map[string]Defect{
		"stall":            {"stall", 1},
		"stall=5%":         {"stall", 0.05},
		"nan=0.05":         {"nan", 0.05},
		"cut-stream=1":     {"cut-stream", 1},
		"no-done=100%":     {"no-done", 1},
		"no-done=0.000001": {"no-done", 0.000001},
	} {
		g := NewWithT(t)
		d, err := ParseDefect(text)
		g.Expect(err).NotTo(HaveOccurred(), text)
		g.Expect(d).To(Equal(want))
		again, err := ParseDefect(d.String())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Share).To(BeNumerically("~", d.Share, 1e-12))
	}
	g := NewWithT(t)
	g.Expect(Defect{"nan", 0.05}.String()).To(Equal("nan=5%"))
	for text, says := range map[string]string{
		"stal":            `find defect "stal": expected one of cut-stream, error-event`,
		"":                "expected one of",
		"stall=":          `expected a share such as 5% or 0.05, received ""`,
		"stall=five%":     `received "five%"`,
		"stall=0":         `defect "stall": expected a share above 0`,
		"stall=-5%":       "received -0.05",
		"stall=101%":      "received 1.01",
		"stall=NaN":       "received NaN",
		"stall=0.0000001": "in steps of 1e-06",
	} {
		_, err := ParseDefect(text)
		g.Expect(err).To(MatchError(ContainSubstring(says)), text)
	}
	for _, wrong := range [][]Defect{{{"nothing", 1}}, {{"nan", 2}}, {{"nan", 1}, {"stall", 1}, {"nan", 0.5}}} {
		_, err := newServer(Options{Defects: wrong})
		g.Expect(err).To(MatchError(And(HavePrefix("start mock engine"), ContainSubstring(wrong[len(wrong)-1].Name))))
	}
}

func TestEveryDefectHasAnExplanation(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, name := range DefectNames() {
		g.Expect(seen).NotTo(HaveKey(name))
		seen[name] = true
		g.Expect(Explain(name)).To(MatchRegexp(`^[A-Z].{20,}\.$`), name)
	}
	g.Expect(Explain("none such")).To(BeEmpty())
}

// hitsOf are the numbers of the first n streams that have a defect.
func hitsOf(name string, n int, wanted ...Defect) (hits []int) {
	d, err := newDrawer(wanted)
	if err != nil {
		panic(err)
	}
	for i := range n {
		j := &job{stream: true}
		if d.draw(j); len(j.defects) > 0 {
			for _, spoiled := range j.defects {
				if spoiled.name == name {
					hits = append(hits, i+1)
				}
			}
		}
	}
	return hits
}

func TestShareIsExact(t *testing.T) {
	g := NewWithT(t)
	g.Expect(hitsOf("nan", 100, Defect{"nan", 0.05})).To(Equal([]int{10, 30, 50, 70, 90}), "every twentieth")
	g.Expect(hitsOf("nan", 4, Defect{"nan", 1})).To(Equal([]int{1, 2, 3, 4}))
	g.Expect(hitsOf("rate-limit", 200, Defect{"rate-limit", 0.05})).To(Equal([]int{46, 47, 48, 49, 50, 146, 147, 148, 149, 150}), "five at a time")
	g.Expect(hitsOf("rate-limit", 7, Defect{"rate-limit", 1})).To(HaveLen(7))
	for _, share := range []float64{0.05, 1. / 3, 0.5, 0.07, 0.999, 0.001} {
		hits := hitsOf("nan", 1500, Defect{"nan", share})
		for n, upTo := 1, 0; n <= 1500; n++ {
			if upTo < len(hits) && hits[upTo] == n {
				upTo++
			}
			g.Expect(upTo).To(BeNumerically("~", float64(n)*share, 0.501), "%v of %d", share, n)
		}
	}
	g.Expect(hitsOf("stall", 4, Defect{"nan", 1}, Defect{"rate-limit", 0.001}, Defect{"stall", 1})).To(Equal([]int{1, 2, 3, 4}), "all are all")
	first, second := Defect{"nan", 0.05}, Defect{"stall", 0.05}
	g.Expect(hitsOf("nan", 100, first, second)).To(Equal([]int{10, 30, 50, 70, 90}))
	g.Expect(hitsOf("stall", 100, first, second)).To(Equal([]int{11, 31, 51, 71, 91}), "not in the same streams")
}

func TestShareIsExactWhenStreamsComeAllAtOnce(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Slots: 100, Defects: []Defect{{"no-done", 0.05}}})
	const streams = 100
	spoiled := make([]bool, streams)
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			a := chat(t, s, c, body(fmt.Sprintf("PLB-%d-X", i), `"stream":true,"max_tokens":3`))
			spoiled[i] = !strings.HasSuffix(string(a.body), endMarker)
		})
	}
	wg.Wait()
	n := 0
	for _, s := range spoiled {
		if s {
			n++
		}
	}
	g.Expect(n).To(Equal(int(math.Round(streams * 0.05))))
}

func TestStrangerIsNeverTheSameConversation(t *testing.T) {
	g := NewWithT(t)
	s := engine(t, Options{Defects: []Defect{{"foreign-marker", 1}}})
	ask := func(text string) *job {
		j, refusal := s.readChat([]byte(body(text, `"stream":true`)))
		g.Expect(refusal).To(BeNil())
		g.Expect(s.defects.draw(j)).To(BeNil())
		return j
	}
	one := ask("Begin with ANVIL_REQ_3_00001.")
	g.Expect(one.speech.sign).To(Equal("ANVIL_REQ_3_00002"), "nobody was there before")
	g.Expect(ask("Begin with ANVIL_REQ_3_00001.").other.id).NotTo(Equal(one.id))
	two := ask("Begin with ANVIL_REQ_3_00009.")
	g.Expect(two.speech.sign).To(Equal("ANVIL_REQ_3_00001"))
	g.Expect(ask("Begin with ANVIL_REQ_3_00009.").speech.sign).To(Equal("ANVIL_REQ_3_00001"), "asked once more")
	g.Expect(ask("Nothing to begin with.").speech.sign).To(Equal("ANVIL_REQ_3_00009"))
	g.Expect(ask("Begin with ANVIL_REQ_3_00009.").speech.sign).To(Equal("ANVIL_REQ_3_00000"), "the other had none")
	for sign, next := range map[string]string{"": "", "PLB-X": "PLB-Y", "PLB-Z": "PLB-A", "A_9": "A_0", "A_0": "A_1"} {
		g.Expect(following(sign)).To(Equal(next))
	}
}

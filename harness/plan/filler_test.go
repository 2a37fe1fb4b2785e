package plan

import (
	"hash/maphash"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/fixtures"
)

func TestNoLineStandsTwiceInAPrompt(t *testing.T) {
	l := load(t, unique, func(run *fixtures.CapacityRun) {
		run.Requests, run.CtxTokens, run.MaxModelLen = 1, 262144, 0
		run.Calibration.CharsPerToken = 4.5
	})
	text := message(l.Body("closed", 0))
	seen, bare := map[string]bool{}, map[string]bool{}
	number := regexp.MustCompile(`^Entry ([0-9]{6}) of`)
	lines, last := 0, 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		lines++
		if found := number.FindStringSubmatch(line); found != nil {
			entry, _ := strconv.Atoi(found[1])
			if last != 0 && entry != last+1 {
				t.Errorf("entry %d follows entry %d", entry, last)
			}
			last = entry
		}
		if without := number.ReplaceAllString(line, ""); seen[line] || bare[without] {
			t.Errorf("stands twice: %q", line)
		} else {
			seen[line], bare[without] = true, true
		}
	}
	NewWithT(t).Expect(lines).To(BeNumerically(">", 2500))
}

// runs are the hashes of all runs of so many words in a text.
func runs(seed maphash.Seed, text string, length int) map[uint64]string {
	words := strings.Fields(text)
	all := map[uint64]string{}
	for i := range max(0, len(words)-length+1) {
		run := strings.Join(words[i:i+length], " ")
		all[maphash.String(seed, run)] = run
	}
	return all
}

func TestNoTwoPromptsShareALongRunOfWordsOfTheirOwn(t *testing.T) {
	// One sentence of the corpus has at most 200 characters, some 45 words; what stands around it differs.
	const longest = 45
	l := load(t, func(run *fixtures.CapacityRun) { run.Requests, run.CtxTokens = 12, 16000 })
	seed := maphash.MakeSeed()
	seen := map[uint64]bool{}
	for i := range 12 {
		for key, run := range runs(seed, ownPart(t, message(l.Body("closed", i))), longest) {
			if seen[key] {
				t.Fatalf("request %d shares with another: %s", i, run)
			}
			seen[key] = true
		}
	}
	NewWithT(t).Expect(seen).NotTo(BeEmpty())
}

func TestFillerIsPlainTextAboutThePast(t *testing.T) {
	text := message(load(t, unique).Body("closed", 0))
	task := strings.LastIndex(text, "\n\n")
	filler := text[:task]
	for what, pattern := range map[string]string{
		"characters beyond ASCII, or of JSON": `[^ -~\n]|["\\{}\[\]<>]`,
		"a marker":                            `ANVIL|_REQ_|PLB-`,
		"an address to the reader":            `(?i)\b(you|your|please|respond|ignore|write the)\b`,
		"two blanks":                          `  |\n\n\n| \n`,
		"a slot left open":                    `%!|\bslot\b`,
	} {
		if found := regexp.MustCompile(pattern).FindString(filler); found != "" {
			t.Errorf("the filler holds %s: %q", what, found)
		}
	}
}

func TestEverySlotOfATemplateHasWords(t *testing.T) {
	used := map[string]bool{"month": true, "place": true}
	for _, template := range entryTemplates {
		for _, piece := range template {
			used[piece.slot] = true
			if _, ok := entryWords[piece.slot]; !ok && piece.slot != "" && piece.slot != "few" && piece.slot != "amount" && piece.slot != "clock" {
				t.Errorf("no words for %q", piece.slot)
			}
		}
	}
	for name, list := range entryWords {
		if !used[name] {
			t.Errorf("no template uses %q", name)
		}
		seen := map[string]bool{}
		for _, w := range list {
			if seen[w] || strings.TrimSpace(w) != w || w == "" {
				t.Errorf("%q of %q stands twice or is badly written", w, name)
			}
			seen[w] = true
		}
	}
}

func TestThePacksSentencesAreUsed(t *testing.T) {
	g := NewWithT(t)
	pack, err := corpus.Default()
	g.Expect(err).NotTo(HaveOccurred())
	picked := proseOf(pack)
	g.Expect(len(picked)).To(BeNumerically(">", 100))
	text := message(load(t).Body("closed", 0))
	quoted := 0
	for _, s := range picked {
		quoted += strings.Count(text, s) * len(s)
	}
	g.Expect(float64(quoted) / float64(len(text))).To(BeNumerically("~", 0.2, 0.04))
}

func TestAPackWithoutProseLeavesTheFillerToTheTemplates(t *testing.T) {
	g := NewWithT(t)
	l, err := Capacity(capacityRun(), "m", &corpus.Pack{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(message(l.Body("closed", 0)))).To(BeNumerically("~", 3*65536, longestWord))
}

// longestWord is how much shorter than planned a message may be: its last word and what stands around it.
const longestWord = 20

func TestADeckDealsEveryCardBeforeOneComesAgain(t *testing.T) {
	r := newDice("cards")
	d := deck{size: 7}
	var orders []string
	for range 3 {
		seen := map[int]bool{}
		order := ""
		for range 7 {
			card := d.draw(&r)
			seen[card] = true
			order += string(rune('a' + card))
		}
		NewWithT(t).Expect(seen).To(HaveLen(7))
		orders = append(orders, order)
	}
	NewWithT(t).Expect(orders[0]).NotTo(And(Equal(orders[1]), Equal(orders[2])))
}

func TestACutEndsAtAWord(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"one two three", 13, "one two three"},
		{"one two three", 12, "one two."},
		{"one two, three", 10, "one two."},
		{"one two three", 8, "one two."},
		{"one two three", 7, "one."},
		{"one two three", 2, ""},
		{"one two three", -1, ""},
	} {
		p := &page{body: []byte("frame")}
		p.write("line")
		p.endLine(1)
		since := len(p.body)
		p.write(c.text)
		cut := p.cut(since, len("line\n")+c.limit)
		g := NewWithT(t)
		g.Expect(string(p.body)).To(Equal(`frameline\n` + c.want))
		g.Expect(p.chars).To(Equal(len("line\n") + len(c.want)))
		g.Expect(cut).To(Equal(c.want != c.text))
	}
}

func BenchmarkBody(b *testing.B) {
	for _, size := range []struct {
		name   string
		tokens int
	}{{"32k", 32768}, {"262k", 262144}} {
		b.Run(size.name, func(b *testing.B) {
			l := load(b, func(run *fixtures.CapacityRun) { run.Requests, run.CtxTokens, run.MaxModelLen = 200, size.tokens, 0 })
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				body := l.Body("closed", i%200)
				b.SetBytes(int64(len(body)))
			}
		})
	}
}

func TestABodyIsWrittenIntoOneBuffer(t *testing.T) {
	g := NewWithT(t)
	l := load(t, unique, func(run *fixtures.CapacityRun) { run.Requests, run.CtxTokens = 20, 32768 })
	for i := range 20 {
		body := l.Body("closed", i)
		g.Expect(utf8.Valid(body)).To(BeTrue())
		// A buffer that had to grow would have grown by a quarter.
		g.Expect(cap(body)).To(BeNumerically("<", 98304*11/10))
	}
}

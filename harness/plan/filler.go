package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plumbline/corpus"
)

// page is a user message as it is written straight into its request body. It takes ASCII that JSON needs no escapes for,
// and line ends.
type page struct {
	body  []byte
	chars int // of the message; the body has more, for its frame and its escapes
}

func (p *page) write(text string) {
	p.body = append(p.body, text...)
	p.chars += len(text)
}

func (p *page) number(n int) {
	before := len(p.body)
	p.body = strconv.AppendInt(p.body, int64(n), 10)
	p.chars += len(p.body) - before
}

// endLine ends a line, and with two makes a paragraph.
func (p *page) endLine(times int) {
	for range times {
		p.body = append(p.body, `\n`...)
		p.chars++
	}
}

// cut takes back what was written since the body was so long, as far as the message passes the limit, down to the end of a
// word, and says whether it had to. It is for text of one line.
func (p *page) cut(since, limit int) bool {
	if p.chars <= limit {
		return false
	}
	before := p.chars - (len(p.body) - since)
	kept := p.body[since : since+max(0, limit-before)]
	// The word that the limit falls into goes whole, and a full stop takes the place of the blank before it.
	kept = bytes.TrimRight(kept[:max(0, bytes.LastIndexByte(kept, ' '))], ",;:. ")
	if len(kept) > 0 {
		kept = append(kept, '.')
	}
	p.body = p.body[:since+len(kept)]
	p.chars = before + len(kept)
	return true
}

// narrator writes filler: lines of dated entries, each of a few sentences about invented people and places, a fixed share
// of them taken from the corpus for the sake of other words. Same key, same text.
//
// All texts are to have nearly the same characters per token, long before their chances even out: what the calibration's
// small requests show must hold for large ones. So words and sentences are dealt from decks, most numbers have a fixed
// number of digits, and the corpus's share is held by length.
type narrator struct {
	rand      dice
	entry     int // number of the last line
	lengths   deck
	templates deck
	words     map[string]*deck
	prose     []string
	sentences deck // of prose
	// told and quoted are the characters so far, of all sentences and of those of the corpus.
	told, quoted int
}

const (
	proseShare   = 5  // one part in so many is the corpus's
	shortestLine = 2  // sentences
	lineLengths  = 3  // from the shortest on
	leastLine    = 60 // characters: where fewer are left, the last line takes them
	// A text starts to count somewhere between these, so that texts do not share their numbers; no prompt for a common
	// window is long enough to count up to more digits.
	firstEntry, lastFirstEntry = 100000, 499999

	firstYear, years            = 1780, 160
	smallestAmount, manyAmounts = 1000, 9000
)

func newNarrator(key string, prose []string) *narrator {
	n := &narrator{rand: newDice(key), prose: prose, words: make(map[string]*deck, len(entryWords))}
	n.entry = firstEntry + n.rand.below(lastFirstEntry-firstEntry)
	n.lengths.size, n.templates.size, n.sentences.size = lineLengths, len(entryTemplates), len(prose)
	for name, list := range entryWords {
		n.words[name] = &deck{size: len(list)}
	}
	return n
}

// fill writes lines until the message has its length or, for the last word's sake, a few characters less.
func (n *narrator) fill(p *page, limit int) {
	for {
		start := len(p.body)
		n.entry++
		p.write("Entry ")
		p.number(n.entry)
		p.write(" of ")
		p.number(1 + n.rand.below(28))
		p.write(" ")
		p.write(n.word("month"))
		p.write(" ")
		p.number(firstYear + n.rand.below(years))
		p.write(", ")
		p.write(n.word("place"))
		p.write(".")
		sentences := shortestLine + n.lengths.draw(&n.rand)
		for i := 0; i < sentences || 0 < limit-p.chars && limit-p.chars < leastLine; i++ {
			p.write(" ")
			n.sentence(p)
		}
		if p.cut(start, limit) || p.chars == limit {
			return
		}
		p.endLine(1)
	}
}

func (n *narrator) sentence(p *page) {
	start := len(p.body)
	if len(n.prose) > 0 && n.quoted*proseShare < n.told {
		p.write(n.prose[n.sentences.draw(&n.rand)])
		n.quoted += len(p.body) - start
	} else {
		for _, piece := range entryTemplates[n.templates.draw(&n.rand)] {
			p.write(piece.text)
			n.slot(p, piece.slot)
		}
		if c := p.body[start]; 'a' <= c && c <= 'z' {
			p.body[start] = c - 'a' + 'A'
		}
	}
	n.told += len(p.body) - start
}

func (n *narrator) slot(p *page, name string) {
	switch name {
	case "":
	case "few":
		p.number(2 + n.rand.below(17))
	case "amount":
		p.number(smallestAmount + n.rand.below(manyAmounts))
	case "clock":
		p.write(clockTimes[n.rand.below(len(clockTimes))])
	default:
		p.write(n.word(name))
	}
}

func (n *narrator) word(name string) string {
	return entryWords[name][n.words[name].draw(&n.rand)]
}

// clockTimes are the minutes of the day from six to ten.
var clockTimes = func() []string {
	var all []string
	for minute := 6 * 60; minute < 22*60; minute++ {
		all = append(all, fmt.Sprintf("%02d:%02d", minute/60, minute%60))
	}
	return all
}()

// deck deals the numbers below its size in a random order, all of them before one comes again: the mix of sentences, and
// with it the characters per token, is then nearly the same in every stretch of text.
type deck struct {
	size  int
	cards []int
}

func (d *deck) draw(r *dice) int {
	if len(d.cards) == 0 {
		for i := range d.size {
			d.cards = append(d.cards, i)
		}
		for i := len(d.cards) - 1; i > 0; i-- {
			k := r.below(i + 1)
			d.cards[i], d.cards[k] = d.cards[k], d.cards[i]
		}
	}
	last := len(d.cards) - 1
	card := d.cards[last]
	d.cards = d.cards[:last]
	return card
}

// dice are draws that a key decides.
type dice struct{ source *rand.PCG }

func newDice(key string) dice {
	sum := sha256.Sum256([]byte(key))
	return dice{rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:]))}
}

// below is a number from 0 up to but not n.
func (d *dice) below(n int) int {
	high, _ := bits.Mul64(d.source.Uint64(), uint64(n))
	return int(high)
}

var (
	// plainSentence needs no JSON escape; its length keeps a run of words that two prompts share short.
	plainSentence = regexp.MustCompile(`^[A-Z][A-Za-z0-9 ,;'-]{39,199}\.$`)
	// A sentence about the past is no instruction, and one without these persons does not speak to the reader.
	ofThePast = regexp.MustCompile(` (was|were|had|came|went|took|made|said|could|did|gave|found|kept|stood) `)
	speaking  = regexp.MustCompile(`(?i)\b(you|your|i|we|our|my|me|us|please)\b`)
)

// proseOf picks the sentences of a pack's performance prompts that can serve as filler, each once, in the pack's order. A
// pack without any leaves the filler to the templates.
func proseOf(pack *corpus.Pack) []string {
	var picked []string
	for _, prompt := range pack.Prompts {
		if prompt.Phase != corpus.PhasePerformance {
			continue
		}
		for line := range strings.Lines(prompt.Text) {
			for sentence := range strings.SplitAfterSeq(strings.TrimSpace(line), ". ") {
				s := strings.TrimSpace(sentence)
				if plainSentence.MatchString(s) && ofThePast.MatchString(s) && !speaking.MatchString(s) && !slices.Contains(picked, s) {
					picked = append(picked, s)
				}
			}
		}
	}
	return picked
}

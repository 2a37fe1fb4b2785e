package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"plumbline/corpus"
)

// maxRecordWords keeps a record shorter than a passage.
const maxRecordWords = 120

// The end of a prompt is fitted in records: from endgame on (in tokens), so that what is left after the longest piece
// is still room for one; a single record fills up to oneRecord.
const (
	endgame   = 450
	oneRecord = 250
	fitTries  = 4000
)

// composer chooses the pieces of the long prompts. Passages are dealt from a shuffled deck that holds each of them
// once; when it is used up, a new one is shuffled.
type composer struct {
	src   *sources
	count func(string) (int, error) // tokens of a text
	rand  *rand.Rand
	deck  []passage
	kinds []string
	seed  uint64 // the last record's
	// neighbours are the pairs of passages that follow each other in some prompt, whatever records stand between.
	neighbours map[[2]string]bool
}

// composition is one prompt in the making.
type composition struct {
	promptSource
	pieces   []string
	room     int // tokens for all entries
	used     int // tokens of the entries so far
	opening  int // tokens before the first entry
	passages int // tokens of passages so far
	records  int // tokens of records so far
	last     string
	has      map[string]bool
}

func newComposer(src *sources, count func(string) (int, error)) *composer {
	return &composer{src: src, count: count, rand: rand.New(rand.NewPCG(packSeed, 0)), neighbours: map[[2]string]bool{}}
}

// compose chooses the pieces of a prompt so that its message has Size tokens less the template's head.
func (c *composer) compose(p promptSource, head int) ([]string, error) {
	opening, err := c.count(p.opening + gap)
	if err != nil {
		return nil, err
	}
	task, err := c.count(p.task)
	if err != nil {
		return nil, err
	}
	m := &composition{promptSource: p, opening: opening, room: p.Size - head - opening - task, has: map[string]bool{}}
	needles := 0
	for m.room-m.used >= endgame {
		switch {
		case needles < len(p.needles) && m.due(p.needles[needles].Depth):
			needles++
			err = c.add(m, fmt.Sprintf("needle %d", needles))
		case m.passages <= m.records:
			err = c.addPassage(m)
		default:
			err = c.addRecord(m)
		}
		if err != nil {
			return nil, err
		}
	}
	for ; needles < len(p.needles); needles++ {
		if err := c.add(m, fmt.Sprintf("needle %d", needles+1)); err != nil {
			return nil, err
		}
	}
	if m.room-m.used > oneRecord {
		if err := c.fit(m, (m.room-m.used)/2, 20); err != nil {
			return nil, err
		}
	}
	return m.pieces, c.fit(m, m.room-m.used, 0)
}

// due says whether the next needle's place is nearer now than after one more piece of ordinary length.
func (m *composition) due(depth float64) bool {
	const ordinary = 200
	return float64(m.opening+m.used+ordinary/2) >= depth*float64(m.Size)
}

// add appends a piece and counts it.
func (c *composer) add(m *composition, piece string) error {
	tokens, err := c.measure(m, piece)
	m.pieces = append(m.pieces, piece)
	m.used += tokens
	switch {
	case strings.HasPrefix(piece, "passage "):
		m.passages += tokens
	case strings.HasPrefix(piece, "record "):
		m.records += tokens
	}
	return err
}

// measure counts a piece as the next entry.
func (c *composer) measure(m *composition, piece string) (int, error) {
	e, err := c.src.entryOf(m.promptSource, piece)
	if err != nil {
		return 0, err
	}
	return c.count(m.entryText(len(m.pieces)+1, e))
}

func (c *composer) addPassage(m *composition) error {
	for range 2 {
		i := slices.IndexFunc(c.deck, func(p passage) bool {
			return !m.has[p.id] && !c.neighbours[[2]string{m.last, p.id}] && !c.neighbours[[2]string{p.id, m.last}]
		})
		if i < 0 {
			fresh := slices.Clone(c.src.passages)
			c.rand.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
			c.deck = append(c.deck, fresh...)
			continue
		}
		id := c.deck[i].id
		c.deck = slices.Delete(c.deck, i, i+1)
		if m.last != "" {
			c.neighbours[[2]string{m.last, id}] = true
		}
		m.last, m.has[id] = id, true
		return c.add(m, "passage "+id)
	}
	return fmt.Errorf("compose prompt %q: every passage is used", m.ID)
}

func (c *composer) addRecord(m *composition) error {
	piece, err := c.nextRecord(m)
	if err != nil {
		return err
	}
	return c.add(m, piece)
}

// nextRecord names a record that was never made before, the kinds in turn.
func (c *composer) nextRecord(m *composition) (string, error) {
	for {
		if len(c.kinds) == 0 {
			c.kinds = c.src.kinds()
			c.rand.Shuffle(len(c.kinds), func(i, j int) { c.kinds[i], c.kinds[j] = c.kinds[j], c.kinds[i] })
		}
		kind := c.kinds[0]
		c.kinds = c.kinds[1:]
		c.seed++
		piece := fmt.Sprintf("record %s %d", kind, c.seed)
		e, err := c.src.entryOf(m.promptSource, piece)
		if err != nil {
			return "", err
		}
		if len(strings.Fields(e.text)) <= maxRecordWords {
			return piece, nil
		}
	}
}

// fit appends the first record that misses a length by no more than slack, or after many tries the one that comes
// nearest, if the size's tolerance allows it.
func (c *composer) fit(m *composition, length, slack int) error {
	best, bestMiss := "", 1<<30
	for range fitTries {
		piece, err := c.nextRecord(m)
		if err != nil {
			return err
		}
		tokens, err := c.measure(m, piece)
		if err != nil {
			return err
		}
		if miss := max(tokens-length, length-tokens); miss < bestMiss {
			best, bestMiss = piece, miss
		}
		if bestMiss <= slack {
			break
		}
	}
	if bestMiss > max(slack, corpus.SizeTolerance) {
		return fmt.Errorf("compose prompt %q: no record of %d tokens: the nearest misses by %d", m.ID, length, bestMiss)
	}
	return c.add(m, best)
}

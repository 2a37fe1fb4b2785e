package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// entry is one piece of a long prompt: what it is called in its heading, and its text.
type entry struct {
	label, text string
}

// entryOf reads a piece's name as the build record has it.
func (s *sources) entryOf(p promptSource, piece string) (entry, error) {
	fault := func(err error) (entry, error) {
		return entry{}, fmt.Errorf("assemble prompt %q: piece %q: %w", p.ID, piece, err)
	}
	switch kind, name, _ := strings.Cut(piece, " "); kind {
	case "passage":
		i := slices.IndexFunc(s.passages, func(p passage) bool { return p.id == name })
		if i < 0 {
			return fault(fmt.Errorf("no such passage"))
		}
		return entry{genreLabel(s.passages[i].genre), s.passages[i].text}, nil
	case "record":
		kind, number, _ := strings.Cut(name, " ")
		g, ok := s.records[kind]
		seed, err := strconv.ParseUint(number, 10, 64)
		if !ok || err != nil {
			return fault(fmt.Errorf("no such record"))
		}
		text, err := g.record(seed)
		if err != nil {
			return fault(err)
		}
		return entry{g.label, text}, nil
	case "needle":
		n, err := strconv.Atoi(name)
		if err != nil || n < 1 || n > len(p.needles) {
			return fault(fmt.Errorf("no such needle"))
		}
		return entry{p.needles[n-1].Label, p.needles[n-1].Text}, nil
	}
	return fault(fmt.Errorf("expected a passage, a record or a needle"))
}

// assemble puts a prompt together: opening, numbered entries, task. A prompt without pieces is its source text.
func (s *sources) assemble(p promptSource, pieces []string) (string, error) {
	if p.Size == 0 {
		return p.opening, nil
	}
	var b strings.Builder
	b.WriteString(p.opening + gap)
	for i, piece := range pieces {
		e, err := s.entryOf(p, piece)
		if err != nil {
			return "", err
		}
		b.WriteString(p.entryText(i+1, e))
	}
	b.WriteString(p.task)
	return b.String(), nil
}

// gap ends the opening and every entry. A token never reaches over an empty line into the next word, so the tokens of
// the parts add up to those of the whole; the builder counts the whole at the end all the same.
const gap = "\n\n"

func (p promptSource) entryText(n int, e entry) string {
	heading := strings.NewReplacer("{n}", strconv.Itoa(n), "{label}", e.label).Replace(p.Heading)
	return heading + "\n" + e.text + gap
}

// genreLabel is what one passage of a genre is called.
func genreLabel(genre string) string {
	if label, ok := genreLabels[genre]; ok {
		return label
	}
	return genre
}

var genreLabels = map[string]string{
	"letters": "letter", "essays": "essay", "reviews": "review", "recipes": "recipe",
	"howto": "how-to", "technical": "technical note", "fiction": "story", "science": "popular science",
	"legal": "house rules",
}

package plan

import (
	"crypto/sha256"
	"fmt"
	"math"

	"plumbline/fixtures"
)

// LoadWord is the word that a reply repeats where a number of words is asked for.
const LoadWord = "amber"

// The lengths that decide what a prompt has room for, in characters.
const (
	leastPrefix = 200 // a shorter common prefix is left out
	leastFiller = 40
	leastOwn    = 300 // of request-specific filler beside a common prefix
)

// loadPrompt is one user message of a capacity run: a common prefix, or none; a heading that no other request has;
// filler; a task. Without a prefix the message begins with the heading, which begins with a hash, so that no two messages
// share more than a few characters of their beginnings. Everything follows from the fields: a run with the same settings
// sends the same messages, and only one with another seed finds an engine's prefix cache cold.
type loadPrompt struct {
	seed   int64
	model  string
	stage  string
	index  int
	chars  int // wanted of the whole message
	prefix int // wanted of the common prefix; 0 for none
	task   string
}

// write fills the page. The message is at most a word shorter than wanted; it is longer only where heading and task alone
// are.
func (m loadPrompt) write(p *page, prose []string) {
	heading := m.heading()
	const apart = 2 // the line ends of a paragraph
	own := len(heading) + apart + len(m.task)
	if prefix := min(m.prefix, m.chars-own-leastOwn); prefix >= leastPrefix {
		newNarrator(fmt.Sprintf("prefix %d", m.seed), prose).fill(p, prefix-apart)
		p.endLine(apart)
	}
	p.write(heading)
	p.endLine(apart)
	if end := m.chars - len(m.task) - apart; end-p.chars >= leastFiller {
		newNarrator(fmt.Sprintf("filler %d %s %d", m.seed, m.stage, m.index), prose).fill(p, end)
		p.endLine(apart)
	}
	p.write(m.task)
}

func (m loadPrompt) heading() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "heading %d %s %d %s", m.seed, m.stage, m.index, m.model))
	return fmt.Sprintf("%x is the shelf mark of the notes that follow.", sum[:8])
}

// loadTask is what a request asks for, at the end of its message.
func loadTask(r fixtures.LoadRequest) string {
	task, rest := "Sum up the notes above in one line.", "the summary"
	if r.ResponseWords > 0 {
		// The mock engine reads this sentence, word for word.
		task = fmt.Sprintf("Write the word %s exactly %d times, separated by single spaces, and nothing else.",
			r.Word, r.ResponseWords)
		rest = "the first of the words"
	}
	if r.Marker != "" {
		task += fmt.Sprintf(" The reply begins with the marker %s and one space, with %s right after it.", r.Marker, rest)
	}
	return task
}

// promptChars is the length of a message that is planned to have so many tokens.
func promptChars(c fixtures.Calibration, tokens int) int {
	return int(math.Round((float64(tokens) - c.OverheadTokens) * c.CharsPerToken))
}

// loadMarker is what the reply of the n-th request of a whole run begins with.
func loadMarker(seed int64, n int) string { return fmt.Sprintf("ANVIL_REQ_%d_%05d", seed, n) }

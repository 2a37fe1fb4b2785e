package mockserver

import (
	"math/rand/v2"
	"strings"
)

// The vocabulary of seeded text. Patterns take a word of a list wherever they name it in braces.
var (
	nouns = strings.Fields(`archive bakery barometer bridge canal catalogue cellar chart clock compass courtyard engine
		ferry garden granary harbour hinge kettle kiln lantern ledger library lighthouse loom machine map market meadow
		mill museum orchard oven paddle pantry parcel pump quarry railway recipe reservoir river sail schedule shelter
		signal station survey telescope terrace timetable tower tunnel valley workshop`)
	people = strings.Fields(`apprentice archivist baker carpenter cartographer clerk conductor engineer ferryman
		gardener inspector mason mechanic miller nurse pilot potter printer sailor teacher watchmaker weaver`)
	adjectives = strings.Fields(`brittle careful crowded distant dusty early faded gentle heavy hollow idle narrow
		ordinary patient plain quiet reliable rusty shallow sharp silent slow spare steady sturdy sudden unlikely warm`)
	verbs = strings.Fields(`adjusts borrows carries checks cleans copies counts crosses draws empties follows guards
		inspects measures mends moves opens paints passes prepares replaces reports sorts studies tests weighs`)
	times = []string{"after the rain", "at dawn", "before the first train", "during the long winter", "every second week",
		"in late autumn", "on market days", "shortly before noon", "toward evening", "when the tide turns"}
	places = []string{"along the old wall", "behind the station", "beside the canal", "near the north gate",
		"on the upper floor", "under the bridge", "at the edge of the village", "across the square"}
	numbers = strings.Fields("2 3 4 5 6 7 8 9 11 12 14 15 18 20 24 30 36 40 45 60 75 90 120")
)

var lists = map[string][]string{"noun": nouns, "person": people, "adjective": adjectives, "verb": verbs, "time": times,
	"place": places, "number": numbers}

// answerPatterns are the sentences of an answer.
var answerPatterns = []string{
	"the {adjective} {noun} stands {place}, and the {person} {verb} it {time}",
	"{time}, the {person} {verb} the {noun} and writes {number} lines about it",
	"nobody had counted the {noun} twice: the first count gave {number}, the second {number}",
	"a {adjective} {noun} needs less care than a {adjective} one, as any {person} will say",
	"if the {noun} is {adjective}, the {person} {verb} the {noun} instead",
	"there are {number} reasons to keep the {noun} {place}; the {adjective} {noun} is only one of them",
	"what the {person} {verb} {time}, the {person} {verb} again a day later",
	"the {noun} costs {number} coins a month, which is more than the {adjective} {noun} ever earned",
	"between the {noun} and the {noun} lies a {adjective} path of {number} steps",
	"one {person} {verb} the {noun} by hand, while another waits {place} with the {noun}",
	"the plan was simple: open the {noun}, move the {adjective} {noun}, and close everything {time}",
	"without the {noun}, said the {person}, the whole {noun} would be {adjective}",
	"{place} one can still see the {noun} that the {person} {verb} {time}",
	"of {number} visitors, {number} asked about the {adjective} {noun} and the rest about the {noun}",
}

// thinkingPatterns are the sentences of a train of thought.
var thinkingPatterns = []string{
	"the request is about something {adjective}, so a {adjective} answer should do",
	"first I should settle what the {noun} has to do with it",
	"a comparison with the {noun} may help, though the {person} would object",
	"I could give {number} examples, but {number} are enough",
	"let me check the order: the {noun} first, then the {adjective} {noun}",
	"the {person} {verb} the {noun} {time}; that detail belongs near the start",
	"it is better to stay with the {noun} than to wander off to the {noun}",
	"the length matters too, so the part about the {adjective} {noun} stays short",
	"I had better mention the {noun} {place} before closing",
}

// Lengths of seeded text in sentences. With the patterns above a reply has some 250 to 700 pseudo-tokens, so that a
// budget of 512 cuts some replies and not others, as it does with a real model.
const (
	leastThinking, mostThinking = 3, 7
	leastAnswer, mostAnswer     = 9, 24
	paragraph                   = 5
)

// thinkingText is a train of thought; a brief one is a single sentence.
func thinkingText(rng *rand.Rand, brief bool) string {
	n := leastThinking + rng.IntN(mostThinking-leastThinking+1)
	if brief {
		n = 1
	}
	return sentences(rng, thinkingPatterns, n)
}

// answerText is an answer of several sentences in paragraphs.
func answerText(rng *rand.Rand) string {
	return sentences(rng, answerPatterns, leastAnswer+rng.IntN(mostAnswer-leastAnswer+1))
}

// sentences makes n sentences, no two neighbours of one pattern.
func sentences(rng *rand.Rand, patterns []string, n int) string {
	var text strings.Builder
	last := -1
	for i := range n {
		switch {
		case i == 0:
		case i%paragraph == 0:
			text.WriteString("\n\n")
		default:
			text.WriteByte(' ')
		}
		next := rng.IntN(len(patterns))
		if next == last {
			next = (next + 1) % len(patterns)
		}
		last = next
		sentence := fill(rng, patterns[next])
		text.WriteString(strings.ToUpper(sentence[:1]) + sentence[1:] + ".")
	}
	return text.String()
}

// fill puts words into a pattern.
func fill(rng *rand.Rand, pattern string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(pattern, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		out.WriteString(pick(rng, lists[name]))
		pattern = after
	}
}

func pick(rng *rand.Rand, words []string) string { return words[rng.IntN(len(words))] }

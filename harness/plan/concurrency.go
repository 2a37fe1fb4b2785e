package plan

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"plumbline/corpus"
	"plumbline/fixtures"
)

// Concurrency returns the requests of the optional stage for a server of the given capacity: for every level, rounds
// of as many unique requests as the level, each with a marker of its own. The run id goes into the markers, so that an
// answer left over from another run cannot pass for this one's.
func Concurrency(a Asker, capacity int, runID string) ([]Request, error) {
	var requests []Request
	salt := fmt.Sprintf("%X", sha256.Sum256([]byte(runID)))[:6]
	n := 0
	for _, level := range corpus.ConcurrencyLevels(capacity) {
		for round := 1; round <= corpus.ConcurrencyRounds; round++ {
			for place := 1; place <= level; place++ {
				marker := fmt.Sprintf("PLB-%s-%d-%d-%d", salt, level, round, place)
				r, err := a.concurrent(marker, n, level, round, place)
				if err != nil {
					return nil, err
				}
				requests = append(requests, r)
				n++
			}
		}
	}
	return requests, nil
}

func (a Asker) concurrent(marker string, n, level, round, place int) (Request, error) {
	p := fixtures.Planned{
		ID:         fmt.Sprintf("%s-c%d-r%d-%d", corpus.PhaseConcurrency, level, round, place),
		Phase:      corpus.PhaseConcurrency,
		CaseID:     fmt.Sprintf("c%d", level),
		Repetition: round, Seed: int64(round), Round: &round,
		MaxOutputTokens: budgets[corpus.PhaseConcurrency], Concurrency: level, Marker: marker,
	}
	text := concurrencyText(marker, n)
	body, err := a.body(p, text, nil)
	if err != nil {
		return Request{}, fmt.Errorf("plan request %q: %w", p.ID, err)
	}
	return Request{Planned: p, Path: ChatPath, Body: body, Text: text}, nil
}

// Level returns the ids of one level's requests, round by round.
func Level(requests []Request, level int) [][]string {
	rounds := make([][]string, corpus.ConcurrencyRounds)
	for _, r := range requests {
		if r.Phase == corpus.PhaseConcurrency && r.Concurrency == level {
			rounds[*r.Round-1] = append(rounds[*r.Round-1], r.ID)
		}
	}
	if len(rounds[0]) == 0 {
		return nil
	}
	return rounds
}

// The n-th text pairs a subject with an angle. Both lengths are coprime, so that all pairs come up before one repeats;
// the marker makes the rest unique.
func concurrencyText(marker string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is the marker of this message. Begin your reply with that marker and one space, and do not "+
		"write any other marker. Then, in three paragraphs, explain %s to %s.",
		marker, subjects[n%len(subjects)], readers[n%len(readers)])
	return b.String()
}

var subjects = []string{
	"how a canal lock lifts a boat", "why bread dough is folded", "how a pendulum clock keeps time",
	"what a keystone does in an arch", "how salt changes the boiling of water", "why ships carry ballast",
	"how a loom makes a pattern", "what makes glass brittle", "how bees agree on a new nest",
	"why railway tracks have gaps", "how a water wheel is geared", "what a surveyor's chain measured",
	"how paper is made from rags", "why mirrors swap left and right", "how tides are predicted",
	"what causes an echo in a valley", "how a sundial is set for its latitude", "why onions make us weep",
	"how a printing press inks its type",
}

var readers = []string{
	"a curious child", "a new apprentice", "a patient neighbour", "a town council", "a visiting engineer",
	"a school class", "a radio audience", "someone who doubts it", "a friend who paints", "a retired sailor", "a night nurse",
	"a young carpenter", "a careful editor", "a tired traveller", "a museum guide", "a village doctor", "a chess player",
}

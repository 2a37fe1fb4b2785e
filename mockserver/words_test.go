package mockserver

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// repeatWord is the task of a prompt that fixes its reply.
func repeatWord(word string, n int) string {
	return fmt.Sprintf("Write the word %s exactly %d times, separated by single spaces, and nothing else.", word, n)
}

const noThinking = `"chat_template_kwargs":{"enable_thinking":false}`

func TestRepeatedWordsAreOneTokenEach(t *testing.T) {
	s, c := start(t, Options{})
	sign := "ANVIL_REQ_17_123456"
	for _, word := range []string{"amber", "a", "counterrevolutionaries", "x-1", "naïveté", `"no"`} {
		for _, n := range []int{1, 2, 100} {
			for _, marker := range []string{"", sign} {
				g := NewWithT(t)
				prompt := strings.Repeat("Amber is a word, and so is stone. ", 50) + repeatWord(word, n)
				want := strings.TrimSuffix(strings.Repeat(word+" ", n), " ")
				tokens := n
				if marker != "" {
					prompt += " Begin the reply with " + marker + " and one space."
					want = marker + " " + want
					tokens += countPieces(marker)
				}
				h := hear(t, chat(t, s, c, body(prompt, usageAsked+","+noThinking)))
				g.Expect(h.content).To(Equal(want))
				g.Expect(h.reasoning).To(BeEmpty())
				g.Expect(h.finish).To(Equal("stop"))
				g.Expect(h.pieces).To(HaveLen(tokens))
				g.Expect(h.usage["completion_tokens"]).To(Equal(float64(tokens)))
				whole := chat(t, s, c, body(prompt, noThinking)).json(t)["choices"].([]any)[0].(map[string]any)
				g.Expect(whole["message"]).To(HaveKeyWithValue("content", want))
			}
		}
	}
}

func TestRepeatedWordsEndAtTheBudget(t *testing.T) {
	s, c := start(t, Options{})
	for _, tc := range []struct {
		n, budget int
		finish    string
	}{{100, 99, "length"}, {100, 100, "stop"}, {9999999, 64, "length"}} {
		g := NewWithT(t)
		h := hear(t, chat(t, s, c, body(repeatWord("amber", tc.n), fmt.Sprintf(`%s,%s,"max_tokens":%d`, usageAsked, noThinking, tc.budget))))
		g.Expect(strings.Fields(h.content)).To(HaveLen(min(tc.n, tc.budget)))
		g.Expect(h.finish).To(Equal(tc.finish))
	}
	g := NewWithT(t)
	g.Expect(cap(generate(speech{words: repetition{"amber", 9999999}}, 64, nil).tokens)).To(BeNumerically("<", 1000), "no more is made than is asked for")
	h := hear(t, chat(t, s, c, body(repeatWord("amber", 100), usageAsked+`,"stop":["r amber amber"]`)))
	g.Expect(h.content).To(Equal("ambe"))
	g.Expect(h.finish).To(Equal("stop"))
}

func TestOnlyTheTaskFixesTheReply(t *testing.T) {
	for text, want := range map[string]repetition{
		repeatWord("amber", 100) + " Then stop.":                                                     {"amber", 100},
		repeatWord("stone", 3) + " " + repeatWord("amber", 12):                                       {"amber", 12},
		repeatWord("amber", 3) + " Write the word you like best.":                                    {"amber", 3},
		"Write the word amber exactly 0 times, separated by single spaces, and nothing else.":        {},
		"Write the word amber exactly -1 times, separated by single spaces, and nothing else.":       {},
		"Write the word amber exactly 12345678 times, separated by single spaces, and nothing else.": {},
		"Write the word amber exactly 5 times, separated by commas.":                                 {},
		"Write the word " + strings.Repeat("a", 1000):                                                {},
		"": {},
	} {
		NewWithT(t).Expect(findRepetition(text)).To(Equal(want), text)
	}
}

func TestLittleThinkingGoesBeforeALittleAnswer(t *testing.T) {
	s := engine(t, Options{Pack: pack})
	for text, brief := range map[string]bool{
		repeatWord("amber", 40):                          true,
		"Summarize the text above in one line.":          true,
		"Give a one-sentence summary.":                   true,
		"Begin with ANVIL_REQ_1_00001.":                  true,
		"Begin with PLB-1 and tell it all in one line.":  false,
		"One line. " + strings.Repeat("And more. ", 100): false,
		pack.Prompts[0].Text:                             false,
		"Tell me everything.":                            false,
	} {
		g := NewWithT(t)
		for i := range int64(50) {
			msgs := []chatMessage{{Role: "user", text: text}}
			said, refusal := s.decide(question{messages: msgs, choice: toolChoice{mode: "auto"}, thinking: true}, seedOf(msgs, &i, nil))
			g.Expect(refusal).To(BeNil())
			sentences := strings.Count(said.reasoning, ".")
			g.Expect(sentences == 1).To(Equal(brief), "%s: %s", text, said.reasoning)
		}
	}
}

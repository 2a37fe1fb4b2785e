package plan

import (
	"fmt"
	"strings"

	"plumbline/fixtures"
)

// question is a prompt that a right answer to the task follows from. It holds the answer's words where a model could
// not know them, and is as long as the parameters say.
func question(p fixtures.CaseParams, planted string) string {
	fact, ask := asking(p)
	if planted != "" {
		fact, ask = "", fmt.Sprintf("My code is %s. Keep it in mind and answer only: Noted.", planted)
	}
	if p.PromptExcerpt != "" {
		ask = p.PromptExcerpt + " … " + ask
	}
	if p.EstPromptTokens == nil {
		return strings.TrimSpace(fact + " " + ask)
	}
	depth := 0.0
	if p.NeedleDepth != nil {
		depth = min(1, max(0, *p.NeedleDepth))
	}
	filler := fillers(*p.EstPromptTokens)
	at := int(depth * float64(len(filler)))
	return strings.Join(filler[:at], " ") + "\n" + fact + "\n" + strings.Join(filler[at:], " ") + "\n\n" + ask
}

// asking is what a model must know for the task, and the question for it.
func asking(p fixtures.CaseParams) (fact, ask string) {
	const listing = "Count upwards from one in English words, separated by blanks, up to two hundred. Do not stop early."
	t := p.Task
	if t == nil {
		return "", "Write one line about a harbour."
	}
	value, _ := t.Text()
	switch t.Kind {
	case "contains":
		if t.Canary != "" {
			fact = "This file has the mark " + t.Canary + ". "
		}
		if p.NeedleDepth != nil {
			return fact + "The code is " + value + ".", "What is the code? Answer with one short sentence."
		}
		return fact + "The answer to the question below is: " + value + ".",
			"What is the answer? Reply with one short sentence that holds it word for word."
	case "exact":
		return "", "Reply with exactly the text between the lines and nothing else.\n---\n" + value + "\n---"
	case "tool_call":
		var b strings.Builder
		b.WriteString("Use the tools. Make these calls, each once:")
		for _, c := range t.Calls {
			fmt.Fprintf(&b, "\n%s with %s", c.Name, c.Arguments)
		}
		return "", b.String()
	case "json_schema", "json_object":
		return "", "Orla is 41 years old. Describe her as one JSON object and write nothing else."
	case "max_tokens", "finish_reason":
		if value == "stop" {
			return "", "Reply with the one word: yes"
		}
		return "", listing
	case "not_contains":
		return "", "Hi!"
	}
	return "", "Reply with one short sentence."
}

// fillerWords are words that common tokenizers spend one token on, in no order that a model could continue.
var fillerWords = strings.Fields("time water house river stone light paper green north table glass night round small field " +
	"music white plant metal cloud black short space train horse")

// fillers is a text of about n tokens.
func fillers(n int) []string {
	words := make([]string, max(0, n))
	for i := range words {
		words[i] = fillerWords[(i*7+i/len(fillerWords))%len(fillerWords)]
	}
	return words
}

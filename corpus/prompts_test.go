package corpus

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"hash/maphash"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/onsi/gomega"
)

// sizes are the lengths of the composed prompts, in tokens with the template's head.
var sizes = map[string]int{
	"performance-prompt-4k-r1": Tokens4K, "performance-prompt-4k-r2": Tokens4K, "performance-prompt-4k-r3": Tokens4K,
	"performance-prompt-16k-r1": Tokens16K, "performance-prompt-16k-r2": Tokens16K, "performance-prompt-16k-r3": Tokens16K,
	"sanity-R1": Tokens4K, "sanity-R2": Tokens4K, "sanity-R3": Tokens16K, "sanity-R4": Tokens16K,
}

func TestLongPromptsHaveTheirSize(t *testing.T) {
	p, byID := defaultPrompts(t)
	profile, err := LoadProfile(DefaultProfile)
	if err != nil {
		t.Fatal(err)
	}
	for id, size := range sizes {
		tokens := byID[id].ContentTokens[p.Tokenizer] + profile.TemplateHead.Plain
		if tokens < size-SizeTolerance || tokens > size+SizeTolerance {
			t.Errorf("%s has %d tokens with the template's head, expected %d within %d", id, tokens, size, SizeTolerance)
		}
		// A count that was written down wrongly would show here: English text has some 3 to 5 characters a token.
		if perToken := float64(utf8.RuneCountInString(byID[id].Text)) / float64(tokens); perToken < 2.5 || perToken > 5 {
			t.Errorf("%s has %.1f characters a token", id, perToken)
		}
	}
}

func TestRepetitionsOfTheShortCaseAreEquallyLong(t *testing.T) {
	p, byID := defaultPrompts(t)
	first := byID["performance-short-r1"].ContentTokens[p.Tokenizer]
	for _, id := range []string{"performance-short-r2", "performance-short-r3"} {
		if n := byID[id].ContentTokens[p.Tokenizer]; n != first {
			t.Errorf("%s has %d tokens, r1 has %d", id, n, first)
		}
	}
}

func TestEveryPromptStartsDifferently(t *testing.T) {
	p, _ := defaultPrompts(t)
	starts := map[string]string{}
	for _, prompt := range p.Prompts {
		if n := prompt.SharedPrefixTokens[p.Tokenizer]; n > 3 {
			t.Errorf("%s shares its first %d tokens with another prompt", prompt.ID, n)
		}
		start := strings.Join(strings.Fields(prompt.Text)[:2], " ")
		if other, ok := starts[start]; ok {
			t.Errorf("%s and %s start with %q", prompt.ID, other, start)
		}
		starts[start] = prompt.ID
		if strings.TrimSpace(prompt.Text) != prompt.Text {
			t.Errorf("%s has outer white space, which some templates cut off", prompt.ID)
		}
	}
}

// sharedRun returns a run of words that occurs in two texts, or twice in one; "" when none of that length does.
func sharedRun(texts map[string]string, length int) string {
	seed := maphash.MakeSeed()
	seen := map[uint64]string{}
	for id, text := range texts {
		words := strings.Fields(text)
		for i := range max(0, len(words)-length+1) {
			run := strings.Join(words[i:i+length], " ")
			key := maphash.String(seed, run)
			if other, ok := seen[key]; ok {
				return other + " and " + id + ": " + run
			}
			seen[key] = id
		}
	}
	return ""
}

func TestASharedRunIsFound(t *testing.T) {
	g := gomega.NewWithT(t)
	texts := map[string]string{"a": "one two three four five", "b": "zero two three\nfour six", "c": "seven"}
	g.Expect(sharedRun(texts, 3)).To(gomega.ContainSubstring("two three four"))
	g.Expect(sharedRun(texts, 4)).To(gomega.BeEmpty())
	g.Expect(sharedRun(map[string]string{"a": "x y z x y"}, 2)).To(gomega.ContainSubstring("a and a: x y"))
}

func TestNoTwoPromptsShareALongRunOfWords(t *testing.T) {
	p, byID := defaultPrompts(t)
	texts := map[string]string{}
	for _, prompt := range p.Prompts {
		texts[prompt.ID] = prompt.Text
	}
	if run := sharedRun(texts, MaxSharedWords+1); run != "" {
		t.Errorf("a run of more than %d words occurs twice, in %s", MaxSharedWords, run)
	}
	for id := range sizes {
		if run := sharedRun(map[string]string{id: byID[id].Text}, 25); run != "" {
			t.Errorf("a run of 25 words occurs twice, in %s", run)
		}
	}
}

func compression(t *testing.T, text string) float64 {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return float64(b.Len()) / float64(len(text))
}

// Repetitive text is the best case for speculative decoding, random text the worst. English prose of these lengths
// compresses to about 0.40 to 0.55 of its size.
const (
	mostRepetitive = 0.30
	mostRandom     = 0.60
)

func TestLongPromptsCompressLikeNaturalText(t *testing.T) {
	_, byID := defaultPrompts(t)
	for id := range sizes {
		text := byID[id].Text
		for part, s := range map[string]string{"whole": text, "first half": text[:len(text)/2], "second half": text[len(text)/2:]} {
			if ratio := compression(t, s); ratio < mostRepetitive || ratio > mostRandom {
				t.Errorf("the %s of %s compresses to %.2f of its size, expected %.2f to %.2f", part, id, ratio, mostRepetitive, mostRandom)
			}
		}
	}
	filler := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 300)
	if ratio := compression(t, filler); ratio >= mostRepetitive {
		t.Errorf("filler compresses to %.2f: the bound would let it pass", ratio)
	}
}

func TestNoLineIsRepeatedMoreThanAFewTimes(t *testing.T) {
	const few, short = 3, 12 // a closing brace or the head of a table's rule may come more often
	_, byID := defaultPrompts(t)
	for id := range sizes {
		count := map[string]int{}
		for line := range strings.Lines(byID[id].Text) {
			line = strings.TrimSpace(line)
			count[line]++
			if len(line) > short && count[line] == few+1 {
				t.Errorf("%s has the line %q more than %d times", id, line, few)
			}
		}
	}
}

func TestANeedleStandsOnceAtItsDepthAmongLookAlikes(t *testing.T) {
	// A needle stands between whole entries, of which one is up to a twentieth of a 4k prompt, and it is placed by tokens
	// where this test counts bytes.
	const tolerance = 0.05
	_, byID := defaultPrompts(t)
	for _, tc := range []struct {
		id, needle string
		depth      float64
		lookAlike  string
	}{
		{"sanity-R1", "TARN-4481", 0.03, `Locker \d+ at the \w+ \w+ opens with the code [A-Z]{4}-\d{4}`},
		{"sanity-R2", "Maarten Velder", 0.25, `The bell that (once )?hang?s? ?(hung )?in the [\w ]+ of [\w ]+ was cast by \w+ \w+`},
		{"sanity-R3", "VX-20931-b", 0.60, `from T\w+, harvest of \d{4}, is kept under the accession number V[XK]-\d{5}-\w`},
		{"sanity-R4", "Ingrid Rostad", 0.12, `The ferry S\w+ sails under captain \w+ \w+`},
		{"sanity-R4", "3184", 0.55, `S\w+( II)? burns [\d,]+ litres of diesel`},
		{"sanity-R4", "PS-7703-K", 0.96, `The spare \w+( shaft)? of the \w+ S\w+( II)? has the part number \w\w-\d{4}-\w`},
	} {
		prompt := byID[tc.id]
		if answer := prompt.Expect.Text + string(prompt.Expect.JSON); !strings.Contains(answer, tc.needle) {
			t.Errorf("%s: %q is not in the answer key %s", tc.id, tc.needle, answer)
		}
		if n := strings.Count(prompt.Text, tc.needle); n != 1 {
			t.Errorf("%s: %q occurs %d times, expected once", tc.id, tc.needle, n)
			continue
		}
		depth := float64(strings.Index(prompt.Text, tc.needle)) / float64(len(prompt.Text))
		if depth < tc.depth-tolerance || depth > tc.depth+tolerance {
			t.Errorf("%s: %q stands at %.3f of the text, expected about %.2f", tc.id, tc.needle, depth, tc.depth)
		}
		if n := len(regexp.MustCompile(tc.lookAlike).FindAllString(prompt.Text, -1)); n < 4 {
			t.Errorf("%s: %d sentences look like the one with %q, expected 4 or more", tc.id, n, tc.needle)
		}
	}
}

// A grader may ask only for what the prompt says: every name and every text of the answer stands in the prompt, or in
// the tools that it offers.
func TestAPromptStatesWhatItsAnswerNeeds(t *testing.T) {
	p, _ := defaultPrompts(t)
	stated := 0
	for _, prompt := range p.Prompts {
		if prompt.Expect == nil || prompt.Expect.Kind == ExpectText {
			continue
		}
		value := prompt.Expect.JSON
		if prompt.Expect.Kind == ExpectToolCall {
			value = prompt.Expect.Call.Arguments
			if !strings.Contains(prompt.Text, "call") {
				t.Errorf("%s does not ask for a call", prompt.ID)
			}
		} else if !strings.Contains(prompt.Text, "No code fence") {
			t.Errorf("%s does not forbid a code fence", prompt.ID)
		}
		for _, word := range words(t, value) {
			stated++
			if !strings.Contains(prompt.Text+string(prompt.Tools), word) {
				t.Errorf("%s: %q of the answer stands neither in the prompt nor in its tools", prompt.ID, word)
			}
		}
	}
	if stated < 30 {
		t.Errorf("%d words were looked for: the answers were not read", stated)
	}
}

func TestValuesAreSentWithoutTheLayoutOfTheirFiles(t *testing.T) {
	p, _ := defaultPrompts(t)
	checked := 0
	for _, prompt := range p.Prompts {
		values := []json.RawMessage{prompt.Tools}
		if prompt.Expect != nil {
			values = append(values, prompt.Expect.JSON)
			if call := prompt.Answer.Call; call != nil {
				values = append(values, call.Arguments, prompt.Expect.Call.Arguments)
			}
		}
		for _, value := range values {
			if value != nil {
				checked++
			}
			if bytes.ContainsAny(value, "\n\t") {
				t.Errorf("%s: %s is laid out over lines", prompt.ID, value)
			}
		}
	}
	if checked != 4+4+2*4 {
		t.Errorf("%d values, expected 4 of tools, 4 of JSON keys and 2 of each call", checked)
	}
}

// words returns all member names and strings of a JSON value.
func words(t *testing.T, raw json.RawMessage) []string {
	t.Helper()
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	var all []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for name, item := range v {
				all = append(all, name)
				walk(item)
			}
		}
	}
	walk(value)
	return all
}

// The template puts the tools first, so two prompts with tools are told apart by the name of the first tool.
func TestToolsStartDifferently(t *testing.T) {
	p, _ := defaultPrompts(t)
	first := map[byte]string{}
	for _, prompt := range p.Prompts {
		if len(prompt.Tools) == 0 {
			continue
		}
		name := toolNames(prompt.Tools)[0]
		if other, ok := first[name[0]]; ok {
			t.Errorf("the first tools of %s and %s start alike: %s", prompt.ID, other, name)
		}
		first[name[0]] = prompt.ID
	}
	gomega.NewWithT(t).Expect(first).To(gomega.HaveLen(4))
}

package main

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"plumbline/corpus"
)

//go:embed passages/*.txt source
var sourceFiles embed.FS

// sources is everything that the pack is made of, as it lies in passages/ and source/.
type sources struct {
	passages []passage
	records  map[string]*grammar // by kind, the name of the file
	prompts  []promptSource      // in the protocol's order
	answers  []corpus.AnswerKey
}

// passage is one self-contained text of a few sentences. Its id is its file's name and its place in it, from 1.
type passage struct {
	id, genre, text string
}

// promptSource is one entry of source/prompts.json. The message is source/prompts/ID.txt; that of a long prompt holds
// its opening and its closing task, and what lies between is composed.
type promptSource struct {
	ID         string `json:"id"`
	Phase      string `json:"phase"`
	CaseID     string `json:"case_id"`
	Category   string `json:"category,omitzero"`
	Repetition int    `json:"repetition"`
	// Tools says that source/tools/CASE.json is offered.
	Tools bool `json:"tools,omitzero"`
	// Size is the length with the template's head, in tokens; 0 for a prompt that is not composed.
	Size int `json:"size,omitzero"`
	// Heading is the form of the entries' headings: {n} is the number, {label} what the entry is.
	Heading string `json:"heading,omitzero"`

	opening, task string
	needles       []needle
}

// needle is one sentence or two that a retrieval case asks for, or that look much like it. Depth is where it belongs
// in the prompt, as a fraction of its length. The list is source/needles/CASE.json, by depth.
type needle struct {
	Depth float64 `json:"depth"`
	Asked bool    `json:"asked,omitzero"`
	Label string  `json:"label"`
	Text  string  `json:"text"`
}

// maxPassageWords leaves room below the longest run that two prompts may share: a passage's neighbours may by chance
// begin or end alike.
const maxPassageWords = corpus.MaxSharedWords - 2

// loadSources reads and checks all sources.
func loadSources() (*sources, error) {
	s := &sources{records: map[string]*grammar{}}
	if err := s.loadPassages(); err != nil {
		return nil, err
	}
	words, err := readSource("source/words.txt")
	if err != nil {
		return nil, err
	}
	shared, err := parseGrammar("words", words, nil)
	if err != nil {
		return nil, err
	}
	for _, file := range sourceList("source/records/*.txt") {
		text, err := readSource(file)
		if err != nil {
			return nil, err
		}
		kind := strings.TrimSuffix(path.Base(file), ".txt")
		if s.records[kind], err = parseGrammar(kind, text, shared.rules); err != nil {
			return nil, err
		}
	}
	if err := readJSON("source/answers.json", &s.answers); err != nil {
		return nil, err
	}
	return s, s.loadPrompts()
}

func (s *sources) loadPassages() error {
	for _, file := range sourceList("passages/*.txt") {
		text, err := readSource(file)
		if err != nil {
			return err
		}
		head, body, _ := strings.Cut(text, "\n")
		genre, ok := strings.CutPrefix(head, "# genre: ")
		if !ok {
			return fmt.Errorf("read %q: expected a first line %q, received %q", file, "# genre: …", head)
		}
		for i, text := range strings.Split(body, "\n---\n") {
			p := passage{id: fmt.Sprintf("%s/%d", strings.TrimSuffix(path.Base(file), ".txt"), i+1), genre: genre, text: strings.TrimSpace(text)}
			if n := len(strings.Fields(p.text)); n == 0 || n > maxPassageWords {
				return fmt.Errorf("read %q: passage %d has %d words, expected 1 to %d", file, i+1, n, maxPassageWords)
			}
			s.passages = append(s.passages, p)
		}
	}
	return nil
}

func (s *sources) loadPrompts() error {
	if err := readJSON("source/prompts.json", &s.prompts); err != nil {
		return err
	}
	for i := range s.prompts {
		p := &s.prompts[i]
		file := "source/prompts/" + p.ID + ".txt"
		text, err := readSource(file)
		if err != nil {
			return err
		}
		p.opening = strings.TrimSuffix(text, "\n")
		if p.Size == 0 {
			continue
		}
		var ok bool
		if p.opening, p.task, ok = strings.Cut(p.opening, "\n---\n"); !ok {
			return fmt.Errorf("read %q: expected the opening, a line --- and the task", file)
		}
		if p.Category != "retrieval" {
			continue
		}
		needles := "source/needles/" + p.CaseID + ".json"
		if err := readJSON(needles, &p.needles); err != nil {
			return err
		}
		if !slices.IsSortedFunc(p.needles, func(a, b needle) int { return cmp.Compare(a.Depth, b.Depth) }) {
			return fmt.Errorf("read %q: expected needles by depth", needles)
		}
	}
	return nil
}

func (s *sources) kinds() []string { return slices.Sorted(maps.Keys(s.records)) }

func sourceList(pattern string) []string {
	files, err := fs.Glob(sourceFiles, pattern)
	if err != nil {
		panic(err) // the patterns are constants
	}
	return files
}

func readSource(file string) (string, error) {
	data, err := sourceFiles.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read %q: %w", file, err)
	}
	return string(data), nil
}

func readJSON(file string, into any) error {
	text, err := readSource(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), into, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("read %q: %w", file, err)
	}
	return nil
}

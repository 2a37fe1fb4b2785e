package corpus

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The files of a pack besides the prompts and tools that pack.json names, and manifest.sha256.
const (
	PackFile        = "pack.json"
	AnswersFile     = "answers.json"
	TokenCountsFile = "token-counts.json"
	BuildRecordFile = "corpus-build.json"
)

// Index is pack.json: what the pack is, and its prompts in the protocol's order.
type Index struct {
	ID string `json:"id"`
	// Tokenizer is "" in a pack that was not sized in tokens.
	Tokenizer string       `json:"tokenizer"`
	Prompts   []IndexEntry `json:"prompts"`
}

// IndexEntry is one prompt of pack.json. File and Tools are paths inside the pack. The file is the user message, byte
// for byte.
type IndexEntry struct {
	ID         string `json:"id"`
	Phase      string `json:"phase"`
	CaseID     string `json:"case_id"`
	Category   string `json:"category,omitzero"`
	Repetition int    `json:"repetition"`
	File       string `json:"file"`
	Tools      string `json:"tools,omitzero"`
}

// AnswerKey is one entry of answers.json, which has exactly one for each sanity prompt.
type AnswerKey struct {
	ID     string `json:"id"`
	Expect Expect `json:"expect"`
	Answer Answer `json:"answer"`
}

// TokenCounts is token-counts.json: by tokenizer name, the counts of every prompt.
type TokenCounts map[string]TokenizerCounts

// TokenizerCounts are the counts by one tokenizer, whose data has the given SHA-256 in hex.
type TokenizerCounts struct {
	DataSHA256 string       `json:"data_sha256"`
	Prompts    []TokenCount `json:"prompts"`
}

// TokenCount is the length of one user message in tokens, no template around it, and the length of the longest prefix
// that it has in common with another message of the pack.
type TokenCount struct {
	ID           string `json:"id"`
	Content      int    `json:"content_tokens"`
	SharedPrefix int    `json:"shared_prefix_tokens"`
}

// parse makes a pack of its files, which agree with their manifest. All faults are reported, not only the first.
func parse(files map[string][]byte) (*Pack, error) {
	var (
		index   Index
		answers []AnswerKey
		counts  TokenCounts
		build   jsontext.Value
	)
	if err := errors.Join(decode(files, PackFile, &index), decode(files, AnswersFile, &answers),
		decode(files, TokenCountsFile, &counts), decode(files, BuildRecordFile, &build)); err != nil {
		return nil, err
	}
	p := &Pack{ID: index.ID, Tokenizer: index.Tokenizer, BuildRecord: files[BuildRecordFile]}
	var faults []error
	if index.ID == "" {
		faults = append(faults, fmt.Errorf("%s: the id is empty", PackFile))
	}
	for _, entry := range index.Prompts {
		prompt, err := entry.read(files)
		p.Prompts = append(p.Prompts, prompt)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: prompt %q: %w", PackFile, entry.ID, err))
		}
	}
	faults = append(faults, checkOrder(p.Prompts), addAnswers(p, answers), addCounts(p, counts))
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return p, nil
}

// decode reads one JSON file strictly: unknown members, members named twice and bad UTF-8 are refused.
func decode(files map[string][]byte, name string, into any) error {
	data, ok := files[name]
	if !ok {
		return fmt.Errorf("%s: the pack has no such file", name)
	}
	if err := json.Unmarshal(data, into, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (e IndexEntry) read(files map[string][]byte) (Prompt, error) {
	p := Prompt{
		ID: e.ID, Phase: e.Phase, CaseID: e.CaseID, Category: e.Category, Repetition: e.Repetition,
		ContentTokens: map[string]int{}, SharedPrefixTokens: map[string]int{},
	}
	text, ok := files[e.File]
	switch {
	case !ok:
		return p, fmt.Errorf("the pack has no file %q", e.File)
	case len(text) == 0:
		return p, fmt.Errorf("file %q is empty", e.File)
	case !utf8.Valid(text):
		return p, fmt.Errorf("file %q is not UTF-8", e.File)
	}
	p.Text = string(text)
	if e.Tools != "" {
		tools, err := readTools(files, e.Tools)
		if err != nil {
			return p, err
		}
		p.Tools = tools
	}
	return p, e.check()
}

// check says whether the names agree with each other; the document's readers rely on the form of an id.
func (e IndexEntry) check() error {
	want := ""
	switch e.Phase {
	case PhaseWarmup:
		want = PhaseWarmup
	case PhasePerformance:
		want = fmt.Sprintf("%s-%s-r%d", e.Phase, e.CaseID, e.Repetition)
	case PhaseSanity:
		want = fmt.Sprintf("%s-%s", e.Phase, e.CaseID)
	default:
		return fmt.Errorf("unknown phase %q: expected one of %q", e.Phase, packPhases)
	}
	switch {
	case e.CaseID == "":
		return errors.New("the case id is empty")
	case e.Repetition < 1 || e.Phase != PhasePerformance && e.Repetition != 1:
		return fmt.Errorf("repetition %d of phase %q: they count from 1, and only performance cases are repeated", e.Repetition, e.Phase)
	case e.ID != want:
		return fmt.Errorf("phase, case and repetition make the id %q", want)
	case e.Phase == PhaseSanity && !slices.Contains(Categories, e.Category):
		return fmt.Errorf("unknown category %q: expected one of %q", e.Category, Categories)
	case e.Phase != PhaseSanity && e.Category != "":
		return fmt.Errorf("category %q: only sanity prompts have one", e.Category)
	}
	return nil
}

// packPhases are the phases whose prompts a pack holds, in order: the concurrency stage makes its own.
var packPhases = []string{PhaseWarmup, PhasePerformance, PhaseSanity}

// checkOrder says whether every phase is there, phases and repetitions are in order and ids are unique.
func checkOrder(prompts []Prompt) error {
	var faults []error
	seen := map[string]bool{}
	count := map[string]int{}
	for i, p := range prompts {
		if seen[p.ID] {
			faults = append(faults, fmt.Errorf("%s: two prompts have the id %q", PackFile, p.ID))
		}
		seen[p.ID] = true
		count[p.Phase]++
		if i == 0 {
			continue
		}
		before := prompts[i-1]
		if a, b := slices.Index(packPhases, before.Phase), slices.Index(packPhases, p.Phase); a > b && b >= 0 ||
			a == b && before.Repetition > p.Repetition {
			faults = append(faults, fmt.Errorf("%s: prompt %q stands after %q: expected phases in the order %q and repetitions in turn",
				PackFile, p.ID, before.ID, packPhases))
		}
	}
	for _, phase := range packPhases {
		if count[phase] == 0 {
			faults = append(faults, fmt.Errorf("%s: no prompt of phase %q", PackFile, phase))
		}
	}
	if n := count[PhaseWarmup]; n > 1 {
		faults = append(faults, fmt.Errorf("%s: %d warm-up prompts, expected 1", PackFile, n))
	}
	return errors.Join(faults...)
}

func addCounts(p *Pack, counts TokenCounts) error {
	var faults []error
	if _, ok := counts[p.Tokenizer]; !ok && p.Tokenizer != "" {
		faults = append(faults, fmt.Errorf("%s: no counts by the pack's tokenizer %q", TokenCountsFile, p.Tokenizer))
	}
	for name, tokenizer := range counts {
		for _, c := range tokenizer.Prompts {
			i := slices.IndexFunc(p.Prompts, func(prompt Prompt) bool { return prompt.ID == c.ID })
			switch {
			case i < 0:
				faults = append(faults, fmt.Errorf("%s: tokenizer %q: the pack has no prompt %q", TokenCountsFile, name, c.ID))
			case c.Content < 1 || c.SharedPrefix < 0 || c.SharedPrefix > c.Content:
				faults = append(faults, fmt.Errorf("%s: tokenizer %q: prompt %q: %d tokens with a shared prefix of %d cannot be",
					TokenCountsFile, name, c.ID, c.Content, c.SharedPrefix))
			case p.Prompts[i].ContentTokens[name] != 0:
				faults = append(faults, fmt.Errorf("%s: tokenizer %q: prompt %q is counted twice", TokenCountsFile, name, c.ID))
			default:
				p.Prompts[i].ContentTokens[name], p.Prompts[i].SharedPrefixTokens[name] = c.Content, c.SharedPrefix
			}
		}
		for _, prompt := range p.Prompts {
			if prompt.ContentTokens[name] == 0 {
				faults = append(faults, fmt.Errorf("%s: tokenizer %q: no count for prompt %q", TokenCountsFile, name, prompt.ID))
			}
		}
	}
	return errors.Join(faults...)
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"plumbline/corpus"
)

// tokenizerName is what the pack calls the tokenizer that it is sized with.
const tokenizerName = "qwen3"

// build makes the whole pack: it chooses, counts and renders.
func build(src *sources, tok *tokenizer) (map[string][]byte, error) {
	profile, err := corpus.LoadProfile(corpus.DefaultProfile)
	if err != nil {
		return nil, err
	}
	head := profile.TemplateHead.Plain
	record := &buildRecord{
		Builder: builderVersion, Pack: corpus.DefaultID, Seed: packSeed, TemplateHead: head,
		Tokenizer: tokenizerRecord{tokenizerName, tok.sha256},
	}
	if err := record.describe(src); err != nil {
		return nil, err
	}
	c := newComposer(src, tok.count)
	var tokens [][]int
	for _, p := range src.prompts {
		entry := promptRecord{ID: p.ID, SizeTokens: p.Size}
		if p.Size > 0 {
			if entry.Pieces, err = c.compose(p, head); err != nil {
				return nil, err
			}
		}
		text, err := src.assemble(p, entry.Pieces)
		if err != nil {
			return nil, err
		}
		encoded, err := tok.encode(text)
		if err != nil {
			return nil, fmt.Errorf("build prompt %q: %w", p.ID, err)
		}
		if p.Size > 0 {
			entry.ContentTokens = len(encoded)
			if miss := len(encoded) + head - p.Size; max(miss, -miss) > corpus.SizeTolerance {
				return nil, fmt.Errorf("build prompt %q: expected %d tokens with the template's head, received %d", p.ID, p.Size, len(encoded)+head)
			}
		}
		entry.Words, entry.Bytes = len(strings.Fields(text)), len(text)
		record.Prompts = append(record.Prompts, entry)
		tokens = append(tokens, encoded)
	}
	counts := corpus.TokenizerCounts{DataSHA256: tok.sha256}
	for i, p := range src.prompts {
		counts.Prompts = append(counts.Prompts, corpus.TokenCount{ID: p.ID, Content: len(tokens[i]), SharedPrefix: sharedPrefix(tokens, i)})
	}
	if err := sameLength(src.prompts, counts.Prompts); err != nil {
		return nil, err
	}
	return render(src, record, corpus.TokenCounts{tokenizerName: counts})
}

// sharedPrefix returns the length of the longest prefix that the i-th text has in common with another.
func sharedPrefix(texts [][]int, i int) int {
	longest := 0
	for j, other := range texts {
		if j == i {
			continue
		}
		n := 0
		for n < min(len(texts[i]), len(other)) && texts[i][n] == other[n] {
			n++
		}
		longest = max(longest, n)
	}
	return longest
}

// sameLength refuses repetitions of one uncomposed performance case that differ in length at all: the texts were
// written to match.
func sameLength(prompts []promptSource, counts []corpus.TokenCount) error {
	for i, p := range prompts {
		first := slices.IndexFunc(prompts, func(q promptSource) bool { return q.CaseID == p.CaseID })
		if p.Size == 0 && counts[i].Content != counts[first].Content {
			return fmt.Errorf("build prompt %q: expected %d tokens as in %q, received %d", p.ID, counts[first].Content, prompts[first].ID, counts[i].Content)
		}
	}
	return nil
}

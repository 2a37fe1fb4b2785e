package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
)

// A tokenizer of a few merges stands for the real one, whose data is not in the repository.
func miniature(t *testing.T, edit func(map[string]any)) (*tokenizer, error) {
	t.Helper()
	vocab := map[string]int{}
	for _, r := range slices.Sorted(maps.Keys(byteOf)) {
		vocab[string(r)] = len(vocab)
	}
	for _, token := range []string{"lo", "low", "Ġlow", "Ã©", "ÃŃ"} { // Ġ is a space; Ã© the two bytes of é
		vocab[token] = len(vocab)
	}
	data := map[string]any{
		"added_tokens": []any{map[string]any{"content": "<think>"}},
		"normalizer":   map[string]any{"type": "NFC"},
		"pre_tokenizer": map[string]any{"pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`}},
			map[string]any{"type": "ByteLevel"},
		}},
		"model": map[string]any{"type": "BPE", "vocab": vocab},
	}
	if edit != nil {
		edit(data)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return loadTokenizer(dir)
}

func TestATextIsCountedInTokens(t *testing.T) {
	g := NewWithT(t)
	tok, err := miniature(t, nil)
	g.Expect(err).NotTo(HaveOccurred())
	for text, want := range map[string]int{
		"low":      1,
		"low low":  2, // the second with its space
		"slow":     2,
		"lol":      2,
		"12":       2, // each digit alone
		"é":        1,
		"e\u0301":  1, // the same in normal form C
		"\u0434\n": 3, // two bytes without a merge, and a newline
		"":         0,
	} {
		g.Expect(tok.count(text)).To(Equal(want), "%q", text)
	}
}

func TestATextWithAMarkerOfTheTemplateIsRefused(t *testing.T) {
	g := NewWithT(t)
	tok, err := miniature(t, nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = tok.count("low <think>low")
	g.Expect(err).To(MatchError(ContainSubstring(`"<think>"`)))
}

func TestAnotherKindOfTokenizerIsRefused(t *testing.T) {
	g := NewWithT(t)
	_, err := miniature(t, func(d map[string]any) { d["normalizer"] = map[string]any{"type": "NFKC"} })
	g.Expect(err).To(MatchError(ContainSubstring("expected byte-level BPE")))
	_, err = miniature(t, func(d map[string]any) { d["model"] = map[string]any{"type": "BPE", "vocab": map[string]int{"語": 0}} })
	g.Expect(err).To(MatchError(ContainSubstring("stands for no byte")))
	_, err = loadTokenizer(t.TempDir())
	g.Expect(err).To(MatchError(os.ErrNotExist))
}

func TestEveryByteHasOneCharacter(t *testing.T) {
	seen := map[byte]bool{}
	for _, b := range byteOf {
		seen[b] = true
	}
	if len(byteOf) != 256 || len(seen) != 256 {
		t.Errorf("%d characters stand for %d bytes", len(byteOf), len(seen))
	}
}

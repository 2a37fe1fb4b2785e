package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkoukk/tiktoken-go"
	"golang.org/x/text/unicode/norm"
)

// tokenizer counts as the Qwen3 models do: byte-level pair encoding over text in normal form C. Its data is large and
// not ours, so it lies outside the repository and is needed only to make a pack.
type tokenizer struct {
	bpe     *tiktoken.Tiktoken
	special []string // texts that the tokenizer would read as markers of the template
	// sha256 is the digest of tokenizer.json, in hex.
	sha256 string
}

// tokenizerFile is the part of tokenizer.json that is used.
type tokenizerFile struct {
	Added []struct {
		Content string `json:"content"`
	} `json:"added_tokens"`
	Normalizer struct {
		Type string `json:"type"`
	} `json:"normalizer"`
	PreTokenizer struct {
		Steps []struct {
			Type    string `json:"type"`
			Pattern struct {
				Regex string `json:"Regex"`
			} `json:"pattern"`
		} `json:"pretokenizers"`
	} `json:"pre_tokenizer"`
	Model struct {
		Type  string         `json:"type"`
		Vocab map[string]int `json:"vocab"`
	} `json:"model"`
}

// loadTokenizer reads tokenizer.json from a directory.
func loadTokenizer(dir string) (*tokenizer, error) {
	file := filepath.Join(dir, "tokenizer.json")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	var f tokenizerFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("load tokenizer %q: %w", file, err)
	}
	steps := f.PreTokenizer.Steps
	if f.Model.Type != "BPE" || f.Normalizer.Type != "NFC" || len(steps) != 2 || steps[0].Type != "Split" || steps[1].Type != "ByteLevel" {
		return nil, fmt.Errorf("load tokenizer %q: expected byte-level BPE behind NFC and one split, as in Qwen3", file)
	}
	// A token's number is also the rank of the merge that makes it, which is what the library goes by.
	ranks := make(map[string]int, len(f.Model.Vocab))
	for token, id := range f.Model.Vocab {
		bytes, err := byteString(token)
		if err != nil {
			return nil, fmt.Errorf("load tokenizer %q: %w", file, err)
		}
		ranks[bytes] = id
	}
	t := &tokenizer{sha256: fmt.Sprintf("%x", sha256.Sum256(data))}
	for _, added := range f.Added {
		t.special = append(t.special, added.Content)
	}
	core, err := tiktoken.NewCoreBPE(ranks, nil, steps[0].Pattern.Regex)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %q: %w", file, err)
	}
	t.bpe = tiktoken.NewTiktoken(core, nil, nil)
	return t, nil
}

// byteString turns a token of the vocabulary into its bytes. The vocabulary writes each byte as a printable
// character: those of Latin-1 that are printable stand for themselves, the other 68 are numbered from U+0100 on.
func byteString(token string) (string, error) {
	var b strings.Builder
	for _, r := range token {
		c, ok := byteOf[r]
		if !ok {
			return "", fmt.Errorf("token %q holds %q, which stands for no byte", token, r)
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

var byteOf = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	next := rune(256)
	for c := range 256 {
		r := rune(c)
		if c <= ' ' || c >= 0x7F && c <= 0xA0 || c == 0xAD {
			r = next
			next++
		}
		m[r] = byte(c)
	}
	return m
}()

// encode returns the tokens of a user message. A text that holds one of the template's markers is refused: it would
// mean something else to the engine.
func (t *tokenizer) encode(text string) ([]int, error) {
	for _, s := range t.special {
		if strings.Contains(text, s) {
			return nil, fmt.Errorf("count tokens: the text holds the marker %q", s)
		}
	}
	return t.bpe.EncodeOrdinary(norm.NFC.String(text)), nil
}

func (t *tokenizer) count(text string) (int, error) {
	tokens, err := t.encode(text)
	return len(tokens), err
}

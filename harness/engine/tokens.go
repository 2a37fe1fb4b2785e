package engine

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"
)

const tokenizePath = "/tokenize"

// question is a text to tokenize in both public forms at once. llama.cpp reads content (ggml-org/llama.cpp
// tools/server/README.md, POST /tokenize; no special tokens are added unless asked for); vLLM and SGLang read prompt
// and would add special tokens (vllm-project/vllm PR 5054). Each ignores the fields of the other, and the model may be
// left out.
type question struct {
	Content          string `json:"content"`
	Prompt           string `json:"prompt"`
	AddSpecialTokens bool   `json:"add_special_tokens"`
}

// CountTokens counts texts, each alone and without special tokens, under the engine's own tokenizer. Each text has
// opts.Endpoint to be answered. The error says why there are no counts; then none is given.
func CountTokens(ctx context.Context, base string, header http.Header, texts []string, opts Options) ([]int, error) {
	c := newCaller(base, header, opts)
	counts := make([]int, len(texts))
	for i, text := range texts {
		n, err := c.count(ctx, text)
		if err != nil {
			return nil, fmt.Errorf("count tokens of text %d of %d: %w", i+1, len(texts), err)
		}
		counts[i] = n
	}
	return counts, nil
}

// canTokenize asks for one short text.
func (c *caller) canTokenize(ctx context.Context) bool {
	_, err := c.count(ctx, "plumb line")
	return err == nil
}

func (c *caller) count(ctx context.Context, text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	a, err := c.post(ctx, tokenizePath, question{Content: text, Prompt: text})
	if err != nil {
		return 0, c.transportError(ctx, err)
	}
	if a.status != http.StatusOK {
		return 0, &Error{Problem: NotOurs, URL: c.base,
			Text: fmt.Sprintf("POST %s answers status %d%s: this engine offers no tokenizer", tokenizePath, a.status, c.message(a))}
	}
	n, ok := whole(a.json.Get("count"))
	tokens := a.json.Get("tokens")
	switch {
	case !ok && tokens.IsArray():
		n = int64(len(tokens.Array()))
	case !ok:
		return 0, &Error{Problem: NotOurs, URL: c.base,
			Text: fmt.Sprintf("POST %s answers neither \"count\" nor a list \"tokens\"", tokenizePath)}
	}
	// A token stands for at least one byte; some tokenizers put a mark in front of the text.
	if n < 1 || n > int64(len(text))+1 {
		return 0, &Error{Problem: NotOurs, URL: c.base,
			Text: fmt.Sprintf("POST %s counts %d tokens in a text of %d bytes", tokenizePath, n, len(text))}
	}
	return int(n), nil
}

// number makes a JSON number of an integer, for the readers that take one from an answer.
func number(n int64) gjson.Result { return gjson.Parse(strconv.FormatInt(n, 10)) }

package mockserver

import "plumbline/corpus"

// The length of the chat template in tokens. It is fixed, so that a prompt's length less its text's is the same for all
// requests of a kind.
const (
	headTokens    = 50 // around a lone message: what the corpus sizes its prompts for
	messageTokens = 5  // what each further message adds
)

// countPrompt is the length of the whole prompt in tokens: the template, the messages, the tools as JSON.
func (s *Server) countPrompt(msgs []chatMessage, tools []tool) int {
	n := headTokens + messageTokens*(len(msgs)-1)
	for _, m := range msgs {
		n += s.countText(m.text)
		if !absent(m.ToolCalls) {
			n += countPieces(compact(m.ToolCalls))
		}
	}
	for _, t := range tools {
		n += countPieces(t.source)
	}
	return n
}

// countText is the length of a text in tokens: the pack's own count of its prompts, else the number of pieces.
func (s *Server) countText(text string) int {
	if n := s.packCount(text); n > 0 {
		return n
	}
	return countPieces(text)
}

// packCount is the pack's count of one of its own prompts, 0 for other texts.
func (s *Server) packCount(text string) int {
	if p := s.prompts[text]; p != nil {
		return p.ContentTokens[s.opts.Pack.Tokenizer]
	}
	return 0
}

// tokenize gives a text's token ids, as many as countText counts.
func (s *Server) tokenize(text string) []int {
	parts := pieces(text)
	if n := s.packCount(text); n > 0 {
		parts = evenPieces(text, n)
	}
	ids := []int{}
	for piece := range parts {
		ids = append(ids, pieceID(piece))
	}
	return ids
}

// promptsByText finds a pack's prompts by their text.
func promptsByText(pack *corpus.Pack) map[string]*corpus.Prompt {
	prompts := map[string]*corpus.Prompt{}
	for i := range pack.Prompts {
		prompts[pack.Prompts[i].Text] = &pack.Prompts[i]
	}
	return prompts
}

package mockserver

import (
	"hash/fnv"
	"iter"
	"unicode"
	"unicode/utf8"
)

// The limits of a pseudo-token.
const (
	maxLetters = 5 // longer words are cut: four to five letters a token is what byte-pair vocabularies reach in prose
	maxBlanks  = 8 // longer runs of white space are cut
)

// pieces cuts text into pseudo-tokens; their join is the text, byte for byte. A piece is the first that fits of:
//
//   - up to 5 letters or marks, with one space before them if there is one;
//   - up to 8 white space characters, without a last space that goes with a letter;
//   - one digit, one punctuation mark, one other character, or one byte that is not UTF-8.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := pieceLen(text)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// pieceLen is the length in bytes of the first piece of a text that is not empty.
func pieceLen(text string) int {
	if text[0] == ' ' {
		if n := word(text[1:]); n > 0 {
			return 1 + n
		}
	}
	if n := word(text); n > 0 {
		return n
	}
	if c := text[0]; c < utf8.RuneSelf && !asciiSpace(c) {
		return 1
	}
	if n := run(text, unicode.IsSpace, maxBlanks); n > 0 {
		if n > 1 && text[n-1] == ' ' && word(text[n:]) > 0 {
			n--
		}
		return n
	}
	_, size := utf8.DecodeRuneInString(text)
	return size
}

// word is the length in bytes of the letters and marks that a piece can take from the start of text. Prompts are long and
// mostly ASCII: that is told apart without tables.
func word(text string) int {
	for n := range maxLetters {
		if n == len(text) || text[n] < utf8.RuneSelf && !asciiLetter(text[n]) {
			return n
		}
		if text[n] >= utf8.RuneSelf {
			return n + run(text[n:], isWord, maxLetters-n)
		}
	}
	return maxLetters
}

func asciiLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func asciiSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// run is the length in bytes of the first characters of text, at most limit of them, that are of the class.
func run(text string, class func(rune) bool, limit int) int {
	n := 0
	for ; limit > 0; limit-- {
		r, size := utf8.DecodeRuneInString(text[n:])
		if size == 0 || r == utf8.RuneError && size == 1 || !class(r) {
			break
		}
		n += size
	}
	return n
}

// isWord holds marks too, so that a letter and its accent stay together.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// countPieces is the number of pseudo-tokens of text.
func countPieces(text string) int {
	n := 0
	for len(text) > 0 {
		text = text[pieceLen(text):]
		n++
	}
	return n
}

// vocabulary is how many token ids there are.
const vocabulary = 1 << 17

// pieceID is the token id of a piece: the same piece always has the same one.
func pieceID(piece string) int {
	h := fnv.New32a()
	h.Write([]byte(piece))
	return int(h.Sum32() % vocabulary)
}

// evenPieces cuts text into exactly n parts of nearly the same length in bytes. It stands in for a tokenizer where
// only the count is known.
func evenPieces(text string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(text[len(text)*i/n : len(text)*(i+1)/n]) {
				return
			}
		}
	}
}

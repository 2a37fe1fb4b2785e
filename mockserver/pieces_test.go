package mockserver

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

func TestPiecesAreCutByTheRules(t *testing.T) {
	for text, want := range map[string][]string{
		"":                      nil,
		"the lighthouse":        {"the", " light", "house"},
		"in 1987, é":            {"in", " ", "1", "9", "8", "7", ",", " é"},
		"a  b":                  {"a", " ", " b"},
		"x\n\n\ty ":             {"x", "\n\n\t", "y", " "},
		"          z":           {"        ", " ", " z"},
		`{"k":-2.5}`:            {"{", `"`, "k", `"`, ":", "-", "2", ".", "5", "}"},
		"e\u0301e\u0301e\u0301": {"e\u0301e\u0301e", "\u0301"},
		"名前\xffä":               {"名前", "\xff", "ä"},
	} {
		NewWithT(t).Expect(slices.Collect(pieces(text))).To(Equal(want), "%q", text)
	}
}

func FuzzPiecesJoinToTheText(f *testing.F) {
	for _, s := range []string{"", " ", "func main() {\n\treturn 42\n}\n", `{"a":[1,2.5e-3,null]}`, "naïve 👩‍🚀  tail  ",
		"\xff\xfe a", "日本語のテキスト", "\u00a0\u2003x"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		parts := slices.Collect(pieces(text))
		if strings.Join(parts, "") != text {
			t.Fatalf("pieces of %q join to %q", text, parts)
		}
		if countPieces(text) != len(parts) {
			t.Fatalf("%q has %d pieces, counted %d", text, len(parts), countPieces(text))
		}
		for _, p := range parts {
			if p == "" || utf8.ValidString(text) && !utf8.ValidString(p) {
				t.Fatalf("%q has the piece %q", text, p)
			}
		}
		if n = n % 1000; n > 0 {
			if even := slices.Collect(evenPieces(text, n)); len(even) != n || strings.Join(even, "") != text {
				t.Fatalf("%d even pieces of %q are %q", n, text, even)
			}
		}
	})
}

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func parsed(t *testing.T, text string) *grammar {
	t.Helper()
	g, err := parseGrammar("test", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func written(t *testing.T, g *grammar, seed uint64) string {
	t.Helper()
	text, err := g.record(seed)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestASlotIsFilledAsItSays(t *testing.T) {
	for _, tc := range []struct{ name, grammar, want string }{
		{"rule", "@@root\nsaw a ‹bird›\n@bird\nwren", `^saw a wren$`},
		{"bound once, repeated", "@@root\n‹x:#100-999› and ‹x›, ‹x:#1000-9999›", `^(\d{3}) and $1, $1$`},
		{"capital", "@@root\n‹^bird› ‹!bird›\n@bird\nwren", `^Wren WREN$`},
		{"bound with a capital", "@@root\n‹^b:bird› ‹b›\n@bird\nwren", `^Wren wren$`},
		{"lines", "@@root\n‹3-3*bird›\n@bird\nwren\nowl\njay", `^\w+\n\w+\n\w+$`},
		{"decimals", "@@root\n‹#0.05-0.09›", `^0\.0[5-9]$`},
		{"leading zeros", "@@root\n‹#00-07›", `^0[0-7]$`},
		{"hexadecimal", "@@root\n‹hex 6›", `^[0-9a-f]{6}$`},
		{"date", "@@root\n‹date›", `^\d{4}-\d\d-\d\d$`},
		{"blocks keep their lines", "@@root\none {\n\n\ttwo\n}\n", `^one \{\n\n\ttwo\n\}$`},
		{"escapes", "@@root\n‹line›\n@line\n" + `a\nb\\n`, `^a\nb\\n$`},
		{"source code may begin with @", "@@root\n@dataclass(x)\nclass A", `^@dataclass\(x\)\nclass A$`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := parsed(t, tc.grammar)
			for seed := range uint64(20) {
				text := written(t, g, seed)
				want := tc.want
				if strings.Contains(want, "$1") { // Go's expressions have no back-references
					want = strings.ReplaceAll(want, "$1", regexp.QuoteMeta(text[:3]))
				}
				if !regexp.MustCompile(want).MatchString(text) {
					t.Errorf("seed %d gives %q, expected %s", seed, text, want)
				}
			}
		})
	}
}

func TestAClockRunsOn(t *testing.T) {
	g := parsed(t, "@@root\n‹9-9*at›\n@at\n‹clock›")
	last := ""
	for i, at := range strings.Split(written(t, g, 3), "\n") {
		if i > 0 && at <= last {
			t.Errorf("%s follows %s", at, last)
		}
		last = at
	}
}

func TestNoAlternativeComesTwiceBeforeAllHaveCome(t *testing.T) {
	g := parsed(t, "@@root\n‹4-4*bird›\n@bird\nwren\nowl\njay\nrook")
	for seed := range uint64(50) {
		NewWithT(t).Expect(strings.Split(written(t, g, seed), "\n")).To(ConsistOf("wren", "owl", "jay", "rook"))
	}
}

func TestAFaultyGrammarIsRefusedByItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"@@root\na ‹bird›":              `rule "root": no rule "bird"`,
		"@@root\na ‹bird":               `not closed`,
		"@@root\n‹#9-3›":                `range of numbers`,
		"@@root\n‹some*bird›\n@bird\na": `expected a range before *`,
		"@@root\n‹2-1*bird›\n@bird\na":  `expected a range before *`,
		"@@root\n‹›":                    `nothing to fill it with`,
		"@@root\na\n@bird":              `rule "bird" has no alternative`,
	} {
		_, err := parseGrammar("test", text, nil)
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(`"test"`), ContainSubstring(want))), text)
	}
	_, err := parsed(t, "@@root\n‹x› ‹x:#1-9›").record(1)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("before it is bound")))
}

// Records of the same kind must differ in more than a number or two, or a long prompt would be easier to predict than
// the text it stands for.
func TestRecordsOfAKindDiffer(t *testing.T) {
	src, err := loadSources()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(src.records); n < 20 {
		t.Errorf("%d kinds of records, expected 20 or more", n)
	}
	for kind, g := range src.records {
		if g.label == "" {
			t.Errorf("%s has no label", kind)
		}
		seen := map[string]string{}
		for seed := range uint64(60) {
			text := written(t, g, seed)
			if strings.ContainsAny(text, "‹›") || strings.TrimRight(text, " \n") != text || strings.Contains(text, gap+"\n") {
				t.Errorf("%s %d is not clean: %q", kind, seed, text)
			}
			letters := strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return -1
				}
				return r
			}, text)
			if twin, ok := seen[letters]; ok {
				t.Errorf("%s %d is %s but for numbers", kind, seed, twin)
			}
			seen[letters] = fmt.Sprint(seed)
		}
	}
}

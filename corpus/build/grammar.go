package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A grammar writes records of one kind, such as a server log or a snippet of source code. It is read from a text file:
//
//	label: server log        what the kind is called in headings
//	@line                    a rule; each following line is one alternative, with \n and \\ as escapes
//	@@root                   a rule whose alternatives are blocks, separated by a line ---; every kind has a root
//
// and an alternative has slots between single guillemets:
//
//	‹noun›        an alternative of the rule
//	‹x:noun›      the same, kept under the name x; ‹x› and ‹x:noun› repeat it
//	‹^noun›       with a capital first letter; ‹!noun› all in capitals
//	‹4-6*line›    that many of them, one a line
//	‹#2-90›       a number of the range, with the decimals of its end and, where its start begins with 0, its digits
//	‹hex 6›       so many hexadecimal digits
//	‹clock›       a time of day that runs on within the record; ‹minute› the same without seconds
//	‹date›        a date
//
// A rule's alternatives are not taken twice in one record until all have been used, which keeps records as varied as
// their rules allow.
type grammar struct {
	label string
	rules map[string][][]segment
}

// segment is literal text, or a slot when spec is set.
type segment struct {
	literal string
	slot
}

type slot struct {
	bind, spec string // spec is a rule or a built-in; empty for a slot that repeats bind
	form       byte   // '^', '!' or 0
	least      int    // how many, with most; 0 for one without a line of its own
	most       int
}

const rootRule = "root"

// builtIns are the slots without parameters that no rule fills.
var builtIns = []string{"clock", "minute", "date"}

// parseGrammar reads the rules of one file. Shared rules are those of the word lists; nil for the word lists
// themselves.
func parseGrammar(name, text string, shared map[string][][]segment) (*grammar, error) {
	g := &grammar{rules: maps.Clone(shared)}
	if g.rules == nil {
		g.rules = map[string][][]segment{}
	}
	rule, blocks := "", false
	var block []string
	add := func(alternative string) error {
		segments, err := parseAlternative(alternative)
		if err != nil {
			return fmt.Errorf("read grammar %q: rule %q: %w", name, rule, err)
		}
		g.rules[rule] = append(g.rules[rule], segments)
		return nil
	}
	endBlock := func() error {
		if !blocks {
			return nil
		}
		defer func() { block = nil }()
		return add(strings.TrimRight(strings.Join(block, "\n"), "\n"))
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		var err error
		switch header := ruleHeader.FindStringSubmatch(line); {
		case header != nil:
			err = endBlock()
			rule, blocks = header[2], header[1] == "@@"
			g.rules[rule] = nil
		case rule == "" && strings.HasPrefix(line, "label: "):
			g.label = strings.TrimPrefix(line, "label: ")
		case rule == "": // a remark before the first rule
		case blocks && line == "---":
			err = endBlock()
		case blocks:
			block = append(block, line)
		case line != "":
			err = add(unescape.Replace(line))
		}
		if err != nil {
			return nil, err
		}
	}
	if err := endBlock(); err != nil {
		return nil, err
	}
	return g, g.check(name)
}

// A rule's header is a line of its own; a line of source code that begins with @ has more to it.
var ruleHeader = regexp.MustCompile(`^(@@?)([a-z]+)$`)

var unescape = strings.NewReplacer(`\n`, "\n", `\\`, `\`)

func parseAlternative(text string) ([]segment, error) {
	var segments []segment
	for text != "" {
		literal, rest, found := strings.Cut(text, "‹")
		if literal != "" {
			segments = append(segments, segment{literal: literal})
		}
		if !found {
			break
		}
		inside, rest, closed := strings.Cut(rest, "›")
		if !closed {
			return nil, fmt.Errorf("the slot %q is not closed", inside)
		}
		s, err := parseSlot(inside)
		if err != nil {
			return nil, fmt.Errorf("slot %q: %w", inside, err)
		}
		segments, text = append(segments, segment{slot: s}), rest
	}
	return segments, nil
}

func parseSlot(text string) (slot, error) {
	var s slot
	if strings.HasPrefix(text, "^") || strings.HasPrefix(text, "!") {
		s.form, text = text[0], text[1:]
	}
	if bind, spec, ok := strings.Cut(text, ":"); ok {
		s.bind, text = bind, spec
	}
	if count, spec, ok := strings.Cut(text, "*"); ok {
		if _, err := fmt.Sscanf(count, "%d-%d", &s.least, &s.most); err != nil || s.least < 1 || s.most < s.least {
			return s, fmt.Errorf("expected a range before *, received %q", count)
		}
		text = spec
	}
	s.spec = text
	if text == "" {
		return s, fmt.Errorf("nothing to fill it with")
	}
	if strings.HasPrefix(text, "#") {
		_, _, err := parseRange(text)
		return s, err
	}
	return s, nil
}

// check says whether every slot can be filled.
func (g *grammar) check(name string) error {
	bound := map[string]bool{}
	for _, alternatives := range g.rules {
		for _, segments := range alternatives {
			for _, s := range segments {
				bound[s.bind] = true
			}
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(g.rules)) {
		if len(g.rules[rule]) == 0 {
			return fmt.Errorf("read grammar %q: rule %q has no alternative", name, rule)
		}
		for _, segments := range g.rules[rule] {
			for _, s := range segments {
				_, isRule := g.rules[s.spec]
				isBuiltIn := s.spec == "" || slices.Contains(builtIns, s.spec) || s.spec[0] == '#' || strings.HasPrefix(s.spec, "hex ")
				if !isRule && !isBuiltIn && !bound[s.spec] {
					return fmt.Errorf("read grammar %q: rule %q: no rule %q", name, rule, s.spec)
				}
			}
		}
	}
	return nil
}

// expansion is one record being written.
type expansion struct {
	*grammar
	rand  *rand.Rand
	bound map[string]string
	left  map[string][]int // alternatives of a rule not yet taken
	clock int              // seconds since midnight
	err   error
}

// record writes the record that the seed stands for.
func (g *grammar) record(seed uint64) (string, error) {
	e := expansion{grammar: g, rand: rand.New(rand.NewPCG(packSeed, seed)), bound: map[string]string{}, left: map[string][]int{}}
	e.clock = e.rand.IntN(20 * 3600)
	text := e.rule(rootRule)
	return text, e.err
}

func (e *expansion) rule(name string) string {
	all := e.rules[name]
	if len(e.left[name]) == 0 {
		e.left[name] = e.rand.Perm(len(all))
	}
	last := len(e.left[name]) - 1
	segments := all[e.left[name][last]]
	e.left[name] = e.left[name][:last]
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.literal)
		if s.spec != "" {
			b.WriteString(e.fill(s.slot))
		}
	}
	return b.String()
}

func (e *expansion) fill(s slot) string {
	name := s.bind
	if _, ok := e.bound[s.spec]; ok && name == "" {
		name = s.spec
	}
	text, known := e.bound[name]
	if !known || name == "" {
		text = e.fresh(s)
		if name != "" {
			e.bound[name] = text
		}
	}
	switch s.form {
	case '^':
		return strings.ToUpper(text[:1]) + text[1:]
	case '!':
		return strings.ToUpper(text)
	}
	return text
}

func (e *expansion) fresh(s slot) string {
	if s.most > 0 {
		lines := make([]string, s.least+e.rand.IntN(s.most-s.least+1))
		for i := range lines {
			lines[i] = e.rule(s.spec)
		}
		return strings.Join(lines, "\n")
	}
	switch {
	case s.spec == "clock":
		e.clock += 1 + e.rand.IntN(400)
		return fmt.Sprintf("%02d:%02d:%02d", e.clock/3600%24, e.clock/60%60, e.clock%60)
	case s.spec == "minute":
		e.clock += 60 * (1 + e.rand.IntN(20))
		return fmt.Sprintf("%02d:%02d", e.clock/3600%24, e.clock/60%60)
	case s.spec == "date":
		return fmt.Sprintf("%d-%02d-%02d", 1987+e.rand.IntN(45), 1+e.rand.IntN(12), 1+e.rand.IntN(28))
	case s.spec[0] == '#':
		return e.number(s.spec)
	case strings.HasPrefix(s.spec, "hex "):
		digits, err := strconv.Atoi(s.spec[len("hex "):])
		if err != nil {
			e.err = err
		}
		var b strings.Builder
		for range digits {
			fmt.Fprintf(&b, "%x", e.rand.IntN(16))
		}
		return b.String()
	}
	if _, ok := e.rules[s.spec]; !ok {
		e.err = fmt.Errorf("slot %q is used before it is bound", s.spec)
		return "?"
	}
	return e.rule(s.spec)
}

func parseRange(spec string) (from, to string, err error) {
	from, to, ok := strings.Cut(strings.TrimPrefix(spec, "#"), "-")
	a, errA := strconv.ParseFloat(from, 64)
	b, errB := strconv.ParseFloat(to, 64)
	if !ok || errA != nil || errB != nil || a >= b {
		return "", "", fmt.Errorf("expected a range of numbers")
	}
	return from, to, nil
}

// number draws whole steps of the last decimal, so that no rounding is involved.
func (e *expansion) number(spec string) string {
	from, to, err := parseRange(spec)
	if err != nil {
		e.err = err
		return "?"
	}
	_, fraction, _ := strings.Cut(to, ".")
	steps := func(s string) int {
		whole, part, _ := strings.Cut(s, ".")
		n, err := strconv.Atoi(whole + (part + strings.Repeat("0", len(fraction)))[:len(fraction)])
		if err != nil {
			e.err = err
		}
		return n
	}
	digits := fmt.Sprintf("%0*d", len(fraction)+1, steps(from)+e.rand.IntN(steps(to)-steps(from)+1))
	cut := len(digits) - len(fraction)
	whole := digits[:cut]
	if from[0] == '0' && fraction == "" {
		whole = strings.Repeat("0", max(0, len(from)-len(whole))) + whole
	}
	if fraction == "" {
		return whole
	}
	return whole + "." + digits[cut:]
}

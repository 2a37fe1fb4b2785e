package engine

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"plumbline/fixtures"
)

// telling collects facts. The first endpoint in the table's order to tell a fact has the word.
type telling struct {
	facts fixtures.EngineFacts
	at    string // the endpoint being read
}

func newTelling(base string) *telling {
	return &telling{facts: fixtures.EngineFacts{URL: base, Sources: map[string]string{}, Options: map[string]string{},
		ModelAliases: map[string]string{}}}
}

func (t *telling) finish() fixtures.EngineFacts {
	return t.facts
}

// maxText bounds a fact in words; a chat template may have as much as fits an answer.
const maxText = 1024

func (t *telling) text(fact string, target *string, value string) {
	if *target == "" && value != "" && len(value) <= maxText {
		*target = value
		t.facts.Sources[fact] = t.at
	}
}

func (t *telling) name(value string)    { t.text("name", &t.facts.Name, value) }
func (t *telling) version(value string) { t.text("version", &t.facts.Version, value) }

// positive is a count above zero; other values and types are no fact.
func (t *telling) positive(fact string, target **int, value gjson.Result) {
	if n, ok := whole(value); ok && *target == nil && n > 0 && n <= math.MaxInt32 {
		v := int(n)
		*target = &v
		t.facts.Sources[fact] = t.at
	}
}

func (t *telling) contextTokens(v gjson.Result) {
	t.positive("context_tokens", &t.facts.ContextTokens, v)
}
func (t *telling) capacity(v gjson.Result) { t.positive("capacity", &t.facts.Capacity, v) }

func (t *telling) served(n int64) {
	if t.facts.RequestsServed == nil && n >= 0 {
		t.facts.RequestsServed = &n
		t.facts.Sources["requests_served"] = t.at
	}
}

// option keeps an engine option as text: scalars as they are, lists and objects as JSON.
func (t *telling) option(name string, value gjson.Result) {
	text := value.String()
	if value.IsObject() || value.IsArray() {
		text = value.Raw
	}
	if _, ok := t.facts.Options[name]; ok || text == "" || len(text) > maxText || len(t.facts.Options) >= maxOptions ||
		namesSecret(name) {
		return
	}
	t.facts.Options[name] = text
	t.facts.Sources["options."+name] = t.at
}

// maxOptions bounds how many options are kept of an engine that tells many.
const maxOptions = 64

// namesSecret reports whether an option of this name could hold a key: some servers list theirs.
func namesSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"key", "secret", "token_file", "password", "credential", "auth"},
		func(part string) bool { return strings.Contains(name, part) })
}

// whole reads a JSON number that is an integer.
func whole(v gjson.Result) (int64, bool) {
	if v.Type != gjson.Number {
		return 0, false
	}
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	return n, err == nil
}

// metric sums the samples of one metric of a page in the Prometheus text format.
func metric(page []byte, name string) (float64, bool) {
	sum, found := 0.0, false
	for line := range strings.Lines(string(page)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		if i := strings.LastIndexByte(rest, '}'); i >= 0 {
			rest = rest[i+1:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		v, err := strconv.ParseFloat(fields[0], 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		sum, found = sum+v, true
	}
	return sum, found
}

package capacity

import (
	_ "embed"
	"maps"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"plumbline/reports/schema"
)

// Schema is the JSON Schema (2020-12) of the document.
//
//go:embed schema.json
var Schema []byte

// schemas are the schema and its parts for the entries of the two lists of requests. They are compiled once.
type schemas struct {
	document schema.Schema
	entry    map[string]schema.Schema // by the list
}

var compiled = sync.OnceValue(func() schemas {
	all := schema.MustCompile(Schema, "valid_timing", "failure")
	return schemas{all[0], map[string]schema.Schema{"request_timings": all[1], "failures": all[2]}}
})

// schema records departures from the schema. The entries of requests are held against it one by one, and no longer than
// there is room for what is wrong: the errors of a schema are many times as large as what they speak of.
func (v *validation) schema() {
	rest := v.root.value
	if members, ok := rest.(map[string]any); ok {
		rest = withoutEntries(members)
	}
	v.against(compiled().document, "", rest)
	for _, name := range slices.Sorted(maps.Keys(perRequest)) {
		for _, entry := range v.root.get(name).items() {
			if len(v.problems) >= keptProblems {
				return
			}
			v.against(compiled().entry[name], entry.at, entry.value)
		}
	}
}

// withoutEntries is the document with empty lists of requests.
func withoutEntries(document map[string]any) map[string]any {
	rest := maps.Clone(document)
	for name := range perRequest {
		if _, ok := rest[name].([]any); ok {
			rest[name] = []any{}
		}
	}
	return rest
}

func (v *validation) against(s schema.Schema, at jsontext.Pointer, value any) {
	s.Departures(at, value, func(at jsontext.Pointer, message string) { v.problemAt(at, "%s", message) })
}

package capacity

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is the JSON Schema (2020-12) of the document.
//
//go:embed schema.json
var Schema []byte

// schemas are the schema and its parts for the entries of the two lists of requests. They are compiled once, and are part
// of the program, so that a fault in them is a fault of the program.
type schemas struct {
	document *jsonschema.Schema
	entry    map[string]*jsonschema.Schema // by the list
}

var compiled = sync.OnceValue(func() schemas {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		panic(fmt.Sprintf("read the embedded schema: %v", err))
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		panic(fmt.Sprintf("add the embedded schema: %v", err))
	}
	return schemas{c.MustCompile("schema.json"), map[string]*jsonschema.Schema{
		"request_timings": c.MustCompile("schema.json#/$defs/valid_timing"),
		"failures":        c.MustCompile("schema.json#/$defs/failure"),
	}}
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

func (v *validation) against(schema *jsonschema.Schema, at jsontext.Pointer, value any) {
	var invalid *jsonschema.ValidationError
	if errors.As(schema.Validate(value), &invalid) {
		v.departures(at, invalid)
	}
}

// departures walks to the leaves of a schema error: only they name a place and a cause.
func (v *validation) departures(at jsontext.Pointer, e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		v.departures(at, cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	for _, token := range e.InstanceLocation {
		at = at.AppendToken(token)
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			v.problemAt(at.AppendToken(name), "this member is required and is not there")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			v.problemAt(at.AppendToken(name), "the format has no such member here")
		}
	case *kind.Type:
		v.problemAt(at, "expected %s, received %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		v.problemAt(at, "expected one of %v, received %v", k.Want, k.Got)
	case *kind.Const:
		v.problemAt(at, "expected %v, received %v", k.Want, k.Got)
	case *kind.Pattern:
		v.problemAt(at, "expected a text that matches %s, received %q", k.Want, k.Got)
	case *kind.MinLength:
		v.problemAt(at, "expected a text, received an empty one")
	default:
		v.problemAt(at, "%s", e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
	}
}

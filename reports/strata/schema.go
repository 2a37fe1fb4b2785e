package strata

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
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

// compiled is the schema, compiled once. It is part of the program, so a fault in it is a fault of the program.
var compiled = sync.OnceValue(func() *jsonschema.Schema {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		panic(fmt.Sprintf("read the embedded schema: %v", err))
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		panic(fmt.Sprintf("add the embedded schema: %v", err))
	}
	return c.MustCompile("schema.json")
})

// schema records every departure from the schema.
func (v *validation) schema(data []byte) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		v.faultAt("", "not JSON: %v", err)
		return
	}
	var invalid *jsonschema.ValidationError
	if errors.As(compiled().Validate(document), &invalid) {
		v.departures(invalid)
	}
}

// departures walks to the leaves of a schema error: only they name a place and a cause.
func (v *validation) departures(e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		v.departures(cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	var at jsontext.Pointer
	for _, token := range e.InstanceLocation {
		at = at.AppendToken(token)
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			v.faultAt(at.AppendToken(name), "this member is required and is not there")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			v.faultAt(at.AppendToken(name), "the format has no such member")
		}
	case *kind.Type:
		v.faultAt(at, "expected %s, received %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		v.faultAt(at, "expected one of %v, received %v", k.Want, k.Got)
	case *kind.Const:
		v.faultAt(at, "expected %v, received %v", k.Want, k.Got)
	case *kind.Pattern:
		v.faultAt(at, "expected a text that matches %s, received %q", k.Want, k.Got)
	case *kind.MinLength:
		v.faultAt(at, "expected a text, received an empty one")
	default:
		v.faultAt(at, "%s", e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
	}
}

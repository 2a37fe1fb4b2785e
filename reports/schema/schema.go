// Package schema holds a document against a JSON Schema (2020-12) that is part of the program, and says where it departs
// from it, by JSON pointer and in words. It knows no document of its own and never looks at what values say of each other.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled schema, or one of its definitions.
type Schema struct{ compiled *jsonschema.Schema }

// MustCompile compiles a schema that is part of the program, so that a fault in it is a fault of the program: it panics.
// With definitions, it returns the schema and after it these members of its $defs, in their order.
//
// Besides the keywords of JSON Schema it knows writtenWhole: where it is true, a number must be written without fraction
// and exponent, and an int64 must hold it. JSON Schema itself takes 3.0 for an integer, which readers do not.
func MustCompile(text []byte, definitions ...string) []Schema {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(fmt.Sprintf("read the embedded schema: %v", err))
	}
	c := jsonschema.NewCompiler()
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "urn:plumbline:written-whole", Compile: compileWrittenWhole})
	c.AssertVocabs()
	if err := c.AddResource("schema.json", document); err != nil {
		panic(fmt.Sprintf("add the embedded schema: %v", err))
	}
	all := []Schema{{c.MustCompile("schema.json")}}
	for _, name := range definitions {
		all = append(all, Schema{c.MustCompile("schema.json#/$defs/" + name)})
	}
	return all
}

// Departures tells of every departure of a value, which stands at a pointer and was read by jsonschema.UnmarshalJSON.
func (s Schema) Departures(at jsontext.Pointer, value any, tell func(at jsontext.Pointer, message string)) {
	var invalid *jsonschema.ValidationError
	if errors.As(s.compiled.Validate(value), &invalid) {
		leaves(at, invalid, tell)
	}
}

// leaves walks to the leaves of a schema error: only they name a place and a cause.
func leaves(at jsontext.Pointer, e *jsonschema.ValidationError, tell func(jsontext.Pointer, string)) {
	for _, cause := range e.Causes {
		leaves(at, cause, tell)
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
			tell(at.AppendToken(name), "this member is required and is not there")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			tell(at.AppendToken(name), "the format has no such member here")
		}
	default:
		tell(at, said(e.ErrorKind))
	}
}

// said puts a departure into words.
func said(departure jsonschema.ErrorKind) string {
	switch k := departure.(type) {
	case *kind.Type:
		return fmt.Sprintf("expected %s, received %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		want := make([]string, len(k.Want))
		for i, value := range k.Want {
			want[i] = shown(value)
		}
		return fmt.Sprintf("expected one of %s, received %s", strings.Join(want, ", "), shown(k.Got))
	case *kind.Const:
		return fmt.Sprintf("expected %s, received %s", shown(k.Want), shown(k.Got))
	case *kind.Pattern:
		return fmt.Sprintf("expected a text that matches %s, received %q", k.Want, k.Got)
	case *kind.MinLength:
		return fmt.Sprintf("expected a text of at least %s, received %s", counted(k.Want, "character"), counted(k.Got, "character"))
	case *kind.MaxLength:
		return fmt.Sprintf("expected a text of at most %s, received %s", counted(k.Want, "character"), counted(k.Got, "character"))
	case *kind.MinItems:
		return fmt.Sprintf("expected at least %s, received %d", counted(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("expected at most %s, received %d", counted(k.Want, "item"), k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("expected at least %s, received %d", counted(k.Want, "member"), k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("expected at most %s, received %d", counted(k.Want, "member"), k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("expected every item once, received equal ones at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.Minimum:
		return fmt.Sprintf("expected at least %s, received %s", number(k.Want), number(k.Got))
	case *kind.Maximum:
		return fmt.Sprintf("expected at most %s, received %s", number(k.Want), number(k.Got))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("expected more than %s, received %s", number(k.Want), number(k.Got))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("expected less than %s, received %s", number(k.Want), number(k.Got))
	case *notWritten:
		return fmt.Sprintf("expected a whole number written with digits alone, received %s", k.raw)
	}
	return fmt.Sprintf("expected what the schema allows: %s", departure.LocalizedString(message.NewPrinter(language.English)))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// shown is a value as its JSON; of an object or list what it is.
func shown(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case json.Number:
		return string(v)
	case string:
		return strconv.Quote(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(value)
}

func number(r *big.Rat) string {
	v, _ := r.Float64()
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// writtenWhole is the keyword of that name.
type writtenWhole struct{}

func compileWrittenWhole(_ *jsonschema.CompilerContext, object map[string]any) (jsonschema.SchemaExt, error) {
	if on, _ := object["writtenWhole"].(bool); on {
		return writtenWhole{}, nil
	}
	return nil, nil
}

// Validate passes over what is no number, and over one with a fraction: other keywords speak of the type.
func (writtenWhole) Validate(ctx *jsonschema.ValidatorContext, value any) {
	raw, ok := value.(json.Number)
	if !ok {
		return
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err != nil || strconv.FormatInt(n, 10) != string(raw) {
		ctx.AddError(&notWritten{string(raw)})
	}
}

// notWritten is a number that is not written as a whole one.
type notWritten struct{ raw string }

func (*notWritten) KeywordPath() []string { return []string{"writtenWhole"} }

func (k *notWritten) LocalizedString(*message.Printer) string { return k.raw }

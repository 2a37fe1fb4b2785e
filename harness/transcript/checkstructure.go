package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// runawayTail is how much white space at the end of an answer that was cut for its length is a runaway; more than
	// runawayAnywhere is one wherever it stands.
	runawayTail     = 32
	runawayAnywhere = 512
)

// checkStructure compares the answer with the JSON that the request demanded. An answer must be that JSON by itself:
// nothing is taken off to make it fit.
func (r *reader) checkStructure() {
	content := strings.TrimSpace(r.t.Content)
	if r.asked.format == "" || len(r.t.ToolCalls) > 0 || r.t.Error != nil || !r.complete() || content == "" {
		return
	}
	const path = "choices[0].delta.content"
	cut := r.t.reason() == "length"
	runaway := false
	if n := whiteRun(r.t.Content); cut && len(r.t.Content)-len(strings.TrimRight(r.t.Content, " \t\r\n")) >= runawayTail || n >= runawayAnywhere {
		r.add(WhitespaceRunaway, -1, path, fmt.Sprintf("%d white characters in a row", n))
		runaway = true
	}
	v, l := legal([]byte(content))
	if l.ok {
		if why := r.misfit(v); why != "" {
			r.add(SchemaIgnored, -1, path, why)
		}
		return
	}
	switch n, partial := leadingValues(content); {
	case partial && n == 0 && cut && !runaway:
		r.addAs(Warning, JSONTruncated, -1, path, "the token limit was reached")
	case partial && n == 0:
		r.add(JSONTruncated, -1, path, "")
	case n > 0:
		r.add(JSONTrailingText, -1, path, "")
	default:
		r.wrapped(content, path)
	}
}

// wrapped looks for the JSON inside an answer that does not begin with it.
func (r *reader) wrapped(content, path string) {
	if before, rest, ok := strings.Cut(content, "```"); ok {
		_, inner, _ := strings.Cut(rest, "\n")
		inner, after, closed := strings.Cut(inner, "```")
		if v, l := legal([]byte(inner)); l.ok && (isObject(v) || isList(v)) {
			detail := "what stands inside is right"
			if why := r.misfit(v); why != "" {
				detail = "what stands inside does not fit either: " + why
			}
			r.add(JSONFenced, -1, path, detail)
			if closed && (!blank(before) || !blank(after)) {
				r.add(JSONTrailingText, -1, path, "")
			}
			return
		}
		if n, partial := leadingValues(inner); partial && n == 0 {
			r.add(JSONFenced, -1, path, "")
			r.add(JSONTruncated, -1, path, "")
			return
		}
	}
	if i := strings.IndexAny(content, "{["); i > 0 {
		if n, _ := leadingValues(content[i:]); n > 0 && content[i] == '{' {
			r.add(JSONTrailingText, -1, path, "it begins with "+quote([]byte(content[:i])))
			return
		}
	}
	r.add(SchemaIgnored, -1, path, "it is no JSON: "+quote([]byte(content)))
}

// misfit says why a JSON value is not the one that was demanded, "" when it is.
func (r *reader) misfit(v []byte) string {
	if r.asked.schema == nil {
		if r.asked.format == "json_object" && !isObject(v) {
			return "it is no object"
		}
		return ""
	}
	schema, err := compile(r.asked.schema)
	if err != nil {
		return "" // our own schema is at fault, not the server
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(v))
	if err != nil {
		return quote([]byte(err.Error()))
	}
	if err := schema.Validate(value); err != nil {
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
			return deepest(invalid)
		}
		return err.Error()
	}
	return ""
}

func compile(schema []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	const name = "response_format.json"
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource(name, document); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// nothing loads no schema: one that a request names by address is not fetched.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("load schema %q: not fetched", url)
}

// deepest names the first place at which a value does not fit.
func deepest(e *jsonschema.ValidationError) string {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	message := e.Error()
	if i := strings.LastIndex(message, "\n"); i >= 0 {
		message = message[i+1:]
	}
	return quote([]byte(message))
}

// leadingValues counts the JSON objects and lists that a text begins with; partial says that it ends inside of one.
func leadingValues(s string) (n int, partial bool) {
	if s = strings.TrimLeft(s, " \t\r\n"); s == "" || s[0] != '{' && s[0] != '[' {
		return 0, false
	}
	d := jsontext.NewDecoder(strings.NewReader(s), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for {
		switch err := d.SkipValue(); {
		case err == nil:
			n++
		case errors.Is(err, io.ErrUnexpectedEOF):
			return n, true
		default:
			return n, false
		}
	}
}

// whiteRun is the length of the longest run of white space.
func whiteRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if strings.IndexByte(" \t\r\n", s[i]) < 0 {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

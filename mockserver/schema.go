package mockserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// The bounds of an instance.
const (
	maxSchemaDepth = 24   // deeper nesting, or a schema that only leads back to itself, is refused
	optionalDepth  = 4    // properties that need not be there are left out below
	maxSchemaItems = 64   // longer demanded arrays are refused
	maxSchemaText  = 4096 // longer demanded strings are refused
)

// schema is the part of JSON Schema that instances are made for.
type schema struct {
	Ref              string                     `json:"$ref"`
	Const            json.RawMessage            `json:"const"`
	Enum             []json.RawMessage          `json:"enum"`
	AnyOf            []json.RawMessage          `json:"anyOf"`
	OneOf            []json.RawMessage          `json:"oneOf"`
	Type             json.RawMessage            `json:"type"`
	Properties       map[string]json.RawMessage `json:"properties"`
	Required         []string                   `json:"required"`
	Items            json.RawMessage            `json:"items"`
	MinItems         int                        `json:"minItems"`
	MaxItems         *int                       `json:"maxItems"`
	MinLength        int                        `json:"minLength"`
	MaxLength        *int                       `json:"maxLength"`
	Minimum          *float64                   `json:"minimum"`
	Maximum          *float64                   `json:"maximum"`
	ExclusiveMinimum *float64                   `json:"exclusiveMinimum"`
	ExclusiveMaximum *float64                   `json:"exclusiveMaximum"`
}

// refused are the keywords that narrow a value in ways that are not made here. An instance that ignored one would be a
// wrong answer, so the request is refused instead.
var refused = []string{"allOf", "not", "if", "pattern", "multipleOf", "uniqueItems", "contains", "prefixItems",
	"patternProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "$dynamicRef"}

// maker makes one instance. The first failure stays.
type maker struct {
	root json.RawMessage
	rng  *rand.Rand
	out  bytes.Buffer
}

// instance makes a JSON value that a schema accepts, without blanks and with the properties in the order of their
// names. param is where the schema stands in the request.
func instance(param string, root json.RawMessage, rng *rand.Rand) ([]byte, *apiError) {
	m := &maker{root: root, rng: rng}
	if err := m.value(root, 0); err != nil {
		e := invalid(param, "answer by the schema in %q: %v", param, err)
		e.code = "unsupported_schema"
		return nil, e
	}
	return m.out.Bytes(), nil
}

func (m *maker) value(raw json.RawMessage, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("expected at most %d levels, received more", maxSchemaDepth)
	}
	if s := string(raw); s == "true" || absent(raw) {
		m.text(0, nil)
		return nil
	}
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("expected a schema object: %w", err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return fmt.Errorf("expected a schema object: %w", err)
	}
	for _, keyword := range refused {
		if _, ok := keys[keyword]; ok {
			return fmt.Errorf("the keyword %q is not supported", keyword)
		}
	}
	switch {
	case s.Ref != "":
		target, err := m.resolve(s.Ref)
		if err != nil {
			return err
		}
		return m.value(target, depth+1)
	case s.Const != nil:
		m.out.WriteString(compact(s.Const))
		return nil
	case len(s.Enum) > 0:
		m.out.WriteString(compact(s.Enum[m.rng.IntN(len(s.Enum))]))
		return nil
	case len(s.AnyOf) > 0:
		return m.value(s.AnyOf[0], depth+1)
	case len(s.OneOf) > 0:
		return m.value(s.OneOf[0], depth+1)
	}
	return m.typed(&s, depth)
}

func (m *maker) typed(s *schema, depth int) error {
	kind, err := s.kind()
	if err != nil {
		return err
	}
	switch kind {
	case "object":
		return m.object(s, depth)
	case "array":
		return m.array(s, depth)
	case "string":
		if s.MinLength > maxSchemaText || s.MaxLength != nil && *s.MaxLength < s.MinLength {
			return fmt.Errorf("a string of %d characters or more is not made here", s.MinLength)
		}
		m.text(s.MinLength, s.MaxLength)
		return nil
	case "integer", "number":
		return m.number(s, kind == "integer")
	case "boolean":
		m.out.WriteString(strconv.FormatBool(m.rng.IntN(2) == 0))
		return nil
	case "null":
		m.out.WriteString("null")
		return nil
	}
	return fmt.Errorf("the type %q is unknown", kind)
}

// kind is the type that an instance gets: the one named, the first of several, or what the other keywords imply.
func (s *schema) kind() (string, error) {
	if !absent(s.Type) {
		var one string
		if json.Unmarshal(s.Type, &one) == nil {
			return one, nil
		}
		var several []string
		if err := json.Unmarshal(s.Type, &several); err != nil || len(several) == 0 {
			return "", fmt.Errorf("expected a type or a list of types, received %s", s.Type)
		}
		return several[0], nil
	}
	switch {
	case s.Properties != nil || s.Required != nil:
		return "object", nil
	case s.Items != nil:
		return "array", nil
	case s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil:
		return "number", nil
	}
	return "string", nil
}

func (m *maker) object(s *schema, depth int) error {
	names := slices.Clone(s.Required)
	if depth < optionalDepth {
		names = slices.AppendSeq(names, maps.Keys(s.Properties))
	}
	slices.Sort(names)
	m.out.WriteByte('{')
	for i, name := range slices.Compact(names) {
		if i > 0 {
			m.out.WriteByte(',')
		}
		m.string(name)
		m.out.WriteByte(':')
		if err := m.value(s.Properties[name], depth+1); err != nil {
			return fmt.Errorf("property %q: %w", name, err)
		}
	}
	m.out.WriteByte('}')
	return nil
}

func (m *maker) array(s *schema, depth int) error {
	n := max(2, s.MinItems)
	if s.MaxItems != nil {
		n = min(n, *s.MaxItems)
	}
	if n > maxSchemaItems || n < s.MinItems {
		return fmt.Errorf("an array of %d items or more is not made here", s.MinItems)
	}
	m.out.WriteByte('[')
	for i := range n {
		if i > 0 {
			m.out.WriteByte(',')
		}
		if err := m.value(s.Items, depth+1); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	m.out.WriteByte(']')
	return nil
}

// text writes a string of plain words within the lengths given.
func (m *maker) text(least int, most *int) {
	words := pick(m.rng, adjectives) + " " + pick(m.rng, nouns)
	for len(words) < least {
		words += " " + pick(m.rng, nouns)
	}
	if most != nil {
		words = words[:min(len(words), max(*most, 0))]
	}
	m.string(words)
}

func (m *maker) string(s string) {
	appendJSON(&m.out, s)
	m.out.Truncate(m.out.Len() - 1) // the encoder's line end
}

// number writes a number within the bounds given; without any, a small whole one.
func (m *maker) number(s *schema, whole bool) error {
	low, high := math.Inf(-1), math.Inf(1)
	// Numbers are whole or half ones.
	step := 0.5
	if whole {
		step = 1
	}
	if s.Minimum != nil {
		low = *s.Minimum
	}
	if s.Maximum != nil {
		high = *s.Maximum
	}
	if s.ExclusiveMinimum != nil && *s.ExclusiveMinimum >= low {
		low = math.Floor(*s.ExclusiveMinimum/step)*step + step
	}
	if s.ExclusiveMaximum != nil && *s.ExclusiveMaximum <= high {
		high = math.Ceil(*s.ExclusiveMaximum/step)*step - step
	}
	low, high = math.Ceil(low/step)*step, math.Floor(high/step)*step
	switch {
	case math.IsInf(low, 0) && math.IsInf(high, 0):
		low, high = 1, 100
	case math.IsInf(low, 0):
		low = high - 99
	case math.IsInf(high, 0):
		high = low + 99
	}
	if low > high {
		return fmt.Errorf("no number on a grid of %v is within its bounds", step)
	}
	value := low + step*float64(m.rng.IntN(1+int(min((high-low)/step, 1000))))
	m.out.WriteString(strconv.FormatFloat(value, 'f', -1, 64))
	return nil
}

// resolve finds the schema that a reference inside the document points to.
func (m *maker) resolve(ref string) (json.RawMessage, error) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, fmt.Errorf("the reference %q leads out of the schema", ref)
	}
	at := m.root
	for _, step := range strings.Split(path, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var object map[string]json.RawMessage
		if err := json.Unmarshal(at, &object); err != nil {
			return nil, fmt.Errorf("follow the reference %q: %w", ref, err)
		}
		next, ok := object[step]
		if !ok {
			return nil, fmt.Errorf("follow the reference %q: %q is not there", ref, step)
		}
		at = next
	}
	return at, nil
}

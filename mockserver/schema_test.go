package mockserver

import (
	"bytes"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// expectValid holds that a value is what a schema accepts, by a validator that is not ours.
func expectValid(g *WithT, schema string, value []byte) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(schema)))
	g.Expect(err).NotTo(HaveOccurred())
	compiler := jsonschema.NewCompiler()
	g.Expect(compiler.AddResource("mem:schema", doc)).To(Succeed())
	compiled, err := compiler.Compile("mem:schema")
	g.Expect(err).NotTo(HaveOccurred())
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	g.Expect(err).NotTo(HaveOccurred(), string(value))
	g.Expect(compiled.Validate(v)).To(Succeed(), "%s by %s", value, schema)
}

func TestInstancesAreValid(t *testing.T) {
	for _, schema := range []string{
		`true`, `{}`, `{"type":"string"}`, `{"type":"string","minLength":40,"maxLength":41}`, `{"type":"string","maxLength":0}`,
		`{"type":"boolean"}`, `{"type":"null"}`, `{"type":["integer","null"]}`, `{"const":{"a":[1]}}`, `{"const":null}`,
		`{"enum":["a",2,null,{"b":false}]}`, `{"type":"integer","minimum":-3,"maximum":-3}`,
		`{"type":"integer","exclusiveMinimum":4,"exclusiveMaximum":6}`, `{"type":"integer","exclusiveMinimum":4.5,"maximum":5.9}`,
		`{"type":"number","exclusiveMinimum":1,"exclusiveMaximum":2}`, `{"type":"number","maximum":-0.25}`, `{"minimum":7}`,
		`{"type":"integer","minimum":1e12}`,
		`{"type":"array","items":{"type":"integer"},"minItems":3,"maxItems":5}`, `{"type":"array","maxItems":0}`, `{"items":{"type":"null"}}`,
		`{"properties":{"a":{"type":"integer"}},"required":["a","b"]}`, `{"anyOf":[{"type":"integer"},{"type":"null"}]}`,
		`{"oneOf":[{"type":"boolean"},{"type":"null"}]}`,
		`{"type":"object","properties":{"q\"<é":{"type":"string"}},"required":["q\"<é"]}`,
		`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"]}}}`,
		`{"type":"object","properties":{"value":{"type":"integer"},"next":{"$ref":"#"}},"required":["value"],"additionalProperties":false}`,
		anyObject,
	} {
		for seed := range uint64(20) {
			g := NewWithT(t)
			value, refusal := instance("here", []byte(schema), rand.New(rand.NewPCG(seed, 0)))
			g.Expect(refusal).To(BeNil(), schema)
			expectValid(g, schema, value)
		}
	}
}

func TestSchemasThatCannotBeMetAreRefused(t *testing.T) {
	for _, schema := range []string{
		`{"type":"string","pattern":"^a$"}`, `{"allOf":[{}]}`, `{"type":"array","uniqueItems":true}`,
		`{"$ref":"#"}`, `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`,
		`{"$ref":"#/nowhere"}`, `{"$ref":"http://example.com/"}`, `{"type":"colour"}`, `{"type":[]}`, `{"type":7}`, `[]`, `7`, `false`,
		`{"type":"string","minLength":5000}`, `{"type":"string","minLength":3,"maxLength":2}`,
		`{"type":"array","minItems":65}`, `{"type":"array","minItems":3,"maxItems":2}`, `{"type":"array","maxItems":-1}`,
		`{"type":"integer","minimum":4.1,"maximum":4.9}`, `{"type":"number","minimum":2,"maximum":1}`,
	} {
		g := NewWithT(t)
		value, refusal := instance("here", []byte(schema), rand.New(rand.NewPCG(1, 1)))
		g.Expect(refusal).NotTo(BeNil(), "%s gave %s", schema, value)
		g.Expect(refusal.code).To(Equal("unsupported_schema"))
		g.Expect(refusal.param).To(Equal("here"))
	}
}

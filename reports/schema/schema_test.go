package schema

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const text = `{
	"type": "object", "required": ["n"], "additionalProperties": false,
	"properties": {
		"n": {"type": ["integer", "null"], "writtenWhole": true, "minimum": 0, "maximum": 9},
		"f": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 2},
		"e": {"enum": ["a", 1, null]}, "c": {"const": false}, "t": {"type": "string", "minLength": 1, "maxLength": 3},
		"p": {"type": "string", "pattern": "^x+$"}, "m": {"multipleOf": 5}, "o": {"minProperties": 1, "maxProperties": 1},
		"l": {"type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true, "items": {"$ref": "#/$defs/part"}}
	},
	"$defs": {"part": {"type": "boolean"}}
}`

// told lists the departures of a text, one a line.
func told(t *testing.T, s Schema, at jsontext.Pointer, document string) string {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	s.Departures(at, value, func(at jsontext.Pointer, message string) { all = append(all, string(at)+": "+message) })
	return strings.Join(all, "\n")
}

func TestEveryDepartureNamesItsPlaceAndWhatWasExpectedAndReceived(t *testing.T) {
	s := MustCompile([]byte(text))[0]
	for document, want := range map[string]string{
		`{"n":3,"f":1.5,"e":null,"c":false,"t":"abc","p":"x","m":5,"o":{"a":1},"l":[true,false]}`: "",
		`{"n":null}`:                 "",
		`[]`:                         ": expected object, received array",
		`{}`:                         "/n: this member is required and is not there",
		`{"n":1,"a/b":1}`:            "/a~1b: the format has no such member here",
		`{"n":"1"}`:                  "/n: expected null or integer, received string",
		`{"n":-1}`:                   "/n: expected at least 0, received -1",
		`{"n":10}`:                   "/n: expected at most 9, received 10",
		`{"n":3.0}`:                  "/n: expected a whole number written with digits alone, received 3.0",
		`{"n":3e0}`:                  "/n: expected a whole number written with digits alone, received 3e0",
		`{"n":-0}`:                   "/n: expected a whole number written with digits alone, received -0",
		`{"n":1,"f":0}`:              "/f: expected more than 0, received 0",
		`{"n":1,"f":2.5}`:            "/f: expected less than 2, received 2.5",
		`{"n":1,"e":"b"}`:            `/e: expected one of "a", 1, null, received "b"`,
		`{"n":1,"e":[]}`:             `/e: expected one of "a", 1, null, received a list`,
		`{"n":1,"e":{}}`:             `/e: expected one of "a", 1, null, received an object`,
		`{"n":1,"c":null}`:           "/c: expected false, received null",
		`{"n":1,"t":""}`:             "/t: expected a text of at least 1 character, received 0 characters",
		`{"n":1,"t":"éééé"}`:         "/t: expected a text of at most 3 characters, received 4 characters",
		`{"n":1,"p":"y"}`:            `/p: expected a text that matches ^x+$, received "y"`,
		`{"n":1,"m":4}`:              "/m: expected what the schema allows: multipleOf: got 4, want 5",
		`{"n":1,"o":{}}`:             "/o: expected at least 1 member, received 0",
		`{"n":1,"o":{"a":1,"b":2}}`:  "/o: expected at most 1 member, received 2",
		`{"n":1,"l":[]}`:             "/l: expected at least 1 item, received 0",
		`{"n":1,"l":[true,true]}`:    "/l: expected every item once, received equal ones at 0 and 1",
		`{"n":1,"l":[true,false,3]}`: "/l: expected at most 2 items, received 3\n/l/2: expected boolean, received number",
	} {
		t.Run(document, func(t *testing.T) {
			NewWithT(t).Expect(told(t, s, "", document)).To(Equal(want))
		})
	}
}

func TestAWholeNumberIsOneThatAnInt64Holds(t *testing.T) {
	g := NewWithT(t)
	s := MustCompile([]byte(`{"writtenWhole": true}`))[0]
	for _, fit := range []string{"0", "-7", "9223372036854775807", "-9223372036854775808", `"x"`, "null"} {
		g.Expect(told(t, s, "", fit)).To(BeEmpty(), fit)
	}
	for _, other := range []string{"9223372036854775808", "1e3", "1.5"} {
		g.Expect(told(t, s, "", other)).To(HaveSuffix("received " + other))
	}
	off := MustCompile([]byte(`{"writtenWhole": false}`))[0]
	g.Expect(told(t, off, "", "1.0")).To(BeEmpty())
}

func TestADefinitionIsHeldAgainstAPartAtItsPlace(t *testing.T) {
	parts := MustCompile([]byte(text), "part")
	NewWithT(t).Expect(told(t, parts[1], "/l/7", "3")).To(Equal("/l/7: expected boolean, received number"))
}

func TestASchemaThatIsNoneIsAFaultOfTheProgram(t *testing.T) {
	for _, broken := range []string{`{`, `{"type": 3}`, `{"$ref": "#/$defs/none"}`} {
		NewWithT(t).Expect(func() { MustCompile([]byte(broken)) }).To(Panic(), broken)
	}
}

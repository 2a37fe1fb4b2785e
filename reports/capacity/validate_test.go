package capacity

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"plumbline/fixtures"
	"plumbline/fixtures/frugal"
)

func TestTheReferenceIsValid(t *testing.T) {
	NewWithT(t).Expect(Validate(reference(t))).To(BeEmpty())
	NewWithT(t).Expect(Validate(indented(t, reference(t)))).To(BeEmpty())
}

func TestEveryDocumentOfOursIsValid(t *testing.T) {
	for name, in := range map[string]Input{
		"of the reference's rows": referenceInput(t), "made up": madeUp(), "killed": killed(), "killed at once": killedAtOnce(),
		"interrupted": interrupted(), "without usage": withoutUsage(), "one request": oneRequest(t), "all failed": allFailed(),
		"ten thousand": endless(10_000),
	} {
		t.Run(name, func(t *testing.T) {
			data, _ := mustWrite(t, in)
			NewWithT(t).Expect(Validate(data)).To(BeEmpty())
		})
	}
}

func TestTextThatIsNoStrictJSONHasOnlyThatProblem(t *testing.T) {
	for name, c := range map[string]struct{ text, pointer, message string }{
		"nothing":               {"", "", "no JSON value"},
		"spaces":                {" \n", "", "no JSON value"},
		"a cut text":            {`{"schema":"anv`, "/schema", "not JSON at byte"},
		"a name twice":          {`{"a":{"b":1,"b":2}}`, "/a/b", "duplicate"},
		"bytes that are no UTF": {"{\"a\":\"\xff\"}", "/a", "UTF-8"},
		"NaN":                   {`{"a":NaN}`, "/a", "not JSON"},
		"two values":            {`{} {}`, "", "more than one JSON value"},
		"a value and a bracket": {`{}]`, "", "more than one JSON value"},
		"a number too large":    {`{"a":[1e999]}`, "/a/0", "a number that a float64 holds"},
		"a number too small":    {`{"a":1e-999999999}`, "/a", "a number that a float64 holds"},
		"a number too long":     {`{"a":0.` + strings.Repeat("1", 100) + `}`, "/a", "a number that a float64 holds"},
		"too deep":              {strings.Repeat("[", 80) + strings.Repeat("]", 80), "/0", "levels"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			problems := Validate([]byte(c.text))
			g.Expect(problems).To(HaveLen(1))
			g.Expect(problems[0].Pointer).To(HavePrefix(c.pointer))
			g.Expect(problems[0].Message).To(ContainSubstring(c.message))
			_, err := Parse([]byte(c.text))
			g.Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
}

func TestWhatIsNoDocumentAtAllIsSaidSo(t *testing.T) {
	g := NewWithT(t)
	for _, text := range []string{`[]`, `3`, `null`, `"x"`, `{}`} {
		g.Expect(Validate([]byte(text))).NotTo(BeEmpty(), text)
		_, err := Parse([]byte(text))
		g.Expect(err).To(HaveOccurred(), text)
	}
}

func TestALongListOfProblemsIsCut(t *testing.T) {
	g := NewWithT(t)
	doc, err := sjson.SetRawBytes(reference(t), "failures", []byte("["+strings.Repeat("{},", 5000)+"{}]"))
	g.Expect(err).NotTo(HaveOccurred())
	problems := Validate(doc)
	g.Expect(problems).To(HaveLen(shownProblems + 1))
	g.Expect(problems[shownProblems].Message).To(MatchRegexp(`^and at least \d+ problems more$`))
	long := Validate([]byte(`{"` + strings.Repeat("n", 9000) + `":1,"schema":"` + strings.Repeat("é", 9000) + `"}`))
	for _, p := range long {
		g.Expect(len(p.Pointer)).To(BeNumerically("<=", shownPointer+3))
		g.Expect(len(p.Message)).To(BeNumerically("<=", shownMessage+3))
	}
}

func TestADocumentThatCannotBeReadWithAllItsKeysKeepsThem(t *testing.T) {
	g := NewWithT(t)
	doc, err := sjson.SetRawBytes(reference(t), "newer", []byte(`{"a":[1]}`))
	g.Expect(err).NotTo(HaveOccurred())
	doc, err = sjson.SetRawBytes(doc, "request_timings.0.newer", []byte(`7`))
	g.Expect(err).NotTo(HaveOccurred())
	d, err := Parse(doc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(d.Unknown["newer"])).To(MatchJSON(`{"a":[1]}`))
	g.Expect(d.RequestTimings[0].Unknown).To(HaveKey("newer"))
	g.Expect(d.RequestTimings).To(HaveLen(3))
	g.Expect(d.RequestTimings[1].TTFTMS).To(HaveValue(Equal(30354.38939999949)))
	mean, ok := d.Metric("ttft_mean_ms")
	g.Expect(mean).To(Equal(28596.129699999437))
	g.Expect(ok).To(BeTrue())
	for _, name := range []string{"content_chunks_s", "output_token_sources", "absent", "throughput_performance_eligible"} {
		_, ok := d.Metric(name)
		g.Expect(ok).To(BeFalse(), name)
	}
	g.Expect(d.Sampling["top_p"].Requested).To(HaveValue(Equal(0.95)))
}

func TestADocumentMayLackEveryKeyButItsSchema(t *testing.T) {
	g := NewWithT(t)
	d, err := Parse([]byte(`{"schema":"anvil-serving.benchmark/v1"}`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Requests).To(BeNil())
	for name := range gjson.ParseBytes(reference(t)).Map() {
		if name == "schema" {
			continue
		}
		doc, err := sjson.DeleteBytes(reference(t), name)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = Parse(doc)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(Validate(doc)).To(ContainElement(HaveField("Pointer", "/"+name)))
	}
}

func TestTheReadersKnowOurOwnDocument(t *testing.T) {
	g := NewWithT(t)
	data, s := mustWrite(t, madeUp())
	d, err := Parse(data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.RunID).To(Equal(s.RunID))
	g.Expect(d.Failures).To(HaveLen(4))
	g.Expect(d.Failures[1].FailureClass).To(Equal(fixtures.FailStream))
	g.Expect(d.Extensions).To(HaveKey(extensionKey))
}

func FuzzValidate(f *testing.F) {
	f.Add(reference(f))
	made, _ := mustWrite(f, madeUp())
	f.Add(made)
	for _, list := range [][]mutation{shared, ofTheReference} {
		for _, m := range list {
			f.Add(mutate(f, reference(f), m))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			return
		}
		frugal.Run(t, func() {
			for _, p := range Validate(data) {
				if p.Message == "" {
					t.Errorf("no message at %q", p.Pointer)
				}
			}
			Parse(data)
		})
	})
}

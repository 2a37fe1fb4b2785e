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
		"a number too long":     {`{"a":0.` + strings.Repeat("1", 1000) + `}`, "/a", "a number that a float64 holds"},
		"too deep":              {strings.Repeat("[", 600) + strings.Repeat("]", 600), "/0", "levels"},
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
	g.Expect(d.Sampling.TopP.Requested).To(HaveValue(Equal(0.95)))
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

// edited sets values of a document by their paths.
func edited(t testing.TB, doc []byte, values map[string]string) []byte {
	t.Helper()
	for path, raw := range values {
		var err error
		if doc, err = sjson.SetRawBytes(doc, path, []byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	return doc
}

// withFailure are the edits that give the reference a fourth request, which failed.
func withFailure(failure string) map[string]string {
	return map[string]string{
		"failures": "[" + failure + "]", "failed": "1", "requests": "4", "context_distribution": `{"8192":4}`,
		"performance_eligible": "false", "metric_population.attempted_requests": "4", "metric_population.excluded_requests": "1",
		"metric_population.aggregate_throughput_eligible": "false", "metrics.throughput_performance_eligible": "false",
		"metrics.throughput_tok_s": "null",
	}
}

func TestWhatOtherWritersWriteIsLegal(t *testing.T) {
	first := gjson.GetBytes(reference(t), "request_timings.0").Raw
	timing, err := sjson.Set(first, "request_index", 3)
	if err != nil {
		t.Fatal(err)
	}
	const begun = `{"request_index":3,"planned_context_tokens":8192,"error_type":"x","error_message":"y",` +
		`"error_message_truncated":false,"performance_eligible":false,`
	refused := begun + `"failure_class":"request_error","response_received":false,"elapsed_ms":5}`
	broken := withFailure(begun + `"failure_class":"stream_validation_failed","response_received":true,"elapsed_ms":27974.8,` +
		`"response_timing":` + timing + `,"response_metadata":{"output_token_source":"usage","content_chunks":35,` +
		`"reasoning_chunks":236,"finish_reasons":[],"stream_terminal_observed":null,"visible_content_truncated":false,"usage":null}}`)
	broken["responses_received"] = "4"
	broken["failures.0.response_timing.request_canary.marker"] = `"ANVIL_REQ_17_00003"`
	one, _ := mustWrite(t, oneRequest(t))
	one, err = sjson.DeleteBytes(one, "extensions")
	if err != nil {
		t.Fatal(err)
	}
	flat := map[string]string{}
	for _, f := range families {
		flat["metrics."+f.key("stddev")] = "0.0"
		for _, bound := range []string{"mean_ci95_low", "mean_ci95_high"} {
			flat["metrics."+f.key(bound)] = gjson.GetBytes(one, "metrics."+f.key("mean")).Raw
		}
	}
	for name, doc := range map[string][]byte{
		"a request that was refused":     edited(t, reference(t), withFailure(refused)),
		"a reply that broke off":         edited(t, reference(t), broken),
		"one success without deviations": one,
		"one success with no deviation":  edited(t, one, flat),
		"nothing requested, 0 sent": edited(t, reference(t), map[string]string{
			"sampling.temperature": `{"requested":null,"sent":true,"effective_request":0.0}`}),
		"requested, not sent": edited(t, reference(t), map[string]string{
			"sampling.top_p": `{"requested":0.9,"sent":false,"effective_request":null}`}),
		"a prompt cut to the window": edited(t, reference(t), map[string]string{
			"context_tokens": "16000", "max_context_tokens": "17408"}),
		"drawn prompts cut to the window": edited(t, reference(t), map[string]string{
			"context_tokens": "null", "max_context_tokens": "17408"}),
		"no known window": edited(t, reference(t), map[string]string{"max_context_tokens": "null"}),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Validate(doc)).To(BeEmpty())
			_, err := Parse(doc)
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
	ours, _ := mustWrite(t, oneRequest(t))
	NewWithT(t).Expect(Validate(edited(t, ours, map[string]string{"metrics.ttft_stddev_ms": "0.0"}))).NotTo(BeEmpty(),
		"this program writes null")
}

func TestParseRefusesACountThatIsNotWrittenWholeAndNamesIt(t *testing.T) {
	g := NewWithT(t)
	for path, pointer := range map[string]string{
		"requests": "/requests", "started_at_unix_ns": "/started_at_unix_ns",
		"request_timings.1.prompt_tokens": "/request_timings/1/prompt_tokens",
		"context_distribution.8192":       "/context_distribution/8192",
	} {
		for _, raw := range []string{"3.0", "3e0"} {
			doc := edited(t, reference(t), map[string]string{path: raw})
			_, err := Parse(doc)
			g.Expect(err).To(MatchError(And(HavePrefix("read capacity document: "), ContainSubstring(pointer))))
			g.Expect(Validate(doc)).To(ContainElement(HaveField("Pointer", pointer)))
		}
	}
}

func TestSamplingKeepsWhatIsNotKnown(t *testing.T) {
	g := NewWithT(t)
	d, err := Parse(edited(t, reference(t), map[string]string{"sampling.seed": "5", "sampling.top_p.newer": `"x"`}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(d.Sampling.Unknown["seed"])).To(Equal("5"))
	g.Expect(string(d.Sampling.TopP.Unknown["newer"])).To(Equal(`"x"`))
	g.Expect(d.Sampling.Temperature.EffectiveRequest).To(HaveValue(Equal(0.9)))
}

func TestARowOfManyIsNamedByItsOwnFigures(t *testing.T) {
	g := NewWithT(t)
	data, _ := mustWrite(t, endless(100))
	problems := Validate(edited(t, data, map[string]string{"request_timings.57.ttft_ms": "300.5"}))
	g.Expect(problems).To(ContainElement(HaveField("Pointer", "/request_timings/57/ttft_ms")))
	g.Expect(len(problems)).To(BeNumerically("<", 60))
}

func TestNoMessageIsLeftToTheSchemasLibrary(t *testing.T) {
	g := NewWithT(t)
	for _, p := range Validate([]byte(`{"measurement_protocol":null,"concurrency":-1,"model":"","failures":[{"performance_eligible":null}]}`)) {
		g.Expect(p.Message).To(Or(HavePrefix("expected "), HavePrefix("this member is required"), HavePrefix("contradicts ")), p.Pointer)
		g.Expect(p.Message).NotTo(Or(ContainSubstring("<nil>"), ContainSubstring("minimum:")))
	}
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
			problems := Validate(data)
			for _, p := range problems {
				if p.Message == "" {
					t.Errorf("no message at %q", p.Pointer)
				}
			}
			if _, err := Parse(data); err != nil && len(problems) == 0 {
				t.Errorf("a document without problems cannot be parsed: %v", err)
			}
		})
	})
}

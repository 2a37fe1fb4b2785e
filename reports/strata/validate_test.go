package strata

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"github.com/tidwall/gjson"

	"plumbline/harness/measure"
)

// ours is a document of this package: the reference's requests and a concurrency stage.
func ours(t testing.TB) []byte {
	t.Helper()
	run, all := referenceRun(t), referenceReplies(t)
	withStage(run, all, 2, 2)
	_, data := mustBuild(t, run, all)
	return data
}

func TestTheReferenceIsAccepted(t *testing.T) {
	NewWithT(t).Expect(Validate(reference(t), nil)).To(BeEmpty())
}

func TestOurOwnDocumentIsAccepted(t *testing.T) {
	NewWithT(t).Expect(Validate(ours(t), nil)).To(BeEmpty())
}

func TestRequestsOutOfOrderAreRefused(t *testing.T) {
	g := NewWithT(t)
	data := reference(t)
	one, two := gjson.GetBytes(data, "requests.1").Raw, gjson.GetBytes(data, "requests.2").Raw
	data = mutate(t, mutate(t, data, mutation{path: "requests.1", raw: two}), mutation{path: "requests.2", raw: one})
	g.Expect(Validate(data, nil)).To(ContainElement(Fault{"/requests/1",
		`out of order: expected "performance-short-r1" here, received "performance-prompt-4k-r1"`}))
}

func TestReasonsOutOfDocumentOrderAreRefused(t *testing.T) {
	g := NewWithT(t)
	text := string(reference(t))
	first := `"/protocol/model_card_revision": "the profile's model-card revision is not pinned yet (protocol draft)", `
	second := `"/run/optional_duration_s": "the optional concurrency stage was not selected", `
	g.Expect(text).To(ContainSubstring(first + second))
	faults := Validate([]byte(strings.Replace(text, first+second, second+first, 1)), nil)
	g.Expect(faults).To(HaveLen(1))
	g.Expect(faults[0].Pointer).To(Equal("/missing/~1protocol~1model_card_revision"))
}

func TestAllFaultsComeInDocumentOrderAndOnce(t *testing.T) {
	g := NewWithT(t)
	data := reference(t)
	for _, m := range []mutation{
		{"extensions.note", `null`, ""}, {"summaries.0.n", `2`, ""}, {"run.status", `"fine"`, ""}, {"format", `"x"`, ""},
		{"requests.10.seed", `4`, ""}, {"requests.9.seed", `4`, ""}, {"quality", ``, ""},
	} {
		data = mutate(t, data, m)
	}
	var pointers []string
	for _, f := range Validate(data, nil) {
		pointers = append(pointers, f.Pointer)
	}
	g.Expect(pointers).To(Equal([]string{"/quality", "/format", "/run/status", "/requests/9/seed", "/requests/10/seed",
		"/summaries/0/n", "/extensions/note"}))
}

func TestAFaultFoundTwiceIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	root, _ := readTree([]byte(`{"a":1,"b":2}`))
	v := validation{root: root}
	for range 2 {
		v.fault(root.get("b"), "wrong")
		v.fault(root.get("a"), "wrong")
	}
	g.Expect(v.sorted()).To(Equal([]Fault{{"/a", "wrong"}, {"/b", "wrong"}}))
}

func TestANullAmongTheReasonsIsAReasonOfTheWrongTypeAndNoMore(t *testing.T) {
	g := NewWithT(t)
	faults := Validate(mutate(t, reference(t), mutation{"missing./requests/0/round", `null`, ""}), nil)
	g.Expect(faults).To(HaveExactElements(Fault{"/missing/~1requests~10~1round", "expected string, received null"}))
}

func TestARunThatSkippedARequiredRequestIsIncomplete(t *testing.T) {
	run := referenceRun(t)
	run.Exchanges = run.Exchanges[:20]
	_, data := mustBuild(t, run, referenceReplies(t))
	data = mutate(t, data, mutation{"run.status", `"nonconforming"`, ""})
	NewWithT(t).Expect(Validate(data, nil)).To(HaveExactElements(HaveField("Pointer", "/run/status")))
}

func TestARateOfTheClientsClockStandsBesideNoEngineSeconds(t *testing.T) {
	data := ours(t)
	for _, m := range []mutation{{"extensions.timing_basis", `"client"`, ""}, {"requests.1.timings.decode_s", `0.0`, ""}} {
		data = mutate(t, data, m)
	}
	NewWithT(t).Expect(Validate(data, nil)).To(ContainElement(HaveField("Pointer", "/requests/1/metrics/decode_tps")))
}

func TestTextThatIsNotStrictJSONIsRefused(t *testing.T) {
	text := string(reference(t))
	for name, c := range map[string]struct{ data, pointer, says string }{
		"nothing":          {"", "", "no JSON value at all"},
		"cut":              {text[:5000], "/requests/1/sources/engine_timings", "not JSON at byte 5000"},
		"trailing data":    {text + "{}", "", "more than one JSON value"},
		"trailing garbage": {text + "x", "", "not JSON at byte"},
		"a name twice":     {strings.Replace(text, `"status": "nonconforming"`, `"status": "nonconforming", "status": "nonconforming"`, 1), "/run/status", "stands twice"},
		"bad UTF-8":        {strings.Replace(text, "NixOS", "Nix\xffOS", 1), "/software/os/name", "not valid UTF-8"},
		"a lone surrogate": {strings.Replace(text, "NixOS", `Nix\ud800OS`, 1), "/software/os/name", "not valid UTF-8"},
		"a comment":        {"// hello\n" + text, "", "not JSON at byte 0"},
		"a list":           {"[]", "", "expected object, received array"},
		"null":             {"null", "", "expected object, received null"},
		"NaN":              {strings.Replace(text, "102.071", "NaN", 1), "/run/required_duration_s", "not JSON at byte"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			faults := Validate([]byte(c.data), nil)
			g.Expect(faults).NotTo(BeEmpty())
			g.Expect(faults[0]).To(And(HaveField("Pointer", c.pointer), HaveField("Message", ContainSubstring(c.says))))
		})
	}
}

func TestArtifactsThatAreThereMustHaveTheirDigests(t *testing.T) {
	g := NewWithT(t)
	config, outputs := []byte("{}\n"), []byte("line\n")
	hash := func(b []byte) string { sum := sha256.Sum256(b); return hex.EncodeToString(sum[:]) }
	run := referenceRun(t)
	run.Header.Artifacts[0].SHA256 = hash(config)
	d, err := build(run, hash(outputs), referenceReplies(t).read)
	g.Expect(err).NotTo(HaveOccurred())
	data, err := d.Marshal()
	g.Expect(err).NotTo(HaveOccurred())

	files := fstest.MapFS{"config.json": {Data: config}, "outputs.jsonl": {Data: outputs}}
	g.Expect(Validate(data, files)).To(BeEmpty(), "files that are not there are passed over")

	files["config.json"] = &fstest.MapFile{Data: []byte("{ }\n")}
	faults := Validate(data, files)
	g.Expect(faults).To(HaveLen(1))
	g.Expect(faults[0].Pointer).To(Equal("/artifacts/1/sha256"))
	g.Expect(Validate(data, nil)).To(BeEmpty(), "without files no content is checked")

	files["config.json"] = &fstest.MapFile{Mode: 0o755 | 1<<31} // a directory
	g.Expect(Validate(data, files)).To(ContainElement(HaveField("Pointer", "/artifacts/1/path")))
}

func TestHonestDocumentsAboutWrongCountsAreAccepted(t *testing.T) {
	g := NewWithT(t)
	all := referenceReplies(t)
	all.edit("performance-short-r1", func(f *measure.Figures) {
		f.OutputTokens.Value, f.CachedTokens.Value = 381, 2
		f.AccountingNote = measure.Known("usage counts 381 output tokens, timings 380", "")
	})
	_, data := mustBuild(t, referenceRun(t), all)
	g.Expect(Validate(data, nil)).To(BeEmpty())
}

func TestCountsThatDifferWithoutANoteGetOne(t *testing.T) {
	g := NewWithT(t)
	all := referenceReplies(t)
	all.edit("performance-short-r1", func(f *measure.Figures) {
		f.CachedTokens.Value = 2
		f.Broken = []string{"77 tokens were read, but 75 were not cached"}
	})
	d, data := mustBuild(t, referenceRun(t), all)
	note, _ := d.Requests[1].TokenAccountingNote.Get()
	g.Expect(note).To(Equal("77 tokens were read, but 75 were not cached"))
	g.Expect(Validate(data, nil)).To(BeEmpty())
}

func TestAReplyLongerThanItsBudgetHasANoteThatSaysSo(t *testing.T) {
	for name, note := range map[string]measure.Maybe[string]{
		"alone":             measure.Unknown[string]("both accounts agree"),
		"beside other news": measure.Known("usage counts 600 output tokens, timings 599", ""),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := referenceReplies(t)
			all.edit("performance-short-r1", func(f *measure.Figures) {
				f.OutputTokens.Value, f.DecodeTokens.Value, f.AccountingNote = 600, 600, note
				f.DecodeTPS.Value = rounded(600 / f.DecodeSeconds.Value)
			})
			d, data := mustBuild(t, referenceRun(t), all)
			text, _ := d.Requests[1].TokenAccountingNote.Get()
			g.Expect(text).To(And(ContainSubstring(note.Value), ContainSubstring("600 output tokens"), ContainSubstring("budget of 512")))
			g.Expect(Validate(data, nil)).To(BeEmpty())
		})
	}
}

func TestParsingADocumentAndWritingItAgainChangesNoByte(t *testing.T) {
	g := NewWithT(t)
	data := ours(t)
	d, err := Parse(data)
	g.Expect(err).NotTo(HaveOccurred())
	again, err := d.Marshal()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(again)).To(Equal(string(data)))
	g.Expect(d.Hardware.Storage.Reason()).To(Equal("the drive is a network share"))
}

func TestParsingTheReferenceKeepsItsReasonsAndFigures(t *testing.T) {
	g := NewWithT(t)
	d, err := Parse(reference(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Requests[3].Timings.FirstAnswer.Reason()).To(Equal("no answer text or tool call arrived (reasoning alone does not count)"))
	rate, _ := d.Requests[3].Metrics.DecodeTPS.Get()
	g.Expect(rate.String()).To(Equal("101.738698"))
	g.Expect(d.Extensions.TimingBasis.Reason()).To(Equal(whyNotInDocument))
}

func TestParsingRefusesOtherTypes(t *testing.T) {
	for _, m := range []mutation{{"requests", `{}`, ""}, {"run.required_duration_s", `"1"`, ""}, {"missing", `[]`, ""}, {"schema_version", `"x"`, ""}} {
		_, err := Parse(mutate(t, reference(t), m))
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("read result document: ")), m.path)
	}
}

func FuzzValidateNeverPanics(f *testing.F) {
	run, all := referenceRun(f), referenceReplies(f)
	run.Header.Plan, run.Exchanges = run.Header.Plan[:2], run.Exchanges[:2]
	_, small := mustBuild(f, run, all)
	f.Add(small)
	for _, part := range []string{"request_counts", "requests", "summaries", "quality", "artifacts", "extensions"} {
		f.Add(fmt.Appendf(nil, `{%q:%s}`, part, gjson.GetBytes(small, part).Raw))
	}
	f.Add([]byte(`{"requests":[null,{"evaluation":[]}],"summaries":[[]],"missing":{"":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, fault := range Validate(data, fstest.MapFS{}) {
			if fault.Message == "" {
				t.Fatalf("a fault at %q without a message", fault.Pointer)
			}
		}
		if d, err := Parse(data); err == nil {
			if _, err := d.Marshal(); err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	data := ours(b)
	for b.Loop() {
		if faults := Validate(data, nil); len(faults) > 0 {
			b.Fatal(faults)
		}
	}
}

func TestATextThatIsMadeToBeLargeIsRefusedWithAShortPointer(t *testing.T) {
	for name, c := range map[string]struct{ data, says string }{
		"nested lists":   {strings.Repeat("[", 1<<20), "at most 64 levels"},
		"nested objects": {strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), "at most 64 levels"},
		"a long name":    {`{"` + strings.Repeat("x", 2000) + `":[1,2]}`, "a pointer of at most 1024 bytes, received 2001"},
		"many values":    {"[0" + strings.Repeat(",0", 1_000_001) + "]", "at most 1000000 values"},
		"many bytes":     {strings.Repeat(" ", MaxDocument+1), "at most 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			faults := Validate([]byte(c.data), nil)
			g.Expect(faults).To(HaveLen(1))
			g.Expect(faults[0].Message).To(ContainSubstring(c.says))
			g.Expect(len(faults[0].Pointer)).To(BeNumerically("<", 300))
		})
	}
	root, faults := readTree([]byte(strings.Repeat("[", 64) + strings.Repeat("]", 64)))
	NewWithT(t).Expect(faults).To(BeEmpty())
	NewWithT(t).Expect(root).NotTo(BeNil())
}

func TestFaultsAreCutToALengthThatCanBeRead(t *testing.T) {
	g := NewWithT(t)
	data := mutate(t, reference(t), mutation{"run.status", `"` + strings.Repeat("é", 5000) + `"`, ""})
	data = mutate(t, data, mutation{strings.Repeat("ö", 400), `1`, ""})
	faults := Validate(data, nil)
	g.Expect(len(faults)).To(BeNumerically(">", 1))
	for _, f := range faults {
		g.Expect(len(f.Pointer)).To(BeNumerically("<=", shownPointer+len("…")))
		g.Expect(len(f.Message)).To(BeNumerically("<=", shownMessage+len("…")))
		g.Expect(utf8.ValidString(f.Pointer + f.Message)).To(BeTrue())
	}
}

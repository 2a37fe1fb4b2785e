package corpus

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/onsi/gomega"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

func defaultPrompts(t *testing.T) (*Pack, map[string]Prompt) {
	t.Helper()
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]Prompt{}
	for _, prompt := range p.Prompts {
		byID[prompt.ID] = prompt
	}
	return p, byID
}

// copied returns the embedded pack's files, to be changed.
func copied(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	dir, err := fs.Sub(packs, "packs/"+DefaultID)
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, name)
		files[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// signed makes the manifest agree with the files again.
func signed(files fstest.MapFS) fstest.MapFS {
	content := map[string][]byte{}
	for name, file := range files {
		content[name] = file.Data
	}
	files[ManifestFile] = &fstest.MapFile{Data: Manifest(content)}
	return files
}

func TestTheEmbeddedPackHasEveryRequestOfTheProtocolInOrder(t *testing.T) {
	g := gomega.NewWithT(t)
	p, _ := defaultPrompts(t)
	want := []string{"warmup"}
	for r := 1; r <= Repetitions; r++ {
		for _, c := range PerformanceCases {
			want = append(want, fmt.Sprintf("performance-%s-r%d", c, r))
		}
	}
	for _, c := range SanityCases {
		want = append(want, "sanity-"+c)
	}
	var got []string
	for _, prompt := range p.Prompts {
		got = append(got, prompt.ID)
	}
	g.Expect(got).To(gomega.Equal(want))
	g.Expect(p.ID).To(gomega.Equal(DefaultID))
	g.Expect(p.BuiltIn).To(gomega.BeTrue())
	g.Expect(p.ManifestSHA256).To(gomega.Equal(fmt.Sprintf("%x", sha256.Sum256(p.Manifest))))
	g.Expect(string(p.Manifest)).To(gomega.ContainSubstring(fmt.Sprintf("%x  %s\n", sha256.Sum256(p.BuildRecord), BuildRecordFile)))
}

func TestACategoryHasFourCases(t *testing.T) {
	p, _ := defaultPrompts(t)
	count := map[string]int{}
	for _, prompt := range p.Prompts {
		if prompt.Phase == PhaseSanity {
			count[prompt.Category]++
		}
	}
	for _, c := range Categories {
		if count[c] != 4 {
			t.Errorf("category %q has %d cases, expected 4", c, count[c])
		}
	}
}

func TestACopyInADirectoryIsTheSamePack(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.CopyFS(dir, copied(t))).To(gomega.Succeed())
	got, err := Open(dir)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	want, _ := defaultPrompts(t)
	g.Expect(got.BuiltIn).To(gomega.BeFalse())
	got.BuiltIn = true
	g.Expect(got).To(gomega.Equal(want))
}

func TestAPackWithAnyFileChangedMissingOrAddedIsRefusedByItsName(t *testing.T) {
	g := gomega.NewWithT(t)
	for _, name := range slices.Sorted(maps.Keys(copied(t))) {
		if name == ManifestFile {
			continue
		}
		changed := copied(t)
		changed[name] = &fstest.MapFile{Data: append(bytes.Clone(changed[name].Data), '\n')}
		_, err := open(changed)
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("file %q was changed", name)))

		missing := copied(t)
		delete(missing, name)
		_, err = open(missing)
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("file %q is in the manifest but not in the pack", name)))

		added := copied(t)
		added[name+".orig"] = &fstest.MapFile{}
		_, err = open(added)
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("file %q is in the pack but not in the manifest", name+".orig")))
	}
}

func TestAllDifferencesToTheManifestAreReported(t *testing.T) {
	files := copied(t)
	files[PackFile] = &fstest.MapFile{Data: []byte("{}")}
	delete(files, AnswersFile)
	files["notes.txt"] = &fstest.MapFile{}
	_, err := open(files)
	gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.And(gomega.ContainSubstring(PackFile), gomega.ContainSubstring(AnswersFile), gomega.ContainSubstring("notes.txt"))))
}

func TestAPackOnDiskIsRefusedWithItsDirectoryNamed(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	_, err := Open(dir)
	g.Expect(err).To(gomega.MatchError(gomega.And(gomega.ContainSubstring("%q", dir), gomega.ContainSubstring(ManifestFile))))
	g.Expect(errors.Is(err, fs.ErrNotExist)).To(gomega.BeTrue())
	_, err = Open(filepath.Join(dir, "nowhere"))
	g.Expect(err).To(gomega.MatchError(gomega.And(gomega.ContainSubstring("open pack"), gomega.ContainSubstring("nowhere"))))

	g.Expect(os.CopyFS(dir, copied(t))).To(gomega.Succeed())
	secret := filepath.Join(t.TempDir(), "secret")
	g.Expect(os.WriteFile(secret, []byte("x"), 0o600)).To(gomega.Succeed())
	g.Expect(os.Symlink(secret, filepath.Join(dir, "link"))).To(gomega.Succeed())
	_, err = Open(dir)
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(`"link" is not a regular file`)))
}

func TestAManifestOfAnotherFormIsRefused(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for manifest, want := range map[string]string{
		"":                                             "newline",
		digest + "  a":                                 "newline",
		"\n":                                           "line 1",
		digest + " a\n":                                "line 1",
		digest[:62] + "  a\n":                          "line 1",
		strings.ToUpper(digest) + "  a\n":              "line 1",
		digest + "  b\n" + digest + "  a\n":            `"a" is out of order after "b"`,
		digest + "  a\n" + digest + "  a\n":            `"a" is out of order after "a"`,
		digest + "  ../a\n":                            `"../a" is not the path`,
		digest + "  /a\n":                              `"/a" is not the path`,
		digest + "  " + ManifestFile + "\n":            "is not the path",
		digest + "  a\n\n" + digest + "  b\n":          "line 2",
		digest + " *a\n":                               "line 1",
		"# files\n" + digest + "  a\n":                 "line 1",
		digest + "  a\r\n" + digest + "  a\r\nb\n":     "line 2",
		digest + "  a\n" + digest + "  b\n" + "rest\n": "line 3",
	} {
		_, err := parseManifest([]byte(manifest))
		gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.ContainSubstring(want)), "%q", manifest)
	}
}

func FuzzAManifestThatIsAcceptedIsWrittenTheSame(f *testing.F) {
	p, err := Default()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(p.Manifest))
	f.Add(strings.Repeat("0a", 32) + "  a b/c\n")
	f.Add("\n")
	f.Fuzz(func(t *testing.T, manifest string) {
		digests, err := parseManifest([]byte(manifest))
		if err != nil {
			return
		}
		var again strings.Builder
		for _, name := range slices.Sorted(maps.Keys(digests)) {
			fmt.Fprintf(&again, "%s  %s\n", digests[name], name)
		}
		if again.String() != manifest {
			t.Errorf("%q was read as %q", manifest, again.String())
		}
	})
}

// Each row changes one file of a whole pack, by a JSON path, and names what the refusal must say.
func TestContentThatIsNotWholeIsRefused(t *testing.T) {
	const answer = "11" // the last of answers.json, T4, and the place of T1 … is counted back from it
	for _, tc := range []struct {
		name, file, path, value string // value "" deletes
		want                    []string
	}{
		{"no id", PackFile, "id", `""`, []string{"the id is empty"}},
		{"an unknown member", PackFile, "prompts.0.comment", `"x"`, []string{PackFile, "comment"}},
		{"an unknown phase", PackFile, "prompts.1.phase", `"practice"`, []string{`"performance-short-r1"`, `unknown phase "practice"`, `"warmup"`}},
		{"the concurrency phase", PackFile, "prompts.1.phase", `"concurrency"`, []string{`unknown phase "concurrency"`}},
		{"an unknown category", PackFile, "prompts.10.category", `"recall"`, []string{`"sanity-I1"`, `unknown category "recall"`, `"retrieval"`}},
		{"a category outside the sanity phase", PackFile, "prompts.1.category", `"retrieval"`, []string{"only sanity prompts have one"}},
		{"an id of another form", PackFile, "prompts.1.id", `"short-1"`, []string{`"short-1"`, `"performance-short-r1"`}},
		{"an id twice", PackFile, "prompts.11", `{"id":"sanity-I1","phase":"sanity","case_id":"I1","category":"instruction","repetition":1,"file":"prompts/sanity-I1.txt"}`,
			[]string{`two prompts have the id "sanity-I1"`}},
		{"a repetition of a sanity case", PackFile, "prompts.10.repetition", `2`, []string{`"sanity-I1"`, "repetition 2"}},
		{"repetitions out of turn", PackFile, "prompts.1", `{"id":"performance-short-r4","phase":"performance","case_id":"short","repetition":4,"file":"prompts/performance-short-r1.txt"}`,
			[]string{`"performance-prompt-4k-r1" stands after "performance-short-r4"`}},
		{"phases out of order", PackFile, "prompts.0", `{"id":"sanity-I9","phase":"sanity","case_id":"I9","category":"instruction","repetition":1,"file":"prompts/sanity-I1.txt"}`,
			[]string{`stands after "sanity-I9"`, `no prompt of phase "warmup"`, `no answer for prompt "sanity-I9"`}},
		{"two warm-ups", PackFile, "prompts.1", `{"id":"warmup","phase":"warmup","case_id":"warmup","repetition":1,"file":"prompts/warmup.txt"}`, []string{"2 warm-up prompts"}},
		{"no prompts", PackFile, "prompts", `[]`, []string{`no prompt of phase "performance"`}},
		{"a text that is not there", PackFile, "prompts.0.file", `"prompts/none.txt"`, []string{`"warmup"`, `no file "prompts/none.txt"`}},
		{"tools that are not there", PackFile, "prompts.18.tools", `"tools/none.json"`, []string{`"sanity-T1"`, "tools/none.json"}},
		{"a text in place of tools", PackFile, "prompts.18.tools", `"prompts/warmup.txt"`, []string{`"sanity-T1"`, "prompts/warmup.txt"}},
		{"a tool of an unknown type", "tools/T1.json", "0.type", `"web_search"`, []string{`"book_study_room"`, `type "function"`}},
		{"no tools in the file", "tools/T1.json", "", `[]`, []string{"tools/T1.json: no tools"}},
		{"two tools of one name", "tools/T2.json", "0.function.name", `"resend_invoice"`, []string{`"resend_invoice"`, "a name of its own"}},
		{"the tool to call is not offered", "tools/T1.json", "0.function.name", `"book_room"`, []string{`"sanity-T1"`, `"book_study_room"`, `"book_room"`}},
		{"no answer to a case", AnswersFile, answer, "", []string{`no answer for prompt "sanity-T4"`}},
		{"an answer twice", AnswersFile, answer + ".id", `"sanity-T3"`, []string{`prompt "sanity-T3" has two answers`}},
		{"an answer to nothing", AnswersFile, answer + ".id", `"sanity-T9"`, []string{`no prompt "sanity-T9"`}},
		{"an answer to what is not judged", AnswersFile, answer + ".id", `"warmup"`, []string{`"warmup" is not of the sanity phase`}},
		{"an unknown kind of key", AnswersFile, "0.expect.kind", `"regexp"`, []string{`"sanity-I1"`, `"regexp"`, `"tool_call"`}},
		{"two keys in one", AnswersFile, "0.expect.text", `"x"`, []string{`"sanity-I1"`, "nothing else"}},
		{"no key", AnswersFile, "0.expect.json", "", []string{`"sanity-I1"`, "expected that"}},
		{"a JSON answer that is wrong", AnswersFile, "0.answer.text", `"{}"`, []string{`"sanity-I1"`, "is not the expected JSON"}},
		{"a text answer that is wrong", AnswersFile, "3.answer.text", `"x"`, []string{`"sanity-I4"`, "is not the expected text"}},
		{"a text with outer white space", AnswersFile, "3.expect.text", `"x "`, []string{`"sanity-I4"`, "outer white space"}},
		{"a call that is wrong", AnswersFile, answer + ".answer.call.arguments.language", `"de"`, []string{`"sanity-T4"`, `call to "pin_notice"`}},
		{"an unknown member of an answer", AnswersFile, "0.points", `3`, []string{AnswersFile, "points"}},
		{"no count for a prompt", TokenCountsFile, "qwen3.prompts.0", "", []string{`"qwen3"`, `no count for prompt "warmup"`}},
		{"a count for no prompt", TokenCountsFile, "qwen3.prompts.0.id", `"warm"`, []string{`no prompt "warm"`}},
		{"a prompt counted twice", TokenCountsFile, "qwen3.prompts.0.id", `"performance-short-r1"`, []string{`"performance-short-r1" is counted twice`}},
		{"a prefix longer than its text", TokenCountsFile, "qwen3.prompts.0.shared_prefix_tokens", `99`, []string{`"warmup"`, "prefix of 99"}},
		{"no counts by the pack's tokenizer", PackFile, "tokenizer", `"bytes"`, []string{`tokenizer "bytes"`}},
		{"an empty text", "prompts/warmup.txt", "", "\x00empty", []string{`"prompts/warmup.txt" is empty`}},
		{"a text that is not UTF-8", "prompts/warmup.txt", "", "caf\xe9", []string{`"prompts/warmup.txt" is not UTF-8`}},
		{"a build record that is not JSON", BuildRecordFile, "", "built", []string{BuildRecordFile}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			files := copied(t)
			data := files[tc.file].Data
			var err error
			switch {
			case tc.value == "\x00empty":
				data = nil
			case tc.path == "":
				data = []byte(tc.value)
			case tc.value == "":
				g.Expect(gjson.GetBytes(data, tc.path).Exists()).To(gomega.BeTrue())
				data, err = sjson.DeleteBytes(data, tc.path)
			default:
				data, err = sjson.SetRawBytes(data, tc.path, []byte(tc.value))
			}
			g.Expect(err).NotTo(gomega.HaveOccurred())
			files[tc.file] = &fstest.MapFile{Data: data}
			_, err = open(signed(files))
			g.Expect(err).To(gomega.HaveOccurred())
			for _, want := range tc.want {
				g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(want)))
			}
		})
	}
}

func TestAMissingFileOfThePackIsNamed(t *testing.T) {
	for _, name := range []string{PackFile, AnswersFile, TokenCountsFile, BuildRecordFile} {
		files := copied(t)
		delete(files, name)
		_, err := open(signed(files))
		gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.ContainSubstring("%s: the pack has no such file", name)))
	}
}

func TestAPackWithItsOwnCasesAndNoTokenizerIsAccepted(t *testing.T) {
	g := gomega.NewWithT(t)
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	p, err := open(signed(fstest.MapFS{
		PackFile: text(`{"id":"mine","tokenizer":"","prompts":[
			{"id":"warmup","phase":"warmup","case_id":"warmup","repetition":1,"file":"w"},
			{"id":"performance-poem-r1","phase":"performance","case_id":"poem","repetition":1,"file":"p"},
			{"id":"sanity-X","phase":"sanity","case_id":"X","category":"instruction","repetition":1,"file":"x"}]}`),
		AnswersFile: text(`[{"id":"sanity-X","expect":{"kind":"json","json":[1]},"answer":{"reasoning":"","text":" [1.0]\n"}}]`),
		"w":         text("a"), "p": text("b"), "x": text("c"),
		TokenCountsFile: text(`{}`), BuildRecordFile: text(`{}`),
	}))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(p.ID).To(gomega.Equal("mine"))
	g.Expect(p.Prompts).To(gomega.HaveLen(3))
	g.Expect(p.Prompts[2].ContentTokens).To(gomega.BeEmpty())
}

package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
)

func loaded(t *testing.T) *sources {
	t.Helper()
	src, err := loadSources()
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func committed() fs.FS { return os.DirFS("../packs/" + corpus.DefaultID) }

func readCommitted(t *testing.T, name string, into any) {
	t.Helper()
	data, err := fs.ReadFile(committed(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// This runs everywhere: the record says which pieces were chosen, so no tokens have to be counted.
func TestTheCommittedPackIsPutTogetherAgainFromItsRecord(t *testing.T) {
	src := loaded(t)
	var record buildRecord
	var counts corpus.TokenCounts
	readCommitted(t, corpus.BuildRecordFile, &record)
	readCommitted(t, corpus.TokenCountsFile, &counts)

	now := buildRecord{Builder: builderVersion, Pack: corpus.DefaultID, Seed: packSeed,
		Tokenizer: record.Tokenizer, TemplateHead: record.TemplateHead, Prompts: record.Prompts}
	if err := now.describe(src); err != nil {
		t.Fatal(err)
	}
	files, err := render(src, &now, counts)
	if err != nil {
		t.Fatal(err)
	}
	if err := compare(files, committed()); err != nil {
		t.Errorf("the committed pack is not what its sources give; build it again:\n%v", err)
	}
	for _, p := range record.Prompts {
		text := string(files["prompts/"+p.ID+".txt"])
		if p.Bytes != len(text) || p.Words != len(strings.Fields(text)) {
			t.Errorf("%s: the record says %d words in %d bytes, the prompt has %d in %d", p.ID, p.Words, p.Bytes, len(strings.Fields(text)), len(text))
		}
	}
}

func TestTheCommittedPackIsBuiltAgainByteForByte(t *testing.T) {
	dir := os.Getenv(tokenizerEnv)
	if dir == "" {
		t.Skipf("choosing the pieces again needs the tokenizer data, which is not in the repository: set $%s to its directory", tokenizerEnv)
	}
	tok, err := loadTokenizer(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := build(loaded(t), tok)
	if err != nil {
		t.Fatal(err)
	}
	if err := compare(files, committed()); err != nil {
		t.Error(err)
	}
}

// A rough count stands for the tokenizer: what is asked of the choice holds for any count that adds up.
func roughly(text string) (int, error) { return len(text) / 3, nil }

func composeAll(t *testing.T, src *sources) map[string][]string {
	t.Helper()
	c := newComposer(src, roughly)
	all := map[string][]string{}
	for _, p := range src.prompts {
		if p.Size == 0 {
			continue
		}
		pieces, err := c.compose(p, 50)
		if err != nil {
			t.Fatal(err)
		}
		all[p.ID] = pieces
	}
	return all
}

func TestPiecesAreChosenTheSameEachTime(t *testing.T) {
	src := loaded(t)
	NewWithT(t).Expect(composeAll(t, src)).To(Equal(composeAll(t, src)))
}

func TestNoPieceIsUsedWhereItWouldBeSharedAtLength(t *testing.T) {
	src := loaded(t)
	records, pairs := map[string]string{}, map[string]string{}
	for id, pieces := range composeAll(t, src) {
		here := map[string]bool{}
		last := ""
		for _, piece := range pieces {
			if here[piece] {
				t.Errorf("%s has %q twice", id, piece)
			}
			here[piece] = true
			switch kind, _, _ := strings.Cut(piece, " "); kind {
			case "record":
				if other, ok := records[piece]; ok {
					t.Errorf("%s and %s both have %q", id, other, piece)
				}
				records[piece] = id
			case "passage":
				for _, pair := range []string{last + piece, piece + last} {
					if other, ok := pairs[pair]; ok {
						t.Errorf("%q follows %q in %s and in %s", piece, last, id, other)
					}
				}
				pairs[last+piece] = id
				last = piece
			}
		}
	}
}

func TestAPassageIsPassedOverBesideItsOldNeighbour(t *testing.T) {
	g := NewWithT(t)
	src := &sources{passages: []passage{{id: "f/1", text: "a"}, {id: "f/2", text: "b"}, {id: "f/3", text: "c"}}}
	for _, pair := range [][2]string{{"f/1", "f/2"}, {"f/2", "f/1"}} {
		c := newComposer(src, roughly)
		c.deck = slices.Clone(src.passages[1:])
		c.neighbours[pair] = true
		m := &composition{last: "f/1", has: map[string]bool{"f/1": true}}
		g.Expect(c.addPassage(m)).To(Succeed())
		g.Expect(m.pieces).To(Equal([]string{"passage f/3"}))
		g.Expect(c.addPassage(m)).To(Succeed())
		g.Expect(m.pieces).To(Equal([]string{"passage f/3", "passage f/2"}))
		g.Expect(c.addPassage(m)).To(MatchError(ContainSubstring("every passage is used")))
	}
}

func TestEveryNeedleIsPlacedOnce(t *testing.T) {
	src := loaded(t)
	all := composeAll(t, src)
	for _, p := range src.prompts {
		placed := 0
		for _, piece := range all[p.ID] {
			if strings.HasPrefix(piece, "needle ") {
				placed++
			}
		}
		if placed != len(p.needles) {
			t.Errorf("%s: %d needles placed, expected %d", p.ID, placed, len(p.needles))
		}
		if p.Category == "retrieval" && !slices.ContainsFunc(p.needles, func(n needle) bool { return n.Asked }) {
			t.Errorf("%s: nothing is asked for", p.ID)
		}
	}
}

func TestATaskNamesOnlyEntriesThatAreThere(t *testing.T) {
	var record buildRecord
	readCommitted(t, corpus.BuildRecordFile, &record)
	named := 0
	for i, p := range loaded(t).prompts {
		if p.Phase != corpus.PhasePerformance {
			continue
		}
		for _, number := range regexp.MustCompile(`\d+`).FindAllString(p.task, -1) {
			named++
			if n, _ := strconv.Atoi(number); n < 1 || n > len(record.Prompts[i].Pieces) {
				t.Errorf("%s: the task names entry %s of %d", p.ID, number, len(record.Prompts[i].Pieces))
			}
		}
	}
	if named == 0 {
		t.Error("no task names an entry: nothing was checked")
	}
}

func TestAnUnknownPieceIsRefusedByName(t *testing.T) {
	src := loaded(t)
	for _, piece := range []string{"passage none/1", "record none 1", "record sql x", "needle 1", "needle x", "page 3", ""} {
		_, err := src.assemble(promptSource{ID: "p", Size: 1, Heading: "{n}"}, []string{piece})
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(`"p"`), ContainSubstring(strconv.Quote(piece)))))
	}
}

func TestEveryDifferenceToThePackIsReported(t *testing.T) {
	g := NewWithT(t)
	files := map[string][]byte{"same": []byte("a"), "changed": []byte("b"), "gone": []byte("c")}
	pack := fstest.MapFS{"same": {Data: []byte("a")}, "changed": {Data: []byte("x")}, "extra": {}}
	g.Expect(compare(files, pack)).To(MatchError(And(ContainSubstring("changed"), ContainSubstring("gone"), ContainSubstring("extra"), Not(ContainSubstring("same")))))
	delete(pack, "extra")
	g.Expect(compare(map[string][]byte{"same": []byte("a"), "changed": []byte("x")}, pack)).To(Succeed())
}

func TestOnlyAPackIsReplaced(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.WriteFile(dir+"/thesis.txt", []byte("mine"), 0o600)).To(Succeed())
	files := map[string][]byte{"a/b": []byte("b")}
	files[corpus.ManifestFile] = corpus.Manifest(files)
	g.Expect(write(files, dir)).To(MatchError(ContainSubstring("holds no pack")))
	g.Expect(dir + "/thesis.txt").To(BeAnExistingFile())

	pack := dir + "/pack"
	g.Expect(write(files, pack)).To(Succeed())
	g.Expect(os.WriteFile(pack+"/old", nil, 0o600)).To(Succeed())
	g.Expect(write(files, pack)).To(Succeed())
	g.Expect(compare(files, os.DirFS(pack))).To(Succeed())
}

func TestPassagesAreWithinTheirLengths(t *testing.T) {
	words := 0
	genres := map[string]bool{}
	for _, p := range loaded(t).passages {
		n := len(strings.Fields(p.text))
		if n < 60 {
			t.Errorf("%s has %d words, expected 60 or more", p.id, n)
		}
		words += n
		genres[p.genre] = true
	}
	if words < 19000 || len(genres) < 8 {
		t.Errorf("%d words of %d genres, expected about 20,000 of 8 or more", words, len(genres))
	}
}

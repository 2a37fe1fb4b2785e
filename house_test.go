// Package plumbline_test holds the house to its plan: the rooms that stand at the top, what each says it is for, and
// who may import whom (docs/design.md).
package plumbline_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "plumbline/"

// rooms lists every package and the rooms that it may import. A pattern "a/*" stands for all rooms below a.
var rooms = map[string][]string{
	"fixtures":           {},
	"fixtures/frugal":    {},
	"fixtures/engines":   {"fixtures/frugal"},
	"corpus":             {},
	"corpus/build":       {"corpus"},
	"mockserver":         {"fixtures", "corpus"},
	"harness/settings":   {"fixtures", "fixtures/engines", "corpus"},
	"harness/engine":     {"fixtures", "fixtures/engines", "corpus", "harness/settings", "mockserver"},
	"harness/plan":       {"fixtures", "corpus"},
	"harness/client":     {"fixtures"},
	"harness/transcript": {"fixtures", "corpus"},
	"harness/measure":    {"fixtures", "corpus", "harness/transcript"},
	"harness/judge":      {"fixtures", "corpus", "harness/transcript", "harness/measure"},
	"harness/journal":    {"fixtures"},
	"harness/load":       {"fixtures"},
	"harness/facts":      {"fixtures"},
	"harness/doctor":     {"fixtures", "fixtures/engines", "corpus", "harness/*"},
	"reports/schema":     {},
	"reports/strata":     {"fixtures", "corpus", "harness/transcript", "harness/measure", "harness/judge", "reports/schema"},
	"reports/capacity":   {"fixtures", "corpus", "harness/transcript", "harness/measure", "harness/judge", "reports/schema"},
	"suites":             {"fixtures", "corpus", "mockserver", "harness/*", "reports/*", "suites/*"},
	"suites/selftest":    {"fixtures", "corpus", "mockserver", "harness/*", "reports/*", "suites/session"},
	"docs":               {"fixtures", "corpus", "harness/*", "reports/*"},
	"suites/session":     {"fixtures", "corpus", "harness/*", "reports/*"},
	"suites/standard":    {"fixtures", "corpus", "harness/*", "reports/*", "suites/session"},
	"suites/capacity":    {"fixtures", "corpus", "harness/*", "reports/*", "suites/session"},
	"cmd/plumbline":      {"fixtures", "corpus", "mockserver", "harness/*", "reports/*", "suites/session"},
}

// topLevel are the folders at the top; others, but for hidden ones and run output, are not part of the house.
var topLevel = []string{"cmd", "corpus", "docs", "fixtures", "harness", "mockserver", "reports", "suites"}

func TestEveryArrowIsAllowed(t *testing.T) {
	for room, pkg := range packages(t) {
		allowed, planned := rooms[room]
		if !planned {
			t.Errorf("package %q is in no plan: add it to rooms here and to docs/design.md, or put its code where the plan has a place", room)
			continue
		}
		for _, to := range pkg.imports {
			if !slices.ContainsFunc(allowed, func(pattern string) bool { return pattern == to || matches(pattern, to) }) {
				t.Errorf("%q imports %q; it may import %q", room, to, allowed)
			}
		}
	}
}

func TestEveryPlannedRoomStands(t *testing.T) {
	standing := packages(t)
	for room := range rooms {
		if _, ok := standing[room]; !ok {
			t.Errorf("room %q is planned and does not stand", room)
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for room, pkg := range packages(t) {
		if !pkg.documented {
			t.Errorf("package %q has no package comment", room)
		}
	}
}

func TestTheTopHoldsOnlyTheHouse(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "out" && e.Name() != "bin" && !slices.Contains(topLevel, e.Name()) {
			t.Errorf("folder %q stands at the top; the plan has %q", e.Name(), topLevel)
		}
	}
}

func matches(pattern, room string) bool {
	ok, err := path.Match(pattern, room)
	return err == nil && ok
}

type pkg struct {
	imports    []string // rooms of ours
	documented bool
}

// packages reads the tree's Go files; tests count only in packages that have nothing else.
func packages(t *testing.T) map[string]pkg {
	t.Helper()
	found := map[string]pkg{}
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "out" || len(file) > 1 && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		room := path.Dir(file)
		if !strings.HasSuffix(file, ".go") || room == "." || strings.HasSuffix(file, "_test.go") && !onlyTests(room) {
			return nil
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		p := found[room]
		p.documented = p.documented || syntax.Doc != nil
		p.imports = append(p.imports, ours(syntax)...)
		found[room] = p
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no package was found")
	}
	return found
}

func onlyTests(room string) bool {
	files, err := filepath.Glob(filepath.Join(room, "*.go"))
	return err == nil && !slices.ContainsFunc(files, func(f string) bool { return !strings.HasSuffix(f, "_test.go") })
}

func ours(file *ast.File) []string {
	set := map[string]bool{}
	for _, i := range file.Imports {
		if to, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ok {
			set[to] = true
		}
	}
	return slices.Collect(maps.Keys(set))
}

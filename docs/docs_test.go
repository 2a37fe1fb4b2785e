// Package docs_test holds the documentation to the code: the table of settings, the paths and the names that it speaks
// of, and the codes of a run's status. It has no code but tests.
package docs_test

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"plumbline/fixtures"
	"plumbline/harness/judge"
	"plumbline/harness/settings"
	"plumbline/reports/strata"
)

var update = flag.Bool("update", false, "rewrite the tables in running.md and findings.md")

const root = ".."

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// section is the text under a heading, up to the next heading of any level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("find section: no heading %q", heading)
	}
	before, _, _ := strings.Cut(rest, "\n#")
	return before
}

func TestTheTableOfSettingsIsTheCodes(t *testing.T) {
	const file, heading = "docs/running.md", "## Settings"
	text := read(t, file)
	if *update {
		before, _, ok := strings.Cut(text, "\n"+heading+"\n")
		if !ok {
			t.Fatalf("update %q: no heading %q", file, heading)
		}
		text = before + "\n" + heading + "\n\n" + settings.Usage()
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, last, _ := strings.Cut(text, "\n"+heading+"\n\n")
	if last != settings.Usage() {
		t.Errorf("the last section of %s is not the table of settings: run go test ./docs -update; expected\n%s\nreceived\n%s",
			file, settings.Usage(), last)
	}
}

func TestTheCatalogueOfFindingsIsTheCodes(t *testing.T) {
	const file, heading = "docs/findings.md", "\n## Catalogue\n\n"
	before, last, found := strings.Cut(read(t, file), heading)
	if !found {
		t.Fatalf("no catalogue in %s", file)
	}
	if *update {
		last = judge.Catalogue()
		if err := os.WriteFile(filepath.Join(root, file), []byte(before+heading+last), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if last != judge.Catalogue() {
		t.Errorf("the catalogue in %s is not the code's: run go test ./docs -update", file)
	}
}

func TestTheReasonCodesAreTheCodes(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(
		section(t, read(t, "docs/formats.md"), "### Status reason codes"), -1)
	var documented []string
	for _, row := range rows {
		documented = append(documented, row[1])
	}
	if inCode := reasonCodes(t); !slices.Equal(documented, inCode) {
		t.Errorf("status reason codes in docs/formats.md: expected those of the code in its order, %q, received %q", inCode, documented)
	}
}

// reasonCodes reads the codes where the code lists them: no other place exports them.
func reasonCodes(t *testing.T) []string {
	t.Helper()
	const path, list = "reports/strata/reasons.go", "statusReasons"
	file, err := parser.ParseFile(token.NewFileSet(), path, read(t, path), 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != list || len(spec.Values) != 1 {
			return true
		}
		for _, reason := range spec.Values[0].(*ast.CompositeLit).Elts {
			code, err := strconv.Unquote(reason.(*ast.CompositeLit).Elts[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		return false
	})
	if len(codes) == 0 {
		t.Fatalf("read %q: no list %q of reasons", path, list)
	}
	return codes
}

func TestEveryPathThatIsNamedExists(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "README.md")); err == nil {
		pages = append(pages, filepath.Join(root, "README.md"))
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range treePaths(t, string(text)) {
			if found, err := filepath.Glob(filepath.Join(root, path)); err != nil || len(found) == 0 {
				t.Errorf("%s names %q, which is not in the tree (%v)", filepath.Base(page), path, err)
			}
		}
	}
	if paths := treePaths(t, "`docs/a.md` and `go test ./corpus/...`, `out/b`, docs/c.md\n\n    cat suites/d\n"); !slices.Equal(paths,
		[]string{"docs/a.md", "corpus/", "suites/d"}) {
		t.Errorf("paths of a page: received %q", paths)
	}
}

// codeSpans are what stands in backticks, and indented lines.
var codeSpans = regexp.MustCompile("`[^`\n]+`|(?m)^    .*$")

// treePaths are the words of a page's code that begin with a folder of the tree.
func treePaths(t *testing.T, page string) []string {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]bool{}
	for _, e := range entries {
		folders[e.Name()] = e.IsDir() && e.Name() != "out" && e.Name() != "bin"
	}
	var paths []string
	for _, span := range codeSpans.FindAllString(page, -1) {
		for word := range strings.FieldsSeq(strings.ReplaceAll(span, "`", " ")) {
			word = strings.TrimSuffix(strings.TrimPrefix(word, "./"), "...")
			if first, _, deeper := strings.Cut(word, "/"); deeper && folders[first] {
				paths = append(paths, word)
			}
		}
	}
	return paths
}

func TestEveryNameOfTheFormatsIsExplained(t *testing.T) {
	page := read(t, "docs/formats.md") + read(t, "docs/capacity.md")
	explained := map[string]bool{}
	for _, span := range regexp.MustCompile("`[^`\n]+`").FindAllString(page, -1) {
		explained[strings.Trim(span, "`")] = true
	}
	names := schemaNames(t)
	jsonNames(reflect.TypeFor[fixtures.Line](), names)
	for _, kind := range fixtures.EndKinds {
		names[string(kind)] = true
	}
	if len(names) < 150 {
		t.Errorf("%d names were found in the types and the schema: they were not read", len(names))
	}
	for name := range names {
		if !explained[name] {
			t.Errorf("neither docs/formats.md nor docs/capacity.md explains %q", name)
		}
	}
}

// schemaNames are the names of all members that the schema of the result document knows.
func schemaNames(t *testing.T) map[string]bool {
	t.Helper()
	var schema any
	if err := json.Unmarshal(strata.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok {
				for name := range properties {
					names[name] = true
				}
			}
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(schema)
	return names
}

// jsonNames adds the names of the members that a type of the record is written with.
func jsonNames(t reflect.Type, names map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		jsonNames(t.Elem(), names)
	case reflect.Struct:
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				continue // written by its type itself, as a piece and a time are
			}
			names[name] = true
			jsonNames(field.Type, names)
		}
	}
}

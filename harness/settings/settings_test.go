package settings

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// resolve runs the whole way of a command line: register, check, parse, resolve.
func resolve(t *testing.T, args, environ []string, base string) (*Settings, error) {
	t.Helper()
	fs := flag.NewFlagSet("suite", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	l := Register(fs)
	if err := CheckArgs(args, fs); err != nil {
		return nil, err
	}
	if err := fs.Parse(args); err != nil {
		t.Fatalf("package flag refused what CheckArgs let through: %v", err)
	}
	return l.Resolve(environ, base)
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNothingSetGivesTheDocumentedDefaults(t *testing.T) {
	g := NewWithT(t)
	s, err := resolve(t, nil, nil, "/base")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.URL).To(BeEmpty())
	g.Expect(s.Profile).To(Equal("qwen3.8-flash-next-thinking"))
	g.Expect(s.Protocols).To(Equal([]string{"standard"}))
	g.Expect(s.MockPace).To(Equal("fast"))
	g.Expect(s.TimeoutConnect).To(Equal(10 * time.Second))
	g.Expect(s.TimeoutFirstToken).To(Equal(10 * time.Minute))
	g.Expect(s.TimeoutIdle).To(Equal(6*time.Minute), "some servers are silent for up to five minutes while they read a prompt")
	g.Expect(s.TimeoutTotal).To(Equal(30 * time.Minute))
	g.Expect(s.MaxBody).To(Equal(int64(64 << 20)))
	g.Expect(s.From("profile")).To(Equal(FromDefault))
	g.Expect(s.OutDir("R1")).To(Equal("/base/out/R1"))
	g.Expect(s.LatestLink()).To(Equal("/base/out/latest"))
}

func TestFlagBeatsEnvironmentBeatsFile(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "p.yaml", "profile: from-file\nmodel: from-file\ntrack: from-file\n")
	g := NewWithT(t)
	s, err := resolve(t, []string{"--config", "p.yaml", "--profile=from-flag"},
		[]string{"PLUMBLINE_PROFILE=from-env", "PLUMBLINE_MODEL=from-env", "OTHER=1"}, dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]string{s.Profile, s.Model, s.Track}).To(Equal([]string{"from-flag", "from-env", "from-file"}))
	g.Expect([]Source{s.From("profile"), s.From("model"), s.From("track"), s.From("url")}).
		To(Equal([]Source{FromFlag, FromEnvironment, FromFile, FromDefault}))
}

func TestAFlagAtItsDefaultStillBeatsTheEnvironment(t *testing.T) {
	g := NewWithT(t)
	s, err := resolve(t, []string{"--mock-pace", "fast"}, []string{"PLUMBLINE_MOCK_PACE=real"}, "/b")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.MockPace).To(Equal("fast"))
}

// Every setting is settable from each of the three sources, under the name that the rule gives it.
func TestEverySettingIsReadFromEverySource(t *testing.T) {
	sample := map[kind]string{kindText: "x", kindPath: "/p", kindNameOrFile: "name", kindVariable: "HOME_KEY", kindProgram: "/p/x", kindWord: "--a=b,c",
		kindBool: "true", kindInt: "77",
		kindBytes: "3KiB", kindDuration: "7m", kindNumber: "0.5"}
	// what some settings need beside them
	beside := map[string]string{"capacity-arrival": "PLUMBLINE_CAPACITY_RATE=2", "capacity-rate": "PLUMBLINE_CAPACITY_ARRIVAL=constant",
		"capacity-controlled-output-policy": "PLUMBLINE_CAPACITY_RESPONSE_WORDS=9"}
	for _, f := range fields {
		text := sample[f.kind]
		if f.enum != nil {
			text = f.enum[len(f.enum)-1]
		}
		environ := []string{"HOME_KEY=k"}
		switch f.flag {
		case "config":
			continue // held by TestFlagBeatsEnvironmentBeatsFile
		case "url":
			text = "http://h:1"
		case "timeout-total":
			text = "31m"
		case "capacity-configuration-fingerprint":
			text = "sha256:" + strings.Repeat("0f", 32)
		case "slo":
			text = "ttft=2s"
		case "engine":
			text = "mock-process"
		case "replay":
			environ = append(environ, "PLUMBLINE_ENGINE=replay")
		case "image", "engine-pull":
			environ = append(environ, "PLUMBLINE_ENGINE=mock-container")
		case "command", "engine-arg", "engine-port", "engine-start-timeout":
			environ = append(environ, "PLUMBLINE_ENGINE=mock-process")
		case "keep-engine-log":
			text = "false"
			environ = append(environ, "PLUMBLINE_ENGINE=mock-process")
		}
		if len(f.index) > 1 {
			environ = append(environ, "PLUMBLINE_PROTOCOLS=capacity")
		}
		if b := beside[f.flag]; b != "" {
			environ = append(environ, b)
		}
		t.Run(f.flag, func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			writeFile(t, dir, "c.yaml", f.flag+": "+text+"\n")
			byFlag, err := resolve(t, []string{"--" + f.flag + "=" + text}, environ, dir)
			g.Expect(err).NotTo(HaveOccurred())
			byEnv, err := resolve(t, nil, append(environ, f.env+"="+text), dir)
			g.Expect(err).NotTo(HaveOccurred())
			byFile, err := resolve(t, []string{"--config", "c.yaml"}, environ, dir)
			g.Expect(err).NotTo(HaveOccurred())
			value := func(s *Settings) any { return reflect.ValueOf(s).Elem().FieldByIndex(f.index).Interface() }
			if text != "false" {
				g.Expect(value(byFlag)).NotTo(Equal(value(&Settings{})))
			}
			g.Expect(value(byEnv)).To(Equal(value(byFlag)))
			g.Expect(value(byFile)).To(Equal(value(byFlag)))
			g.Expect([]Source{byFlag.From(f.flag), byEnv.From(f.flag), byFile.From(f.flag)}).
				To(Equal([]Source{FromFlag, FromEnvironment, FromFile}))
		})
	}
}

func TestAProfilesNameIsKeptAndItsFileIsTakenFromTheBaseDirectory(t *testing.T) {
	g := NewWithT(t)
	s, err := resolve(t, []string{"--profile", "a-name"}, nil, "/base")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Profile).To(Equal("a-name"))
	s, err = resolve(t, []string{"--profile", "mine.json"}, nil, "/base")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Profile).To(Equal("/base/mine.json"))
	g.Expect(string(s.Redacted())).To(ContainSubstring(`"profile": {"value": "mine.json"`))
}

func TestEverySettingIsDescribed(t *testing.T) {
	for _, f := range fields {
		if f.help == "" {
			t.Errorf("%s has no help", f.flag)
		}
		if (f.def == "") == (f.unset == "") {
			t.Errorf("%s needs either a default or words for its absence", f.flag)
		}
		if f.kind == kindInt && f.max == 0 {
			t.Errorf("%s has no bounds", f.flag)
		}
	}
	if len(fields) < 30 {
		t.Errorf("only %d settings found", len(fields))
	}
}

func TestRelativePathsAreTakenFromTheBaseDirectory(t *testing.T) {
	g := NewWithT(t)
	s, err := resolve(t, []string{"--corpus", "pack", "--out=o/p", "--model-file", "a.gguf,/abs/b.gguf", "--model-file", "c"}, nil, "/base")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Corpus).To(Equal("/base/pack"))
	g.Expect(s.Out).To(Equal("/base/o/p"))
	g.Expect(s.OutDir("R1")).To(Equal("/base/o/p"))
	g.Expect(s.ModelFile).To(Equal([]string{"/base/a.gguf", "/abs/b.gguf", "/base/c"}))
}

func TestAListInTheFileMayBeASequence(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	writeFile(t, dir, "c.yaml", "model-file: [\"one, two.gguf\", three.gguf]\nserver-capacity: 4\nhttp2: true\n")
	s, err := resolve(t, nil, []string{"PLUMBLINE_CONFIG=c.yaml"}, dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.ModelFile).To(Equal([]string{filepath.Join(dir, "one, two.gguf"), filepath.Join(dir, "three.gguf")}))
	g.Expect(s.ServerCapacity).To(Equal(4))
	g.Expect(s.HTTP2).To(BeTrue())
}

func TestAnEmptyFileIsNoFault(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "c.yaml", "# nothing yet\n")
	if _, err := resolve(t, []string{"--config=c.yaml"}, nil, dir); err != nil {
		t.Error(err)
	}
}

func TestSizesAreReadWithTheirUnits(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "65536": 65536, "64MiB": 64 << 20, "64 MiB": 64 << 20, "2kB": 2000, "1GB": 1e9, "3B": 3} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("parseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5MiB", "MiB", "9223372036854775807KiB", "1 XB", "0x10"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("parseBytes(%q) = %d; want an error", text, got)
		}
	}
}

func TestAShorterTotalShortensDefaultTimeouts(t *testing.T) {
	g := NewWithT(t)
	s, err := resolve(t, []string{"--timeout-total=5s"}, nil, "/b")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]time.Duration{s.TimeoutConnect, s.TimeoutFirstByte, s.TimeoutFirstToken, s.TimeoutIdle, s.TimeoutTotal}).
		To(HaveEach(5 * time.Second))
	s, err = resolve(t, []string{"--timeout-first-token=1m"}, nil, "/b")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.TimeoutFirstByte).To(Equal(time.Minute))
	s, err = resolve(t, []string{"--timeout-first-byte=12m"}, nil, "/b")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.TimeoutFirstToken).To(Equal(12 * time.Minute))
}

func TestBaseDirectory(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	deep := filepath.Join(root, "suites", "inner")
	g.Expect(os.MkdirAll(deep, 0o700)).To(Succeed())
	expect := func(from, dir string, inside bool, why string) {
		t.Helper()
		got, in := baseDir(from)
		g.Expect(got).To(Equal(dir), why)
		g.Expect(in).To(Equal(inside), why)
	}
	expect(deep, deep, false, "outside any module")
	writeFile(t, root, "go.mod", "// comment\nmodule plumbline\n\ngo 1.26\n")
	expect(deep, root, true, "below the root")
	expect(root, root, true, "the root")
	writeFile(t, filepath.Join(root, "suites"), "go.mod", "module plumbline.example/other\n")
	expect(deep, deep, false, "inside another module")
}

func TestUsageListsEverySettingUnderItsThreeNames(t *testing.T) {
	g := NewWithT(t)
	lines := strings.Split(strings.TrimSpace(Usage()), "\n")
	g.Expect(lines).To(HaveLen(len(fields) + 2))
	g.Expect(Usage()).To(ContainSubstring("| `--timeout-first-byte` | `PLUMBLINE_TIMEOUT_FIRST_BYTE` | `10m` |"))
	for _, line := range lines {
		g.Expect(strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")).To(Equal(5), line)
	}
}

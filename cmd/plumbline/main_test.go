package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

const reference = "../../reports/strata/testdata/reference.results.json"

// call runs the command and returns its exit code and what it wrote.
func call(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, streams{&o, &e})
	return code, o.String(), e.String()
}

func TestValidateExitsByWhatItFound(t *testing.T) {
	good, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	spoiled := bytes.Replace(good, []byte(`"passed": 12`), []byte(`"passed": 11`), 1)
	if err := os.WriteFile(bad, spoiled, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, says string
		args       []string
		code       int
	}{
		{"a valid document", "valid", []string{reference}, exitOK},
		{"a wrong sum", "/quality/passed", []string{bad}, exitFailed},
		{"one of two", "not valid", []string{reference, bad}, exitFailed},
		{"a device", "expected a regular file", []string{"/dev/null"}, exitTrouble},
		{"a folder", "expected a regular file", []string{"."}, exitTrouble},
		{"a file too large", "expected at most 268435456 bytes, received 268435457", []string{sparse(t, maxDocument+1)}, exitTrouble},
		{"no such file", "no-such-file", []string{"no-such-file"}, exitTrouble},
		{"no file named", "expected", nil, exitTrouble},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			code, out, errs := call(t, append([]string{"validate"}, c.args...)...)
			g.Expect(code).To(Equal(c.code), out+errs)
			g.Expect(out + errs).To(ContainSubstring(c.says))
		})
	}
}

// sparse is a file of so many bytes that takes no room.
func sparse(t *testing.T, size int64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "large.json")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, size); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestReportNamesWhatIsWrongWithTheDocumentItWrote(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	line, err := fixtures.EncodeLine(fixtures.Line{Run: &fixtures.Header{
		Format: fixtures.RunFormat, RunID: "20261130T120000Z-00c0ffee", StartedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		Command: "plumbline", Protocol: fixtures.Protocol{ID: "p", Profile: "q", CorpusSHA256: strings.Repeat("0", 64)},
		Plan: []fixtures.Planned{{ID: "warmup", Phase: "warmup", CaseID: "warmup", Repetition: 1, Seed: 1, MaxOutputTokens: 128, Concurrency: 1e9}},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "outputs.jsonl"), line, 0o600)).To(Succeed())
	code, out, errs := call(t, "report", dir)
	g.Expect(code).To(Equal(exitFailed), out+errs)
	g.Expect(out).To(ContainSubstring("/requests/0/concurrency: expected 1"))
	g.Expect(filepath.Join(dir, "results.json")).To(BeARegularFile())

	line = bytes.Replace(line, []byte(`"concurrency":1000000000`), []byte(`"concurrency":1`), 1)
	g.Expect(os.WriteFile(filepath.Join(dir, "outputs.jsonl"), line, 0o600)).To(Succeed())
	code, out, errs = call(t, "report", dir)
	g.Expect(code).To(Equal(exitOK), out+errs)
}

func TestReportSaysWhatItCannotRead(t *testing.T) {
	g := NewWithT(t)
	code, _, errs := call(t, "report", t.TempDir())
	g.Expect(code).To(Equal(exitTrouble))
	g.Expect(errs).To(ContainSubstring("outputs.jsonl"))
}

func TestUsageIsTold(t *testing.T) {
	g := NewWithT(t)
	code, out, _ := call(t, "--help")
	g.Expect(code).To(Equal(exitOK))
	for _, subcommand := range []string{"mock", "report", "validate"} {
		g.Expect(out).To(ContainSubstring(subcommand))
	}
	code, _, errs := call(t, "measure")
	g.Expect(code).To(Equal(exitTrouble))
	g.Expect(errs).To(ContainSubstring("measure"))
}

func TestMockRefusesWhatItCannotServe(t *testing.T) {
	for says, args := range map[string][]string{
		"rtx3090":   {"mock", "--pace", "warp"},
		"tpot":      {"mock", "--pace", "ttft=1ms"},
		"role-only": {"mock", "--defect", "nonsense"},
		"share":     {"mock", "--defect", "stall=lots"},
		"UNSET_KEY": {"mock", "--credential-env", "UNSET_KEY"},
		"listen":    {"mock", "--listen", "256.0.0.1:0"},
	} {
		t.Run(says, func(t *testing.T) {
			g := NewWithT(t)
			code, _, errs := call(t, args...)
			g.Expect(code).To(Equal(exitTrouble))
			g.Expect(errs).To(ContainSubstring(says))
		})
	}
}

func TestMockServesUntilItIsStopped(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("MOCK_KEY", "a-key-for-the-mock")
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"mock", "--listen", "127.0.0.1:0", "--credential-env", "MOCK_KEY"}, streams{write, io.Discard})
	}()
	said := make([]byte, 256)
	n, err := read.Read(said)
	g.Expect(err).NotTo(HaveOccurred())
	_, after, _ := strings.Cut(string(said[:n]), " at ")
	url, _, _ := strings.Cut(after, ",")

	response, err := http.Get(url + "/v1/models")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(http.StatusUnauthorized))

	stop()
	g.Expect(<-code).To(Equal(exitOK))
	_, err = http.Get(url + "/health")
	g.Expect(err).To(HaveOccurred())
}

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/tidwall/sjson"

	"plumbline/corpus"
	"plumbline/harness/settings"
	"plumbline/mockserver"
	"plumbline/reports/strata"
	"plumbline/suites/session"
)

func startMock(t *testing.T, o mockserver.Options) string {
	t.Helper()
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	o.Pack = pack
	mock, err := mockserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mock.Close(t.Context()) })
	return mock.URL()
}

// without is an engine in front of another that takes members out of every event and refuses some paths.
func without(t *testing.T, behind string, members, paths []string) string {
	t.Helper()
	target, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		lines := strings.Split(string(data), "\n")
		for i, line := range lines {
			if event, ok := strings.CutPrefix(line, "data: {"); ok {
				event = "{" + event
				for _, m := range members {
					if event, err = sjson.Delete(event, m); err != nil {
						return err
					}
				}
				lines[i] = "data: " + event
			}
		}
		r.Body = io.NopCloser(strings.NewReader(strings.Join(lines, "\n")))
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		return nil
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(paths, r.URL.Path) {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

func diagnosed(t *testing.T, args ...string) (int, diagnosis) {
	t.Helper()
	code, out, errs := call(t, append([]string{"doctor", "--json"}, args...)...)
	var d diagnosis
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	return code, d
}

// ran makes the whole run and returns its document.
func ran(t *testing.T, args ...string) *strata.Document {
	t.Helper()
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	loader := settings.Register(fs)
	dir := filepath.Join(t.TempDir(), "run")
	if err := fs.Parse(append([]string{"--out", dir, "--progress", "none"}, args...)); err != nil {
		t.Fatal(err)
	}
	s, err := loader.Resolve(os.Environ(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run, err := session.New(s, "run", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Open(t.Context()); err == nil {
		for _, p := range run.Plan() {
			if _, err := run.Send(t.Context(), p.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := run.Close(t.Context(), "", "not sent"); err != nil {
		t.Fatal(err)
	}
	doc, err := session.Report(dir)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// What the doctor foretells is held against the run itself: a reason that is certain stands in its document, and no
// reason stands there that was not foretold; a null that was foretold is one.
func TestTheRunTurnsOutAsTheDoctorForetold(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(model, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	tokenize := []string{"/tokenize"}
	for name, c := range map[string]struct {
		url  func(t *testing.T) string
		args []string
		code int
		// certain are some of the reasons that must be foretold as certain.
		certain []string
	}{
		"the mock": {func(t *testing.T) string { return startMock(t, mockserver.Options{}) }, nil, exitOK, []string{"engine_mock", "model_path_untold"}},
		"a model file": {func(t *testing.T) string { return startMock(t, mockserver.Options{}) },
			[]string{"--model-file", model, "--quantization", "IQ3_S"}, exitOK, []string{"engine_mock"}},
		"a lost model file": {func(t *testing.T) string { return startMock(t, mockserver.Options{}) },
			[]string{"--model-file", model + ".lost"}, exitOK, []string{"model_file_unread"}},
		"no hashing": {func(t *testing.T) string { return startMock(t, mockserver.Options{}) },
			[]string{"--skip-model-hash"}, exitOK, []string{"model_hash_skipped"}},
		"no usage": {func(t *testing.T) string {
			return without(t, startMock(t, mockserver.Options{}), []string{"usage", "timings"}, nil)
		}, nil, exitOK, []string{"usage_untold", "reuse_unchecked", "length_unchecked"}},
		"nothing of the cache": {func(t *testing.T) string {
			return without(t, startMock(t, mockserver.Options{}), []string{"usage.prompt_tokens_details", "timings"}, nil)
		}, nil, exitOK, []string{"reuse_unchecked"}},
		"no tokenizer": {func(t *testing.T) string { return without(t, startMock(t, mockserver.Options{}), nil, tokenize) }, nil, exitOK, nil},
		"no tokenizer at all": {func(t *testing.T) string { return without(t, startMock(t, mockserver.Options{}), nil, tokenize) },
			[]string{"--profile", "plain-greedy"}, exitOK, []string{"length_unchecked"}},
		"a small context": {func(t *testing.T) string { return startMock(t, mockserver.Options{ContextTokens: 4096}) }, nil, exitFailed, []string{"required_request_failed"}},
		"an unknown model": {func(t *testing.T) string { return startMock(t, mockserver.Options{}) },
			[]string{"--model", "other"}, exitFailed, []string{"engine_refused", "required_request_skipped"}},
		"a wrong key": {func(t *testing.T) string { return startMock(t, mockserver.Options{APIKey: "sk-0123456789"}) }, nil, exitFailed, []string{"engine_refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			args := append([]string{"--url", c.url(t)}, c.args...)
			code, d := diagnosed(t, args...)
			g.Expect(code).To(Equal(c.code))
			g.Expect(d.CanRun).To(Equal(c.code == exitOK))
			doc := ran(t, args...)
			var certain, foretold []string
			for _, r := range d.Reasons {
				foretold = append(foretold, r.Code)
				if r.Likelihood == strata.Certain {
					certain = append(certain, r.Code)
				}
			}
			stood := doc.Extensions.StatusReasonCodes
			g.Expect(certain).To(ContainElements(c.certain))
			g.Expect(stood).To(ContainElements(certain))
			g.Expect(foretold).To(ContainElements(stood))
			g.Expect(d.Conforming == "no").To(Equal(len(certain) > 0))
			for _, m := range d.Missing {
				why, null := doc.Missing.Get(m.Field)
				g.Expect(null).To(BeTrue(), m.Field)
				g.Expect(why).To(Equal(m.Reason), m.Field)
			}
			if doc.Run.Status == strata.Incomplete {
				return
			}
			for _, m := range doc.Missing {
				if slices.ContainsFunc([]string{"/hardware/", "/software/", "/model/", "/configuration/"}, func(p string) bool { return strings.HasPrefix(m.Key, p) }) {
					g.Expect(d.Missing).To(ContainElement(HaveField("Field", m.Key)))
				}
			}
		})
	}
}

func TestTheDoctorShowsAPersonWhatIsWrongAndWhatToDo(t *testing.T) {
	g := NewWithT(t)
	code, out, _ := call(t, "doctor", "--url", startMock(t, mockserver.Options{ContextTokens: 8192}))
	g.Expect(code).To(Equal(exitFailed))
	g.Expect(out).To(MatchRegexp(`(?m)^failed +context +it holds 8192 tokens`))
	g.Expect(out).To(MatchRegexp(`(?m)^ +→ start the server with a context`))
	g.Expect(out).To(ContainSubstring("No run can be made"))
	g.Expect(out).To(ContainSubstring("engine_mock: "))
	g.Expect(out).To(MatchRegexp(`(?m)^  model/quantization +only the operator can know this; --quantization declares it$`))
	code, out, _ = call(t, "doctor")
	g.Expect(code).To(Equal(exitOK))
	g.Expect(out).To(ContainSubstring("A run can be made."))
}

func TestTheDoctorTakesTheSuitesFlagsAndRefusesOthers(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":             {[]string{"--help"}, exitOK, "-credential-env"},
		"an unknown flag":  {[]string{"--modell", "x"}, exitTrouble, "did you mean --model?"},
		"a stray word":     {[]string{"http://127.0.0.1:1"}, exitTrouble, "this is no flag"},
		"a bad address":    {[]string{"--url", "127.0.0.1"}, exitTrouble, "want an absolute address"},
		"no such variable": {[]string{"--credential-env", "PLUMBLINE_NO_SUCH"}, exitTrouble, "no such variable"},
		"no such profile":  {[]string{"--profile", "no-such"}, exitTrouble, "no-such"},
		"another protocol": {[]string{"--protocols", "capacity"}, exitTrouble, "knows that plan alone"},
		"no time":          {[]string{"--within", "0s"}, exitTrouble, "--within"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			code, out, errs := call(t, append([]string{"doctor"}, c.args...)...)
			g.Expect(code).To(Equal(c.code), out+errs)
			g.Expect(out + errs).To(ContainSubstring(c.says))
		})
	}
}

func TestTheDoctorNamesTheFlagsThatFillANull(t *testing.T) {
	g := NewWithT(t)
	_, d := diagnosed(t)
	flags := map[string][]string{}
	for _, m := range d.Missing {
		flags[m.Field] = m.Flags
	}
	g.Expect(flags).To(HaveKeyWithValue("/model/files", []string{"--model-file"}))
	g.Expect(flags).To(HaveKeyWithValue("/configuration/track", []string{"--track"}))
	var all bytes.Buffer
	fs := flag.NewFlagSet("all", flag.ContinueOnError)
	settings.Register(fs)
	fs.VisitAll(func(f *flag.Flag) { all.WriteString("--" + f.Name + "\n") })
	for field, names := range flags {
		for _, n := range names {
			g.Expect(all.String()).To(ContainSubstring(n+"\n"), field)
		}
	}
}

func TestHealthExitsByTheAnswer(t *testing.T) {
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer sick.Close()
	for name, c := range map[string]struct {
		url  string
		code int
		says string
	}{
		"a mock":           {startMock(t, mockserver.Options{}), exitOK, "healthy\n"},
		"a sick server":    {sick.URL, exitFailed, "status 503"},
		"nobody":           {"http://127.0.0.1:1", exitFailed, "no answer"},
		"no address":       {"127.0.0.1:8080", exitTrouble, "expected an address"},
		"a key in the way": {"http://u:secret@h", exitTrouble, "expected an address"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			code, out, errs := call(t, "health", c.url)
			g.Expect(code).To(Equal(c.code))
			g.Expect(out + errs).To(And(ContainSubstring(c.says), Not(ContainSubstring("secret"))))
		})
	}
}

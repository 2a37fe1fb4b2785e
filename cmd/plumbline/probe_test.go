package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/judge"
	"plumbline/mockserver"
)

const caseFiles = "../../fixtures/cases/"

// judged reads the lines of probe --json.
func judged(t *testing.T, out string) []map[string]json.RawMessage {
	t.Helper()
	var all []map[string]json.RawMessage
	for line := range strings.Lines(out) {
		var j map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, j)
	}
	return all
}

func TestProbeGivesEveryCaseItsVerdictOverASocket(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob(caseFiles + "*.json")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(files)).To(BeNumerically(">=", 120))
	_, out, _ := call(t, append([]string{"probe", "--json"}, files...)...)
	lines := judged(t, out)
	g.Expect(lines).To(HaveLen(len(files)))
	for i, j := range lines {
		var id string
		g.Expect(json.Unmarshal(j["id"], &id)).To(Succeed())
		g.Expect(filepath.Base(files[i])).To(Equal(id+".json"), "in the order of the files")
		g.Expect(j).To(HaveLen(6))
		var metrics map[string]*float64
		g.Expect(json.Unmarshal(j["metrics"], &metrics)).To(Succeed())
		// What the figures are worth is held on the scripts' own times, in the judge's tests: here the machine's load is in them.
		c, err := fixtures.ReadCaseFile(files[i])
		g.Expect(err).NotTo(HaveOccurred())
		var outcome string
		g.Expect(json.Unmarshal(j["outcome"], &outcome)).To(Succeed())
		g.Expect(outcome).To(Equal(c.Expect.Outcome), id)
		var findings []string
		g.Expect(json.Unmarshal(j["findings"], &findings)).To(Succeed())
		g.Expect(findings).To(ContainElements(c.Expect.Findings), id)
		for _, name := range c.Expect.Metrics.Null {
			g.Expect(metrics[name]).To(BeNil(), id+" "+name)
		}
		for _, name := range c.Expect.Metrics.MustCompute {
			g.Expect(metrics[name]).NotTo(BeNil(), id+" "+name)
		}
		for _, name := range judge.MetricNames {
			g.Expect(metrics).To(HaveKey(name), id)
		}
		for _, part := range []string{"outcome", "findings", "checks", "parsed"} {
			g.Expect(j).To(HaveKey(part), id)
		}
	}
}

func TestProbeExitsByTheVerdict(t *testing.T) {
	right := caseFiles + "sse-13-missing-done.json"
	data, err := os.ReadFile(right)
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.json")
	if err := os.WriteFile(wrong, bytes.Replace(data, []byte(`"missing-done"`), []byte(`"stalled"`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	for claim, c := range map[string]struct {
		code int
		says string
		args []string
	}{
		"as expected":           {exitOK, "pass_with_finding, as expected", []string{right}},
		"not as expected":       {exitFailed, "finding stalled is missing", []string{right, wrong}},
		"not as expected, JSON": {exitFailed, "sse-13-missing-done: finding stalled is missing", []string{"--json", wrong}},
		"no file":               {exitTrouble, "expected", nil},
		"no such file":          {exitTrouble, "no-such", []string{"no-such"}},
		"no case":               {exitTrouble, "probe.go", []string{"probe.go"}},
		"no address":            {exitTrouble, "scheme", []string{right, "--url", "127.0.0.1"}},
		"no key":                {exitTrouble, "PLUMBLINE_NO_SUCH", []string{right, "--credential-env", "PLUMBLINE_NO_SUCH"}},
	} {
		t.Run(claim, func(t *testing.T) {
			g := NewWithT(t)
			code, out, errs := call(t, append([]string{"probe"}, c.args...)...)
			g.Expect(code).To(Equal(c.code), out+errs)
			g.Expect(out + errs).To(ContainSubstring(c.says))
		})
	}
}

func TestProbeShowsAPersonWhatHappenedWhere(t *testing.T) {
	g := NewWithT(t)
	_, out, _ := call(t, "probe", caseFiles+"sse-25-error-glued-to-open-event.json")
	g.Expect(out).To(ContainSubstring("asked      POST /v1/chat/completions"))
	g.Expect(out).To(MatchRegexp(`ms  HTTP 200 text/event-stream`))
	g.Expect(out).To(MatchRegexp(`event 1 +content +"The"`))
	g.Expect(out).To(MatchRegexp(`event 2 +unreadable`))
	g.Expect(out).To(MatchRegexp(`end +close`))
	g.Expect(out).To(ContainSubstring("malformed-event (fault, event 2)"))
	g.Expect(out).To(ContainSubstring("verdict    error, as expected"))
}

func TestProbeJudgesALiveEngineByItsOwnAnswer(t *testing.T) {
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	mock, err := mockserver.Start(t.Context(), mockserver.Options{Listen: "127.0.0.1:0", Pace: must(mockserver.ParsePace("fast")), Slots: 4, ContextTokens: 131072, Pack: pack})
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close(t.Context())
	g := NewWithT(t)
	// The fault of the case is in its transcript alone: the mock keeps to the limit, refuses what is too long, and ends right.
	code, out, errs := call(t, "probe", "--json", "--url", mock.URL(), caseFiles+"usage-08-max-tokens-plus-one.json",
		caseFiles+"ctx-04-overflow-rejected-properly.json", caseFiles+"shape-09-cap-hit-but-says-stop.json", caseFiles+"models-02-missing-created-and-owner.json")
	g.Expect(errs).To(BeEmpty())
	g.Expect(code).To(Equal(exitOK))
	g.Expect(judged(t, out)).To(HaveLen(4))

	code, out, _ = call(t, "probe", "--json", "--url", mock.URL(), caseFiles+"auth-02-bad-key-becomes-500.json")
	g.Expect(code).To(Equal(exitFailed))
	g.Expect(string(judged(t, out)[0]["findings"])).To(ContainSubstring("auth-not-enforced"), "this mock asks for no key")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestProbeKeepsTheKeyToItself(t *testing.T) {
	g := NewWithT(t)
	const key = "sk-probe-secret-0123456789"
	t.Setenv("PLUMBLINE_TEST_KEY", key)
	var sent []string
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.URL.Path+" "+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":{"message":"bad key `+key+`"}}`)
	}))
	defer engine.Close()
	for _, form := range [][]string{{"--json"}, nil} {
		code, out, errs := call(t, slices.Concat([]string{"probe", "--url", engine.URL, "--model", "m", "--credential-env", "PLUMBLINE_TEST_KEY"}, form,
			[]string{caseFiles + "sse-01-crlf.json"})...)
		g.Expect(code).To(Equal(exitFailed))
		g.Expect(out + errs).NotTo(ContainSubstring(key))
	}
	g.Expect(sent).To(HaveEach("/v1/chat/completions Bearer " + key))
}

func TestReplayedDeadlinesAreTheCasesOwn(t *testing.T) {
	g := NewWithT(t)
	began := time.Now()
	code, out, errs := call(t, "probe", "--json", caseFiles+"err-08-slow-loris.json")
	g.Expect(code).To(Equal(exitOK), out+errs)
	g.Expect(time.Since(began)).To(BeNumerically("<", 6*time.Second), "the total time-out of the case is 8 s, its idle one 1 s")
}

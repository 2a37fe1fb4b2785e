// Package selftest runs the suite as its users do, as a program of its own, and reads what it leaves behind: the order
// of requests under every flag, refusals, interruptions, kills. It has no code but tests.
package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/journal"
	"plumbline/harness/transcript"
	"plumbline/mockserver"
	"plumbline/reports/strata"
	"plumbline/suites/session"
)

// suite is the compiled suite. It is built once, by Ginkgo's own command, as a user would.
var suite = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "plumbline-suite")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "suites.test")
	out, err := exec.Command("go", "tool", "ginkgo", "build", "-o", binary, "..").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the suite: %w\n%s", err, out)
	}
	return binary, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if image, built := imageBuilt.Load().(string); built {
		_ = exec.Command("docker", "rmi", "-f", image).Run()
	}
	if binary, err := suite(); err == nil {
		_ = os.RemoveAll(filepath.Dir(binary))
	}
	os.Exit(code)
}

// result is what one run of the suite left.
type result struct {
	dir    string // the folder that it ran in
	exit   int
	output string
}

// command prepares a run of the suite in an empty folder, with nothing of this process's settings.
func command(t *testing.T, env []string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	binary, err := suite()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = dir
	cmd.Env = append(append(cleanEnvironment(), "XDG_CACHE_HOME="+filepath.Join(dir, ".cache")), env...)
	return cmd, dir
}

func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PLUMBLINE_") })
}

func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	cmd, dir := command(t, env, args...)
	return finish(t, cmd, dir)
}

func finish(t *testing.T, cmd *exec.Cmd, dir string) result {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return result{dir, cmd.ProcessState.ExitCode(), string(out)}
}

func (r result) runDir() string { return filepath.Join(r.dir, "out", "latest") }

// document reads and validates the run's document.
func (r result) document(t *testing.T) *strata.Document {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.runDir(), session.ResultsName))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.output)
	}
	for _, fault := range strata.Validate(data, os.DirFS(r.runDir())) {
		t.Errorf("the document is not valid: %s: %s", fault.Pointer, fault.Message)
	}
	doc, err := strata.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func (r result) record(t *testing.T) *fixtures.Run {
	t.Helper()
	record, err := journal.Read(r.runDir())
	if err != nil {
		t.Fatalf("%v\n%s", err, r.output)
	}
	return record
}

// sent are the ids of a record's exchanges in the order of their dispatch.
func sent(record *fixtures.Run) []string {
	var ids []string
	for _, e := range record.Exchanges {
		ids = append(ids, e.ID)
	}
	return ids
}

func planned(t *testing.T) []string {
	t.Helper()
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range pack.Prompts {
		ids = append(ids, p.ID)
	}
	return ids
}

// serveMock starts a mock engine as a server of its own.
func serveMock(t *testing.T, o mockserver.Options) string {
	t.Helper()
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	o.Pack = pack
	if o.Pace, err = mockserver.ParsePace("fast"); err != nil {
		t.Fatal(err)
	}
	server, err := mockserver.Start(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.WithoutCancel(t.Context())) })
	return server.URL()
}

func TestARunWithNothingSetIsARehearsalOnTheMock(t *testing.T) {
	g := NewWithT(t)
	r := run(t, nil)
	g.Expect(r.exit).To(BeZero(), r.output)
	g.Expect(r.output).To(ContainSubstring("not a result about any engine"))
	for _, id := range planned(t) {
		g.Expect(r.output).To(ContainSubstring(id))
	}

	doc := r.document(t)
	g.Expect(doc.Run.Status).To(Equal(strata.Nonconforming))
	g.Expect(doc.Extensions.StatusReasonCodes).To(ContainElement("engine_mock"))
	for _, e := range r.record(t).Exchanges {
		g.Expect(transcript.Read(&e).Findings).To(BeEmpty(), e.ID)
	}
	g.Expect(doc.Quality.Passed).To(Equal(12))
	g.Expect(doc.Quality.Total).To(Equal(12))
	for _, name := range []string{"outputs.jsonl", "config.json", "provenance/chat_template.jinja", "provenance/corpus-manifest.sha256", "provenance/corpus-build.json"} {
		g.Expect(filepath.Join(r.runDir(), name)).To(BeARegularFile())
	}
}

func TestTheReportIsRebuiltByteForByte(t *testing.T) {
	g := NewWithT(t)
	r := run(t, nil)
	path := filepath.Join(r.runDir(), session.ResultsName)
	before, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.Remove(path)).To(Succeed())
	_, err = session.Report(r.runDir())
	g.Expect(err).NotTo(HaveOccurred())
	after, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Equal(before, after)).To(BeTrue(), "the rebuilt document differs")
}

func TestTheOrderIsFixedWhateverTheFlags(t *testing.T) {
	binary, err := suite()
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{
		"plain": nil, "parallel": {"--procs=3"}, "randomized": {"--randomize-all"}, "both": {"--procs=3", "--randomize-all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			dir := t.TempDir()
			args := slices.Concat([]string{"tool", "ginkgo"}, flags, []string{binary, "--", "--out", dir})
			cmd := exec.CommandContext(t.Context(), "go", args...)
			cmd.Env = cleanEnvironment()
			out, err := cmd.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(out))
			record, err := journal.Read(dir)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(sent(record)).To(Equal(planned(t)))
		})
	}
}

func TestAFilterThatSelectsNothingIsRed(t *testing.T) {
	r := run(t, nil, "--ginkgo.label-filter=case:X9")
	if r.exit == 0 {
		t.Errorf("exit 0 although nothing ran\n%s", r.output)
	}
}

func TestWhatAFilterLeavesOutIsSkippedWithTheReason(t *testing.T) {
	g := NewWithT(t)
	r := run(t, nil, "--ginkgo.label-filter=category:retrieval")
	g.Expect(r.exit).To(BeZero(), r.output)
	doc := r.document(t)
	g.Expect(doc.Run.Status).To(Equal(strata.Incomplete))
	g.Expect(doc.RequestCounts.Sanity).To(Equal(strata.Counts{Planned: 12, Attempted: 4, Completed: 4, Skipped: 8}))
	why, _ := doc.Requests[0].Error.Get()
	g.Expect(why).To(ContainSubstring("filter"))
	g.Expect(doc.Run.Command).To(ContainSubstring("category:retrieval"))
}

func TestARequestIsNeverTriedAgain(t *testing.T) {
	g := NewWithT(t)
	r := run(t, nil, "--ginkgo.flake-attempts=2")
	g.Expect(r.exit).NotTo(BeZero())
	g.Expect(r.output).To(ContainSubstring("--flake-attempts"))
	g.Expect(filepath.Join(r.dir, "out")).NotTo(BeADirectory())
}

func TestAnEndAtTheFirstFailureIsNotTakenForAFilter(t *testing.T) {
	g := NewWithT(t)
	url := faulty(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusTeapot) })
	r := run(t, nil, "--url", url, "--ginkgo.fail-fast")
	g.Expect(r.exit).NotTo(BeZero())
	doc := r.document(t)
	g.Expect(doc.Requests[0].Status).To(Equal("failed"))
	why, _ := doc.Requests[1].Error.Get()
	g.Expect(why).To(Equal("the run ended before this request"))
}

func TestAnEmptyReplyIsRed(t *testing.T) {
	g := NewWithT(t)
	url := faulty(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, chunk(roleChunk)+finishes+usage(`{"prompt_tokens":77,"completion_tokens":1,"total_tokens":78}`)+done)
	})
	r := run(t, nil, "--url", url, "--ginkgo.focus=warmup|performance-short-r1")
	g.Expect(r.exit).NotTo(BeZero())
	g.Expect(r.output).To(And(ContainSubstring("0 Passed"), ContainSubstring("no answer text")))
}

func TestAFailureIsSavedAndShownAgainOffline(t *testing.T) {
	g := NewWithT(t)
	url := faulty(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, chunk(roleChunk)+chunk(`{"content":"a wrong answer"}`)+finishes+done)
	})
	r := run(t, nil, "--url", url, "--ginkgo.focus=sanity-I1")
	g.Expect(r.exit).NotTo(BeZero())
	saved := filepath.Join(r.runDir(), "failures", "sanity-I1.json")
	g.Expect(saved).To(BeARegularFile())
	saved, err := filepath.EvalSymlinks(saved)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.output).To(ContainSubstring("plumbline probe " + saved))

	again := exec.CommandContext(t.Context(), "go", "run", "../../cmd/plumbline", "probe", saved)
	out, err := again.CombinedOutput()
	g.Expect(err).To(HaveOccurred(), string(out))
	g.Expect(again.ProcessState.ExitCode()).To(Equal(1), string(out))
	g.Expect(string(out)).To(ContainSubstring("a wrong answer"))
}

func TestAServerThatCannotBeUsedIsRedWithADocument(t *testing.T) {
	closed := "http://127.0.0.1:1" // the port of tcpmux: nothing listens there
	guarded := serveMock(t, mockserver.Options{APIKey: "the-right-key"})
	open := serveMock(t, mockserver.Options{Model: "served-model"})
	for _, c := range []struct {
		name, says string
		env        []string
		args       []string
	}{
		{"no server", "refused", nil, []string{"--url", closed}},
		{"wrong key", "401", []string{"KEY=a-wrong-key"}, []string{"--url", guarded, "--credential-env", "KEY"}},
		{"no key", "401", nil, []string{"--url", guarded}},
		{"unknown model", "served-model", nil, []string{"--url", open, "--model", "another-model"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			r := run(t, c.env, append(c.args, "--timeout-connect", "2s")...)
			g.Expect(r.exit).NotTo(BeZero())
			g.Expect(r.output).To(ContainSubstring(c.says))
			doc := r.document(t)
			g.Expect(doc.Run.Status).To(Equal(strata.Incomplete))
			for _, request := range doc.Requests {
				why, _ := request.Error.Get()
				g.Expect(request.Status).To(Equal("skipped"))
				g.Expect(why).To(ContainSubstring(c.says))
			}
			g.Expect(doc.Requests).To(HaveLen(len(planned(t))))
		})
	}
}

func TestAKeyReachesNoFileAndNoOutput(t *testing.T) {
	g := NewWithT(t)
	const key = "sk-very-secret-0123456789"
	url := serveMock(t, mockserver.Options{APIKey: key})
	r := run(t, []string{"MY_KEY=" + key}, "--url", url, "--credential-env", "MY_KEY")
	g.Expect(r.exit).To(BeZero(), r.output)
	g.Expect(r.output).NotTo(ContainSubstring(key))
	g.Expect(r.document(t).Extensions.APIKeySent).To(BeTrue())
	g.Expect(filepath.WalkDir(r.runDir()+"/", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(key)) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})).To(Succeed())
}

func TestAKeyIsNotTakenFromTheCommandLine(t *testing.T) {
	g := NewWithT(t)
	r := run(t, nil, "--api-key", "sk-very-secret-0123456789")
	g.Expect(r.exit).To(Equal(2))
	g.Expect(r.output).To(ContainSubstring("--credential-env"))
	g.Expect(r.output).NotTo(ContainSubstring("sk-very-secret"))
}

func TestBadSettingsAreRefusedBeforeAnythingRuns(t *testing.T) {
	for _, c := range []struct {
		env, args []string
		says      string
	}{
		{nil, []string{"--url", "http://127.0.0.1:1", "--credential-env", "KEY_NOT_SET"}, "KEY_NOT_SET"},
		{nil, []string{"--protocls", "standard"}, "--protocols"},
		{nil, []string{"--protocols", "fastest"}, "standard"},
		{[]string{"PLUMBLINE_UR=http://x"}, nil, "PLUMBLINE_URL"},
		{nil, []string{"--mock-pace", "warp"}, "rtx3090"},
		{nil, []string{"--timeout-total", "soon"}, "timeout-total"},
		{nil, []string{"--profile", "unheard-of"}, "qwen3.8-flash-next-thinking"},
	} {
		t.Run(strings.Join(append(c.env, c.args...), " "), func(t *testing.T) {
			g := NewWithT(t)
			r := run(t, c.env, c.args...)
			g.Expect(r.exit).NotTo(BeZero(), r.output)
			g.Expect(r.output).To(ContainSubstring(c.says))
		})
	}
}

func TestAFolderThatHoldsARecordIsNotWrittenOver(t *testing.T) {
	g := NewWithT(t)
	out := t.TempDir()
	g.Expect(run(t, nil, "--out", out).exit).To(BeZero())
	before := snapshot(t, out)
	again := run(t, nil, "--out", out)
	g.Expect(again.exit).NotTo(BeZero())
	g.Expect(again.output).To(ContainSubstring("record of another run"))
	g.Expect(snapshot(t, out)).To(Equal(before))
}

func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestAMockServedAtAnAddressIsStillTheMock(t *testing.T) {
	g := NewWithT(t)
	model := filepath.Join(t.TempDir(), "model.gguf")
	g.Expect(os.WriteFile(model, []byte("weights"), 0o644)).To(Succeed())
	r := run(t, nil, "--url", serveMock(t, mockserver.Options{}), "--model-file", model)
	g.Expect(r.exit).To(BeZero(), r.output)
	g.Expect(r.output).To(ContainSubstring("not a result about any engine"))
	doc := r.document(t)
	g.Expect(doc.Run.Status).To(Equal(strata.Nonconforming))
	g.Expect(doc.Extensions.StatusReasonCodes).To(Equal([]string{"engine_mock"}))
}

func TestTheConcurrencyStageServesEveryLevel(t *testing.T) {
	g := NewWithT(t)
	r := run(t, nil, "--concurrency-stage", "--server-capacity", "6")
	g.Expect(r.exit).To(BeZero(), r.output)
	doc := r.document(t)
	g.Expect(doc.RequestCounts.Concurrency.Planned).To(Equal(3 * (2 + 4 + 6)))
	g.Expect(doc.RequestCounts.Concurrency.Failed).To(BeZero())
	g.Expect(doc.ConcurrencyRounds).To(HaveLen(9))
	g.Expect(doc.Run.OptionalConcurrency).To(BeTrue())
}

// faulty serves what a test wants for a chat request, and leaves the rest to the mock.
func faulty(t *testing.T, chat func(http.ResponseWriter, *http.Request, http.Handler)) string {
	t.Helper()
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	pace, err := mockserver.ParsePace("fast")
	if err != nil {
		t.Fatal(err)
	}
	mock, err := mockserver.Start(t.Context(), mockserver.Options{Pack: pack, Pace: pace})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, mock.Handler(), chat)
}

package engine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/settings"
)

const testRun = "20260102T030405Z-%08x"

// parentVariable, when it is set, makes this test binary start an engine, say which, and wait to be killed.
const parentVariable = "TEST_ENGINE_PARENT"

func TestMain(m *testing.M) {
	if args := os.Getenv(parentVariable); args != "" {
		parent(strings.Split(args, "\n"))
	}
	code := m.Run()
	if built.Load() {
		dir, _ := stub()
		os.RemoveAll(filepath.Dir(dir))
	}
	if imageBuilt.Load() {
		name, _ := image()
		exec.Command("docker", "rmi", "-f", name).Run()
	}
	os.Exit(code)
}

// parent is the suite that a test kills.
func parent(args []string) {
	s, err := settingsOf(args[1], args[2:]...)
	if err == nil {
		var e Engine
		if e, err = Start(context.Background(), s, Run{ID: args[0], Dir: args[1]}); err == nil {
			fmt.Println("ready", e.Started().PID)
			select {}
		}
	}
	fmt.Println("failed:", err)
	os.Exit(1)
}

// stub is the program of testdata/stub, static, built once.
var stub = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "plumbline-stub")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "stub")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./testdata/stub")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the stub: %w\n%s", err, out)
	}
	built.Store(true)
	return program, nil
})

// built and imageBuilt say what is to be removed at the end.
var built, imageBuilt atomic.Bool

func stubProgram(t *testing.T) string {
	t.Helper()
	program, err := stub()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// asProcess are the settings of a stub that runs as a process.
func asProcess(t *testing.T, mode string, more ...string) []string {
	return append([]string{"--engine=any-process", "--command=" + stubProgram(t), "--engine-arg=" + mode,
		"--engine-arg=127.0.0.1:{{port}}"}, more...)
}

var runs int

// start starts an engine for a run of its own. It is stopped at the end, whatever the test did.
func start(t *testing.T, args []string) (Engine, Run, error) {
	t.Helper()
	runs++
	run := Run{ID: fmt.Sprintf(testRun, runs<<16|os.Getpid()&0xffff), Dir: t.TempDir()}
	e, err := Start(t.Context(), resolved(t, args...), run)
	if err == nil {
		t.Cleanup(func() { e.Stop(context.WithoutCancel(t.Context())) })
	}
	return e, run, err
}

func logOf(t *testing.T, run Run) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(run.Dir, LogName))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func startError(t *testing.T, err error) *StartError {
	t.Helper()
	e, ok := err.(*StartError)
	if !ok {
		t.Fatalf("want a *StartError, got %T: %v", err, err)
	}
	return e
}

// gone says whether no process has this number; one that nobody has waited for yet is as good as gone.
func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == syscall.ESRCH
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// childOf is the process that a stub with the mode "parent" started itself.
func childOf(t *testing.T, log string) int {
	t.Helper()
	_, rest, _ := strings.Cut(log, "child ")
	number, _, _ := strings.Cut(rest, "\n")
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("the log names no child: %q", log)
	}
	return pid
}

// withinFive is the promise after a kill of the suite.
const withinFive = 5 * time.Second

func TestAProcessIsReadyOnceATokenCameAndStopsWithItsGroup(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TEST_ENGINE_KEY", "k")
	e, run, err := start(t, asProcess(t, "parent", "--model=stub", "--server-capacity=2"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Kind()).To(Equal(KindProcess))
	how := e.Started()
	g.Expect(how.Recipe).To(Equal("any"))
	g.Expect(how.Command).To(Equal([]string{stubProgram(t), "parent", strings.TrimPrefix(e.URL(), "http://")}))
	g.Expect(how.Log).To(Equal(LogName))
	g.Expect(how.ReadyAfter).To(BeNumerically(">", 0))
	g.Expect(e.Died()).NotTo(HaveOccurred())
	facts, err := Describe(t.Context(), e, nil, quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Kind).To(Equal(KindProcess))
	g.Expect(facts.Started).To(BeTrue())
	g.Expect(facts.Start).To(Equal(how))
	log := logOf(t, run)
	g.Expect(log).To(HavePrefix("first line of parent\n"))
	g.Expect(log).To(ContainSubstring("chat 1 stub 1\n"), "readiness is one token of the named model")

	child := childOf(t, log)
	g.Expect(gone(child)).To(BeFalse())
	exit, err := e.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exit.Signal).To(Equal("terminated"))
	g.Expect(exit.ByItself).To(BeFalse())
	g.Expect(e.Died()).NotTo(HaveOccurred())
	g.Eventually(func() bool { return gone(how.PID) && gone(child) }, withinFive).Should(BeTrue())
}

func TestAProcessThatIgnoresTheRequestToEndIsKilled(t *testing.T) {
	g := NewWithT(t)
	e, _, err := start(t, asProcess(t, "stubborn"))
	g.Expect(err).NotTo(HaveOccurred())
	hurry, cancel := context.WithCancel(t.Context())
	cancel()
	exit, err := e.Stop(hurry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exit.Signal).To(Equal("killed"))
}

func TestAProcessThatNeverServesSaysWhatWasWaitedFor(t *testing.T) {
	for mode, c := range map[string]struct{ waited, last string }{
		"never-ready": {"GET /v1/models to answer 200", "loading forever"},
		"no-token":    {"POST /v1/chat/completions to give one token", "no token today"},
	} {
		t.Run(mode, func(t *testing.T) {
			g := NewWithT(t)
			_, run, err := start(t, asProcess(t, mode, "--engine-start-timeout=700ms"))
			e := startError(t, err)
			g.Expect(e.Waited).To(Equal(c.waited))
			g.Expect(e.Brief()).To(And(ContainSubstring(`"any-process"`), ContainSubstring("within 700ms"), ContainSubstring(c.last)))
			g.Expect(e.Brief()).NotTo(ContainSubstring("\n"))
			g.Expect(e.Exit.ByItself).To(BeFalse())
			g.Expect(e.Error()).To(And(ContainSubstring("first line of "+mode), ContainSubstring(filepath.Join(run.Dir, LogName))))
		})
	}
}

func TestAProcessThatDiesAtOnceSaysHowAndShowsItsLastLines(t *testing.T) {
	g := NewWithT(t)
	_, run, err := start(t, asProcess(t, "die-at-once"))
	e := startError(t, err)
	g.Expect(e.Brief()).To(And(ContainSubstring("exited with code 3"), ContainSubstring("GET /v1/models to answer 200")))
	g.Expect(*e.Exit.Code).To(Equal(3))
	g.Expect(e.Exit.ByItself).To(BeTrue())
	g.Expect(e.Tail).To(HaveLen(tailLines))
	g.Expect(e.Error()).To(And(HaveSuffix("reason 59"), Not(ContainSubstring("reason 9\n"))))
	g.Expect(logOf(t, run)).To(ContainSubstring("reason 0\n"), "the file has all of it")
}

func TestAProcessThatDiesMidwaySaysSo(t *testing.T) {
	g := NewWithT(t)
	e, run, err := start(t, asProcess(t, "die-midway", "--keep-engine-log=false"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(newCaller(e.URL(), nil, quick).oneToken(t.Context(), "stub")).NotTo(Succeed())
	g.Eventually(e.Died, withinFive).Should(MatchError(And(ContainSubstring("exited with code 7"), ContainSubstring("giving up"))))
	exit, err := e.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exit.ByItself).To(BeTrue())
	g.Expect(*exit.Code).To(Equal(7))
	g.Expect(logOf(t, run)).To(ContainSubstring("giving up"), "the log of a death is kept, whatever was asked")
}

func TestALogThatNobodyWantsIsRemovedAfterAGoodRun(t *testing.T) {
	g := NewWithT(t)
	e, run, err := start(t, asProcess(t, "serve", "--keep-engine-log=false"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filepath.Join(run.Dir, LogName)).To(BeARegularFile())
	_, err = e.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filepath.Join(run.Dir, LogName)).NotTo(BeAnExistingFile())
}

func TestATakenPortIsRefusedBeforeAnythingStarts(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_, _, err = start(t, asProcess(t, "serve", "--engine-port="+port))
	g.Expect(startError(t, err).Brief()).To(And(ContainSubstring("port "+port+" is taken"), ContainSubstring("--engine-port")))
}

func TestWhatIsMissingForAProcessIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no program":         {[]string{"--engine=llama.cpp-process", "--model-file=/m.gguf", "--command=plumbline-no-such-program"}, []string{`"plumbline-no-such-program"`, "--command"}},
		"none in the recipe": {[]string{"--engine=any-process"}, []string{"names no program", "--command"}},
		"no model file":      {[]string{"--engine=llama.cpp-process"}, []string{"needs a model", "--model-file"}},
		"no model":           {[]string{"--engine=vllm-process"}, []string{"--model-file", "--model"}},
		"not a program":      {[]string{"--engine=any-process", "--command=./start_test.go"}, []string{"start_test.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := start(t, c.args)
			for _, want := range c.want {
				NewWithT(t).Expect(startError(t, err).Error()).To(ContainSubstring(want))
			}
		})
	}
}

func TestAnInterruptedStartLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	run := Run{ID: "r", Dir: t.TempDir()}
	failed := make(chan error)
	go func() {
		_, err := Start(ctx, resolved(t, asProcess(t, "never-ready")...), run)
		failed <- err
	}()
	g.Eventually(func() string { data, _ := os.ReadFile(filepath.Join(run.Dir, LogName)); return string(data) }, withinFive).
		Should(ContainSubstring("first line"))
	cancel()
	err := <-failed
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(startError(t, err).Exit.Signal).To(Equal("terminated"))
}

func TestTheKeyGoesToTheEngineAndNotIntoItsLog(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TEST_ENGINE_KEY", "sk-topsecret")
	e, run, err := start(t, []string{"--engine=mock-process", "--command=" + stubProgram(t), "--credential-env=TEST_ENGINE_KEY",
		"--engine-start-timeout=500ms"})
	g.Expect(err).To(HaveOccurred(), "the stub does not take the mock's arguments")
	g.Expect(e).To(BeNil())
	log := logOf(t, run)
	g.Expect(log).To(ContainSubstring("key is [redacted]"))
	g.Expect(fmt.Sprint(err, log)).NotTo(ContainSubstring("topsecret"))
}

// killed starts a suite with an engine, kills it with SIGKILL once the engine is ready, and returns the engine's process.
func killed(t *testing.T, run Run, args []string) int {
	t.Helper()
	suite := exec.CommandContext(t.Context(), os.Args[0])
	suite.Env = append(os.Environ(), parentVariable+"="+strings.Join(append([]string{run.ID, run.Dir}, args...), "\n"))
	out, err := suite.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := suite.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(out, "ready %d\n", &pid); err != nil {
		suite.Process.Kill()
		suite.Wait()
		t.Fatalf("the suite's engine is not ready: %v", err)
	}
	if err := suite.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	suite.Wait()
	return pid
}

func TestNoProcessIsLeftFiveSecondsAfterTheSuiteWasKilled(t *testing.T) {
	g := NewWithT(t)
	run := Run{ID: fmt.Sprintf(testRun, os.Getpid()), Dir: t.TempDir()}
	pid := killed(t, run, asProcess(t, "parent"))
	child := childOf(t, logOf(t, run))
	g.Eventually(func() bool { return gone(pid) && gone(child) }, withinFive).Should(BeTrue())
}

func TestTheMockRunsAsAProcessBuiltFromThisTree(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TEST_ENGINE_KEY", "k")
	t.Setenv("PATH", os.Getenv("PATH"))
	s := resolved(t, "--engine=mock-process", "--credential-env=TEST_ENGINE_KEY", "--server-capacity=3", "--model=m")
	e, err := Start(t.Context(), s, Run{ID: "r", Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	defer e.Stop(t.Context())
	facts, err := Describe(t.Context(), e, bearer("k"), quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Name).To(Equal(fixtures.MockEngine))
	g.Expect(*facts.Capacity).To(Equal(3))
	g.Expect(facts.ServedModels).To(Equal([]string{"m"}))
	_, err = Describe(t.Context(), e, http.Header{}, quick)
	g.Expect(problem(err)).To(Equal(KeyRefused))
	program := e.Started().Command[0]
	exit, err := e.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*exit.Code).To(BeZero(), "it ends in order")
	g.Expect(program).NotTo(BeAnExistingFile())
	_, inTree := settings.SourceTree()
	g.Expect(inTree).To(BeTrue())
}

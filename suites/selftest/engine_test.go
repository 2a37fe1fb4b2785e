package selftest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/engine"
	"plumbline/harness/journal"
	"plumbline/harness/settings"
	"plumbline/reports/strata"
	"plumbline/suites/session"
)

// The mock is started by the suite as real engines are, slow enough that there is a middle of the run.

// program is the plumbline command, static, so that an image can hold it.
var program = sync.OnceValues(func() (string, error) {
	binary, err := suite()
	if err != nil {
		return "", err
	}
	to := filepath.Join(filepath.Dir(binary), "plumbline")                           // removed with the suite
	cmd := exec.Command("go", "build", "-trimpath", "-o", to, "../../cmd/plumbline") // as the images are built, so once
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return to, nil
})

func docker(t *testing.T, args ...string) string {
	t.Helper()
	if os.Getenv(settings.NoDocker) == "1" {
		t.Skipf("%s=1 says that there is no Docker here", settings.NoDocker)
	}
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v (without Docker set %s=1)\n%s", strings.Join(args, " "), err, settings.NoDocker, out)
	}
	return strings.TrimSpace(string(out))
}

// mockImage is an image of the command, built once and removed at the end; its entry point is that of the mock's own
// Dockerfile.
var mockImage = sync.OnceValues(func() (string, error) {
	binary, err := program()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(filepath.Dir(binary), "image")
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("plumbline-mock:selftest-%d", os.Getpid())
	err = errors.Join(os.Link(binary, filepath.Join(dir, "plumbline")),
		os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY plumbline /plumbline\n"+
			`ENTRYPOINT ["/plumbline", "mock", "--listen", "0.0.0.0:8080"]`+"\n"), 0o666))
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("docker", "build", "-q", "-t", name, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %q: %w\n%s", name, err, out)
	}
	imageBuilt.Store(name)
	return name, nil
})

var imageBuilt atomic.Value // the image's name, for its removal

// started are the settings of the mock in one form.
func started(t *testing.T, kind string) []string {
	t.Helper()
	args := []string{"--engine=mock-" + kind, "--engine-arg=--pace", "--engine-arg=rtx3090"}
	if kind == engine.KindContainer {
		docker(t, "version")
		image, err := mockImage()
		if err != nil {
			t.Fatal(err)
		}
		return append(args, "--image="+image)
	}
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return append(args, "--command="+binary)
}

// midway starts the suite, waits until a record of the run has its second line, which is of the first request, and calls
// then with how the engine was started.
func midway(t *testing.T, record string, args []string, then func(cmd *exec.Cmd, how *fixtures.EngineStart)) (result, *fixtures.EngineStart) {
	t.Helper()
	cmd, dir := command(t, nil, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := result{dir: dir}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		lines, err := os.ReadFile(filepath.Join(r.runDir(), record))
		if err == nil && bytes.Count(lines, []byte("\n")) >= 2 {
			break
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			cmd.Wait()
			t.Fatalf("no request was answered:\n%s", out.String())
		}
	}
	how := headerOf(t, filepath.Join(r.runDir(), record)).Engine.Start
	then(cmd, how)
	_ = cmd.Wait()
	r.exit, r.output = cmd.ProcessState.ExitCode(), out.String()
	return r, how
}

// headerOf reads the first line of a record.
func headerOf(t *testing.T, path string) *fixtures.Header {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first, err := fixtures.NewLineReader(f).Next()
	if err != nil {
		t.Fatal(err)
	}
	return first.Run
}

// end ends an engine from outside.
func end(t *testing.T, how *fixtures.EngineStart) {
	t.Helper()
	if how.Container != nil {
		docker(t, "kill", how.Container.ID)
		return
	}
	if err := syscall.Kill(how.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// left says what is left of an engine.
func left(t *testing.T, r result, how *fixtures.EngineStart) string {
	t.Helper()
	if how.Container != nil {
		return docker(t, "ps", "-aq", "--filter", "id="+how.Container.ID)
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(how.PID) + "/stat")
	if err != nil {
		return ""
	}
	if _, state, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(state, "Z") {
		return "" // dead, and nobody has looked yet
	}
	return string(stat)
}

var kinds = []string{engine.KindProcess, engine.KindContainer}

func TestBothProtocolsRunOnAStartedEngineAndLeaveNothing(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			args := started(t, kind)
			before := dockers(t, kind)
			r := run(t, nil, with(with(args, smallLoad...), "--protocols=standard,capacity", "--engine-arg=--pace", "--engine-arg=fast",
				"--server-capacity=8", "--capacity-request-canaries")...)
			g.Expect(r.red(t)).To(BeEmpty(), r.output)
			doc := r.document(t)
			g.Expect(doc.Run.Status).To(Equal(strata.Nonconforming))
			g.Expect(doc.Extensions.StatusReasonCodes).To(ContainElement("engine_mock"))
			how, _ := doc.Extensions.EngineKind.Get()
			g.Expect(how).To(Equal(kind))
			g.Expect(doc.Extensions.StartedEngine).To(BeTrue())
			g.Expect(doc.Quality.Passed).To(Equal(12))
			load := r.capacityDocument(t)
			g.Expect(*load.Completed).To(BeEquivalentTo(60))
			g.Expect(load.ours.Get("incomplete").Bool()).To(BeFalse())
			record := r.record(t)
			g.Expect(*record.End.Engine.Code).To(BeZero(), "it ended in order")
			g.Expect(filepath.Join(r.runDir(), engine.LogName)).To(BeARegularFile())
			g.Expect(left(t, r, record.Header.Engine.Start)).To(BeEmpty())
			g.Eventually(func() []string { return added(before, dockers(t, kind)) }, time.Minute).Should(BeEmpty())
		})
	}
}

// dockers are the volumes and networks that there are. Other tests make and remove theirs meanwhile.
func dockers(t *testing.T, kind string) []string {
	t.Helper()
	if kind != engine.KindContainer {
		return nil
	}
	return strings.Fields(docker(t, "volume", "ls", "-q") + "\n" + docker(t, "network", "ls", "-q"))
}

func added(before, now []string) []string {
	return slices.DeleteFunc(now, func(name string) bool { return slices.Contains(before, name) })
}

func TestASuiteThatIsSignalledOrKilledLeavesNothingOfItsEngine(t *testing.T) {
	for _, kind := range kinds {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGABRT} {
			t.Run(kind+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				r, how := midway(t, session.OutputsName, started(t, kind), func(cmd *exec.Cmd, _ *fixtures.EngineStart) {
					g.Expect(cmd.Process.Signal(signal)).To(Succeed())
				})
				g.Expect(r.exit).NotTo(BeZero())
				g.Eventually(func() string { return left(t, r, how) }, 5*time.Second).Should(BeEmpty())
				g.Expect(filepath.Join(r.runDir(), engine.LogName)).To(BeARegularFile())
				if signal == syscall.SIGINT || signal == syscall.SIGTERM {
					g.Expect(r.document(t).Run.Status).To(Equal(strata.Incomplete))
					g.Expect(r.record(t).End.Engine.ByItself).To(BeFalse())
				}
			})
		}
	}
}

// A panic of the suite's own that nothing recovers: that of Go's test time-out, on a goroutine of its own. Ginkgo recovers
// those of specs.
func TestAPanicOfTheSuiteLeavesNothingOfItsEngine(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r, how := midway(t, session.OutputsName, append(started(t, kind), "--test.timeout=5s"), func(*exec.Cmd, *fixtures.EngineStart) {})
			g.Expect(r.exit).To(Equal(2))
			g.Expect(r.output).To(ContainSubstring("panic: test timed out"))
			g.Eventually(func() string { return left(t, r, how) }, 5*time.Second).Should(BeEmpty())
			_, err := session.Report(r.runDir())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.document(t).Run.Status).To(Equal(strata.Incomplete))
		})
	}
}

func TestAnEngineThatDiesMidwayIsRedWithTheReasonAndADocument(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r, how := midway(t, session.OutputsName, started(t, kind), func(_ *exec.Cmd, how *fixtures.EngineStart) { end(t, how) })
			g.Expect(r.exit).To(Equal(1))
			g.Expect(r.output).To(ContainSubstring("ended during the run"))
			doc := r.document(t)
			g.Expect(doc.Run.Status).To(Equal(strata.Incomplete))
			why, _ := doc.Requests[len(doc.Requests)-1].Error.Get()
			g.Expect(why).To(ContainSubstring("ended during the run"))
			g.Expect(r.record(t).End.Engine.ByItself).To(BeTrue())
			g.Expect(filepath.Join(r.runDir(), engine.LogName)).To(BeARegularFile())
			g.Expect(left(t, r, how)).To(BeEmpty())
		})
	}
}

func TestALoadEndsWithItsEngine(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			args := with(started(t, kind), with(smallLoad, "--capacity-abort-error-rate=0", "--capacity-arrival=constant", "--capacity-rate=10")...)
			r, how := midway(t, journal.CapacityFile, args, func(_ *exec.Cmd, how *fixtures.EngineStart) { end(t, how) })
			g.Expect(r.exit).To(Equal(1))
			doc := r.capacityDocument(t)
			g.Expect(doc.ours.Get("aborted.stage").String()).To(Equal(fixtures.StageClosed))
			g.Expect(doc.ours.Get("aborted.reason").String()).To(ContainSubstring("ended during the run"))
			g.Expect(doc.ours.Get("interrupted").String()).To(ContainSubstring("ended during the run"))
			g.Expect(*doc.Failed).To(BeNumerically("<=", 2*8), "the requests under way, and one more of each client at most")
			g.Expect(doc.ours.Get("open_loop.results").Int()).To(BeZero(), "nothing is sent after that")
			g.Expect(r.output).To(And(ContainSubstring("[It] capacity-sent"), ContainSubstring("ended during the run")))
			g.Expect(filepath.Join(r.runDir(), engine.LogName)).To(BeARegularFile())
			g.Expect(left(t, r, how)).To(BeEmpty())
		})
	}
}

func TestAFailingSpecLeavesNothingOfItsEngine(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			// The prompts of 16,384 tokens do not fit.
			args := append(started(t, kind), "--engine-arg=--context", "--engine-arg=8192", "--engine-arg=--pace", "--engine-arg=fast")
			r := run(t, nil, args...)
			g.Expect(r.exit).NotTo(BeZero(), r.output)
			record := r.record(t)
			g.Expect(*record.Header.Engine.ContextTokens).To(Equal(8192))
			g.Expect(*record.End.Engine.Code).To(BeZero())
			g.Expect(left(t, r, record.Header.Engine.Start)).To(BeEmpty())
			g.Expect(r.document(t).RequestCounts.Performance.Failed).To(Equal(3))
		})
	}
}

func TestAnEngineThatCannotBeStartedIsRedWithTheReasonAndADocument(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	none := "plumbline.invalid/none:1"
	elsewhere := []string{"--engine-arg=--listen", "--engine-arg=127.0.0.1:0", "--engine-start-timeout=2s"}
	for name, c := range map[string]struct {
		kind string
		args []string
		want []string
		log  bool // it ran, so that there is a log
	}{
		"no image":       {engine.KindContainer, []string{"--image=" + none}, []string{none, "docker pull"}, false},
		"no program":     {engine.KindProcess, []string{"--command=plumbline-no-such-program"}, []string{"plumbline-no-such-program"}, false},
		"port taken":     {engine.KindProcess, []string{"--engine-port=" + port}, []string{"port " + port + " is taken"}, false},
		"its port taken": {engine.KindContainer, []string{"--engine-port=" + port}, []string{"port " + port + " is taken"}, false},
		"ends at once":   {engine.KindProcess, []string{"--engine-arg=--listen", "--engine-arg=127.0.0.1:99999"}, []string{"exited with code", "99999"}, true},
		"died at once":   {engine.KindContainer, []string{"--engine-arg=--listen", "--engine-arg=127.0.0.1:99999"}, []string{"exited with code", "99999"}, true},
		"never ready":    {engine.KindProcess, elsewhere, []string{"GET /health", "within 2s"}, true},
		"not ready":      {engine.KindContainer, elsewhere, []string{"GET /health", "within 2s"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r := run(t, nil, append(started(t, c.kind), c.args...)...)
			g.Expect(r.exit).To(Equal(1), r.output)
			doc := r.document(t)
			g.Expect(doc.Run.Status).To(Equal(strata.Incomplete))
			g.Expect(doc.Extensions.StatusReasonCodes).To(ContainElement("engine_refused"))
			why, _ := doc.Requests[0].Error.Get()
			g.Expect(why).To(And(ContainSubstring("start engine"), Not(ContainSubstring("\n"))))
			for _, want := range c.want {
				g.Expect(r.output).To(ContainSubstring(want))
			}
			log, err := os.ReadFile(filepath.Join(r.runDir(), engine.LogName))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(log) > 0).To(Equal(c.log))
			if c.kind == engine.KindContainer {
				id := r.record(t).Header.RunID
				g.Expect(docker(t, "ps", "-aq", "--filter", "label=plumbline.run="+id)).To(BeEmpty())
			}
		})
	}
}

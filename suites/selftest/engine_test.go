package selftest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/engine"
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
	to := filepath.Join(filepath.Dir(binary), "plumbline") // removed with the suite
	cmd := exec.Command("go", "build", "-o", to, "../../cmd/plumbline")
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

// mockImage is an image of the command; its entry point is that of the mock's own Dockerfile.
func mockImage(t *testing.T) string {
	t.Helper()
	docker(t, "version")
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir, name := t.TempDir(), fmt.Sprintf("plumbline-mock:selftest-%d", os.Getpid())
	data, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "plumbline"), data, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY plumbline /plumbline\n"+
			`ENTRYPOINT ["/plumbline", "mock", "--listen", "0.0.0.0:8080"]`+"\n"), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	docker(t, "build", "-q", "-t", name, dir)
	t.Cleanup(func() { docker(t, "rmi", "-f", name) })
	return name
}

// started are the settings of the mock in one form.
func started(t *testing.T, kind string) []string {
	t.Helper()
	args := []string{"--engine=mock-" + kind, "--engine-arg=--pace", "--engine-arg=rtx3090"}
	if kind == engine.KindContainer {
		return append(args, "--image="+mockImage(t))
	}
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return append(args, "--command="+binary)
}

// midway starts the suite, waits until its first request has been answered, and calls then with how the engine was started.
func midway(t *testing.T, args []string, then func(cmd *exec.Cmd, how *fixtures.EngineStart)) (result, *fixtures.EngineStart) {
	t.Helper()
	cmd, dir := command(t, nil, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := result{dir: dir}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		record, err := os.ReadFile(filepath.Join(r.runDir(), session.OutputsName))
		if err == nil && bytes.Count(record, []byte("\n")) >= 2 {
			break
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			cmd.Wait()
			t.Fatalf("no request was answered:\n%s", out.String())
		}
	}
	how := r.record(t).Header.Engine.Start
	then(cmd, how)
	_ = cmd.Wait()
	r.exit, r.output = cmd.ProcessState.ExitCode(), out.String()
	return r, how
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

func TestASuiteThatIsSignalledOrKilledLeavesNothingOfItsEngine(t *testing.T) {
	for _, kind := range kinds {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGABRT} {
			t.Run(kind+" "+signal.String(), func(t *testing.T) {
				g := NewWithT(t)
				r, how := midway(t, started(t, kind), func(cmd *exec.Cmd, _ *fixtures.EngineStart) {
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

func TestAnEngineThatDiesMidwayIsRedWithTheReasonAndADocument(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			r, how := midway(t, started(t, kind), func(_ *exec.Cmd, how *fixtures.EngineStart) {
				if how.Container != nil {
					docker(t, "kill", how.Container.ID)
					return
				}
				g.Expect(syscall.Kill(how.PID, syscall.SIGKILL)).To(Succeed())
			})
			g.Expect(r.exit).NotTo(BeZero())
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

func TestAFailingSpecLeavesNothingOfItsEngine(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
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
	none := "plumbline.invalid/none:1"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"image":   {[]string{"--engine=mock-container", "--image=" + none}, none},
		"program": {[]string{"--engine=mock-process", "--command=plumbline-no-such-program"}, "plumbline-no-such-program"},
		"port":    {append(started(t, engine.KindProcess), "--engine-arg=--listen", "--engine-arg=127.0.0.1:99999"), "exited with code"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "image" {
				docker(t, "version")
			}
			g := NewWithT(t)
			r := run(t, nil, c.args...)
			g.Expect(r.exit).NotTo(BeZero())
			doc := r.document(t)
			g.Expect(doc.Run.Status).To(Equal(strata.Incomplete))
			why, _ := doc.Requests[0].Error.Get()
			g.Expect(why).To(And(ContainSubstring("start engine"), Not(ContainSubstring("\n"))))
			g.Expect(r.output).To(ContainSubstring(c.want))
		})
	}
}

package engine

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures/engines"
	"plumbline/harness/settings"
)

// dockerCommand runs Docker's own command, and is the only way to skip what needs it.
func dockerCommand(t *testing.T, args ...string) string {
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

// image is the stub's, built once from nothing and removed at the end.
var image = sync.OnceValues(func() (string, error) {
	program, err := stub()
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(program)
	file, err := os.ReadFile(filepath.Join("testdata", "stub", "Dockerfile"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "Dockerfile"), file, 0o666)
	}
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("plumbline-stub:test-%d", os.Getpid())
	if out, err := exec.Command("docker", "build", "-q", "-t", name, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %q: %w\n%s", name, err, out)
	}
	imageBuilt.Store(true)
	return name, nil
})

// asContainer are the settings of a stub that runs as a container.
func asContainer(t *testing.T, mode string, more ...string) []string {
	t.Helper()
	dockerCommand(t, "version")
	name, err := image()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"--engine=any-container", "--image=" + name, "--engine-arg=" + mode, "--engine-arg=0.0.0.0:{{port}}"}, more...)
}

// containers of a run, running or not.
func containers(t *testing.T, run Run) string {
	t.Helper()
	return dockerCommand(t, "ps", "-aq", "--no-trunc", "--filter", "label="+runLabel+"="+run.ID)
}

func TestAContainerIsReadyOnceATokenCameAndLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	model := filepath.Join(t.TempDir(), "m.gguf")
	g.Expect(os.WriteFile(model, nil, 0o666)).To(Succeed())
	e, run, err := start(t, asContainer(t, "serve", "--model-file="+model, "--engine-arg={{model}}"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Kind()).To(Equal(KindContainer))
	how := e.Started()
	g.Expect(how.Command).To(Equal([]string{"serve", "0.0.0.0:8080", "/models/m.gguf"}))
	g.Expect(how.PID).To(BeZero())
	c := how.Container
	g.Expect(c.ID).To(Equal(containers(t, run)))
	g.Expect(c.ImageID).To(HavePrefix("sha256:"))
	g.Expect(c.ImageID).To(Equal(dockerCommand(t, "image", "inspect", "-f", "{{.Id}}", c.Image)))
	g.Expect(c.SharedMemoryBytes).To(BeNumerically("==", 64<<20), "Docker's default")
	g.Expect(e.URL()).To(HavePrefix("http://127.0.0.1:"))
	g.Expect(dockerCommand(t, "inspect", "-f", "{{range .Mounts}}{{.Destination}} {{.RW}} {{end}}", c.ID)).To(ContainSubstring("/models false"))
	volume := dockerCommand(t, "inspect", "-f", `{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}}{{end}}{{end}}`, c.ID)
	g.Expect(volume).NotTo(BeEmpty(), "the image declares one")
	_, err = Describe(t.Context(), e, nil, quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(logOf(t, run)).To(And(ContainSubstring("first line of serve\n"), ContainSubstring("chat 1 stub 1\n")))

	exit, err := e.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*exit.Code).To(Equal(2), "Go's code for SIGTERM")
	g.Expect(exit.ByItself).To(BeFalse())
	g.Expect(e.Died()).NotTo(HaveOccurred())
	g.Expect(containers(t, run)).To(BeEmpty())
	g.Expect(dockerCommand(t, "volume", "ls", "-q")).NotTo(ContainSubstring(volume))
}

func TestAContainerThatNeverServesOrDiesSaysWhy(t *testing.T) {
	for mode, c := range map[string]struct {
		args []string
		want []string
		code int
	}{
		"never-ready": {[]string{"--engine-start-timeout=3s"}, []string{"GET /v1/models to answer 200", "within 3s", "loading forever"}, 2},
		"die-at-once": {nil, []string{"exited with code 3", "GET /v1/models to answer 200"}, 3},
	} {
		t.Run(mode, func(t *testing.T) {
			g := NewWithT(t)
			_, run, err := start(t, asContainer(t, mode, c.args...))
			e := startError(t, err)
			for _, want := range c.want {
				g.Expect(e.Brief()).To(ContainSubstring(want))
			}
			g.Expect(*e.Exit.Code).To(Equal(c.code))
			g.Expect(logOf(t, run)).To(ContainSubstring("first line of " + mode))
			g.Expect(e.Error()).To(ContainSubstring(e.Tail[len(e.Tail)-1]))
			g.Expect(containers(t, run)).To(BeEmpty())
		})
	}
}

func TestAContainerThatDiesMidwaySaysSo(t *testing.T) {
	g := NewWithT(t)
	e, run, err := start(t, asContainer(t, "die-midway"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(newCaller(e.URL(), nil, quick).oneToken(t.Context(), "stub")).NotTo(Succeed())
	g.Eventually(e.Died, withinFive).Should(MatchError(And(ContainSubstring("exited with code 7"), ContainSubstring("giving up"))))
	exit, err := e.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exit.ByItself).To(BeTrue())
	g.Expect(containers(t, run)).To(BeEmpty())
	g.Expect(logOf(t, run)).To(ContainSubstring("giving up"))
}

func TestWhatIsMissingForAContainerIsNamedAndNothingIsPulled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"image":     {[]string{"--engine=any-container", "--image=plumbline.invalid/none:1"}, []string{"plumbline.invalid/none:1", "docker pull", "--image", "--engine-pull"}},
		"no image":  {[]string{"--engine=any-container"}, []string{"names no image", "--image"}},
		"port":      {asContainer(t, "serve", "--engine-port="+port), []string{"port " + port + " is taken", "--engine-port"}},
		"arguments": {asContainer(t, "serve", "--engine-arg={{model}}"), []string{"needs a model", "--model-file"}},
		"program":   {append(asContainer(t, "serve"), "--image="+emptyImage(t)), []string{"cannot be started"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, run, err := start(t, c.args)
			for _, want := range c.want {
				NewWithT(t).Expect(startError(t, err).Error()).To(ContainSubstring(want))
			}
			NewWithT(t).Expect(containers(t, run)).To(BeEmpty())
		})
	}
}

// emptyImage is one whose entry point is not there.
func emptyImage(t *testing.T) string {
	t.Helper()
	dir, name := t.TempDir(), fmt.Sprintf("plumbline-stub:empty-%d", os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nENTRYPOINT [\"/none\"]\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	dockerCommand(t, "build", "-q", "-t", name, dir)
	t.Cleanup(func() { dockerCommand(t, "rmi", "-f", name) })
	return name
}

func TestGPUsThatAreNotThereAreRefusedInWords(t *testing.T) {
	g := NewWithT(t)
	if _, err := exec.LookPath("nvidia-container-runtime-hook"); err == nil {
		t.Skip("this machine can give GPUs to containers")
	}
	name, err := func() (string, error) { asContainer(t, "serve"); return image() }()
	g.Expect(err).NotTo(HaveOccurred())
	_, run, err := start(t, []string{"--engine=vllm-container", "--image=" + name, "--model=m"})
	g.Expect(startError(t, err).Brief()).To(And(ContainSubstring("asks for GPUs"), ContainSubstring("NVIDIA Container Toolkit")))
	g.Expect(containers(t, run)).To(BeEmpty())
}

func TestWithoutADockerEngineTheAddressIsNamed(t *testing.T) {
	g := NewWithT(t)
	args := asContainer(t, "serve")
	suite := exec.CommandContext(t.Context(), os.Args[0]) // the library keeps the first address that it finds
	suite.Env = append(os.Environ(), parentVariable+"="+strings.Join(append([]string{"r", t.TempDir()}, args...), "\n"),
		"DOCKER_HOST=tcp://127.0.0.1:1")
	out, err := suite.CombinedOutput()
	g.Expect(err).To(HaveOccurred())
	g.Expect(string(out)).To(And(HavePrefix("failed:"), ContainSubstring("tcp://127.0.0.1:1"), ContainSubstring("DOCKER_HOST")))
}

func TestNoContainerIsLeftAfterTheSuiteWasKilled(t *testing.T) {
	g := NewWithT(t)
	run := Run{ID: fmt.Sprintf(testRun, 0x40000000|os.Getpid()), Dir: t.TempDir()}
	killed(t, run, asContainer(t, "serve"))
	g.Eventually(func() string { return containers(t, run) }, withinFive).Should(BeEmpty())
}

func TestAnInterruptedStartOfAContainerLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	args := asContainer(t, "never-ready")
	ctx, cancel := context.WithCancel(t.Context())
	run := Run{ID: fmt.Sprintf(testRun, 0x50000000|os.Getpid()), Dir: t.TempDir()}
	failed := make(chan error)
	go func() {
		_, err := Start(ctx, resolved(t, args...), run)
		failed <- err
	}()
	g.Eventually(func() string { return containers(t, run) }, withinFive).ShouldNot(BeEmpty())
	cancel()
	g.Expect(<-failed).To(HaveOccurred())
	g.Expect(containers(t, run)).To(BeEmpty())
}

func TestAStartThatIsCutOffAtAnyMomentLeavesNoContainer(t *testing.T) {
	args := asContainer(t, "never-ready")
	for i, after := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond, 120 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			run := Run{ID: fmt.Sprintf(testRun, 0x60000000|i<<24|os.Getpid()&0xffffff), Dir: t.TempDir()}
			_, err := Start(ctx, resolved(t, args...), run)
			g.Expect(err).To(HaveOccurred())
			g.Expect(containers(t, run)).To(BeEmpty())
		})
	}
}

func TestTheMocksImageIsBuiltFromThisTree(t *testing.T) {
	g := NewWithT(t)
	dockerCommand(t, "version")
	name := fmt.Sprintf("plumbline-mock:test-%d", os.Getpid())
	recipe, err := engines.Load("mock")
	g.Expect(err).NotTo(HaveOccurred())
	d, err := connectDocker(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer d.provider.Close()
	root, inTree := settings.SourceTree()
	g.Expect(inTree).To(BeTrue())
	g.Expect(new(order).buildImage(t.Context(), d, root, name, recipe.Container.Build)).To(Succeed())
	defer dockerCommand(t, "rmi", "-f", name)
	e, run, err := start(t, []string{"--engine=mock-container", "--image=" + name, "--server-capacity=3"})
	g.Expect(err).NotTo(HaveOccurred())
	facts, err := Describe(t.Context(), e, nil, quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Name).To(Equal("plumbline-mock"))
	g.Expect(facts.Capacity).To(HaveValue(Equal(3)))
	exit, err := e.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exit.Code).To(HaveValue(BeZero()), "it ends in order")
	g.Expect(containers(t, run)).To(BeEmpty())
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// docker runs one command of the Docker client and returns what it wrote.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// The images are built from this tree, without a registry, under a tag of the test's own; everything is removed again.
func TestTheImagesServeAndMeasureTheMock(t *testing.T) {
	if os.Getenv("PLUMBLINE_NO_DOCKER") == "1" {
		t.Skip("PLUMBLINE_NO_DOCKER=1")
	}
	g := NewWithT(t)
	tag := fmt.Sprintf("selftest-%d", os.Getpid())
	mock, suite := "plumbline-mock:"+tag, "plumbline-suite:"+tag
	remove := func(args ...string) {
		t.Cleanup(func() { _ = exec.Command("docker", args...).Run() }) // the test's own context is over by then
	}
	remove("rmi", "--force", mock, suite)
	build := exec.CommandContext(t.Context(), "make", "-C", "../..", "image", "IMAGE_TAG="+tag)
	out, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))

	for _, image := range []string{mock, suite} {
		var made []struct {
			Size   int64
			Config struct {
				User        string
				Labels      map[string]string
				Entrypoint  []string
				Healthcheck *struct{ Test []string }
			}
		}
		g.Expect(json.Unmarshal([]byte(docker(t, "image", "inspect", image)), &made)).To(Succeed())
		config := made[0].Config
		g.Expect(config.User).To(MatchRegexp(`^[1-9][0-9]+:[1-9][0-9]+$`), "a number, and not root's")
		g.Expect(config.Labels).To(HaveKeyWithValue("org.opencontainers.image.version", Not(BeEmpty())))
		g.Expect(config.Labels).To(HaveKey("org.opencontainers.image.revision"))
		g.Expect(config.Entrypoint[0]).To(HavePrefix("/"), "no shell is there to find it")
		if image == mock {
			g.Expect(config.Healthcheck.Test[:2]).To(Equal([]string{"CMD", "/plumbline"}))
		}
		t.Logf("%s: %.1f MB", image, float64(made[0].Size)/1e6)
	}

	server := docker(t, "run", "--detach", "--publish", "127.0.0.1:0:8080", mock)
	remove("rm", "--force", server)
	port := docker(t, "port", server, "8080/tcp")
	g.Eventually(func() string { return docker(t, "inspect", "--format", "{{.State.Health.Status}}", server) }).
		WithTimeout(time.Minute).WithPolling(200 * time.Millisecond).Should(Equal("healthy"))
	code, said, errs := call(t, "health", "http://"+port)
	g.Expect(code).To(Equal(exitOK), said+errs)

	results := t.TempDir()
	run := func(args ...string) string {
		return docker(t, append([]string{"run", "--rm", "--network", "container:" + server, "--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
			"--volume", results + ":/run/plumbline/out"}, args...)...)
	}
	g.Expect(run(suite, "--url", "http://127.0.0.1:8080", "--progress", "none")).To(ContainSubstring("22 Passed"))
	g.Expect(run("--entrypoint", "ginkgo", suite, "plumbline-suite.test", "--", "--url", "http://127.0.0.1:8080", "--progress", "none")).To(ContainSubstring("22 Passed"))
	documents, err := filepath.Glob(filepath.Join(results, "2*", "results.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(documents).To(HaveLen(2))
	code, said, errs = call(t, append([]string{"validate"}, documents...)...)
	g.Expect(code).To(Equal(exitOK), said+errs)

	docker(t, "stop", server)
	g.Expect(docker(t, "inspect", "--format", "{{.State.ExitCode}}", server)).To(Equal("0"), "it ends in order when it is told to")
}

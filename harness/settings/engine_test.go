package settings

import (
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures/engines"
)

func TestTheEngineFollowsFromTheAddressUnlessItIsNamed(t *testing.T) {
	g := NewWithT(t)
	for _, c := range []struct {
		args []string
		want string
	}{{nil, EngineMock}, {[]string{"--url=http://h"}, EngineLive}, {[]string{"--url=http://h", "--engine=live"}, EngineLive},
		{[]string{"--engine=mock"}, EngineMock}, {[]string{"--engine=llama.cpp-cuda-container"}, "llama.cpp-cuda-container"}} {
		s, err := resolve(t, c.args, nil, "/b")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.EngineName()).To(Equal(c.want))
	}
	s, err := resolve(t, []string{"--engine=llama.cpp-cuda-container"}, nil, "/b")
	g.Expect(err).NotTo(HaveOccurred())
	recipe, form, started := s.Started()
	g.Expect(started).To(BeTrue())
	g.Expect(recipe).To(Equal("llama.cpp-cuda"))
	g.Expect(form).To(Equal(engines.FormContainer))
}

func TestAnEnginesArgumentsAreTakenAsTheyStand(t *testing.T) {
	g := NewWithT(t)
	want := []string{"--a", "1,2", "-v", "-v"}
	dir := t.TempDir()
	writeFile(t, dir, "c.yaml", "engine: mock-process\nengine-arg: [--a, \"1,2\", -v, -v]\n")
	for name, c := range map[string]struct{ args, environ []string }{
		"flags":    {[]string{"--engine=mock-process", "--engine-arg", "--a", "--engine-arg=1,2", "--engine-arg=-v", "--engine-arg", "-v"}, nil},
		"variable": {nil, []string{"PLUMBLINE_ENGINE=mock-process", "PLUMBLINE_ENGINE_ARG=--a\n1,2\n-v\n-v\n"}},
		"file":     {[]string{"--config=c.yaml"}, nil},
	} {
		s, err := resolve(t, c.args, c.environ, dir)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(s.EngineArg).To(Equal(want), name)
	}
}

func TestAProgramIsFoundByNameOrFromTheBaseDirectory(t *testing.T) {
	g := NewWithT(t)
	for text, want := range map[string]string{"llama-server": "llama-server", "./bin/x": "/base/bin/x", "/opt/x": "/opt/x"} {
		s, err := resolve(t, []string{"--engine=llama.cpp-process", "--command=" + text}, nil, "/base")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.EngineCommand).To(Equal(want))
	}
}

func TestAKeyAmongTheEnginesArgumentsIsRefusedAndNotShown(t *testing.T) {
	g := NewWithT(t)
	for _, args := range [][]string{{"--engine-arg=--api-key=" + secretText}, {"--engine-arg=--api-key", "--engine-arg=" + secretText}} {
		_, err := resolve(t, append(args, "--engine=vllm-process"), nil, "/b")
		g.Expect(err).To(MatchError(And(ContainSubstring("--api-key"), ContainSubstring("--credential-env"))))
		g.Expect(err.Error()).NotTo(ContainSubstring("topsecret"))
	}
}

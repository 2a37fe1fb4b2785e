package session

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestARunCanBeStartedAgainAsItWas(t *testing.T) {
	byGinkgo := []string{"/tmp/suites.test", "--test.timeout=0", "--ginkgo.seed=7", "--ginkgo.timeout=1h",
		"--ginkgo.focus=R3|R4", "--ginkgo.label-filter=phase:sanity && !case:T1", "--ginkgo.parallel.process=1", "--ginkgo.parallel.total=1"}
	for name, c := range map[string]struct {
		args    []string
		program string
		again   []string
	}{
		"through Ginkgo": {append(byGinkgo, "--url", "http://h:1", "--track-notes", "a b"), "go", []string{"tool", "ginkgo", "--focus=R3|R4",
			"--label-filter=phase:sanity && !case:T1", "./suites", "--", "--url", "http://h:1", "--track-notes", "a b"}},
		"a binary":                    {[]string{"./suite"}, "./suite", []string{}},
		"a binary with Ginkgo's flag": {[]string{"./suite", "-ginkgo.focus", "R3", "--url=http://h:1"}, "./suite", []string{"-ginkgo.focus", "R3", "--url=http://h:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			program, again := Invocation(c.args)
			g.Expect(program).To(Equal(c.program))
			g.Expect(again).To(Equal(c.again))
		})
	}
}

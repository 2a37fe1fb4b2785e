package engine

import (
	"flag"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/harness/settings"
)

func resolved(t *testing.T, args ...string) *settings.Settings {
	t.Helper()
	s, err := settingsOf(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func settingsOf(base string, args ...string) (*settings.Settings, error) {
	fs := flag.NewFlagSet("suite", flag.ContinueOnError)
	l := settings.Register(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return l.Resolve([]string{"TEST_ENGINE_KEY=k"}, base)
}

func TestWithoutAnAddressTheMockIsStartedAndTellsItself(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TEST_ENGINE_KEY", "k")
	s := resolved(t, "--server-capacity=3", "--model=some-model", "--credential-env=TEST_ENGINE_KEY")
	e, err := Start(t.Context(), s, Run{})
	g.Expect(err).NotTo(HaveOccurred())
	defer e.Stop(t.Context())
	g.Expect(e.Kind()).To(Equal(KindMock))

	_, err = Describe(t.Context(), e, nil, quick)
	g.Expect(problem(err)).To(Equal(KeyRefused), "the mock holds the key that the settings name")
	secret, err := s.Credential()
	g.Expect(err).NotTo(HaveOccurred())
	facts, err := Describe(t.Context(), e, Authorize(secret), quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Kind).To(Equal(KindMock))
	g.Expect(facts.Started).To(BeTrue())
	g.Expect(facts.Name).To(Equal("plumbline-mock"))
	g.Expect(facts.Version).NotTo(BeEmpty())
	g.Expect(*facts.Capacity).To(Equal(3))
	g.Expect(facts.ContextTokens).NotTo(BeNil())
	g.Expect(facts.RequestsServed).NotTo(BeNil())
	g.Expect(facts.CanTokenize).To(BeTrue())
	g.Expect(ResolveModel(facts, s.Model)).To(Equal("some-model"))

	_, err = e.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = Ask(t.Context(), e.URL(), nil, quick)
	g.Expect(problem(err)).To(Equal(Unreachable))
}

func TestAnUnknownPaceIsRefusedWithTheKnownOnes(t *testing.T) {
	_, err := Start(t.Context(), resolved(t, "--mock-pace=abacus"), Run{})
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(`"abacus"`), ContainSubstring("fast"))))
}

func TestANamedServerIsNeverReplacedByTheMock(t *testing.T) {
	g := NewWithT(t)
	gone := always(t, 200, nil, "")
	gone.Close()
	s := resolved(t, "--url="+gone.URL+"/")
	e, err := Start(t.Context(), s, Run{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Kind()).To(Equal(KindLive))
	g.Expect(e.URL()).To(Equal(gone.URL))
	facts, err := Describe(t.Context(), e, nil, OptionsFor(s))
	g.Expect(problem(err)).To(Equal(Unreachable))
	g.Expect(facts.Kind).To(Equal(KindLive))
	g.Expect(facts.Started).To(BeFalse())
	g.Expect(e.Died()).NotTo(HaveOccurred())
	_, err = e.Stop(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
}

// Package suites_test is the one suite: it reads the settings, opens the run, and lets the protocols' specs run in order.
package suites_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"plumbline/harness/plan"
	"plumbline/harness/settings"
	"plumbline/suites/capacity"
	"plumbline/suites/session"
	"plumbline/suites/standard"
)

var loader = settings.Register(flag.CommandLine)

// The memory limits make the collector work harder once so much is in use. An ordinary run needs a fifth of the first,
// which is for a server whose reply is as large as the cap allows. A thousand streams at once need the second.
const (
	memoryLimit     = 130 << 20
	loadMemoryLimit = 200 << 20
)

func TestMain(m *testing.M) {
	if err := settings.CheckArgs(os.Args[1:], flag.CommandLine); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	flag.Parse()
	var err error
	if chosen, err = resolve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
		if slices.Contains(chosen.Protocols, "capacity") {
			debug.SetMemoryLimit(loadMemoryLimit)
		}
	}
	if code, end := planLoad(); end {
		os.Exit(code)
	}
	code := m.Run()
	if code != 0 && run != nil && run.Misused() {
		code = 2
	}
	os.Exit(code)
}

// chosen are the settings of this run.
var (
	chosen *settings.Settings
	run    *session.Session
)

func resolve() (*settings.Settings, error) {
	base, err := settings.BaseDir()
	if err != nil {
		return nil, err
	}
	return loader.Resolve(os.Environ(), base)
}

// planLoad refuses a load that cannot be planned before anything is sent, and prints its plan where only that was asked
// for; end says that there is no run. What depends on the server's own window is seen once it has been asked.
func planLoad() (code int, end bool) {
	run := chosen.CapacityRun()
	if !slices.Contains(chosen.Protocols, "capacity") {
		return 0, false
	}
	if run.MaxModelLen == 0 && run.CtxTokens == 0 && !chosen.Capacity.DryRun {
		run.CtxTokens = 32 // drawn sizes are known once the server has told its window; everything else is known now
	}
	planned, err := plan.DryRun(run)
	if err == nil && !chosen.Capacity.DryRun {
		return 0, false
	}
	if err == nil {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		err = out.Encode(planned)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2, true
	}
	return 0, true
}

// protocols are the specs of each protocol.
var protocols = map[string]func(*session.Session){"standard": standard.Describe, "capacity": capacity.Describe}

func TestPlumbline(t *testing.T) {
	RegisterFailHandler(Fail)
	var err error
	run, err = session.New(chosen, chosen.Command(session.Invocation(os.Args)), os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range chosen.Protocols {
		protocols[name](run)
	}

	signalled, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()

	suiteConfig, reporterConfig := GinkgoConfiguration()
	filtered := false
	ReportBeforeSuite(func(r Report) { filtered = r.PreRunStats.SpecsThatWillRun < r.PreRunStats.TotalSpecs })
	SynchronizedBeforeSuite(func(ctx SpecContext) {
		if err := run.Open(ctx); err != nil {
			Fail(err.Error())
		}
	}, func() {})
	SynchronizedAfterSuite(func() {}, func(ctx SpecContext) {
		err := run.Close(ctx, interruption(signalled), whyUnsent(filtered, suiteConfig.FailFast))
		Expect(err).NotTo(HaveOccurred())
	})

	suiteConfig.FailOnEmpty = true // a run that ran nothing is not green
	ReportAfterSuite("something was checked", func(r Report) {
		ran := slices.ContainsFunc(r.SpecReports, func(s SpecReport) bool {
			return s.LeafNodeType.Is(types.NodeTypeIt) && s.State.Is(types.SpecStatePassed|types.SpecStateFailureStates)
		})
		if !ran && r.SuiteSucceeded {
			Fail("nothing was checked: every spec that the filter chose was skipped, for the settings do not ask for it")
		}
	})
	if suiteConfig.FlakeAttempts > 1 || suiteConfig.MustPassRepeatedly > 1 {
		t.Fatal("a request is sent once and its timing is never tried again: leave out --flake-attempts and --must-pass-repeatedly")
	}
	RunSpecs(t, "Plumbline", suiteConfig, reporterConfig)
	if run.Opened() { // at a second signal Ginkgo leaves its clean-up out, or alone, and timeout(1) sends two at once
		if err := run.Close(context.WithoutCancel(signalled), interruption(signalled), whyUnsent(filtered, suiteConfig.FailFast)); err != nil {
			t.Error(err)
		}
	}
}

// interruption says that a signal ended the run, "" when none did.
func interruption(signalled context.Context) string {
	if signalled.Err() != nil {
		return "the run was interrupted by a signal"
	}
	return ""
}

// whyUnsent is why a run that nothing cut short did not send a request of its plan.
func whyUnsent(filtered, failFast bool) string {
	switch {
	case filtered && failFast:
		return "the run's filter left this request out, or the run ended at its first failure, as --fail-fast asks"
	case filtered:
		return "the run's filter left this request out"
	}
	return "the run ended before this request"
}

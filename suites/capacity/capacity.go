// Package capacity holds the specs of the capacity protocol: what must hold of a load as a whole. It sends the load once
// and never fails on a speed; a reply that fails, leaks or miscounts is the server's fault, a late client is ours and is
// told apart.
package capacity

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
	"plumbline/reports/capacity"
	"plumbline/suites/session"
)

// claim is one thing that must hold of a load.
type claim struct {
	id, text string
	// asked says whether the settings ask for it; nil for always. Otherwise the spec is skipped, with why.
	asked func(fixtures.CapacityRun) bool
	why   string
	// faults says what does not hold, with its evidence.
	faults func(load) []string
}

// load is what a claim is held against.
type load struct {
	*session.Session
	*capacity.Summary
}

var claims = []claim{
	{id: "sent", text: "every planned request is sent", faults: unsent},
	{id: "size", text: "prompts have the planned size", faults: missized},
	{id: "valid", text: "every reply arrives whole and says something", faults: func(l load) []string {
		return l.failed(fixtures.FailRequest, fixtures.FailStream, fixtures.FailRunner)
	}},
	{id: "canary", text: "every reply begins with its own marker", faults: func(l load) []string { return l.failed(fixtures.FailCanary) },
		asked: func(c fixtures.CapacityRun) bool { return c.RequestCanaries }, why: "--capacity-request-canaries is off"},
	{id: "isolation", text: "no reply holds another request's marker, not even in its thinking", faults: leaks,
		asked: func(c fixtures.CapacityRun) bool { return c.RequestCanaries }, why: "--capacity-request-canaries is off"},
	{id: "words", text: "every reply has exactly the words asked for", faults: func(l load) []string { return l.failed(fixtures.FailControlled) },
		asked: func(c fixtures.CapacityRun) bool { return c.ControlledOutputPolicy == "strict" }, why: "--capacity-controlled-output-policy is not strict"},
	{id: "accounting", text: "the server's figures do not contradict each other", faults: contradictions},
	{id: "client", text: "the client kept up with its own load", faults: func(l load) []string { return l.OverloadReasons }},
}

// Describe adds the protocol's specs to the tree. Call it before the specs are run; an engine's own suite may call it too.
func Describe(s *session.Session) {
	run := s.Settings().CapacityRun()
	// After the standard protocol's phases, in order under every flag of Ginkgo.
	order := []any{ginkgo.Serial, ginkgo.Ordered, ginkgo.ContinueOnFailure, ginkgo.SpecPriority(-1000), ginkgo.Label("protocol:capacity")}
	ginkgo.Describe("capacity: the engine serves many clients at once and keeps them apart", order, func() {
		l := load{Session: s}
		ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) {
			var err error
			if l.Summary, err = s.Load(ctx); err != nil {
				ginkgo.Fail(err.Error())
			}
		})
		for _, c := range claims {
			ginkgo.It("capacity-"+c.id+" "+c.text, ginkgo.Label("case:capacity-"+c.id), func() {
				if c.asked != nil && !c.asked(run) {
					ginkgo.Skip("not asked for: " + c.why)
				}
				if faults := c.faults(l); len(faults) > 0 {
					ginkgo.Fail("expected that " + c.text + ", but:\n  " + strings.Join(faults, "\n  "))
				}
			})
		}
	})
}

func unsent(l load) []string {
	var faults []string
	if l.AbortedStage != "" {
		faults = append(faults, fmt.Sprintf("stage %s: %s", l.AbortedStage, l.Aborted))
	}
	if l.WithoutResult > 0 {
		faults = append(faults, fmt.Sprintf("%d of %d requests have no result", l.WithoutResult, l.Summary.Requests))
	}
	return faults
}

// Measured prompts may lie as far from their plan as the greater of these allows. A calibration rests on two short texts:
// the characters of a token differ from text to text by a percent or two, and of short texts by a few dozen tokens, which
// are much of a small prompt.
const (
	sizeTolerance   = 0.03
	tokensTolerance = 40
	smallestSized   = 256
)

func missized(l load) []string {
	if l.MeasuredToPlanned == nil || !l.Calibrated() {
		return nil // nothing was measured, or nothing to plan by
	}
	off, planned := *l.MeasuredToPlanned-1, l.PlannedTokens()
	if planned < smallestSized {
		return nil // heading and task are most of such a prompt, and cannot be shorter
	}
	if math.Abs(off) <= max(sizeTolerance, tokensTolerance/planned) {
		return nil
	}
	return []string{fmt.Sprintf("prompts had %+.1f %% of their %.0f planned tokens, more than %.0f %% or %d tokens off: were they cut, or does the template add to them?",
		100*off, planned, 100*sizeTolerance, tokensTolerance)}
}

// failed counts the failures of some classes, with a few of them and how to replay those.
func (l load) failed(classes ...string) []string {
	var faults []string
	for _, class := range classes {
		n := l.FailureClasses[class]
		if n == 0 {
			continue
		}
		faults = append(faults, fmt.Sprintf("%s: %d of %d, such as", class, n, l.Summary.Requests))
		examples, commands := l.LoadFailures(class)
		for _, e := range examples {
			faults = append(faults, "  "+e)
		}
		for _, c := range commands {
			faults = append(faults, "  replay it and judge it again: "+c)
		}
	}
	return faults
}

func leaks(l load) []string {
	if l.ForeignMarkers+l.ForeignInThinking == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d foreign markers in answers and %d in thinking, such as %s",
		l.ForeignMarkers, l.ForeignInThinking, strings.Join(l.ForeignSeen, ", "))}
}

// contradicting are the findings that make a server's figures worthless.
var contradicting = []string{transcript.UsageInconsistent, transcript.UsageTotalMismatch, transcript.UsageTimingsMismatch,
	transcript.CachedExceedsPrompt, transcript.CompletionExceedsMax, transcript.MaxTokensExceeded, transcript.PromptTokensZero,
	transcript.UsageZero, transcript.TimingsNegative}

func contradictions(l load) []string {
	var faults []string
	for _, id := range slices.Sorted(maps.Keys(l.Findings)) {
		if slices.Contains(contradicting, id) {
			_, says := transcript.Describe(id)
			faults = append(faults, fmt.Sprintf("%s in %d replies: %s", id, l.Findings[id], says))
		}
	}
	return faults
}

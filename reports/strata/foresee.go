package strata

import (
	"fmt"
	"slices"
	"strings"

	"plumbline/fixtures"
)

// Likelihood says whether something will come true of a run that has not been made.
type Likelihood string

// The likelihoods. Perhaps: only the run itself can tell.
const (
	Unlikely Likelihood = "no"
	Perhaps  Likelihood = "perhaps"
	Certain  Likelihood = "yes"
)

// Foretold is what is known of a run before its first request, beside its header.
type Foretold struct {
	RequestFails    Likelihood // a required request will fail
	UsageUntold     Likelihood // a performance request will be answered without its counts
	ReuseUnchecked  Likelihood // what came from a cache will not be told
	LengthUnchecked Likelihood // whether a prompt was read whole will not be known
}

// Foresight is what can be said of a document before its run.
type Foresight struct {
	// Missing holds the nulls that no answer of the engine can fill any more, with their reasons, in document order:
	// those about hardware, software, model and configuration.
	Missing Ordered[string] `json:"missing"`
	// Reasons are those for which the run would not conform, in the document's order.
	Reasons []ForeseenReason `json:"reasons"`
}

// ForeseenReason is a reason that will stand, or may.
type ForeseenReason struct {
	Code       string     `json:"code"`
	Sentence   string     `json:"sentence"`
	Likelihood Likelihood `json:"likelihood"`
}

// factsAt are the parts of a document that are made of the header alone.
var factsAt = []string{"/hardware/", "/software/", "/model/", "/configuration/"}

// Foresee says what the document of a run with this header would lack, and why it would not conform, by the code that
// makes the document. It supposes that all goes well: every request is sent and answered, and the engine serves the same
// model afterwards, except where foretold says otherwise.
func Foresee(h *fixtures.Header, foretold Foretold) (Foresight, error) {
	run := &fixtures.Run{Header: *h, End: &fixtures.RunEnd{}, After: &fixtures.After{ServedModels: h.Engine.ServedModels}}
	if h.Engine.ChatTemplate != "" { // a run writes what it is told beside its record
		run.Header.Artifacts = append(slices.Clone(h.Artifacts), fixtures.Artifact{Kind: "provenance", Path: templatePath, SHA256: strings.Repeat("0", 64)})
	}
	d, err := Build(run, strings.Repeat("0", 64))
	if err != nil {
		return Foresight{}, fmt.Errorf("foresee a run: %w", err)
	}
	f := Foresight{Missing: Ordered[string]{}, Reasons: []ForeseenReason{}}
	for _, m := range d.Missing {
		if slices.ContainsFunc(factsAt, func(part string) bool { return strings.HasPrefix(m.Key, part) }) {
			f.Missing = append(f.Missing, m)
		}
	}
	certain, possible := foretold.standing(run, Certain), foretold.standing(run, Perhaps)
	for _, r := range statusReasons {
		switch {
		case r.holds(certain):
			f.Reasons = append(f.Reasons, ForeseenReason{r.code, r.sentence, Certain})
		case r.holds(possible):
			f.Reasons = append(f.Reasons, ForeseenReason{r.code, r.sentence, Perhaps})
		}
	}
	return f, nil
}

// standing is what a run's status depends on, when everything of a likelihood comes true.
func (f Foretold) standing(run *fixtures.Run, what Likelihood) *standing {
	b := builder{run: run}
	s := &standing{run: run, tally: tally{
		usageUntold: f.UsageUntold == what, reuseUnchecked: f.ReuseUnchecked == what, lengthUnchecked: f.LengthUnchecked == what,
	}}
	if f.RequestFails == what {
		s.failed = 1
	}
	if run.Header.Refusal != "" && what == Certain {
		s.skipped = len(run.Header.Plan)
	}
	if run.Header.Refusal == "" {
		s.unhashed = b.unhashed()
	}
	return s
}

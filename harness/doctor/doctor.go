// Package doctor looks in about a second at all that a run would stumble over: whether the engine can be reached and
// used, what it tells of itself, whether every prompt fits, and what this machine has for the run. It sends one request of its
// own and none of the protocol's, so that no prompt of a run is in the engine's cache; it measures nothing, starts no
// engine but the built-in mock, keeps nothing, and ends within its time whatever the engine does.
package doctor

import (
	"context"
	"time"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/settings"
)

// Status is what became of a check.
type Status string

// The statuses. Only Failed keeps a run from being made; a Warning costs a part of its result; a Note costs nothing.
const (
	OK       Status = "ok"
	Note     Status = "note"
	Warning  Status = "warning"
	Failed   Status = "failed"
	NotAsked Status = "not asked" // a check before it failed
)

// Check is one question with its answer.
type Check struct {
	ID       string `json:"id"`
	Question string `json:"question"`
	How      string `json:"how"` // the way in which it was answered
	Status   Status `json:"status"`
	Answer   string `json:"answer"`
	// Mend says what to do; only beside a warning or a failure.
	Mend string `json:"mend,omitempty"`
}

// Likelihood says whether something will come true of the run.
type Likelihood string

// The likelihoods. Perhaps: only the run itself can tell.
const (
	No      Likelihood = "no"
	Perhaps Likelihood = "perhaps"
	Yes     Likelihood = "yes"
)

// Outlook is what the examination says of a run's requests.
type Outlook struct {
	RequestFails    Likelihood // a required request will fail
	UsageUntold     Likelihood // its tokens will not be counted
	ReuseUnchecked  Likelihood // what came from a cache will not be told
	LengthUnchecked Likelihood // whether its prompt was read whole will not be known
}

// Result is what was found.
type Result struct {
	Checks []Check
	// Header is that of the run as far as it is known: the plan, the engine, the machine. Its model files have
	// facts.NotReadYet for a digest that is still to be made.
	Header  fixtures.Header
	Outlook Outlook
	// EngineAsked says whether the engine was asked what it is, with or without success. One that is started for each run
	// is not.
	EngineAsked bool
}

// Runnable says whether a run can be made.
func (r *Result) Runnable() bool {
	for _, c := range r.Checks {
		if c.Status == Failed {
			return false
		}
	}
	return true
}

// DefaultWithin bounds an examination where Options name no bound.
const DefaultWithin = 10 * time.Second

// Options bound an examination.
type Options struct {
	// Within bounds it as a whole; DefaultWithin.
	Within time.Duration
	// RunnerCommit is the source commit that the run's documents would name, "" when unknown.
	RunnerCommit string
}

// Examine answers every check for a run with these settings. The error is ours: a corpus or a profile that cannot be
// read. It returns within the bound, also where the engine or a drive never answers.
func Examine(ctx context.Context, s *settings.Settings, opts Options) (*Result, error) {
	if opts.Within <= 0 {
		opts.Within = DefaultWithin
	}
	e, err := newEvidence(s, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, opts.Within)
	defer cancel()
	e.gather(ctx)
	r := &Result{Header: e.header, Outlook: e.outlook(), EngineAsked: e.asked}
	for _, c := range checks {
		status, answer := c.look(e)
		found := Check{ID: c.id, Question: c.question, How: c.how, Status: status, Answer: answer}
		if status == Warning || status == Failed {
			found.Mend = c.mend
		}
		r.Checks = append(r.Checks, found)
	}
	return r, nil
}

func openPack(dir string) (*corpus.Pack, error) {
	if dir == "" {
		return corpus.Default()
	}
	return corpus.Open(dir)
}

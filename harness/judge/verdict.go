package judge

import (
	"slices"
	"time"

	"plumbline/fixtures"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

// Outcome is the verdict in one word.
type Outcome string

// The outcomes, from the best to the worst.
const (
	Pass            Outcome = "pass"              // right, and nothing to report
	PassWithFinding Outcome = "pass_with_finding" // right, with a deviation or a caveat that must be shown
	Inconclusive    Outcome = "inconclusive"      // not enough evidence for right or wrong
	Error           Outcome = "error"             // no answer that could be judged
	Fail            Outcome = "fail"              // the server answered and is wrong
)

var outcomes = []Outcome{Pass, PassWithFinding, Inconclusive, Error, Fail}

func worse(a, b Outcome) Outcome {
	return outcomes[max(slices.Index(outcomes, a), slices.Index(outcomes, b))]
}

// Judgement is the verdict on a case, with its grounds.
type Judgement struct {
	ID       string
	Outcome  Outcome
	Findings []transcript.Finding
	// Task says in one clause how the task went, "" where there is none.
	Task string
	// Checks holds the state of every check: ok, warn, fail, unknown, n/a.
	Checks map[string]string
	Parsed Parsed
	// Metrics holds every metric; null is unknown.
	Metrics map[string]*float64
}

// Verdict judges the exchanges of a case, in the case's order; one for a case with a single request. Parsed and the
// metrics of a single request are those of the exchange that the case is about. What stands in the case's scripted
// replies decides nothing but which exchange that is, and whether its times mean anything: see Live.
func Verdict(c *fixtures.Case, exchanges []*fixtures.Exchange) Judgement {
	v := open(c, exchanges)
	for _, x := range v.all {
		x.judge()
	}
	v.compare()
	j := Judgement{ID: c.ID, Outcome: v.outcome(), Findings: v.findings(), Checks: v.checks()}
	if x := v.focus; x != nil {
		j.Task = x.task.why
		j.Parsed = parsed(x.t)
	}
	j.Metrics = v.metrics()
	return j
}

// Live is the case without its script: what is left to judge a live engine by.
func Live(c *fixtures.Case) *fixtures.Case {
	live := *c
	live.CaseReply, live.Expect = fixtures.CaseReply{}, nil
	live.Exchanges = slices.Clone(c.Exchanges)
	for i := range live.Exchanges {
		live.Exchanges[i].CaseReply = fixtures.CaseReply{}
	}
	return &live
}

// verdict is a judgement under way.
type verdict struct {
	all   []*asked
	focus *asked // the exchange that the case is about
	// joint are findings that no exchange has by itself.
	joint []transcript.Finding
}

// asked is one exchange with what was asked in it.
type asked struct {
	name    string
	e       *fixtures.Exchange
	t       *transcript.Transcript
	f       measure.Figures
	p       fixtures.CaseParams
	chat    bool
	reply   fixtures.CaseReply
	found   []transcript.Finding
	task    result
	refused bool // the refusal was what was asked for
}

// begin and end are the exchange's first and last moment on the clock of the whole case.
func (x *asked) begin() time.Duration { return x.e.SinceStart }
func (x *asked) end() time.Duration   { return x.e.SinceStart + x.e.End.At }

// answered reports whether there is an answer that can be judged.
func (x *asked) answered() bool {
	return x.chat && x.own() != Error && x.t.FinishReason != nil
}

func open(c *fixtures.Case, exchanges []*fixtures.Exchange) *verdict {
	v := &verdict{}
	for i, e := range exchanges {
		if e == nil {
			e = &fixtures.Exchange{End: fixtures.End{Kind: fixtures.EndUnsent, Error: "it was never sent"}}
		}
		x := &asked{e: e, reply: c.CaseReply}
		request := c.Request
		if i < len(c.Exchanges) {
			x.name, request, x.reply = c.Exchanges[i].Name, c.Exchanges[i].Request, c.Exchanges[i].CaseReply
		}
		x.p, _ = request.Params() // a case that was read has none that cannot be
		x.chat = request.Method != "GET"
		x.t = transcript.Read(e)
		if x.reply.Raw.Untimed {
			x.t = transcript.ReadUntimed(e)
		}
		x.f = measure.Of(e, x.t)
		x.found = slices.Clone(x.t.Findings)
		v.all = append(v.all, x)
	}
	v.focus = v.about(c)
	if v.focus != nil && len(c.Exchanges) > 0 {
		whole, _ := c.Request.Params()
		v.focus.p = joined(v.focus.p, whole)
	}
	return v
}

// about finds the exchange that the case is about: the one whose script and task are the case's own, or, without a
// script to tell by, the last.
func (v *verdict) about(c *fixtures.Case) *asked {
	if len(v.all) == 0 {
		return nil
	}
	last := v.all[len(v.all)-1]
	if len(c.Exchanges) == 0 {
		return last
	}
	whole, _ := c.Request.Params()
	best, most := last, 0
	for _, x := range v.all {
		likeness := 0
		if sameTask(x.p.Task, whole.Task) {
			likeness++
		}
		if c.Status != 0 && sameReply(x.reply, c.CaseReply) {
			likeness += 2
		}
		if likeness > most {
			best, most = x, likeness
		}
	}
	return best
}

func sameReply(a, b fixtures.CaseReply) bool {
	return a.Status == b.Status && a.End == b.End && a.Raw.Untimed == b.Raw.Untimed &&
		slices.EqualFunc(a.Raw.Steps, b.Raw.Steps, func(a, b fixtures.Step) bool {
			return a.AfterMS == b.AfterMS && string(a.Bytes) == string(b.Bytes)
		})
}

func sameTask(a, b *fixtures.CaseTask) bool {
	return a != nil && b != nil && a.Kind == b.Kind && string(a.Value) == string(b.Value)
}

// joined fills what an exchange's parameters leave open from those of its case.
func joined(own, whole fixtures.CaseParams) fixtures.CaseParams {
	switch {
	case own.Task == nil:
		own.Task = whole.Task
	case whole.Task != nil && own.Task.Canary == "":
		task := *own.Task
		task.Canary = whole.Task.Canary
		own.Task = &task
	}
	if own.EstPromptTokens == nil {
		own.EstPromptTokens = whole.EstPromptTokens
	}
	if own.PromptExcerpt == "" {
		own.PromptExcerpt = whole.PromptExcerpt
	}
	own.Repeat, own.Concurrency = max(own.Repeat, whole.Repeat), max(own.Concurrency, whole.Concurrency)
	return own
}

// add gives the exchange a finding of ours. Detail, when not "", says what was seen.
func (x *asked) add(id, detail string) {
	if !has(x.found, id) {
		x.found = append(x.found, finding(id, detail))
	}
}

// drop takes findings out that the request asked for.
func (x *asked) drop(ids ...string) {
	x.found = slices.DeleteFunc(x.found, func(f transcript.Finding) bool { return slices.Contains(ids, f.ID) })
}

func finding(id, detail string) transcript.Finding {
	f := transcript.Finding{ID: id, Severity: kinds[id].severity, Event: -1, Sentence: kinds[id].sentence}
	if detail != "" {
		f.Sentence += ": " + detail
	}
	return f
}

func has(found []transcript.Finding, id string) bool {
	return slices.ContainsFunc(found, func(f transcript.Finding) bool { return f.ID == id })
}

// outcome is the worst of the exchanges', and of what they show together.
func (v *verdict) outcome() Outcome {
	worst := byFindings(v.joint, false, false)
	for _, x := range v.all {
		worst = worse(worst, x.own())
	}
	if len(v.all) == 0 {
		return Inconclusive
	}
	return worst
}

// own is the outcome of one exchange: nothing to judge is an error, what is wrong or a task that failed is a fail, what
// cannot be told is inconclusive, and any finding stands beside a pass.
func (x *asked) own() Outcome {
	o := byFindings(x.found, x.t.FinishReason == nil, x.task.state == stateOK)
	switch {
	case o == Error:
	case x.task.state == stateFail:
		return Fail
	case x.silent():
		return Error
	case x.task.state == stateUnknown:
		return worse(o, Inconclusive)
	}
	return o
}

// silent reports whether the exchange ended, for a reason that no finding gives, without anything to judge.
func (x *asked) silent() bool {
	return x.e.Response == nil || !x.e.Whole() && len(x.found) == 0
}

// byFindings is the outcome that findings alone lead to. A reply that holds what nobody can read and then has no end is
// no answer. What leaves open whether the reply is right counts as a finding only where the task went right all the same.
func byFindings(found []transcript.Finding, endless, decided bool) Outcome {
	worst := Pass
	for _, f := range found {
		k := kinds[f.ID]
		noAnswer := k.noAnswer || endless && (f.ID == transcript.MalformedEvent || f.ID == transcript.InvalidJSONChunk)
		switch {
		case f.Severity == transcript.Fault && noAnswer:
			return Error
		case f.Severity == transcript.Fault:
			worst = worse(worst, Fail)
		case k.undecided && !decided:
			worst = worse(worst, Inconclusive)
		default:
			worst = worse(worst, PassWithFinding)
		}
	}
	return worst
}

// findings are those of the exchange that the case is about, then those of the others, then the joint ones.
func (v *verdict) findings() []transcript.Finding {
	var all []transcript.Finding
	if v.focus != nil {
		all = append(all, v.focus.found...)
	}
	for _, x := range v.all {
		if x == v.focus {
			continue
		}
		for _, f := range x.found {
			if x.name != "" {
				f.Sentence = "in " + x.name + ": " + f.Sentence
			}
			all = append(all, f)
		}
	}
	return append(all, v.joint...)
}

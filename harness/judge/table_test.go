package judge

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// sample is a case with what came of it, both made by hand.
type sample struct {
	c         *fixtures.Case
	exchanges []*fixtures.Exchange
}

// one is a case with one request; params are members of its parameters.
func one(params string, e *fixtures.Exchange) sample {
	return sample{&fixtures.Case{ID: "c", Request: requested(params)}, []*fixtures.Exchange{e}}
}

// several is a case with several requests, each with parameters of its own.
func several(params string, parts ...part) sample {
	s := sample{c: &fixtures.Case{ID: "c", Request: requested(params)}}
	for i, p := range parts {
		s.c.Exchanges = append(s.c.Exchanges, fixtures.CaseExchange{Name: fmt.Sprintf("r%d", i), Request: requested(p.params)})
		s.exchanges = append(s.exchanges, p.e)
	}
	return s
}

type part struct {
	params string
	e      *fixtures.Exchange
}

func requested(params string) fixtures.CaseRequest {
	return fixtures.CaseRequest{Endpoint: "/v1/chat/completions", Method: "POST", Raw: json.RawMessage("{" + params + "}")}
}

const question = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0,"messages":[{"role":"user","content":"hi"}]}`

// told is a right stream that says the words, one a chunk: the first after 100 ms, then 40 ms apart.
func told(reason, usage string, words ...string) *fixtures.Exchange {
	e := &fixtures.Exchange{
		Request:  fixtures.Request{Method: "POST", Path: "/v1/chat/completions", Body: []byte(question)},
		Response: &fixtures.Response{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, At: time.Millisecond},
	}
	at := 100 * time.Millisecond
	say := func(format string, args ...any) {
		e.Pieces = append(e.Pieces, fixtures.Piece{At: at, Bytes: fmt.Appendf(nil, "data: "+format+"\n\n", args...)})
	}
	for _, w := range words {
		say(`{"id":"i1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, strconv.Quote(w))
		at += 40 * time.Millisecond
	}
	say(`{"id":"i1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
	say(`{"id":"i1","object":"chat.completion.chunk","model":"m","choices":[],"usage":%s}`, usage)
	say("[DONE]")
	e.End = fixtures.End{Kind: fixtures.EndClose, At: at}
	return e
}

const few = `{"prompt_tokens":100,"completion_tokens":4,"total_tokens":104}`

func cachedUsage(n int) string {
	return fmt.Sprintf(`{"prompt_tokens":2000,"completion_tokens":4,"total_tokens":2004,"prompt_tokens_details":{"cached_tokens":%d}}`, n)
}

// says is a right reply with few tokens.
func says(words ...string) *fixtures.Exchange { return told("stop", few, words...) }

func status(code int, body string) *fixtures.Exchange {
	e := says()
	e.Response.Status, e.Response.Header = code, map[string][]string{"Content-Type": {"application/json"}}
	e.Pieces = []fixtures.Piece{{At: time.Millisecond, Bytes: []byte(body)}}
	return e
}

// later moves an exchange on the clock of its case; slower delays its output.
func later(by time.Duration, e *fixtures.Exchange) *fixtures.Exchange {
	e.SinceStart += by
	return e
}

func slower(by time.Duration, e *fixtures.Exchange) *fixtures.Exchange {
	for i := range e.Pieces {
		e.Pieces[i].At += by
	}
	e.End.At += by
	return e
}

// other makes the request of an exchange differ from the rest.
func other(e *fixtures.Exchange) *fixtures.Exchange {
	e.Request.Body = []byte(strings.Replace(question, "hi", "hello", 1))
	return e
}

func ids(from, to string, e *fixtures.Exchange, chunks ...int) *fixtures.Exchange {
	for _, i := range chunks {
		e.Pieces[i].Bytes = []byte(strings.Replace(string(e.Pieces[i].Bytes), from, to, 1))
	}
	return e
}

func contains(s string) string { return `"task":{"kind":"contains","value":` + strconv.Quote(s) + `}` }

const (
	wrongKey  = `"api_key":"wrong","task":{"kind":"expect_status","value":401}`
	badField  = `"task":{"kind":"expect_status","value":400}`
	tooLong   = `"est_prompt_tokens":5000,"task":{"kind":"expect_rejection","value":"context"}`
	no        = `{"error":{"message":"no","type":"t"}}`
	seeded    = `"seed":7,"temperature":0.7`
	repeating = `"repeat":2,"temperature":0`
)

// shown holds for each finding that is made here a case that shows it and a near miss that does not.
var shown = map[string]struct{ shows, nearMiss sample }{
	AuthStatusWrong: {one(wrongKey, status(404, no)), one(wrongKey, status(403, no))},
	AuthNotEnforced: {one(wrongKey, says("Yes", ".")), one(wrongKey, status(401, no))},
	BadRequestAs500: {one(badField, status(502, no)), one(badField, status(422, no))},
	transcript.Status200ForClientError: {one(badField, says("Yes", ".")),
		one(`"message_json_escape":"\\ud83d",`+badField, says("Yes", "."))},
	PromptTruncated: {one(`"est_prompt_tokens":400,`+contains("Yes"), says("Yes", ".")), one(`"est_prompt_tokens":130,`+contains("Yes"), says("Yes", "."))},
	PrefixCacheHit: {one(`"est_prompt_tokens":2000,`+contains("Yes"), told("stop", cachedUsage(1500), "Yes", ".")),
		one(contains("Yes"), told("stop", cachedUsage(1500), "Yes", "."))},
	RequestsSerialised: {several(`"concurrency":2`, part{"", says("a", "b", "c", "d")}, part{"", slower(250*time.Millisecond, says("a", "b", "c", "d"))}),
		several(`"concurrency":2`, part{"", says("a", "b", "c", "d")}, part{"", slower(80*time.Millisecond, says("a", "b", "c", "d"))})},
	FailureRate: {several(`"concurrency":2`, part{"", says("a")}, part{"", status(503, no)}),
		several("", part{"", says("a")}, part{"", later(time.Second, status(503, no))})},
	SeedNotReproducible: {several(seeded, part{seeded, says("a", "b")}, part{seeded, later(time.Second, says("a", "c"))}),
		several(seeded, part{seeded, says("a", "b")}, part{seeded, says("a", "c")})}, // under way together
	NondeterministicAtTemperature: {several(repeating, part{repeating, says("a", "b")}, part{repeating, later(time.Second, says("a", "c"))}),
		several(repeating, part{repeating, says("a", "b")}, part{repeating, later(time.Second, other(says("a", "c")))})},
	CacheHitCorruption: {several(repeating, part{contains("lit"), told("stop", cachedUsage(0), "it is lit")}, part{contains("lit"), later(time.Second, told("stop", cachedUsage(1900), "it it it"))}),
		several(repeating, part{contains("lit"), told("stop", cachedUsage(0), "it is lit")}, part{contains("lit"), later(time.Second, told("stop", cachedUsage(0), "it it it"))})},
	CrossRequestContamination: {several("", part{contains("Mira Holt"), says("Ivo", " Sand")}, part{contains("Ivo Sand"), other(says("Ivo Sand"))}),
		several("", part{contains("Mira Holt"), says("Nobody")}, part{contains("Ivo Sand"), other(says("Ivo Sand"))})},
	StateLeak: {several(`"task":{"kind":"not_contains","value":"K-77"}`, part{"", says("Noted.")}, part{"", later(time.Second, other(says("It was ", "K-77.")))}),
		several(`"task":{"kind":"not_contains","value":"K-77"}`, part{"", says("Noted: K-77.")}, part{"", later(time.Second, other(says("Hello.")))})},

	// These a transcript finds as well; here the task brings them out.
	transcript.FinishReasonWrong: {one(`"task":{"kind":"finish_reason","value":"length"}`, says("one", " two")),
		one(`"task":{"kind":"finish_reason","value":"length"}`, told("length", few, "one", " two"))},
	transcript.MaxTokensExceeded: {one(`"task":{"kind":"max_tokens","value":3}`, told("length", few, "one two three four")),
		one(`"task":{"kind":"max_tokens","value":4}`, told("length", few, "one two three four"))},
	transcript.PromptEcho: {one(`"prompt_excerpt":"Name a harbour.",`+contains("Brack"), says("Name a harbour. ", "Brack")),
		one(`"prompt_excerpt":"Name a harbour.",`+contains("Brack"), says("Name a harbour? Brack."))},
	transcript.NoToolCall: {one(`"task":{"kind":"tool_call","calls":[{"name":"now","arguments":{}}]}`, says("It is noon.")),
		one(`"task":{"kind":"tool_call","calls":[{"name":"now","arguments":{}}]}`, told("length", few, "I will"))},
}

func found(s sample) []string {
	var all []string
	for _, f := range Verdict(s.c, s.exchanges).Findings {
		all = append(all, f.ID)
	}
	return all
}

func TestEachFindingOfACaseIsShownByItsFaultAndNotByANearMiss(t *testing.T) {
	for id, s := range shown {
		t.Run(id, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(found(s.shows)).To(ContainElement(id))
			g.Expect(found(s.nearMiss)).NotTo(ContainElement(id))
		})
	}
}

func TestTheTableHoldsEveryFindingAndEachHasATest(t *testing.T) {
	g := NewWithT(t)
	read := map[string]bool{} // each of these has its two tests in the transcript's own table
	for _, id := range transcript.FindingIDs() {
		read[id] = true
		g.Expect(kinds).To(HaveKey(id), "a finding that no verdict knows")
	}
	for id, k := range kinds {
		g.Expect(read[id] || shown[id].shows.c != nil).To(BeTrue(), "%s has no test", id)
		if shown[id].shows.c != nil {
			g.Expect(k.sentence).NotTo(BeEmpty(), "%s is made here and says nothing", id)
			g.Expect(k.severity).NotTo(BeEmpty(), id)
		}
		for _, e := range k.effects {
			g.Expect(checkNames).To(ContainElement(e.check), id)
		}
	}
}

func TestForeignTextIsTold(t *testing.T) {
	canary := `"task":{"kind":"contains","value":"lit","canary":"MK-A-12f0"}`
	two := func(chunks ...int) *fixtures.Exchange {
		return ids("i1", "i2", says("It", " whale", " is", " lit."), chunks...)
	}
	exact := `"task":{"kind":"exact","value":"It is lit."}`
	for claim, c := range map[string]struct {
		s    sample
		leak bool
	}{
		"a canary made like the own one":             {one(canary, says("MK-B-90aa lit")), true},
		"the own canary":                             {one(canary, says("MK-A-12f0 lit")), false},
		"a word that begins like it":                 {one(canary, says("MK-2 is lit, MK-AB12f01 too")), false},
		"chunks of another id that break the answer": {one(exact, two(1)), true},
		"another id in the usage chunk alone":        {one(exact, two(5)), false},
		"the id of a request that ran beside": {several("", part{contains("lit"), two(1)},
			part{contains("whale"), other(ids("i1", "i2", says("A whale."), 0, 1, 2))}), true},
		"one id for both, as a server without ids has": {several("", part{contains("lit"), says("It is lit.")}, part{contains("whale"), other(says("A whale."))}), false},
	} {
		t.Run(claim, func(t *testing.T) {
			match := ContainElement(CrossRequestContamination)
			if !c.leak {
				match = Not(match)
			}
			NewWithT(t).Expect(found(c.s)).To(match)
		})
	}
}

func TestTheOutcomeFollowsFromFindingsAndTask(t *testing.T) {
	refused := one(contains("lit"), &fixtures.Exchange{End: fixtures.End{Kind: fixtures.EndRefused, Error: "connection refused"}})
	cut := told("stop", few, "It", " is", " lit.")
	cut.Pieces, cut.End.Kind = cut.Pieces[:2], fixtures.EndTruncate
	for claim, c := range map[string]struct {
		s    sample
		want Outcome
	}{
		"right":                                  {one(contains("lit"), says("It is lit.")), Pass},
		"right, without a task":                  {one("", says("It is lit.")), Pass},
		"wrong":                                  {one(contains("lit"), says("It is dark.")), Fail},
		"cut by its limit before it was right":   {one(contains("lit"), told("length", few, "It is")), Inconclusive},
		"cut by its limit after it was right":    {one(contains("lit"), told("length", few, "It is lit and")), Pass},
		"broken off":                             {one(contains("It"), cut), Error},
		"no connection":                          {refused, Error},
		"a server error":                         {one(contains("lit"), status(500, no)), Error},
		"right, with a deviation":                {one(contains("lit"), ids("i1", "i2", says("It is", " lit."), 1)), PassWithFinding},
		"a refusal that was asked for":           {one(badField, status(400, no)), Pass},
		"too busy to refuse":                     {one(badField, status(503, no)), Error},
		"a limit that was all there was to keep": {one(`"task":{"kind":"max_tokens","value":4}`, told("length", few)), PassWithFinding},
		"one of several wrong, one refused":      {several("", part{contains("lit"), says("dark")}, part{contains("lit"), status(503, no)}), Fail},
	} {
		t.Run(claim, func(t *testing.T) {
			j := Verdict(c.s.c, c.s.exchanges)
			g := NewWithT(t)
			g.Expect(j.Outcome).To(Equal(c.want), "%v", j.Findings)
			g.Expect(j.Checks).To(HaveLen(len(checkNames)))
			g.Expect(j.Metrics).To(HaveLen(len(MetricNames)))
			g.Expect(json.Marshal(j)).NotTo(BeEmpty())
		})
	}
}

func TestAnExpectationIsHeldAgainstEveryPart(t *testing.T) {
	s := one(contains("lit"), says("It", " is", " lit."))
	j := Verdict(s.c, s.exchanges)
	right := func() *fixtures.CaseExpect {
		return &fixtures.CaseExpect{
			Outcome: "pass", Checks: map[string]string{"task": "ok", "usage": "ok"},
			Parsed: map[string]json.RawMessage{"content": json.RawMessage(`"It is lit."`), "usage": json.RawMessage(`{"prompt_tokens":100}`), "error": json.RawMessage("null")},
			Metrics: fixtures.CaseMetrics{Null: []string{"engine_decode_tps"}, MustCompute: []string{"ttft_ms"},
				Values: map[string]float64{"ttft_ms": 100, "decode_tps": 37.5, "completion_tokens": 4}},
			MustNot: []string{"ttft_ms = 1000", "reasoning-after-answer finding", "outcome error", "content = 'null'", "name = 'x'", "e2e_ms near 900"},
		}
	}
	NewWithT(t).Expect(j.Against(right())).To(BeEmpty())
	for difference, spoil := range map[string]func(*fixtures.CaseExpect){
		"outcome is pass":              func(e *fixtures.CaseExpect) { e.Outcome = "fail" },
		"missing-done is missing":      func(e *fixtures.CaseExpect) { e.Findings = []string{"missing-done"} },
		"check task is ok":             func(e *fixtures.CaseExpect) { e.Checks["task"] = "fail" },
		"there is none":                func(e *fixtures.CaseExpect) { e.Checks["tasks"] = "ok" },
		"parsed content":               func(e *fixtures.CaseExpect) { e.Parsed["content"] = json.RawMessage(`"It is lit"`) },
		"parsed usage":                 func(e *fixtures.CaseExpect) { e.Parsed["usage"] = json.RawMessage(`{"prompt_tokens":101}`) },
		"parsed nonsense":              func(e *fixtures.CaseExpect) { e.Parsed["nonsense"] = json.RawMessage(`null`) },
		"expected null":                func(e *fixtures.CaseExpect) { e.Metrics.Null = []string{"ttft_ms"} },
		"not there":                    func(e *fixtures.CaseExpect) { e.Metrics.Null = []string{"nonsense"} },
		"expected a number":            func(e *fixtures.CaseExpect) { e.Metrics.MustCompute = []string{"cached_tokens"} },
		"expected 19":                  func(e *fixtures.CaseExpect) { e.Metrics.Values["ttft_ms"] = 19 },
		"expected 111":                 func(e *fixtures.CaseExpect) { e.Metrics.Values["ttft_ms"] = 111 },
		"expected 42":                  func(e *fixtures.CaseExpect) { e.Metrics.Values["decode_tps"] = 42 },
		"expected 5":                   func(e *fixtures.CaseExpect) { e.Metrics.Values["completion_tokens"] = 5 },
		"must not be: pass":            func(e *fixtures.CaseExpect) { e.MustNot = []string{"pass"} },
		"must not be: ttft_ms = 100":   func(e *fixtures.CaseExpect) { e.MustNot = []string{"ttft_ms = 100 unflagged"} },
		"must not be: reasoning empty": func(e *fixtures.CaseExpect) { e.MustNot = []string{"reasoning empty"} },
		"must not be: e2e_ms":          func(e *fixtures.CaseExpect) { e.MustNot = []string{"e2e_ms near the timeout"} },
	} {
		e := right()
		spoil(e)
		NewWithT(t).Expect(j.Against(e)).To(ConsistOf(ContainSubstring(difference)), difference)
	}
}

func TestAServerThatIsTooBusyIsNotJudgedByItsRefusal(t *testing.T) {
	for _, params := range []string{badField, wrongKey, tooLong} {
		for code, id := range map[int]string{503: transcript.Overloaded, 429: transcript.RateLimited} {
			s := one(params, status(code, no))
			g := NewWithT(t)
			g.Expect(found(s)).To(ConsistOf(id))
			g.Expect(Verdict(s.c, s.exchanges).Checks[checkTask]).To(Equal(stateUnknown))
		}
	}
}

package judge

import (
	"math"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func metric(s sample, name string) *float64 { return Verdict(s.c, s.exchanges).Metrics[name] }

// timed is a right reply whose engine tells its times.
func timed(timings string, cached int) *fixtures.Exchange {
	return told("stop", cachedUsage(cached)+`,"timings":`+timings, "It", " is", " lit", ".")
}

func after(e *fixtures.Exchange, end fixtures.EndKind, by time.Duration, body string) *fixtures.Exchange {
	at := e.End.At + by
	if body != "" {
		e.Pieces = append(e.Pieces, fixtures.Piece{At: at, Bytes: []byte(body)})
	}
	e.End = fixtures.End{Kind: end, At: at}
	return e
}

func TestMetricsAreNumbersOrUnknown(t *testing.T) {
	const engine = `{"cache_n":0,"prompt_n":2000,"prompt_ms":80,"predicted_n":4,"predicted_ms":160}`
	nan := math.NaN() // stands for null
	words := func() *fixtures.Exchange { return says("It", " is", " lit", ".") }
	one := func(e *fixtures.Exchange) sample { return one("", e) }
	doc := status(200, `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":`+few+`}`)
	two := several(`"concurrency":2`, part{"", words()}, part{"", slower(20*time.Millisecond, words())})
	half := several(`"concurrency":2`, part{"", words()}, part{"", status(503, no)})
	for claim, c := range map[string]struct {
		s    sample
		name string
		want float64
	}{
		"first piece":                          {one(words()), "first_byte_ms", 100},
		"first output":                         {one(words()), "ttft_ms", 100},
		"blank text begins no answer":          {one(says("\n", "It", " is", ".")), "first_answer_ms", 140},
		"last output":                          {one(words()), "last_token_ms", 220},
		"end of the body":                      {one(words()), "e2e_ms", 260},
		"end at [DONE] when more follows":      {one(after(words(), fixtures.EndClose, time.Second, "data: {}\n\n")), "e2e_ms", 260},
		"end at [DONE] when it was cut then":   {one(after(words(), fixtures.EndTruncate, time.Second, "")), "e2e_ms", 260},
		"no end of a stream left open":         {one(after(words(), fixtures.EndIdle, time.Second, "")), "e2e_ms", nan},
		"decoding":                             {one(words()), "decode_tps", 25},
		"the answer's own rate":                {one(words()), "answer_tps", 25},
		"time between tokens":                  {one(words()), "itl_ms", 40},
		"no time between chunks of many":       {one(says("It is", " lit.")), "itl_ms", nan},
		"longest gap":                          {one(says("It is", " lit.")), "max_gap_ms", 40},
		"one document has no first token":      {one(doc), "ttft_ms", nan},
		"one document has tokens":              {one(doc), "completion_tokens", 4},
		"no usage of a refusal":                {one(status(500, no)), "prompt_tokens", nan},
		"engine's prompt rate":                 {one(timed(engine, 0)), "engine_prefill_tps", 25000},
		"engine's decode rate":                 {one(timed(engine, 0)), "engine_decode_tps", 25},
		"cold prompt rate":                     {one(timed(engine, 0)), "cold_prefill_tps", 25000},
		"client's prompt rate":                 {one(timed(engine, 0)), "prefill_tps", 20000},
		"no prompt rate without the engine":    {one(words()), "prefill_tps", nan},
		"no prompt rate of a warm prompt":      {one(timed(strings.NewReplacer("2000", "100", `"cache_n":0`, `"cache_n":1900`).Replace(engine), 1900)), "prefill_tps", nan},
		"no cold rate of a warm prompt":        {one(timed(strings.NewReplacer("2000", "100", `"cache_n":0`, `"cache_n":1900`).Replace(engine), 1900)), "cold_prefill_tps", nan},
		"wait that nothing explains":           {one(slower(time.Second, timed(engine, 0))), "unexplained_wait_ms", 1020},
		"no prompt rate behind a queue":        {one(slower(time.Second, timed(engine, 0))), "prefill_tps", nan},
		"a rate too short for the document":    {one(timed(strings.Replace(engine, `"predicted_ms":160`, `"predicted_ms":12`, 1), 0)), "engine_decode_tps", 4 / 0.012},
		"a rate that cannot be":                {one(timed(strings.Replace(engine, `"predicted_n":4,"predicted_ms":160`, `"predicted_n":1,"predicted_ms":0.001`, 1), 0)), "engine_decode_tps", nan},
		"usage against the engine":             {one(timed(strings.Replace(engine, `"predicted_n":4`, `"predicted_n":5`, 1), 0)), "usage_minus_engine", -1},
		"cached":                               {one(timed(engine, 0)), "cached_tokens", 0},
		"cached that cannot be":                {one(told("stop", cachedUsage(2001), "a")), "cached_tokens", nan},
		"a request alone has no failure rate":  {one(words()), "failure_rate", nan},
		"all served":                           {two, "failure_rate", 0},
		"median of first output":               {two, "level_ttft_p50", 110},
		"rate of the level by its wall time":   {two, "level_throughput_tps", 8 / 0.28},
		"half served":                          {half, "failure_rate", 0.5},
		"refused":                              {half, "refused", 1},
		"no rate of a level with refusals":     {half, "level_throughput_tps", nan},
		"no first output of one with refusals": {half, "level_ttft_p50", nan},
	} {
		t.Run(claim, func(t *testing.T) {
			got := metric(c.s, c.name)
			g := NewWithT(t)
			if math.IsNaN(c.want) {
				g.Expect(got).To(BeNil())
				return
			}
			g.Expect(got).To(HaveValue(BeNumerically("~", c.want, math.Abs(c.want)*1e-4)))
		})
	}
}

func TestABodyWithoutTimesHasNoRates(t *testing.T) {
	g := NewWithT(t)
	s := one("", timed(`{"cache_n":0,"prompt_n":2000,"prompt_ms":8000,"predicted_n":4,"predicted_ms":16000}`, 0))
	s.c.Raw.Untimed = true
	j := Verdict(s.c, s.exchanges)
	g.Expect(j.Outcome).To(Equal(Pass), "%v", j.Findings)
	for _, name := range []string{"decode_tps", "itl_ms", "max_gap_ms", "unexplained_wait_ms", "prefill_tps"} {
		g.Expect(j.Metrics[name]).To(BeNil(), name)
	}
	g.Expect(j.Metrics["engine_prefill_tps"]).To(HaveValue(Equal(250.0)))
	g.Expect(Verdict(Live(s.c), s.exchanges).Metrics["decode_tps"]).NotTo(BeNil(), "a live engine's times mean something")
}

package measure

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"plumbline/corpus"
	"plumbline/harness/transcript"
)

// engine computes the figures of the engine's own clock.
func (m *measurer) engine() {
	f := &m.f
	t := m.t.Timings
	if t == nil {
		for _, x := range []*Maybe[float64]{&f.PromptSeconds, &f.DecodeSeconds, &f.PromptTPS, &f.DecodeTPS, &f.EnginePromptTPS,
			&f.EngineDecodeTPS} {
			*x = Unknown[float64](noTimings)
		}
		return
	}
	f.PromptSeconds = m.seconds("timings.prompt_ms", t.PromptMS)
	f.DecodeSeconds = m.seconds("timings.predicted_ms", t.PredictedMS)
	m.crossCheck(t)
	// An interval that the client's clock refutes stays in the record as the engine's word, but makes no rate.
	for _, id := range []string{transcript.TimingsDoNotCoverWallClock, transcript.TimingsImplausible} {
		if x := m.found(id, "timings.prompt_ms"); x != nil && m.promptUntrue == "" {
			m.promptUntrue = x.Sentence
		}
	}
	if x := m.found(transcript.TimingsImplausible, "timings.predicted_ms"); x != nil && m.decodeUntrue == "" {
		m.decodeUntrue = x.Sentence
	}
	f.PromptTPS = rate(f.ReadTokens, f.PromptSeconds, m.promptUntrue, "tokens read over prompt seconds, both by the engine")
	f.DecodeTPS = rate(f.DecodeTokens, f.DecodeSeconds, m.decodeUntrue, "tokens decoded over decode seconds, both by the engine")
	f.EnginePromptTPS = m.rawRate(f.ReadTokens, "timings.prompt_ms", t.PromptMS, m.promptUntrue)
	f.EngineDecodeTPS = m.rawRate(f.DecodeTokens, "timings.predicted_ms", t.PredictedMS, m.decodeUntrue)
}

// impossibleRate is a rate in tokens per second that no engine decodes or reads at; llama.cpp gives a reply of one token
// a microsecond.
const impossibleRate = 500_000

// rawRate divides tokens by the engine's milliseconds as sent, where they can be true.
func (m *measurer) rawRate(tokens Maybe[int64], field string, ms *float64, untrue string) Maybe[float64] {
	switch {
	case !tokens.Known:
		return Unknown[float64](tokens.Reason)
	case ms == nil:
		return Unknown[float64](field + " was not sent as a finite number")
	case *ms <= 0:
		return Unknown[float64](field + " is not positive")
	case untrue != "":
		return Unknown[float64](untrue)
	case tokens.Value == 0:
		return Unknown[float64]("no tokens in the interval")
	case m.overClient(*ms / 1000):
		return Unknown[float64](field + " is longer than the whole request by the client's clock")
	case float64(tokens.Value)/(*ms/1000) > impossibleRate:
		return Unknown[float64](field + " is so short that no engine can have done so much in it")
	}
	return Known(float64(tokens.Value)/(*ms/1000), "tokens over "+field)
}

// overClient reports whether an engine's interval is longer than the whole request took the client.
func (m *measurer) overClient(seconds float64) bool {
	return !m.t.Untimed && seconds > m.e.End.At.Seconds()+corpus.EngineOverClient
}

// seconds turns an engine's milliseconds into seconds, where they can be true.
func (m *measurer) seconds(field string, ms *float64) Maybe[float64] {
	if ms == nil {
		return Unknown[float64](field + " was not sent as a finite number")
	}
	s := *ms / 1000
	switch rounded := Round(s, engineDecimals); {
	case s < 0:
		m.broken(fmt.Sprintf("%s is negative: %v", field, *ms))
		return Unknown[float64](field + " is negative")
	case s == 0:
		return Unknown[float64](field + " is zero: the interval was not measured")
	case m.overClient(s):
		m.broken(fmt.Sprintf("%s is %.4f s, and the whole request took the client %.6f s", field, s, m.e.End.At.Seconds()))
		return Unknown[float64](field + " is longer than the whole request by the client's clock")
	case rounded == 0:
		return Unknown[float64](fmt.Sprintf("%s is less than the %d decimals of a second that are kept", field, engineDecimals))
	default:
		return Known(rounded, field+" of the last timings object")
	}
}

// rate divides tokens by rounded seconds, so that a reader of the two can compute it again.
func rate(tokens Maybe[int64], seconds Maybe[float64], untrue, source string) Maybe[float64] {
	switch {
	case !tokens.Known:
		return Unknown[float64](tokens.Reason)
	case !seconds.Known:
		return Unknown[float64](seconds.Reason)
	case untrue != "":
		return Unknown[float64](untrue)
	case tokens.Value == 0:
		return Unknown[float64]("no tokens in the interval")
	case roundingError(seconds.Value) > corpus.RateRoundingLimit:
		return Unknown[float64](fmt.Sprintf("the interval of %v s is so short that rounding it to %d decimals could move the rate by more than %v %%",
			seconds.Value, engineDecimals, 100*corpus.RateRoundingLimit))
	}
	return Known(Round(float64(tokens.Value)/seconds.Value, rateDecimals), source)
}

// roundingError is the largest relative error that rounding put into an engine's seconds.
func roundingError(seconds float64) float64 {
	return math.Pow10(-engineDecimals) / 2 / seconds
}

// crossCheck compares the engine's count of decoded tokens with its rate and time, which also tells whether its
// interval covers all n tokens or the n-1 after the first.
func (m *measurer) crossCheck(t *transcript.Timings) {
	f := &m.f
	if !f.DecodeTokens.Known || t.PredictedPerSecond == nil || t.PredictedMS == nil || *t.PredictedMS <= 0 || *t.PredictedPerSecond < 0 {
		return
	}
	n := float64(f.DecodeTokens.Value)
	rate, seconds := *t.PredictedPerSecond, *t.PredictedMS/1000
	implied := rate * seconds
	tolerance := crossTolerance(rate, *t.PredictedMS)
	all, after := math.Abs(implied-n) <= tolerance, math.Abs(implied-(n-1)) <= tolerance
	source := "timings.predicted_n, which predicted_per_second × predicted_ms confirms"
	switch {
	case all && after:
		f.DecodeTokens.Source = source
	case all:
		f.Convention = AllTokens
		f.DecodeTokens.Source = source
	case after:
		f.Convention = AfterFirst
		f.DecodeTokens.Source = source + " as the n-1 tokens after the first"
	default:
		m.broken(fmt.Sprintf("timings.predicted_n is %d and predicted_per_second × predicted_ms gives %.2f", f.DecodeTokens.Value, implied))
		if m.decodeUntrue == "" {
			m.decodeUntrue = "the engine's count of decoded tokens contradicts its own rate and time"
		}
	}
}

// crossTolerance is how many tokens rate × time may miss the count by: what rounding both to the decimals they were sent
// with can do. Half a unit of a rate's last decimal counts for every second of decoding, so the allowance grows with it: by
// 0.05 tokens a second where an engine rounds to 0.1 tokens/s. A rate sent whole is taken for one of those.
func crossTolerance(rate, milliseconds float64) float64 {
	const slack = 0.01 // floating point, and decimals that were sent as zeros
	perSecond := math.Pow10(-max(decimalsOf(rate), 1)) / 2
	return slack + perSecond*milliseconds/1000 + rate*math.Pow10(-decimalsOf(milliseconds))/2/1000
}

// decimalsOf is how many decimals the shortest way to write x has.
func decimalsOf(x float64) int {
	_, decimals, _ := strings.Cut(strconv.FormatFloat(x, 'f', -1, 64), ".")
	return len(decimals)
}

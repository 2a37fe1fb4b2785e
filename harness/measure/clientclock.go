package measure

import (
	"strings"

	"plumbline/harness/transcript"
)

const clientSource = "client's monotonic clock from dispatch, by the offsets in the record"

// kindNames are the words of the standard document. Thinking tags in the answer are thinking.
var kindNames = map[transcript.DeltaKind]string{
	transcript.Reasoning: "reasoning",
	transcript.Content:   "content",
	transcript.Call:      "tool_call",
	transcript.Markup:    "reasoning",
}

// firsts computes when output began. Blank text begins no answer.
func (m *measurer) firsts() {
	f, d := &m.f, m.t.Deltas
	if len(d) == 0 {
		reason := "no output came"
		if !m.t.Stream && m.t.FinishReason != nil {
			reason = "the reply came as one document, so that no first token can be seen"
		}
		f.TTFT, f.FirstAnswer = Unknown[float64](reason), Unknown[float64](reason)
		f.FirstDeltaKind = Unknown[string](reason)
		return
	}
	f.FirstDeltaKind = Known(kindNames[d[0].Kind], "first non-empty delta")
	f.FirstAnswer = Unknown[float64]("no answer text and no tool call came")
	if held := m.found(transcript.StreamBuffered, ""); held != nil {
		f.TTFT, f.FirstAnswer = Unknown[float64](held.Sentence), Unknown[float64](held.Sentence)
		return
	}
	f.TTFT = Known(clientSeconds(d[0].At), clientSource)
	for _, x := range d {
		if x.Kind == transcript.Call || x.Kind == transcript.Content && strings.TrimSpace(x.Text) != "" {
			f.FirstAnswer = Known(clientSeconds(x.At), clientSource)
			return
		}
	}
}

// client computes the figures of the client's clock that need a whole reply.
func (m *measurer) client() {
	f := &m.f
	f.Total = Unknown[float64]("the body did not come to its proper end")
	if m.e.Whole() {
		f.Total = Known(clientSeconds(m.e.End.At), clientSource)
	}
	f.ClientDecodeTPS = m.decodeRate()
	if f.Basis == ClientBasis {
		f.DecodeTPS = f.ClientDecodeTPS
		f.PromptTPS = Unknown[float64](noTimings + ", and the client's clock cannot tell prompt reading from waiting")
	}
}

// decodeRate is the client's decode rate. Deltas are not tokens, so it needs the count of usage.
func (m *measurer) decodeRate() Maybe[float64] {
	d, tokens := m.t.Deltas, m.f.OutputTokens
	switch {
	case !m.t.Stream:
		return Unknown[float64]("the reply came as one document")
	case m.t.Untimed:
		return Unknown[float64]("the times of the reply mean nothing")
	case !tokens.Known:
		return Unknown[float64](tokens.Reason)
	case m.outputUntrue != "":
		return Unknown[float64](m.outputUntrue)
	case tokens.Value < 2:
		return Unknown[float64]("one token has no interval")
	case len(d) < 2:
		return Unknown[float64]("all output came in one delta")
	case m.leavesOutReasoning():
		return Unknown[float64]("usage does not say how many tokens were generated: completion_tokens leaves out the reasoning")
	}
	span := d[len(d)-1].At - d[0].At
	switch {
	case span <= 0:
		return Unknown[float64]("all output arrived at one moment")
	case m.lump():
		return Unknown[float64]("one delta holds most of the output, so that the time between deltas is not the time of decoding")
	}
	return Known(Round(float64(tokens.Value-1)/span.Seconds(), rateDecimals),
		"usage.completion_tokens less one over the client's time from first to last delta")
}

func (m *measurer) leavesOutReasoning() bool {
	u := m.t.Usage
	return u.ReasoningTokens != nil && *u.ReasoningTokens > *u.CompletionTokens
}

// lump reports whether one delta holds more than half of the output while the deltas are less than half of the tokens.
func (m *measurer) lump() bool {
	d := m.t.Deltas
	if int64(2*len(d)) > m.f.OutputTokens.Value {
		return false
	}
	all, largest := 0, 0
	for _, x := range d {
		all += len(x.Text)
		largest = max(largest, len(x.Text))
	}
	return 2*largest > all
}

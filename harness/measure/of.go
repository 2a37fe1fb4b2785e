package measure

import (
	"encoding/json"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// Of computes the figures of one exchange from what was read of it.
//
// A failed request has no figures, with two exceptions. Its first-token and first-answer times stay where output had
// arrived. And where all of the reply came and could be read, and the server only broke a rule of the interface (no
// finish reason before [DONE], one document in place of a stream, a stream left open), its counts and the times of its
// output are as true as any and stay.
//
// A reply that had said its finish reason and [DONE] is whole, however its connection ended; only its total is unknown.
func Of(e *fixtures.Exchange, t *transcript.Transcript) Figures {
	m := &measurer{e: e, t: t, f: Figures{Basis: ClientBasis, Convention: NotDetermined}}
	m.status()
	m.firsts()
	if m.void {
		m.nothing("the request failed")
		return m.f
	}
	m.tokens()
	m.agreement()
	m.plausible()
	m.engine()
	m.client()
	return m.f
}

// measurer holds the figures under way.
type measurer struct {
	e *fixtures.Exchange
	t *transcript.Transcript
	f Figures
	// void says that the request failed in a way that leaves no figure but the first times.
	void bool

	promptUntrue, decodeUntrue string // why an engine interval or its count may not feed a rate, "" when it may
	outputUntrue               string // why the completion tokens of usage may not
}

// nothing makes every figure that depends on a whole reply unknown.
func (m *measurer) nothing(reason string) {
	for _, x := range []*Maybe[int64]{&m.f.InputTokens, &m.f.CachedTokens, &m.f.ReadTokens, &m.f.OutputTokens, &m.f.DecodeTokens} {
		*x = Unknown[int64](reason)
	}
	for _, x := range []*Maybe[float64]{&m.f.PromptSeconds, &m.f.DecodeSeconds, &m.f.Total, &m.f.PromptTPS, &m.f.DecodeTPS,
		&m.f.ClientDecodeTPS, &m.f.EnginePromptTPS, &m.f.EngineDecodeTPS} {
		*x = Unknown[float64](reason)
	}
	m.f.AccountingNote = Unknown[string](reason)
}

// found is the first finding of that id and path, nil for none. An empty path matches any.
func (m *measurer) found(id, path string) *transcript.Finding {
	for i := range m.t.Findings {
		if f := &m.t.Findings[i]; f.ID == id && (path == "" || f.Path == path) {
			return f
		}
	}
	return nil
}

// streamAsked reports whether the request asked for a stream.
func streamAsked(r fixtures.Request) bool {
	var body struct {
		Stream bool `json:"stream"`
	}
	return json.Unmarshal(r.Body, &body) == nil && body.Stream
}

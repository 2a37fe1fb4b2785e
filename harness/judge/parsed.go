package judge

import (
	"encoding/json"
	"slices"

	"plumbline/harness/transcript"
)

// Parsed is what a correct reader ends up with. All text is after repairs but for the two Content… members.
type Parsed struct {
	Content      string          `json:"content"`
	Reasoning    string          `json:"reasoning"`
	ToolCalls    []ParsedCall    `json:"tool_calls"`
	FinishReason *string         `json:"finish_reason"`
	DoneSeen     bool            `json:"done_seen"`
	Usage        json.RawMessage `json:"usage"` // as sent; null when none was
	Error        *ParsedError    `json:"error"`

	// ModelIDs are of a model list, null where none was asked for.
	ModelIDs          []string `json:"model_ids"`
	FinishReasonCount int      `json:"finish_reason_count"`
	DistinctIDs       int      `json:"distinct_ids"`
	EventsAfterDone   int      `json:"events_after_done"`
	// ContentStringsOnly is the answer text of the values that were strings, ContentWithRecoveredParts that of all.
	ContentStringsOnly        string `json:"content_strings_only"`
	ContentWithRecoveredParts string `json:"content_with_recovered_parts"`
}

// ParsedCall is a tool call. ID is null where none was sent; Arguments is the string, or the value sent in its place.
type ParsedCall struct {
	ID        *string `json:"id"`
	Name      string  `json:"name"`
	Arguments any     `json:"arguments"`
}

// ParsedError is an error of the server. Code is a number where a number was sent, a string where a string was; absent
// members were not sent.
type ParsedError struct {
	Code    any     `json:"code,omitempty"`
	Type    *string `json:"type,omitempty"`
	Message string  `json:"message"`
}

func parsed(t *transcript.Transcript) Parsed {
	p := Parsed{
		Content: t.Content, Reasoning: t.Reasoning, ToolCalls: []ParsedCall{}, FinishReason: t.FinishReason, DoneSeen: t.DoneSeen,
		ModelIDs: t.ModelIDs, FinishReasonCount: t.FinishReasonCount, DistinctIDs: t.DistinctIDs, EventsAfterDone: t.EventsAfterDone,
		ContentStringsOnly: t.ContentStrings, ContentWithRecoveredParts: t.Content,
	}
	if t.Usage != nil && json.Valid(t.Usage.Raw) {
		p.Usage = t.Usage.Raw
	}
	for _, c := range t.ToolCalls {
		call := ParsedCall{Name: c.Name, Arguments: c.Arguments}
		if c.ID != "" {
			call.ID = &c.ID
		}
		if c.NotString && json.Valid([]byte(c.Arguments)) {
			call.Arguments = json.RawMessage(c.Arguments)
		}
		p.ToolCalls = append(p.ToolCalls, call)
	}
	if e := t.Error; e != nil {
		p.Error = &ParsedError{Message: e.Message}
		switch {
		case e.CodeNumber:
			p.Error.Code = json.Number(e.Code)
		case e.Code != "":
			p.Error.Code = e.Code
		}
		if e.Type != "" {
			p.Error.Type = &e.Type
		}
	}
	return p
}

// MarshalJSON writes a judgement as one object: id, outcome, findings (their ids, each once), checks, parsed, metrics.
func (j Judgement) MarshalJSON() ([]byte, error) {
	ids := []string{}
	for _, f := range j.Findings {
		if !slices.Contains(ids, f.ID) {
			ids = append(ids, f.ID)
		}
	}
	return json.Marshal(struct {
		ID       string              `json:"id"`
		Outcome  Outcome             `json:"outcome"`
		Findings []string            `json:"findings"`
		Checks   map[string]string   `json:"checks"`
		Parsed   Parsed              `json:"parsed"`
		Metrics  map[string]*float64 `json:"metrics"`
	}{j.ID, j.Outcome, ids, j.Checks, j.Parsed, j.Metrics})
}

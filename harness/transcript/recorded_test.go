package transcript

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

// recorded is what an exchange of fixtures/recorded holds, read by a program that shares nothing with this package.
type recorded struct {
	Stream       bool
	Events       int
	Done         bool
	Content      string
	Reasoning    string
	ToolCalls    []struct{ ID, Type, Name, Arguments string } `json:"tool_calls"`
	FinishReason *string                                      `json:"finish_reason"`
	Usage        *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
		Cached     int64 `json:"cached_tokens"`
	}
	Timings bool
	Error   *struct{ Code, Type, Message string }
}

// deviations are what really is unusual in the recorded exchanges of 2xx replies; fixtures/recorded says of which
// set-up they are. Every other reply is without a finding.
var deviations = map[string][]string{
	// The budget ran out while the model was thinking, or inside a call.
	"A20_reason_nonstream_truncated_inside_think": {BudgetExhaustedInReasoning},
	"A20_reason_stream_truncated_inside_think":    {BudgetExhaustedInReasoning},
	"A30_tools_truncated_nonstream":               {ToolCallTruncated},
	"A30_tools_truncated_stream":                  {ToolCallTruncated},
	// A thinking budget of zero leaks the closing tag; thinking switched off by flag leaves an empty block of tags.
	"A20_reason_stream_budget_0":  {ThinkCloseWithoutOpen},
	"C00_chat_reasoning_off_flag": {ThinkTagsInContent},
	"C10_busy_first":              {ThinkTagsInContent},
	// Another request held the slot.
	"C10_busy_second":   {ThinkTagsInContent, QueueWait},
	"B30_six_on_four_5": {QueueWait},
	"B30_six_on_four_6": {QueueWait},
	// A server with one model answers under its own name, whatever was asked for.
	"A50_unknown_model_nonstream": {ModelMismatch},
	// The client left.
	"B40_cancel_stream": {StreamTruncated},
}

func TestARealServersExchangesAreReadRightly(t *testing.T) {
	var want map[string]recorded
	data, err := os.ReadFile("../../fixtures/recorded/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../../fixtures/recorded/llamacpp-b10573.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	all, err := fixtures.ReadExchanges(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		t.Run(e.ID, func(t *testing.T) {
			g := NewWithT(t)
			got, w := Read(&e), want[e.ID]
			g.Expect(got.Stream).To(Equal(w.Stream))
			g.Expect(got.Events).To(HaveLen(w.Events))
			g.Expect(got.DoneSeen).To(Equal(w.Done))
			g.Expect(got.ContentSent).To(Equal(w.Content))
			g.Expect(got.Reasoning).To(Equal(w.Reasoning))
			g.Expect(got.FinishReason).To(Equal(w.FinishReason))
			g.Expect(got.Timings != nil).To(Equal(w.Timings))
			g.Expect(got.ToolCalls).To(HaveLen(len(w.ToolCalls)))
			for i, c := range w.ToolCalls {
				g.Expect(got.ToolCalls[i]).To(Equal(ToolCall{Index: i, ID: c.ID, Type: c.Type, Name: c.Name, Arguments: c.Arguments}))
			}
			g.Expect(got.Usage != nil).To(Equal(w.Usage != nil))
			if u := w.Usage; u != nil {
				g.Expect([]*int64{got.Usage.PromptTokens, got.Usage.CompletionTokens, got.Usage.TotalTokens, got.Usage.CachedTokens}).
					To(HaveExactElements(HaveValue(Equal(u.Prompt)), HaveValue(Equal(u.Completion)), HaveValue(Equal(u.Total)), HaveValue(Equal(u.Cached))))
			}
			g.Expect(got.Error != nil).To(Equal(w.Error != nil))
			if x := w.Error; x != nil {
				g.Expect([]string{got.Error.Code, got.Error.Type, got.Error.Message}).To(Equal([]string{x.Code, x.Type, x.Message}))
			}
			if e.Response.Status/100 == 2 {
				g.Expect(ids(got)).To(ConsistOf(deviations[e.ID]))
			}
		})
	}
}

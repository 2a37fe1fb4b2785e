package transcript

import (
	"fmt"
	"path"
	"strings"
)

// checkShape looks at the finish reason, ids and names of the whole reply.
func (r *reader) checkShape() {
	t := r.t
	if t.DistinctIDs > 1 {
		r.add(UnstableID, -1, "id", fmt.Sprintf("%d ids", t.DistinctIDs))
	}
	if a, b := plainName(r.asked.model), plainName(t.Model); a != "" && b != "" &&
		!strings.Contains(a, b) && !strings.Contains(b, a) {
		r.add(ModelMismatch, -1, "model", fmt.Sprintf("asked for %q, answered by %q", r.asked.model, t.Model))
	}
	if t.FinishReason == nil {
		// A stream that was cut off has its own finding, and one that broke off with an error says so itself.
		if t.Error == nil && r.e.Whole() && (t.DoneSeen || !t.Stream) {
			r.add(MissingFinishReason, -1, "choices[0].finish_reason", "")
		}
		return
	}
	if n := len(t.Deltas); t.Stream && n > 0 && t.Deltas[n-1].Event > r.finishAt {
		r.add(FinishReasonPremature, r.finishAt, "choices[0].finish_reason", "")
	} else if t.FinishReasonCount > 1 {
		r.add(DuplicateFinishReason, -1, "choices[0].finish_reason", fmt.Sprintf("%d times", t.FinishReasonCount))
	}
	// Where the request names the function, the interface itself ends with stop.
	switch reason := *t.FinishReason; {
	case reason == "stop" && len(t.ToolCalls) > 0 && r.asked.toolChoice != "named":
		r.add(FinishReasonWrong, -1, "choices[0].finish_reason", "there is a tool call and the reason is stop")
	case reason == "tool_calls" && len(t.ToolCalls) == 0:
		r.add(FinishReasonWrong, -1, "choices[0].finish_reason", "the reason is tool_calls and there is no call")
	}
}

// plainName is a model name without folder, file type and case, for telling another model from another spelling.
func plainName(s string) string {
	if s == "" {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(path.Base(s)), ".gguf")
}

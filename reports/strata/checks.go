package strata

import "plumbline/harness/judge"

// RequestCheck is what is checked of one request's prompt: that it was read whole and read anew. The verdicts are the
// judge's, who gives them during the run as well.
type RequestCheck struct {
	// MaxSharedPrefix is the longest prefix that the prompt has in common with another prompt of the plan.
	MaxSharedPrefix Null[int] `json:"max_shared_prefix_tokens"`
	// FrozenInput is the prompt's pinned length.
	FrozenInput Null[int] `json:"frozen_input_tokens"`
	// PayloadReuse says whether the engine took more from a cache than prompts have in common.
	PayloadReuse Null[bool] `json:"unexpected_payload_reuse"`
	// LengthOff says whether the engine counted more or fewer tokens than the prompt has.
	LengthOff Null[bool] `json:"length_outside_tolerance"`
	// TemplateOverhead is what the chat template put around the user text: input minus content tokens (ours).
	TemplateOverhead Null[int64] `json:"template_overhead_tokens"`
}

func requestCheck(c judge.PromptCheck) RequestCheck {
	return RequestCheck{
		MaxSharedPrefix: figure(c.SharedPrefix, ""), FrozenInput: figure(c.Pinned, ""), PayloadReuse: figure(c.Reused, ""),
		LengthOff: figure(c.LengthOff, ""), TemplateOverhead: figure(c.TemplateOverhead, ""),
	}
}

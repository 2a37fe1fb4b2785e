package transcript

import "fmt"

// checkCounts looks at usage, alone and against the engine's counts and the reply.
func (r *reader) checkCounts() {
	u := r.t.Usage
	if u == nil {
		// What was cut off, broke off with an error or came in a form that was not asked for owes no usage.
		due := r.asked.usage && r.t.Stream && r.asked.stream || !r.t.Stream && r.asked.known && !r.asked.stream
		if due && r.e.Whole() && r.t.Error == nil && r.complete() && !failureReasons[r.t.reason()] {
			r.add(UsageMissing, -1, "usage", "")
		}
		if n := int64(len(r.t.Deltas)); r.asked.maxTokens > 0 && n > r.asked.maxTokens {
			r.add(MaxTokensExceeded, -1, "", fmt.Sprintf("%d pieces of output of %d tokens", n, r.asked.maxTokens))
		}
		return
	}
	if r.usages >= repeatedUsage && 2*r.usages >= r.chunks && !r.asked.everyUsage && r.asked.choices <= 1 {
		r.add(UsageInEveryChunk, -1, "usage", fmt.Sprintf("%d of %d chunks", r.usages, r.chunks))
	}
	r.checkUsage(u)
	if r.t.Timings != nil {
		r.checkAgreement(u, r.t.Timings)
	}
	if done := u.CompletionTokens; done != nil && r.asked.maxTokens > 0 && *done > r.asked.maxTokens && r.asked.choices <= 1 {
		id := CompletionExceedsMax
		// No piece of a stream is less than a token, so more pieces than allowed prove it.
		if int64(len(r.t.Deltas)) > r.asked.maxTokens {
			id = MaxTokensExceeded
		}
		r.add(id, r.usageAt, "usage.completion_tokens", fmt.Sprintf("%d of %d", *done, r.asked.maxTokens))
	}
}

// repeatedUsage is how many usage objects make a habit: one for each of two choices is none.
const repeatedUsage = 3

func (r *reader) checkUsage(u *Usage) {
	output := r.t.Content != "" || r.t.Reasoning != "" || len(r.t.ToolCalls) > 0
	prompt, done, total := u.PromptTokens, u.CompletionTokens, u.TotalTokens
	for _, n := range []*int64{prompt, done, total, u.CachedTokens, u.ReasoningTokens} {
		if n != nil && *n < 0 {
			r.add(UsageInconsistent, r.usageAt, "usage", "a count is negative")
		}
	}
	thought := u.ReasoningTokens
	partLarger := thought != nil && done != nil && *thought > *done
	apart := partLarger && *done > 0 && prompt != nil && total != nil && *total == *prompt+*done+*thought
	switch {
	case partLarger && !apart:
		r.add(UsageInconsistent, r.usageAt, "usage.completion_tokens_details.reasoning_tokens",
			fmt.Sprintf("%d reasoning tokens of %d completion tokens", *thought, *done))
	case apart:
		r.add(UsageTotalMismatch, r.usageAt, "usage.total_tokens", "completion_tokens leaves out the reasoning that total_tokens counts")
	case prompt != nil && done != nil && total != nil && *total != *prompt+*done:
		r.add(UsageTotalMismatch, r.usageAt, "usage.total_tokens", fmt.Sprintf("%d is not %d + %d", *total, *prompt, *done))
	}
	switch {
	case done != nil && *done == 0 && output && !partLarger:
		r.add(UsageZero, r.usageAt, "usage.completion_tokens", "")
	case prompt != nil && *prompt == 0:
		r.add(PromptTokensZero, r.usageAt, "usage.prompt_tokens", "")
	}
	if u.CachedTokens != nil && prompt != nil && *u.CachedTokens > *prompt {
		r.add(CachedExceedsPrompt, r.usageAt, "usage.prompt_tokens_details.cached_tokens",
			fmt.Sprintf("%d of %d", *u.CachedTokens, *prompt))
	}
}

func (r *reader) checkAgreement(u *Usage, t *Timings) {
	if r.asked.choices > 1 {
		return // usage counts all choices or one, timings one
	}
	if u.CompletionTokens != nil && t.PredictedN != nil && *u.CompletionTokens != *t.PredictedN {
		severity := Warning // whether the end token counts is a matter of taste
		if d := *u.CompletionTokens - *t.PredictedN; d > 1 || d < -1 {
			severity = Fault
		}
		r.addAs(severity, UsageTimingsMismatch, r.timingsAt, "timings.predicted_n",
			fmt.Sprintf("%d against %d completion tokens", *t.PredictedN, *u.CompletionTokens))
	}
	if u.PromptTokens == nil || t.PromptN == nil {
		return
	}
	cached := t.CacheN
	if cached == nil {
		cached = u.CachedTokens
	}
	if cached == nil {
		// How much came from a cache is not told: the engine may have read less than the prompt, not more.
		if *t.PromptN <= *u.PromptTokens {
			return
		}
		cached = new(int64)
	}
	if *t.PromptN+*cached != *u.PromptTokens {
		r.add(UsageTimingsMismatch, r.timingsAt, "timings.prompt_n",
			fmt.Sprintf("%d read and %d cached against %d prompt tokens", *t.PromptN, *cached, *u.PromptTokens))
	}
}

package transcript

import (
	"regexp"
	"strings"
)

// reason is the finish reason, "" for none.
func (t *Transcript) reason() string {
	if t.FinishReason == nil {
		return ""
	}
	return *t.FinishReason
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// checkChannels looks at what went into which channel, and in what order.
func (r *reader) checkChannels() {
	t := r.t
	r.checkOrder()
	r.checkDuplicate()
	noAnswer := blank(t.Content) && len(t.ToolCalls) == 0
	switch {
	case !noAnswer:
	case t.reason() == "length" && !blank(t.Reasoning):
		r.add(BudgetExhaustedInReasoning, -1, "", "")
	case t.reason() == "length":
		r.add(LengthBeforeAnswer, -1, "", "")
	case t.reason() == "stop" && !blank(t.Reasoning):
		if !r.callWritten(t.Reasoning) {
			r.add(AnswerInReasoning, -1, "", "")
		}
	case t.reason() == "stop" && len(r.asked.stops) == 0 && t.Usage != nil && t.Usage.CompletionTokens != nil &&
		*t.Usage.CompletionTokens >= hiddenTokens:
		r.add(EmptyAnswerWithTokens, -1, "", "")
	}
	if u := t.Usage; u != nil && u.ReasoningTokens != nil && *u.ReasoningTokens == 0 && !blank(t.Reasoning) &&
		t.ReasoningField != "" {
		r.add(ReasoningTokensZero, r.usageAt, "usage.completion_tokens_details.reasoning_tokens", "")
	}
	r.checkResidue()
	r.checkEcho()
}

// hiddenTokens is how many tokens without a trace make an empty answer a fault: an end-of-turn token and one more are
// what an engine may well keep to itself.
const hiddenTokens = 3

// checkOrder looks for thinking after the answer began. Blank answer text begins none.
func (r *reader) checkOrder() {
	answered := false
	for _, d := range r.t.Deltas {
		switch d.Kind {
		case Content:
			answered = answered || !blank(d.Text)
		case Reasoning:
			if answered && !blank(d.Text) {
				r.add(ReasoningAfterAnswer, d.Event, "", "")
				return
			}
		}
	}
}

// checkDuplicate looks for the thinking sent again as the answer. A short answer may rightly equal the thought before
// it, so the text must have some length, and in a stream must come as one lump after thinking that came in pieces.
func (r *reader) checkDuplicate() {
	t := r.t
	thought := strings.TrimSpace(t.Reasoning)
	if len(thought) < repeatBytes || strings.TrimSpace(t.Content) != thought {
		return
	}
	pieces := map[DeltaKind]int{}
	for _, d := range t.Deltas {
		pieces[d.Kind]++
	}
	if !t.Stream || pieces[Content] == 1 && pieces[Reasoning] >= 3 {
		r.add(ReasoningDuplicatedAsContent, -1, "", "")
	}
}

// controlTokens are markers of chat templates that a server must never let through: those between bars, and those of
// older templates by name.
var controlTokens = regexp.MustCompile(`<\|[A-Za-z0-9_]{2,40}\|>|<｜[^｜<>\n]{2,40}｜>|</?(?:start_of_turn|end_of_turn)>|<(?:eos|bos|pad)>|\[/?INST\]|^<s>|</s>\s*$`)

// channelResidue is what stays of a control sequence when only its tokens are taken out: the name of a role glued to
// that of a channel or to the text, as no language writes it.
var channelResidue = regexp.MustCompile(`assistant(?:final|analysis|commentary)|^assistant(?:\n|[A-Z])|^(?:analysis|commentary)[A-Z]`)

func (r *reader) checkResidue() {
	const path = "choices[0].delta.content"
	seen := map[string]bool{}
	for _, token := range controlTokens.FindAllString(r.t.Content, findingsLimit) {
		if token = strings.TrimSpace(token); !seen[token] && !r.asked.mentions(token) {
			r.add(SpecialTokenLeak, -1, path, token)
		}
		seen[token] = true
	}
	if s := channelResidue.FindString(r.t.Content); s != "" && !r.asked.mentions(s) {
		r.add(ChannelResidue, -1, path, quote([]byte(s)))
	}
}

// echoBytes is the length of a question that no answer begins with by chance.
const echoBytes = 24

// checkEcho looks for the question itself in front of the answer.
func (r *reader) checkEcho() {
	question := strings.TrimSpace(r.asked.question)
	if len(question) >= echoBytes && strings.HasPrefix(strings.TrimSpace(r.t.Content), question) {
		r.add(PromptEcho, -1, "choices[0].delta.content", "")
	}
}

package mockserver

import (
	"bytes"
	"time"
)

// keepAliveEvery is the longest silence in a stream; then a comment is sent.
const keepAliveEvery = 5 * time.Second

// The parts of a stream that are not JSON.
const (
	keepAlive = ": keep-alive\n\n"
	endMarker = "data: [DONE]\n\n"
)

// mark is a moment on the engine's own clock.
type mark uint8

const (
	noMark mark = iota
	prefillEnd
	decodeEnd
)

// next is what follows a frame. A reply that is as it should be only goes on.
type next uint8

const (
	goOn    next = iota
	breakUp      // the connection is closed
	repeat       // the same frame again, keepAliveEvery later, until the client leaves
)

// frame is one event of a reply and when it is due, counted from the slot's start. A frame may be silent: then it only
// marks a moment. Replies of many tokens wait as many frames, so a frame is small: 40 bytes.
type frame struct {
	due time.Duration
	// body is the JSON of the event; nil for none. Its timings, where it has any, are measured when it is written.
	body *completion
	// text, instead of a body, is a token's or, with part verbatim, written as it stands.
	text string
	part channel
	mark mark
	then next
}

// silent says whether nothing is written.
func (f *frame) silent() bool { return f.body == nil && f.text == "" }

// appendTo writes the frame's bytes: an event in a stream, else the bare JSON. shape is the form of the reply's tokens.
func (f *frame) appendTo(b *bytes.Buffer, shape *form, c clock) {
	switch {
	case f.body == nil && f.part == verbatim:
		b.WriteString(f.text)
		return
	case f.body == nil:
		shape.appendTo(b, f.part, f.text)
		return
	}
	if t := f.body.Timings; t != nil {
		f.body.Timings = newTimings(*t, c)
	}
	if shape == nil {
		appendJSON(b, f.body)
		return
	}
	appendEvent(b, f.body)
}

// frames is a job's whole reply on the wire, in order, due times never falling, with the form of its tokens: nil where
// it comes in one piece. Defects change the list of a stream.
func (s *Server) frames(j *job, r *reply) ([]frame, *form) {
	due, end := s.opts.Pace.deadlines(j.promptTokens, len(r.tokens), j.seed.rand(forPace))
	prefill := s.opts.Pace.Prefill(j.promptTokens)
	head := s.head(j.id)
	if !j.stream {
		head.Object = "chat.completion"
		head.Choices = []choice{{Message: r.message(), FinishReason: &r.finish}}
		head.Usage, head.Timings = r.usage(j), &timings{PromptN: j.promptTokens, PredictedN: len(r.tokens)}
		return []frame{{due: prefill, mark: prefillEnd}, {due: end, mark: decodeEnd, body: &head}}, nil
	}
	shape := newForm(head, r)
	list := streamFrames(j, r, head, prefill, due, end)
	for _, d := range j.defects {
		if d.deliver != nil {
			list = d.deliver(list, &scene{shape: shape, r: r, other: j.other, head: s.head(j.other.id)})
		}
	}
	return withKeepAlive(list), shape
}

// head is what all chunks of a reply begin with.
func (s *Server) head(id string) completion {
	return completion{
		ID: id, Object: "chat.completion.chunk", Created: s.now().Unix(), Model: s.opts.Model, SystemFingerprint: buildInfo,
	}
}

// streamFrames are the events in llama.cpp's order: role, tokens, finish, usage with timings, end marker. The role goes out
// with the head of the response, before the prompt is read, as Strata does it.
func streamFrames(j *job, r *reply, head completion, prefill time.Duration, due []time.Duration, end time.Duration) []frame {
	list := make([]frame, 0, len(r.tokens)+5)
	list = append(list, frame{body: chunk(head, roleDelta{Role: "assistant"}, nil)}, frame{due: prefill, mark: prefillEnd})
	for i, t := range r.tokens {
		if t.shown != "" {
			list = append(list, frame{due: due[i], part: t.channel, text: t.shown})
		}
	}
	measured := &timings{PromptN: j.promptTokens, PredictedN: len(r.tokens)}
	last := chunk(head, endDelta{}, &r.finish)
	list = append(list, frame{due: end, mark: decodeEnd, body: last})
	if j.includeUsage {
		c := head
		c.Choices, c.Usage, c.Timings = []choice{}, r.usage(j), measured
		list = append(list, frame{due: end, body: &c})
	} else {
		last.Timings = measured
	}
	return append(list, frame{due: end, text: endMarker})
}

// withKeepAlive puts comments into every silence that would last too long. A list without any is given back as it is: it
// may be long.
func withKeepAlive(list []frame) []frame {
	var out []frame
	var heard time.Duration
	done := 0 // how many are in out
	for i := range list {
		f := &list[i]
		for f.due-heard > keepAliveEvery {
			heard += keepAliveEvery
			out = append(append(out, list[done:i]...), frame{due: heard, text: keepAlive})
			done = i
		}
		if !f.silent() {
			heard = f.due
		}
	}
	if out == nil {
		return list
	}
	return append(out, list[done:]...)
}

// delta is what a chunk says of a token.
func (r *reply) delta(t token) any {
	first := 0
	switch t.channel {
	case reasoning:
		return reasoningDelta{t.shown}
	case content:
		return contentDelta{t.shown}
	case callHead:
		return callDelta{[]toolCall{{Index: &first, ID: r.callID, Type: "function", Function: function{Name: t.shown}}}}
	default:
		return callDelta{[]toolCall{{Index: &first, Function: function{Arguments: t.shown}}}}
	}
}

// message is the whole reply in one piece.
func (r *reply) message() *message {
	m := &message{Role: "assistant", Reasoning: r.text(reasoning)}
	if r.count(callHead) > 0 {
		m.ToolCalls = []toolCall{{ID: r.callID, Type: "function",
			Function: function{Name: r.callName, Arguments: r.text(callArguments)}}}
		return m
	}
	text := r.text(content)
	m.Content = &text
	return m
}

func (r *reply) usage(j *job) *usage {
	return &usage{
		PromptTokens: j.promptTokens, CompletionTokens: len(r.tokens), TotalTokens: j.promptTokens + len(r.tokens),
		PromptDetails: promptDetails{}, Details: completionDetails{ReasoningTokens: r.count(reasoning)},
	}
}

package transcript

import (
	"bytes"
	"fmt"
	"strings"
)

// chunk reads one event's data as a chunk of a chat completion.
func (r *reader) chunk(index int, ev Event) {
	data, l := legal(ev.Data)
	if !l.ok {
		r.unreadable(index, ev, l)
		return
	}
	r.forgiven(l, index)
	if !isObject(data) {
		r.add(MalformedEvent, index, "", "it is no object: "+quote(data))
		return
	}
	if r.errorIn(data, index) && isNull(member(data, "choices")) {
		return
	}
	r.chunks++
	choices, sent := r.head(data, index)
	switch {
	case !sent:
		r.add(ChoicesMissing, index, "choices", "")
	case !isList(choices):
		r.add(ChoicesNull, index, "choices", "")
	}
	eachElement(choices, func(n int, choice []byte) {
		if n >= maxChoices || !r.first(choice) {
			return
		}
		path := fmt.Sprintf("choices[%d]", n)
		delta := member(choice, "delta")
		if !isObject(delta) {
			r.add(DeltaNull, index, path+".delta", "")
			delta = member(choice, "message") // a whole message in a delta's place is read as one
		}
		r.logprobs(member(choice, "logprobs"), index, path+".logprobs")
		r.delta(delta, index, ev, path+".delta")
		r.finishReason(member(choice, "finish_reason"), index, path+".finish_reason")
	})
}

// completion reads a whole chat completion that came as one document.
func (r *reader) completion(doc []byte) {
	r.chunks++
	choices, sent := r.head(doc, -1)
	switch {
	case !sent:
		r.add(ChoicesMissing, -1, "choices", "")
	case !isList(choices):
		r.add(ChoicesNull, -1, "choices", "")
	}
	eachElement(choices, func(n int, choice []byte) {
		if n >= maxChoices || !r.first(choice) {
			return
		}
		path := fmt.Sprintf("choices[%d]", n)
		r.logprobs(member(choice, "logprobs"), -1, path+".logprobs")
		r.delta(member(choice, "message"), -1, Event{}, path+".message")
		r.finishReason(member(choice, "finish_reason"), -1, path+".finish_reason")
	})
}

// maxChoices bounds the choices read of one chunk. No request of ours asks for as many.
const maxChoices = 128

// first reports whether a choice is choice 0, the only one that is the answer. A choice without an index is taken as it.
func (r *reader) first(choice []byte) bool {
	n := integer(member(choice, "index"))
	return isObject(choice) && (n == nil || *n == 0)
}

// unreadable handles an event whose data is no JSON. Several data lines are looked at one by one, since a gateway may
// have put its error into an event that the engine had left open.
func (r *reader) unreadable(index int, ev Event, l legality) {
	if l.badUTF8 {
		r.add(InvalidUTF8, index, "", "")
	}
	rest := ev.Data
	if bytes.IndexByte(rest, '\n') < 0 {
		r.add(InvalidJSONChunk, index, "", quote(rest))
		return
	}
	r.add(MalformedEvent, index, "", "its data lines do not join to one JSON value")
	for range gluedLines {
		i := bytes.LastIndexByte(rest, '\n')
		if v, l := legal(rest[i+1:]); l.ok && isObject(v) && r.errorIn(v, index) || i < 0 {
			return
		}
		rest = rest[:i]
	}
}

// gluedLines is how many data lines, from the last, are looked at for an error.
const gluedLines = 8

// forgiven reports what was wrong with a JSON text that could be read all the same.
func (r *reader) forgiven(l legality, index int) {
	if l.badUTF8 {
		r.add(InvalidUTF8, index, "", "")
	}
	if l.nonFinite {
		r.add(NonFiniteNumber, index, "", "")
	}
	if l.duplicates {
		r.addAs(Warning, InvalidJSONChunk, index, "", "an object has two members of one name; the last one counts")
	}
}

// head reads the members beside the choices, and returns the choices.
func (r *reader) head(obj []byte, index int) (choices []byte, sent bool) {
	unnamed := false
	eachMember(obj, func(name, v []byte) {
		switch string(name) {
		case "choices":
			choices, sent = v, true
		case "id":
			r.id(v)
		case "model":
			if s, _ := text(v); s != "" {
				r.t.Model = s
			} else {
				unnamed = true
			}
		case "system_fingerprint":
			if s, _ := text(v); s != "" {
				r.t.SystemFingerprint = s
			}
		case "usage":
			r.usage(v, index)
		case "timings":
			r.timings(v, index)
		}
	})
	if unnamed && filled(choices) && r.asked.model != "" { // a first chunk without choices may leave the name empty
		r.add(ModelMismatch, index, "model", "the name is empty")
	}
	return choices, sent
}

// distinctIDsKept bounds the ids that a transcript keeps.
const distinctIDsKept = 64

func (r *reader) id(v []byte) {
	s, _ := text(v)
	if s == "" || r.ids[s] {
		return
	}
	if r.ids == nil {
		r.ids = map[string]bool{}
		r.t.ID = s
	}
	r.ids[s] = true
	if len(r.t.IDs) < distinctIDsKept {
		r.t.IDs = append(r.t.IDs, s)
	}
	r.t.DistinctIDs = len(r.ids)
}

// delta reads a delta, or the message of a whole completion.
func (r *reader) delta(v []byte, index int, ev Event, path string) {
	var content, thinking, reasoning, calls []byte
	eachMember(v, func(name, v []byte) {
		switch string(name) {
		case "role":
			r.role(v, index, path+".role")
		case "content":
			content = v
		case "reasoning_content":
			thinking = v
		case "reasoning":
			reasoning = v
		case "tool_calls":
			calls = v
		}
	})
	if !filled(thinking) {
		thinking = reasoning
		if filled(thinking) && r.t.ReasoningField == "" {
			r.t.ReasoningField = "reasoning"
		}
	} else if r.t.ReasoningField == "" {
		r.t.ReasoningField = "reasoning_content"
	}
	r.text(Reasoning, &r.reason, thinking, index, ev, path+".reasoning_content")
	r.text(Content, &r.content, content, index, ev, path+".content")
	r.calls(calls, index, ev, path+".tool_calls")
}

func (r *reader) role(v []byte, index int, path string) {
	s, _ := text(v)
	if s == "" {
		return
	}
	// In front of the answer a second role does no harm: engines send one with each report of progress, or thought.
	if r.roleSent && r.answering {
		r.add(RoleRepeated, index, path, "")
	}
	r.roleSent = true
	r.t.Role = s
}

// text reads a text field of a channel.
func (r *reader) text(kind DeltaKind, j *joiner, v []byte, index int, ev Event, path string) {
	var s string
	var lone bool
	recovered := false
	switch {
	case isNull(v):
		return
	case isString(v):
		s, lone = unquote(v)
	default:
		recovered = true
		r.add(ContentNotString, index, path, "")
		s, lone = textParts(v)
	}
	r.characters(s, lone, index, path)
	r.output(Delta{Kind: kind, At: ev.At, Event: index, Text: j.add(s, lone), Recovered: recovered})
}

// characters reports what is wrong with the characters of a string as it was sent. U+FFFD is the server's only where
// reading put none there itself and the prompt has none that the model could be quoting.
func (r *reader) characters(s string, lone bool, index int, path string) {
	if lone {
		r.add(LoneSurrogate, index, path, "")
	}
	if strings.Contains(s, "\uFFFD") && !r.has(InvalidUTF8) &&
		!r.asked.mentions("\uFFFD") && !r.asked.mentions(`\ufffd`) && !r.asked.mentions(`\uFFFD`) {
		r.add(ReplacementCharacters, index, path, "")
	}
}

// textParts is the text of a list of typed parts.
func textParts(v []byte) (string, bool) {
	var b strings.Builder
	anyLone := false
	eachElement(v, func(_ int, part []byte) {
		if isObject(part) {
			part = member(part, "text")
		}
		if isString(part) {
			s, lone := unquote(part)
			anyLone = anyLone || lone
			b.WriteString(s)
		}
	})
	return b.String(), anyLone
}

// output appends a delta that has text.
func (r *reader) output(d Delta) {
	if d.Text != "" {
		r.answering = r.answering || d.Kind == Content
		r.t.Deltas = append(r.t.Deltas, d)
	}
}

// finishReasons are the words of the interface.
var finishReasons = map[string]bool{"stop": true, "length": true, "tool_calls": true, "content_filter": true,
	"function_call": true}

// failureReasons are words by which servers say that generation broke off.
var failureReasons = map[string]bool{"error": true, "abort": true, "aborted": true, "cancelled": true, "canceled": true}

func (r *reader) finishReason(v []byte, index int, path string) {
	if isNull(v) {
		return
	}
	s, ok := text(v)
	switch {
	case !ok:
		r.add(FinishReasonWrong, index, path, "it is no string")
		return
	case s == "":
		r.add(FinishReasonEmptyString, index, path, "")
		return
	case failureReasons[s]:
		r.add(FinishReasonError, index, path, quote([]byte(s)))
	case !finishReasons[s]:
		r.add(FinishReasonWrong, index, path, "the interface knows no "+quote([]byte(s)))
	}
	if r.t.FinishReasonCount++; r.t.FinishReasonCount == 1 {
		r.finishAt = index
	}
	r.t.FinishReason = &s
}

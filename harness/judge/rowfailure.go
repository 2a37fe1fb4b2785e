package judge

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// failing are the classes of failure in the order in which they are looked for. A request that we did not send, or did not
// hear out, says nothing of the server, whatever else is wrong with it.
var failing = []struct {
	class string
	find  func(x *loaded) breach
}{
	{fixtures.FailRunner, (*loaded).ours},
	{fixtures.FailRequest, (*loaded).refused},
	{fixtures.FailRequest, (*loaded).brokenOff},
	{fixtures.FailRequest, (*loaded).unreadable},
	{fixtures.FailStream, (*loaded).badStream},
	{fixtures.FailCanary, (*loaded).strayed},
	{fixtures.FailControlled, (*loaded).uncontrolled},
}

// breach is one thing that is wrong: a token for it and a sentence. The zero value is none. The sentence holds nothing that
// the model said.
type breach struct {
	kind, sentence string
	cut            bool // something was left out of the sentence
}

// failure is the first thing that is wrong with the exchange, nil for a valid reply.
func (x *loaded) failure() *fixtures.RowFailure {
	for _, f := range failing {
		if b := f.find(x); b.kind != "" {
			message, cut := bounded(b.sentence)
			return &fixtures.RowFailure{Class: f.class, Type: b.kind, Message: message, Truncated: cut || b.cut}
		}
	}
	return nil
}

// ends says in words how an exchange ended. The cause that the client recorded is added but where it can repeat what the
// server sent.
var ends = map[fixtures.EndKind]struct {
	sentence string
	cause    bool
}{
	fixtures.EndTruncate:       {"the connection was closed before the end of the reply", true},
	fixtures.EndReset:          {"the connection was reset", true},
	fixtures.EndRefused:        {"no connection could be had", true},
	fixtures.EndMalformed:      {"the response is not HTTP", false},
	fixtures.EndConnectTimeout: {"no connection came in time", true},
	fixtures.EndFirstByte:      {"no byte of the body came in time", true},
	fixtures.EndFirstToken:     {"no output came in time", true},
	fixtures.EndIdle:           {"the reply stopped coming", true},
	fixtures.EndTotal:          {"the reply did not end in time", true},
	fixtures.EndCanceled:       {"the run was interrupted", false},
	fixtures.EndTooLarge:       {"the body is larger than the client accepts", true},
	fixtures.EndUnsent:         {"the request could not be sent", true},
}

func (x *loaded) ours() breach {
	if kind := x.e.End.Kind; kind != fixtures.EndUnsent && kind != fixtures.EndCanceled {
		return breach{}
	}
	return x.ended()
}

func (x *loaded) brokenOff() breach {
	switch {
	case !x.e.Whole():
		b := x.ended()
		if x.t.DoneSeen {
			b.sentence += "; [DONE] had come"
		}
		return b.with(x.serverError())
	case x.e.Response == nil:
		return breach{kind: "no_response", sentence: "no response came"}
	}
	return breach{}
}

// ended says how an exchange ended that is not whole. Of the cause its last part is enough, and names no address.
func (x *loaded) ended() breach {
	end, known := ends[x.e.End.Kind]
	if !known {
		return breach{kind: "unknown_end", sentence: "the record does not say how the exchange ended"}
	}
	b := breach{kind: string(x.e.End.Kind), sentence: end.sentence}
	cause := x.e.End.Error
	if cause = cause[strings.LastIndex(cause, ": ")+1:]; end.cause && strings.TrimSpace(cause) != "" {
		b.sentence += ": " + strings.TrimSpace(cause)
	}
	return b
}

func (x *loaded) refused() breach {
	if x.e.Response == nil || x.e.Response.Status/100 == 2 {
		return breach{}
	}
	status := x.e.Response.Status
	b := breach{kind: fmt.Sprintf("http_%d", status), sentence: fmt.Sprintf("the server answered with status %d", status)}
	if x.t.Error.Message != "" || x.t.Error.Type != "" {
		b = b.with(x.serverError())
	}
	return b
}

// illegible are the findings that make a body unreadable where they are faults, with their tokens.
var illegible = []struct{ finding, kind string }{
	{transcript.InvalidJSONChunk, "invalid_json_chunk"},
	{transcript.MalformedEvent, "malformed_event"},
	{transcript.NonFiniteNumber, "non_finite_number"},
	{transcript.InvalidUTF8, "invalid_utf8"},
}

func (x *loaded) unreadable() breach {
	if !x.t.Stream {
		return x.noStream()
	}
	for _, i := range illegible {
		for _, f := range x.t.Findings {
			if f.ID == i.finding && f.Severity == transcript.Fault {
				return described(i.kind, i.finding).with(x.serverError())
			}
		}
	}
	// Behind [DONE] nothing of the reply is missing: what ended too early is its content coding.
	if x.t.DoneSeen && has(x.t.Findings, transcript.StreamTruncated) {
		return breach{kind: "undecodable_body", sentence: "the body's content coding cannot be undone"}
	}
	return breach{}
}

// noStream says why a body of a request for a stream could not be read as one.
func (x *loaded) noStream() breach {
	switch {
	case has(x.t.Findings, transcript.EmptyBody):
		return described("empty_body", transcript.EmptyBody)
	case has(x.t.Findings, transcript.StreamTruncated):
		return breach{kind: "undecodable_body", sentence: "the body's content coding cannot be undone"}
	}
	return described("not_event_stream", transcript.NotEventStream).with(x.serverError())
}

// badStream looks for what is missing from a whole stream, and for what must not be in it. The first of several names the
// failure: what broke a reply off comes before what is missing for it.
func (x *loaded) badStream() breach {
	t := x.t
	all := x.serverError()
	for _, b := range []struct {
		holds bool
		breach
	}{
		{t.DistinctIDs > 1 && interleaved(t), breach{kind: "foreign_chunks",
			sentence: "chunks with another id stand between those of the reply"}},
		{!t.DoneSeen, breach{kind: "missing_done", sentence: "the stream ended without [DONE]"}},
		{t.FinishReason == nil, described("missing_finish_reason", transcript.MissingFinishReason)},
		{has(t.Findings, transcript.FinishReasonError), described("finish_reason_error", transcript.FinishReasonError)},
		{reason(t) == "content_filter", breach{kind: "content_filter", sentence: "a content filter ended the reply"}},
		{strings.TrimSpace(t.ContentSent) == "", breach{kind: "no_visible_content", sentence: "no visible content came"}},
	} {
		if b.holds {
			all = all.with(b.breach)
		}
	}
	if all.kind == "no_visible_content" && reason(t) == "length" {
		all.sentence += ": the token limit was reached before"
	}
	return all
}

// interleaved reports whether an id comes back after another one. A server that gives each chunk a new id, or the last one
// another than the rest, breaks a rule and mixes nothing.
func interleaved(t *transcript.Transcript) bool {
	seen, last := map[string]bool{}, ""
	for _, ev := range t.Events[:len(t.Events)-t.EventsAfterDone] {
		id := gjson.GetBytes(ev.Data, "id")
		if id.Type != gjson.String || id.Str == "" || id.Str == last {
			continue
		}
		if seen[id.Str] {
			return true
		}
		seen[id.Str], last = true, id.Str
	}
	return false
}

func (x *loaded) strayed() breach {
	c := x.row.Canary
	switch {
	case c == nil || c.Passed:
		return breach{}
	case c.ForeignMarkerCount > 0:
		return breach{kind: "canary_foreign",
			sentence: fmt.Sprintf("the reply holds markers of other requests, %d in all", c.ForeignMarkerCount)}
	case !c.MarkerAtStart:
		b := breach{kind: "canary_missing",
			sentence: fmt.Sprintf("the reply does not begin with its marker, which it holds %d times", c.ObservedMarkerCount)}
		for _, id := range []string{transcript.ThinkTagsInContent, transcript.ThinkCloseWithoutOpen} {
			if has(x.t.Findings, id) {
				b.sentence += "; thinking stands in front of the answer"
			}
		}
		return b
	}
	return breach{kind: "canary_capture_incomplete",
		sentence: fmt.Sprintf("the reply has more than %d characters, the most that a canary is judged by", captureLimit)}
}

func (x *loaded) uncontrolled() breach {
	c := x.row.ControlledOutput
	switch {
	case c == nil || c.Exact || !x.r.Strict:
		return breach{}
	case c.ObservedWords == nil:
		return breach{kind: "word_count_unknown",
			sentence: fmt.Sprintf("the reply has more than %d characters, so that its words are not counted", captureLimit)}
	case *c.ObservedWords == c.RequestedWords:
		return breach{kind: "other_words",
			sentence: fmt.Sprintf("the reply has %d words as was asked for, and not all are the word itself", c.RequestedWords)}
	}
	b := breach{kind: "word_count",
		sentence: fmt.Sprintf("%d words were asked for, and the reply has %d", c.RequestedWords, *c.ObservedWords)}
	if reason(x.t) == "length" {
		b.sentence += "; the token limit was reached"
	}
	return b
}

// described is a breach in the words of a finding's kind. Those of a single finding can quote the reply.
func described(kind, finding string) breach {
	_, sentence := transcript.Describe(finding)
	return breach{kind: kind, sentence: sentence}
}

// with adds what another breach says. The first one's kind stays.
func (b breach) with(other breach) breach {
	switch {
	case other.kind == "":
		return b
	case b.kind == "":
		return other
	}
	return breach{kind: b.kind, sentence: b.sentence + "; " + other.sentence, cut: b.cut || other.cut}
}

// saidLimit bounds how much of a server's error is quoted, in bytes. It is less than what a transcript keeps, so that what is
// not cut here is whole.
const saidLimit = 1500

// serverError says in the server's words what error it sent; none where it sent no error.
func (x *loaded) serverError() breach {
	a := x.t.Error
	if a == nil {
		return breach{}
	}
	said, cut := x.withoutReply(a)
	said = strings.Join(strings.Fields(said), " ")
	b := breach{kind: "in_band_error", sentence: "the server sent an error", cut: cut}
	if said != "" {
		b.sentence += ": " + said
	}
	if a.Type != "" {
		b.sentence += " (" + firstBytes(a.Type, rowReasonLength) + ")"
	}
	return b
}

// sharedRun is how many bytes in a row an error's message does not have in common with a reply by chance. shareWindow is how
// much of each end of the reply is compared: servers quote where they began or where they could not go on.
const (
	sharedRun   = 16
	shareWindow = 4 << 10
)

// withoutReply is an error's message up to where it quotes the reply or a marker; cut says that something was left out. A
// message inside a reply that is JSON itself is left out, for it can be a chunk.
func (x *loaded) withoutReply(a *transcript.APIError) (said string, cut bool) {
	said = firstBytes(a.Message, saidLimit)
	if x.e.Response.Status/100 == 2 && (strings.HasPrefix(said, "{") || strings.HasPrefix(said, "[{")) {
		return "", true
	}
	end := len(said)
	if i := strings.Index(said, markerLead); i >= 0 {
		end = i
	}
	for _, text := range []string{x.t.ContentSent, x.t.Reasoning} {
		front, back := text[:min(len(text), shareWindow)], text[max(0, len(text)-shareWindow):]
		// Windows half a run apart find every run of one and a half.
		for i := 0; i+sharedRun <= end; i += sharedRun / 2 {
			if run := said[i : i+sharedRun]; strings.Contains(front, run) || strings.Contains(back, run) {
				for i > 0 && (strings.Contains(front, said[i-1:i+sharedRun]) || strings.Contains(back, said[i-1:i+sharedRun])) {
					i--
				}
				end = i
			}
		}
	}
	return firstBytes(said, end), end < len(a.Message)
}

// messageLimit bounds a failure's message, in characters.
const messageLimit = 2048

// bounded is a message on one line, without control characters, and not too long; cut says that it was.
func bounded(s string) (message string, cut bool) {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if !longerThan(s, messageLimit) {
		return s, false
	}
	n := 0
	for i := range s {
		if n++; n > messageLimit {
			return s[:i], true
		}
	}
	return s, false
}

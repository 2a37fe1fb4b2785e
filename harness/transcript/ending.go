package transcript

import (
	"mime"
	"strings"

	"plumbline/fixtures"
)

// complete reports whether all that matters of a stream had come.
func (r *reader) complete() bool { return r.t.FinishReason != nil || r.t.DoneSeen }

// transport reports how the exchange ended, where that was not the body's proper end. An end that says nothing about
// the server (refused, canceled, unsent) is no finding.
func (r *reader) transport() {
	end := r.e.End
	at := len(r.t.Events) - 1
	switch end.Kind {
	case fixtures.EndTruncate, fixtures.EndReset:
		switch {
		case r.t.Stream && r.complete():
			r.add(UnexpectedEOF, at, "", end.Error)
		case end.Kind == fixtures.EndReset:
			r.add(ConnectionReset, at, "", end.Error)
		default:
			r.add(StreamTruncated, at, "", end.Error)
		}
	case fixtures.EndTooLarge:
		r.add(StreamTruncated, at, "", "the client's limit on the body's size was reached")
	case fixtures.EndFirstByte:
		r.add(TimeoutFirstByte, at, "", "")
	case fixtures.EndFirstToken:
		r.add(TimeoutFirstToken, at, "", "")
	case fixtures.EndIdle, fixtures.EndTotal:
		if r.t.Stream && r.complete() {
			r.add(StreamNotTerminated, at, "", "")
		} else {
			r.add(Stalled, at, "", "")
		}
	}
}

// statusFindings gives the finding of a status; others are told by their hundreds.
var statusFindings = map[int]string{401: AuthRejected, 403: AuthRejected, 429: RateLimited, 503: Overloaded}

// status reads a refusal.
func (r *reader) status() {
	code := r.e.Response.Status
	if r.ok() {
		if r.t.Error != nil && !r.t.Stream && strings.HasPrefix(r.t.Error.Code, "4") {
			r.add(Status200ForClientError, -1, "", "")
		}
		return
	}
	if r.t.Error == nil {
		r.t.Error = r.readError(r.bodyText, -1)
	}
	said := quote([]byte(r.t.Error.Message))
	if id, ok := statusFindings[code]; ok {
		r.add(id, -1, "", said)
		return
	}
	if code/100 == 5 {
		r.add(HTTP5xx, -1, "", said)
		return
	}
	r.add(HTTP4xx, -1, "", said)
	message := strings.ToLower(r.t.Error.Message)
	if r.t.Error.Code == "model_not_found" || code == 404 && strings.Contains(message, "model") {
		r.add(ModelNotFound, -1, "", said)
	}
}

// framing reports how the body was wrapped.
func (r *reader) framing(b *body) {
	if b.err != nil && (r.e.Whole() || b.err == errTooLarge) {
		r.add(StreamTruncated, len(r.t.Events)-1, "", b.err.Error())
	}
	if !r.ok() || !r.asked.chat {
		return
	}
	if r.shape == shapeEmpty {
		if r.e.Whole() && b.err == nil {
			r.add(EmptyBody, -1, "", "")
		}
		return
	}
	r.kind()
	if !r.t.Stream {
		return
	}
	last := len(r.t.Events) - 1
	if r.t.EventsAfterDone > 0 {
		r.add(DataAfterDone, last-r.t.EventsAfterDone+1, "", "")
	}
	if !r.e.Whole() || b.err != nil || r.t.Error != nil {
		return
	}
	switch {
	case r.tailCut:
		r.add(StreamTruncated, last, "", "the stream ended inside an event")
	case !r.complete():
		r.add(StreamTruncated, last, "", "neither a finish_reason nor [DONE] came")
	case !r.t.DoneSeen:
		r.add(MissingDone, last, "", "")
	}
}

// kind compares the kind of body with the one that was asked for.
func (r *reader) kind() {
	kind, _, _ := mime.ParseMediaType(header(r.e.Response, "Content-Type"))
	a := r.asked
	switch {
	case r.t.Stream && a.known && !a.stream:
		r.add(StreamFlagIgnored, -1, "", "")
	case r.t.Stream && kind != "text/event-stream":
		r.addAs(Warning, NotEventStream, -1, "", "its content type is "+quote([]byte(kind))+", though it could be read as one")
	case r.shape == shapeJSON && a.stream && r.chunks > 0:
		r.add(StreamNotHonoured, -1, "", "")
	case r.shape == shapeOther && a.stream && !r.has(NotJSON) && r.e.Whole():
		r.add(NotEventStream, -1, "", quote(r.bodyText))
	case r.shape == shapeOther && a.known && !a.stream && !r.has(NonStreamBodyNotJSON) && r.e.Whole():
		r.add(NonStreamBodyNotJSON, -1, "", quote(r.bodyText))
	}
}

package transcript

import "bytes"

// serverError keeps an error object or text of the server. Event is the event that held it, -1 for none. The first
// error counts; what follows is mostly the same one again.
func (r *reader) serverError(v []byte, event int) {
	if r.t.Error == nil {
		r.t.Error = r.readError(v, event)
	}
	if r.ok() {
		r.add(InBandError, event, "", quote([]byte(r.t.Error.Message)))
	}
}

// errorIn looks for an error in a chunk or document and reports whether there is one. A null or empty member is none.
func (r *reader) errorIn(obj []byte, event int) bool {
	if filled(member(obj, "error")) || string(member(obj, "object")) == `"error"` {
		r.serverError(obj, event)
		return true
	}
	return false
}

// readError reads the forms in which servers put an error: {"error": {…}}, {"error": "…"}, {"detail": …}, the object
// itself, or plain text.
func (r *reader) readError(v []byte, event int) *APIError {
	a := &APIError{Status: r.e.Response.Status, Event: event}
	v, l := legal(v)
	switch {
	case !l.ok:
		a.Message = excerpt(string(v))
		return a
	case isObject(v) && filled(member(v, "error")):
		v = member(v, "error")
	case isObject(v) && filled(member(v, "detail")):
		v = member(v, "detail")
	}
	if !isObject(v) {
		a.Message = excerpt(asText(v))
		return a
	}
	eachMember(v, func(name, v []byte) {
		if isNull(v) {
			return
		}
		switch string(name) {
		case "type":
			a.Type = excerpt(asText(v))
		case "code":
			a.Code = excerpt(asText(v))
			a.CodeNumber = number(v) != nil
		case "message":
			a.Message = excerpt(asText(v))
		}
	})
	return a
}

// asText is a string's text, or another value's JSON.
func asText(v []byte) string {
	if s, ok := text(v); ok {
		return s
	}
	return compact(v)
}

// errorLimit bounds what is kept of an error's text, in bytes.
const errorLimit = 2000

func excerpt(s string) string {
	b := bytes.TrimSpace([]byte(s))
	return string(bytes.ToValidUTF8(b[:min(len(b), errorLimit)], nil))
}

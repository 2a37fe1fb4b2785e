package transcript

import (
	"bytes"
	"mime"
	"strings"
	"time"

	"plumbline/fixtures"
)

// Read reads what a server said in one exchange. It accepts anything: what cannot be read is a finding. Requests to
// other paths than chat completions are read as events or JSON for their errors only.
func Read(e *fixtures.Exchange) *Transcript { return read(e, false) }

// ReadUntimed is Read for an exchange whose offsets mean nothing, such as the replay of a body that was kept without its
// times: nothing is concluded from them.
func ReadUntimed(e *fixtures.Exchange) *Transcript { return read(e, true) }

func read(e *fixtures.Exchange, untimed bool) *Transcript {
	r := &reader{e: e, t: &Transcript{Untimed: untimed}, asked: readRequest(e.Request)}
	if e.Response == nil {
		r.transport()
		return r.finish()
	}
	b := newBody(e)
	switch r.shape = r.shapeOf(b); r.shape {
	case shapeStream:
		r.t.Stream = true
		r.stream(b)
	case shapeJSON, shapeOther:
		r.document(b)
	case shapeEmpty:
	}
	r.transport()
	r.status()
	r.framing(b)
	if r.asked.models {
		r.models()
	}
	if r.reply() {
		r.repair()
		r.checkShape()
		r.checkChannels()
		r.checkCalls()
		r.checkStops()
		r.checkStructure()
		r.checkCounts()
		r.checkClocks()
	}
	r.template()
	return r.finish()
}

// reader holds what reading one exchange needs besides its result.
type reader struct {
	e     *fixtures.Exchange
	t     *Transcript
	asked asked
	findings
	shape shape

	assembly assembler
	content  joiner
	reason   joiner
	ids      map[string]bool

	chunks    int // chunks read as such, or 1 for a whole completion
	finishAt  int // event of the first finish reason
	roleSent  bool
	answering bool // answer text has come
	usages    int  // chunks with usage
	usageAt   int  // event of the last usage, -1 for a document
	timingsAt int
	tailCut   bool   // the stream ended properly, but inside an event
	rest      []byte // what is left of the piece under way, where the exchange keeps it
	bodyText  []byte // of a document
}

// shape is what a body is read as.
type shape uint8

const (
	shapeEmpty  shape = iota
	shapeStream       // an event stream
	shapeJSON
	shapeOther // HTML, plain text, anything
)

// lookAhead is how many decoded bytes, leading white space apart, decide what a body is.
const lookAhead = 16

// streamFields begin the lines that only an event stream begins with.
var streamFields = []string{"data:", "event:", "error:", "retry:", "id:", ":"}

// shapeOf decides by the body's first bytes, and by the content type where they do not tell: a server that names the
// wrong type is still read.
func (r *reader) shapeOf(b *body) shape {
	var head []byte
	size := 0
	b.each(func(_ time.Duration, p []byte) bool {
		size += len(p)
		if len(head) == 0 {
			p = bytes.TrimLeft(p, " \t\r\n")
		}
		head = append(head, p[:min(len(p), lookAhead-len(head))]...)
		return len(head) < lookAhead
	})
	head = bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n")
	kind, _, _ := mime.ParseMediaType(header(r.e.Response, "Content-Type"))
	switch {
	case len(head) == 0 && (size == 0 || kind != "text/event-stream"):
		return shapeEmpty
	case len(head) == 0:
		return shapeStream
	case head[0] == '{' || head[0] == '[':
		return shapeJSON
	}
	for _, f := range streamFields {
		if strings.HasPrefix(string(head), f) {
			return shapeStream
		}
	}
	switch {
	case head[0] == '<':
		return shapeOther
	case kind == "text/event-stream":
		return shapeStream
	case strings.HasSuffix(kind, "json"):
		return shapeJSON
	}
	return shapeOther
}

func (r *reader) ok() bool { return r.e.Response.Status/100 == 2 }

// reply reports whether there is a reply of the interface whose shape can be checked.
func (r *reader) reply() bool {
	return r.asked.chat && r.ok() && r.chunks > 0
}

// stream reads an event stream.
func (r *reader) stream(b *body) {
	s := NewScanner(r.event)
	s.Other = func(at time.Duration, name string, value []byte) {
		if name == "error" && !r.t.DoneSeen {
			r.add(NonstandardErrorField, len(r.t.Events), "", "")
			r.serverError(value, len(r.t.Events))
		}
	}
	r.room(b)
	b.each(r.whole(b, func(at time.Duration, p []byte) bool {
		if b.coding == "" {
			r.rest = p
		}
		s.Feed(at, p)
		return true
	}))
	r.rest = nil
	defer r.trim()
	tail, open := s.Close()
	if !open || !r.e.Whole() || b.err != nil {
		return
	}
	// The standard throws away an event without a blank line. A sentinel or a chunk that is complete has been said all
	// the same, and throwing it away would blame the server for a missing newline.
	data := bytes.TrimSpace(tail.Data)
	if _, l := legal(data); isDone(data) || l.ok && len(data) > 0 {
		r.event(tail)
		return
	}
	r.tailCut = !r.t.DoneSeen
}

// room makes room for a stream's events and its output at once: grown bit by bit, those of a long stream would stand in the
// memory twice. What the count misses, in a body that is coded or cut up oddly, is grown as ever.
func (r *reader) room(b *body) {
	const smallest = 100 // bytes of a chunk with its envelope; a body made of less holds no chunks
	events, size := 0, 0
	for _, p := range b.pieces {
		events += bytes.Count(p.Bytes, dataField)
		size += len(p.Bytes)
	}
	if events = min(events, size/smallest); b.coding == "" && events > 0 {
		r.t.Events, r.t.Deltas = make([]Event, 0, events), make([]Delta, 0, events)
	}
}

// trim drops room that nothing was put into, so that how a body was cut up shows nowhere.
func (r *reader) trim() {
	if len(r.t.Events) == 0 {
		r.t.Events = nil
	}
	if len(r.t.Deltas) == 0 {
		r.t.Deltas = nil
	}
}

// dataField begins a line that holds data.
var dataField = []byte("data:")

// tooLargeRead is how many bytes are read of a body that the client stopped for its size. The request has failed; what
// it began with tells the times of the first output, and the rest would only fill the memory once more.
const tooLargeRead = 1 << 20

// whole wraps f so that of a body that was cut off nothing after the last line end is given to it: it could complete
// no event, and a server that sends one endless line would be copied for nothing.
func (r *reader) whole(b *body, f func(time.Duration, []byte) bool) func(time.Duration, []byte) bool {
	if r.e.Whole() || b.coding != "" && r.e.End.Kind != fixtures.EndTooLarge {
		return f
	}
	size, lineEnds := 0, 0
	for _, p := range b.pieces {
		if j := max(bytes.LastIndexByte(p.Bytes, '\n'), bytes.LastIndexByte(p.Bytes, '\r')); j >= 0 {
			lineEnds = size + j + 1
		}
		size += len(p.Bytes)
	}
	left := lineEnds
	switch {
	case b.coding != "":
		left = tooLargeRead
	case r.e.End.Kind == fixtures.EndTooLarge:
		left = min(left, tooLargeRead)
	}
	return func(at time.Duration, p []byte) bool {
		p = p[:min(len(p), left)]
		left -= len(p)
		return len(p) > 0 && f(at, p)
	}
}

func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// kept is an event's data, to stay: where it stands in the piece as it is, those very bytes, so that a long stream is not in
// the memory twice.
func (r *reader) kept(data []byte) []byte {
	const around = 64 // line ends, field names and short comments before it
	if i := bytes.Index(r.rest[:min(len(r.rest), len(data)+around)], data); i >= 0 {
		end := i + len(data)
		data, r.rest = r.rest[i:end:end], r.rest[end:]
		return data
	}
	return bytes.Clone(data)
}

// event takes the next event of a stream.
func (r *reader) event(ev Event) {
	index := len(r.t.Events)
	ev.Data = r.kept(ev.Data)
	r.t.Events = append(r.t.Events, ev)
	switch {
	case r.t.DoneSeen:
		r.t.EventsAfterDone++
	case isDone(ev.Data):
		r.t.DoneSeen, r.t.DoneAt = true, ev.At
	case len(bytes.TrimSpace(ev.Data)) == 0:
	case ev.Name == "error":
		r.serverError(ev.Data, index)
	case r.asked.chat, r.asked.untold && names(ev.Data):
		r.asked.chat = true
		r.chunk(index, ev)
	}
}

// document reads a body that is no event stream.
func (r *reader) document(b *body) {
	limit := MaxDecoded
	if r.e.End.Kind == fixtures.EndTooLarge {
		limit = tooLargeRead
	}
	b.each(func(_ time.Duration, p []byte) bool {
		r.bodyText = append(r.bodyText, p[:min(len(p), limit-len(r.bodyText))]...)
		return len(r.bodyText) < limit
	})
	if r.shape == shapeOther {
		return
	}
	doc, l := legal(r.bodyText)
	if !l.ok {
		r.shape = shapeOther
		if r.ok() && r.e.Whole() {
			r.notJSON()
		}
		return
	}
	if r.ok() {
		r.forgiven(l, -1)
	}
	r.asked.chat = r.asked.chat || r.asked.untold && names(doc)
	if !r.ok() || r.errorIn(doc, -1) || !r.asked.chat || !isObject(doc) {
		return
	}
	r.completion(doc)
}

func (r *reader) notJSON() {
	switch {
	case r.asked.chat && r.asked.known && !r.asked.stream:
		r.add(NonStreamBodyNotJSON, -1, "", quote(r.bodyText))
	default:
		r.add(NotJSON, -1, "", quote(r.bodyText))
	}
}

// finish closes the transcript.
func (r *reader) finish() *Transcript {
	r.t.Findings = r.all()
	return r.t
}

// quoteLimit bounds what a sentence cites of a body, in bytes.
const quoteLimit = 120

// quote is the beginning of a text of the server, on one line.
func quote(b []byte) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(b[:min(len(b), 4*quoteLimit)]), "\uFFFD")), " ")
	if len(s) > quoteLimit {
		s = strings.ToValidUTF8(s[:quoteLimit], "") + "…"
	}
	if s == "" {
		return ""
	}
	return `"` + s + `"`
}

package transcript

import (
	"bytes"
	"sync/atomic"
	"time"
)

// Signal is what one piece of a body meant for the progress of a reply.
type Signal struct {
	// Data says that at least one event with data ended in this piece. Comments are none. In a body that is no plain
	// event stream every byte counts, since nothing finer can be told.
	Data bool
	// Token says that a first piece of output (answer text, thinking or a tool call) has arrived by now.
	Token bool
	// Done says that the [DONE] event has ended by now.
	Done bool
}

// Watcher follows a reply while it arrives, for time-outs and a live display. It parses JSON only until the first
// piece of output; from then on it counts event ends and looks for [DONE]. One goroutine feeds it; Events may be called from any.
type Watcher struct {
	scan   *Scanner
	mode   watchMode
	data   bool
	token  bool
	done   bool
	events atomic.Int64
}

type watchMode uint8

const (
	undecided watchMode = iota // only white space so far
	stream                     // an event stream
	opaque                     // JSON, HTML, or a content coding: pieces are all there is to see
)

// NewWatcher returns a watcher for one response body.
func NewWatcher() *Watcher {
	w := &Watcher{}
	w.scan = NewScanner(w.event)
	w.scan.limit = maxWatched
	return w
}

// Events is the number of events with data that have ended so far, [DONE] among them.
func (w *Watcher) Events() int64 { return w.events.Load() }

// Piece reads the next piece of the body as it came from the HTTP layer, content coding untouched. It keeps no
// reference to b.
func (w *Watcher) Piece(at time.Duration, b []byte) Signal {
	w.data = false
	if w.mode == undecided {
		w.mode = firstLook(b)
	}
	if w.mode == opaque {
		w.data = len(b) > 0
		w.token = w.token || w.data
		return Signal{Data: w.data, Token: w.token}
	}
	w.scan.Feed(at, b)
	return Signal{Data: w.data, Token: w.token, Done: w.done}
}

// maxWatched bounds what is kept of an event while it arrives: the bytes themselves are the client's to keep. An event
// that is longer holds output.
const maxWatched = 1 << 20

// Once there was output only [DONE] is looked for. What is longer than longestMarker is not it; what is cut at
// watchedForMarker keeps more than that, whatever its field's name took.
const (
	longestMarker    = 32
	watchedForMarker = 64
)

// firstLook tells an event stream from other bodies by the first byte that is not white space: an event stream begins
// with a field name, a colon or a byte-order mark; JSON and HTML with a bracket; a content coding with a byte that is
// no text.
func firstLook(b []byte) watchMode {
	b = bytes.TrimLeft(b, " \t\r\n")
	switch {
	case len(b) == 0:
		return undecided
	case b[0] == '{', b[0] == '[', b[0] == '<', b[0] < ' ', b[0] >= 0x7f && b[0] != byteOrderMark[0]:
		return opaque
	case b[0] == 'x' && len(b) > 1 && b[1] >= 0x7f: // zlib with a window of 32 KiB begins with 'x'
		return opaque
	}
	return stream
}

func (w *Watcher) event(ev Event) {
	w.data = true
	w.events.Add(1)
	w.done = w.done || len(ev.Data) <= longestMarker && isDone(ev.Data)
	if w.token {
		return
	}
	if w.token = len(ev.Data) >= maxWatched || hasOutput(ev.Data); w.token {
		w.scan.limit = watchedForMarker
		w.scan.data = nil
	}
}

// hasOutput reports whether a chunk holds output of any kind. It accepts anything and asks for no legal JSON.
func hasOutput(chunk []byte) bool {
	found := false
	eachMember(chunk, func(name, v []byte) {
		if string(name) != "choices" {
			return
		}
		eachElement(v, func(_ int, choice []byte) {
			eachMember(choice, func(name, v []byte) {
				if n := string(name); n == "delta" || n == "message" {
					found = found || outputIn(v)
				}
			})
		})
	})
	return found
}

func outputIn(delta []byte) bool {
	found := false
	eachMember(delta, func(name, v []byte) {
		switch string(name) {
		case "content", "reasoning_content", "reasoning":
			found = found || filled(v)
		case "tool_calls":
			eachElement(v, func(_ int, call []byte) {
				eachMember(call, func(name, v []byte) {
					if string(name) == "function" {
						eachMember(v, func(name, v []byte) {
							if n := string(name); n == "name" || n == "arguments" {
								found = found || filled(v)
							}
						})
					}
				})
			})
		}
	})
	return found
}

// filled reports whether a JSON value is something else than null or an empty string, list or object.
func filled(v []byte) bool {
	switch string(v) {
	case "null", `""`, "[]", "{}":
		return false
	}
	return len(v) > 0
}

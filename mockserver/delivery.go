package mockserver

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"
)

// writeTimeout is how long a client may refuse to take bytes before it counts as gone.
const writeTimeout = 30 * time.Second

// lastStretch is slept for by itself: Linux may end a sleep late by a thousandth of its length, several milliseconds on a
// long prompt.
const lastStretch = 20 * time.Millisecond

// clock is the engine's own clock, counted from the slot's start.
type clock struct {
	prefill time.Duration // the end of prefill
	last    time.Duration // the end of decoding
}

// decode is the time from the end of prefill to the end of the reply.
func (c clock) decode() time.Duration { return c.last - c.prefill }

// errBrokenUp says that a reply ends by the loss of its connection.
var errBrokenUp = errors.New("the connection is to be closed")

// delivery writes one reply's frames when they are due.
type delivery struct {
	out   http.ResponseWriter
	shape *form     // of the tokens of a stream, nil for a reply in one piece
	start time.Time // of the slot
	clock clock
	ended bool // decodeEnd was passed
	// shift is how much later than planned everything after prefill is due.
	shift time.Duration
}

// run waits for each frame's moment and writes it; frames due by then are written at once, as events of their own. It
// ends with the context's error when the client leaves.
func (d *delivery) run(ctx context.Context, frames []frame) error {
	rc := http.NewResponseController(d.out)
	defer rc.SetWriteDeadline(time.Time{})
	timer := time.NewTimer(0)
	defer timer.Stop()
	var batch bytes.Buffer
	var limit time.Duration // when the write deadline was last set
	for len(frames) > 0 {
		now := time.Since(d.start)
		wait := frames[0].due + d.shift - now
		if wait > 0 {
			nap := wait
			if wait > 2*lastStretch {
				nap -= lastStretch
			}
			timer.Reset(nap)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			if nap < wait {
				continue
			}
			now = time.Since(d.start)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		batch.Reset()
		var then next
		frames, then = d.take(frames, now, wait > 0, &batch)
		if batch.Len() > 0 {
			if limit == 0 || now-limit > time.Second { // often enough, and not for each of many thousand tokens
				limit = now
				rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer can; then the context is the limit
			}
			if _, err := d.out.Write(batch.Bytes()); err != nil {
				return err
			}
			if err := rc.Flush(); err != nil {
				return err
			}
		}
		if then == breakUp {
			return errBrokenUp
		}
	}
	return nil
}

// take puts the frames due by now, of which there is at least one, into the batch and returns the others, and what
// follows.
//
// Due times are absolute, so waits do not add up. A frame that was waited for happened when the wait ended. One whose
// moment passed meanwhile, or while bytes were being written, happened when it was due: an engine does not wait for its
// client. Only when the end of prefill was waited for and noticed late does the rest move with it: decoding takes its time
// all the same.
func (d *delivery) take(frames []frame, now time.Duration, waited bool, batch *bytes.Buffer) ([]frame, next) {
	for len(frames) > 0 && frames[0].due+d.shift <= now {
		f := &frames[0]
		seen := f.due + d.shift
		if waited {
			seen, waited = now, false
		}
		switch f.mark {
		case prefillEnd:
			d.clock = clock{prefill: seen, last: seen}
			d.shift = seen - f.due
		case decodeEnd:
			d.clock.last, d.ended = seen, true
		}
		f.appendTo(batch, d.shape, d.clock)
		switch f.then {
		case breakUp:
			return nil, breakUp
		case repeat:
			f.due += keepAliveEvery
		default:
			frames = frames[1:]
		}
	}
	return frames, goOn
}

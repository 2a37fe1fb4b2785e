package mockserver

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// chat answers a chat completion. With a free slot the engine's clock runs from the request's arrival, so that reading a
// long body is part of reading its prompt; else from the moment when a slot is given.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	j, refusal := s.receive(w, r)
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	if refusal := s.defects.draw(j); refusal != nil {
		writeError(w, refusal)
		return
	}
	slot, waited, err := s.slots.acquire(r.Context())
	if errors.Is(err, errQueueFull) {
		writeError(w, &apiError{status: http.StatusServiceUnavailable, kind: "unavailable_error", code: "queue_full", retry: true,
			message: fmt.Sprintf("all %d slots are busy and %d requests wait already", s.opts.Slots, maxQueue)})
		return
	}
	if err != nil {
		return // the client has left
	}
	defer s.slots.release(slot)
	if waited {
		start = time.Now()
	}
	s.serve(w, r, j, start)
}

// receive reads a request into a job. The body is not kept: thousands of jobs may wait in the queue.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) (*job, *apiError) {
	body, refusal := readBody(w, r)
	if refusal != nil {
		return nil, refusal
	}
	return s.readChat(body)
}

// serve generates and delivers a job's reply. start is where its clock begins. It panics as the handler of a connection
// that is to be closed does.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, j *job, start time.Time) {
	said := generate(j.speech, j.budget, j.stops)
	predicted := len(said.tokens)
	frames, shape := s.frames(j, &said)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if j.stream {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("X-Accel-Buffering", "no")
	}
	d := &delivery{out: w, shape: shape, start: start}
	err := d.run(r.Context(), frames)
	if errors.Is(err, errBrokenUp) {
		panic(http.ErrAbortHandler)
	}
	if err != nil || !d.ended {
		return // the client has left, and gets no more; or it was left without an end
	}
	s.account(j.promptTokens, predicted, d.clock)
}

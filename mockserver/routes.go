package mockserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// route is one endpoint. A GET route answers HEAD too.
type route struct {
	method string
	handle func(*Server, http.ResponseWriter, *http.Request)
	open   bool // needs no key
}

var routes = map[string]route{
	"/health":              {http.MethodGet, (*Server).health, true},
	"/v1/models":           {http.MethodGet, (*Server).models, false},
	"/v1/status":           {http.MethodGet, (*Server).status, false},
	"/props":               {http.MethodGet, (*Server).props, false},
	"/slots":               {http.MethodGet, (*Server).slotList, false},
	"/version":             {http.MethodGet, (*Server).version, false},
	"/metrics":             {http.MethodGet, (*Server).metrics, false},
	"/tokenize":            {http.MethodPost, (*Server).tokens, false},
	"/v1/chat/completions": {http.MethodPost, (*Server).chat, false},
}

// Handler is the engine without its listener.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", buildInfo)
		found, known := routes[r.URL.Path]
		switch {
		case !found.open && !s.allowed(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, &apiError{status: http.StatusUnauthorized, kind: "authentication_error", code: "invalid_api_key",
				message: "the API key is missing or wrong"})
		case !known:
			refuse(w, r, &apiError{status: http.StatusNotFound, kind: "not_found_error", code: "not_found",
				message: fmt.Sprintf("find path %q: there is no such endpoint", r.URL.Path)})
		case r.Method != found.method && !(r.Method == http.MethodHead && found.method == http.MethodGet):
			w.Header().Set("Allow", found.method)
			refuse(w, r, &apiError{status: http.StatusMethodNotAllowed, kind: "invalid_request_error", code: "method_not_allowed",
				message: fmt.Sprintf("path %q: expected method %s, received %s", r.URL.Path, found.method, r.Method)})
		default:
			found.handle(s, w, r)
		}
	})
}

// allowed says whether a request carries the key, as a bearer token or in X-Api-Key. Digests are compared, so that the
// time taken tells nothing of the key, not even its length.
func (s *Server) allowed(r *http.Request) bool {
	if s.opts.APIKey == "" {
		return true
	}
	want := sha256.Sum256([]byte(s.opts.APIKey))
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	ok := 0
	for _, given := range []string{bearer, r.Header.Get("X-Api-Key")} {
		got := sha256.Sum256([]byte(given))
		ok |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return ok == 1
}

// refuse answers with an error after taking in the body, so that a client still sending it sees the answer and not a
// reset connection.
func refuse(w http.ResponseWriter, r *http.Request, err *apiError) {
	readBody(w, r)
	writeError(w, err)
}

// readBody takes in a whole body within the bounds.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *apiError) {
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every writer can; then the transport's own limits hold
	defer rc.SetReadDeadline(time.Time{})
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		return body, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &apiError{status: http.StatusRequestEntityTooLarge, kind: "invalid_request_error", code: "request_too_large",
			message: fmt.Sprintf("read the request: expected at most %d bytes, received more", maxBody)}
	}
	e := invalid("", "read the request: %v", err)
	e.code = "unreadable_body"
	return nil, e
}

package engine

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// quick keeps the real waits of tests on loopback short where an answer is awaited, and long where it must come.
var quick = Options{Connect: time.Minute, Endpoint: time.Minute, Ready: time.Minute, Poll: time.Millisecond}

// fake is a server that answers from files: "x.http" is a captured answer, head and all; others are bodies.
type fake struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func serve(t *testing.T, pages map[string]string) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.seen = append(f.seen, r.Clone(r.Context()))
		f.mu.Unlock()
		file, ok := pages[r.Method+" "+r.URL.Path]
		if !ok {
			http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
			return
		}
		replay(t, w, filepath.Join("testdata", file))
	}))
	t.Cleanup(f.Close)
	return f
}

func replay(t *testing.T, w http.ResponseWriter, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return
	}
	if !strings.HasSuffix(path, ".http") {
		if strings.HasSuffix(path, ".json") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.Write(data)
		return
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(data)), nil)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	defer resp.Body.Close()
	for name, values := range resp.Header {
		if name != "Keep-Alive" && name != "Connection" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(resp.StatusCode)
	io.Copy(w, resp.Body)
}

// always is a server that gives one answer to everything.
func always(t *testing.T, status int, header map[string]string, body string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func bearer(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }

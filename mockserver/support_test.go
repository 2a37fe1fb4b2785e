package mockserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"plumbline/corpus"
)

// pack is a small pack with an answer of each form, and a prompt whose count is not the estimator's.
var pack = &corpus.Pack{
	Tokenizer: "qwen3",
	Prompts: []corpus.Prompt{
		{ID: "performance-short-r1", Text: "Describe a harbour in winter.", ContentTokens: map[string]int{"qwen3": 51}},
		{ID: "sanity-I4", Text: "Reply with the word \"grün\" and 2 emoji.", ContentTokens: map[string]int{"qwen3": 12},
			Answer: &corpus.Answer{Reasoning: "One word, then 👩‍🚀🛰.", Text: "grün 👩‍🚀🛰"}},
		{ID: "sanity-T1", Text: "Book a table for three.", ContentTokens: map[string]int{"qwen3": 6},
			Answer: &corpus.Answer{Reasoning: "A table, so the booking tool.", Call: &corpus.Call{
				Name: "book_table", Arguments: json.RawMessage(`{"guests": 3, "note": "\"quiet\"\n</tool>"}`)}}},
	},
}

// The tools that tests offer.
const (
	bookTable = `{"type":"function","function":{"name":"book_table","parameters":{"type":"object",
		"properties":{"guests":{"type":"integer"},"note":{"type":"string"}},"required":["guests"]}}}`
	findRoute = `{"type":"function","function":{"name":"find_route","parameters":{"type":"object",
		"properties":{"from":{"type":"string"},"stops":{"type":"integer","minimum":2,"maximum":4}},"required":["from","stops"]}}}`
)

// body is a chat request about a prompt, with more fields given as JSON without braces.
func body(prompt, more string) string {
	content, err := json.Marshal(prompt)
	if err != nil {
		panic(err)
	}
	if more != "" {
		more = "," + more
	}
	return `{"messages":[{"role":"user","content":` + string(content) + `}]` + more + `}`
}

// start serves an engine for one test, which must leave no goroutine behind.
func start(t *testing.T, opts Options) (*Server, *http.Client) {
	t.Helper()
	before := gleak.Goroutines()
	s, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		g := NewWithT(t)
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		g.Expect(s.Close(ctx)).To(Succeed())
		g.Eventually(gleak.Goroutines).WithTimeout(30 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	})
	return s, &http.Client{Transport: transport}
}

// answer is a whole response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// json reads the body as an object.
func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("read %q: %v", a.body, err)
	}
	return v
}

func do(t *testing.T, c *http.Client, method, url, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, b}
}

func chat(t *testing.T, s *Server, c *http.Client, body string) answer {
	t.Helper()
	return do(t, c, http.MethodPost, s.URL()+"/v1/chat/completions", body)
}

// heard is what a stream said, put together by the test's own reading of it.
type heard struct {
	chunks     []map[string]any
	pieces     []map[string]any // of the chunks, those deltas that say something
	reasoning  string
	content    string
	name       string
	arguments  string
	finish     any
	usage      map[string]any
	timings    map[string]any
	endMarkers int
}

// hear reads a stream and checks what is true of all of them.
func hear(t *testing.T, a answer) heard {
	t.Helper()
	g := NewWithT(t)
	g.Expect(a.status).To(Equal(http.StatusOK), string(a.body))
	g.Expect(a.header.Get("Content-Type")).To(Equal("text/event-stream"))
	var h heard
	for _, event := range strings.SplitAfter(string(a.body), "\n\n") {
		data, found := strings.CutPrefix(event, "data: ")
		if !found {
			g.Expect(event).To(Or(BeEmpty(), Equal(": keep-alive\n\n")))
			continue
		}
		g.Expect(h.endMarkers).To(BeZero(), "nothing follows the end marker")
		if data == "[DONE]\n\n" {
			h.endMarkers++
			continue
		}
		var chunk map[string]any
		g.Expect(json.Unmarshal([]byte(data), &chunk)).To(Succeed(), data)
		h.chunks = append(h.chunks, chunk)
		h.take(chunk)
	}
	g.Expect(h.endMarkers).To(Equal(1))
	ids := map[any]bool{}
	for _, chunk := range h.chunks {
		ids[chunk["id"]] = true
		g.Expect(chunk["object"]).To(Equal("chat.completion.chunk"))
	}
	g.Expect(ids).To(HaveLen(1))
	return h
}

func (h *heard) take(chunk map[string]any) {
	if u, ok := chunk["usage"].(map[string]any); ok {
		h.usage = u
	}
	if tm, ok := chunk["timings"].(map[string]any); ok {
		h.timings = tm
	}
	for _, c := range chunk["choices"].([]any) {
		choice := c.(map[string]any)
		if f := choice["finish_reason"]; f != nil {
			h.finish = f
		}
		delta := choice["delta"].(map[string]any)
		if delta["role"] == nil && len(delta) > 0 {
			h.pieces = append(h.pieces, delta)
		}
		h.reasoning += str(delta["reasoning_content"])
		h.content += str(delta["content"])
		calls, _ := delta["tool_calls"].([]any)
		for _, call := range calls {
			f := call.(map[string]any)["function"].(map[string]any)
			h.name += str(f["name"])
			h.arguments += str(f["arguments"])
		}
	}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// recorder is a response writer that notes when each write came, counted from its making.
type recorder struct {
	header http.Header
	status int
	began  time.Time
	writes []write
	// stall, when set, is waited for inside the write of that number.
	stall map[int]time.Duration
}

type write struct {
	at    time.Duration
	bytes string
}

func newRecorder() *recorder {
	return &recorder{header: http.Header{}, status: http.StatusOK, began: time.Now()}
}

func (r *recorder) Header() http.Header    { return r.header }
func (r *recorder) WriteHeader(status int) { r.status = status }
func (r *recorder) Flush()                 {}

func (r *recorder) Write(b []byte) (int, error) {
	r.writes = append(r.writes, write{time.Since(r.began), string(b)})
	if d, ok := r.stall[len(r.writes)-1]; ok {
		<-time.After(d)
	}
	return len(b), nil
}

// answer is what was written, as one response.
func (r *recorder) answer() answer {
	var b bytes.Buffer
	for _, w := range r.writes {
		b.WriteString(w.bytes)
	}
	return answer{r.status, maps.Clone(r.header), b.Bytes()}
}

// post has the engine answer a chat request into a recorder.
func post(t *testing.T, s *Server, rec *recorder, body string) {
	s.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
}

// engine makes an engine without a listener.
func engine(t *testing.T, opts Options) *Server {
	t.Helper()
	s, err := newServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

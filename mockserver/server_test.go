package mockserver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
)

func TestFactsAreTold(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Model: "m", Slots: 3, ContextTokens: 9000, Epoch: time.Unix(1700000000, 0)})
	get := func(path string) map[string]any { return do(t, c, http.MethodGet, s.URL()+path, "").json(t) }

	g.Expect(get("/health")).To(Equal(map[string]any{"status": "ok"}))
	g.Expect(get("/v1/models")).To(Equal(map[string]any{"object": "list", "data": []any{map[string]any{
		"id": "m", "object": "model", "created": 1700000000.0, "owned_by": "plumbline", "meta": map[string]any{"n_ctx": 9000.0}}}}))
	props := get("/props")
	g.Expect(props).To(And(HaveKeyWithValue("total_slots", 3.0), HaveKeyWithValue("build_info", HavePrefix("plumbline-mock")),
		HaveKeyWithValue("chat_template", ContainSubstring("<|im_start|>assistant")),
		HaveKeyWithValue("default_generation_settings", HaveKeyWithValue("n_ctx", 9000.0)), Not(HaveKey("model_path"))))
	g.Expect(get("/version")).To(HaveKeyWithValue("engine", "plumbline-mock"))

	for range 2 {
		g.Expect(chat(t, s, c, body("hello", `"max_tokens":3`)).status).To(Equal(http.StatusOK))
	}
	g.Expect(chat(t, s, c, body("hello", `"n":2`)).status).To(Equal(http.StatusBadRequest))
	g.Expect(get("/v1/status")).To(And(HaveKeyWithValue("engine", HaveKeyWithValue("name", "plumbline-mock")),
		HaveKeyWithValue("engine", HaveKeyWithValue("version", Not(BeEmpty()))),
		HaveKeyWithValue("concurrency", HaveKeyWithValue("serving", 3.0)),
		HaveKeyWithValue("activity", map[string]any{"requests": 2.0, "in_flight": 0.0, "queued": 0.0})), "a refusal is no request served")

	metrics := do(t, c, http.MethodGet, s.URL()+"/metrics", "")
	g.Expect(metrics.header.Get("Content-Type")).To(HavePrefix("text/plain"))
	values := map[string]float64{}
	for line := range strings.Lines(string(metrics.body)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			v, err := strconv.ParseFloat(value, 64)
			g.Expect(err).NotTo(HaveOccurred(), line)
			values[name] = v
		}
	}
	g.Expect(values).To(And(HaveLen(7), HaveKeyWithValue("plumbline_mock:requests_total", 2.0),
		HaveKeyWithValue("plumbline_mock:tokens_predicted_total", 6.0),
		HaveKeyWithValue("plumbline_mock:prompt_tokens_total", float64(2*(headTokens+countPieces("hello"))))))
	g.Expect(values["plumbline_mock:prompt_seconds_total"]).To(BeNumerically(">=", 2*paces[0].Prefill(27).Seconds()))
}

func TestSlotsAreShown(t *testing.T) {
	g := NewWithT(t)
	s := engine(t, Options{Slots: 2, ContextTokens: 50})
	for range 2 {
		_, _, err := s.slots.acquire(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
	}
	s.slots.release(0)
	rec := newRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/slots", nil))
	g.Expect(rec.answer().body).To(MatchJSON(`[{"id":0,"n_ctx":50,"speculative":false,"is_processing":false},
		{"id":1,"n_ctx":50,"speculative":false,"is_processing":true,"id_task":2}]`))
}

func TestUnknownPathsAndMethodsGetJSON(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{})
	for _, path := range []string{"/", "/v1/completions", "/v1/models/", "/health/x"} {
		a := do(t, c, http.MethodGet, s.URL()+path, "")
		g.Expect(a.status).To(Equal(http.StatusNotFound), path)
		g.Expect(a.json(t)["error"]).To(HaveKeyWithValue("type", "not_found_error"))
	}
	for path, r := range routes {
		wrong := map[string]string{http.MethodGet: http.MethodPost, http.MethodPost: http.MethodGet}[r.method]
		a := do(t, c, wrong, s.URL()+path, "")
		g.Expect(a.status).To(Equal(http.StatusMethodNotAllowed), path)
		g.Expect(a.header.Get("Allow")).To(Equal(r.method))
		g.Expect(a.json(t)["error"]).To(HaveKeyWithValue("code", "method_not_allowed"))
	}
	g.Expect(do(t, c, http.MethodHead, s.URL()+"/health", "").status).To(Equal(http.StatusOK))
}

func TestKeyIsAskedOfAllButHealth(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{APIKey: "sesame"})
	large := body(strings.Repeat("word ", 1<<20), "")
	for _, header := range [][]string{nil, {"Authorization", "Bearer wrong"}, {"Authorization", "sesame2"}, {"X-Api-Key", "Sesame"}} {
		for path, r := range routes {
			if path == "/health" {
				continue
			}
			a := do(t, c, r.method, s.URL()+path, "", header...)
			g.Expect(a.status).To(Equal(http.StatusUnauthorized), path)
			g.Expect(a.header.Get("WWW-Authenticate")).To(Equal("Bearer"))
			g.Expect(a.json(t)["error"]).To(HaveKeyWithValue("type", "authentication_error"))
		}
		g.Expect(do(t, c, http.MethodGet, s.URL()+"/nowhere", "", header...).status).To(Equal(http.StatusUnauthorized))
		g.Expect(do(t, c, http.MethodGet, s.URL()+"/health", "", header...).status).To(Equal(http.StatusOK))
	}
	refused := do(t, c, http.MethodPost, s.URL()+"/v1/chat/completions", large)
	g.Expect(refused.status).To(Equal(http.StatusUnauthorized), "with a large body too")
	g.Expect(string(refused.body)).NotTo(ContainSubstring("sesame"))
	for _, header := range [][]string{{"Authorization", "Bearer sesame"}, {"X-Api-Key", "sesame"}} {
		g.Expect(do(t, c, http.MethodGet, s.URL()+"/v1/models", "", header...).status).To(Equal(http.StatusOK))
	}
}

func TestLargeBodiesAreRefused(t *testing.T) {
	g := NewWithT(t)
	s := engine(t, Options{})
	for size, status := range map[int]int{maxBody: http.StatusBadRequest, maxBody + 1: http.StatusRequestEntityTooLarge} {
		rec := newRecorder()
		s.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions",
			io.LimitReader(blanks{}, int64(size))))
		g.Expect(rec.status).To(Equal(status), "%d bytes", size)
		g.Expect(rec.answer().json(t)).To(HaveKey("error"))
	}
}

// blanks is white space without end.
type blanks struct{}

func (blanks) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestTokenizeAsksForText(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{})
	post := func(body string) answer { return do(t, c, http.MethodPost, s.URL()+"/tokenize", body) }
	g.Expect(post(`{"content":""}`).body).To(MatchJSON(`{"tokens":[]}`))
	same := post(`{"content":"tower tower"}`).json(t)["tokens"].([]any)
	g.Expect(same).To(HaveLen(2))
	g.Expect(post(`{"content":"a tower"}`).json(t)["tokens"].([]any)[1]).To(Equal(same[1]), "a piece has one id")
	for _, wrong := range []string{`{}`, `{"content":null}`, `{"content":4}`, `x`} {
		g.Expect(post(wrong).status).To(Equal(http.StatusBadRequest), wrong)
	}
}

func TestManyAtOnceOnARealListener(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Pack: pack, Slots: 2})
	var wg sync.WaitGroup
	replies := make([]answer, 12)
	for i := range replies {
		wg.Go(func() {
			replies[i] = chat(t, s, c, body("Begin with PLB-"+strconv.Itoa(i)+"X.", usageAsked))
		})
	}
	wg.Wait()
	ids := map[any]bool{}
	for i, a := range replies {
		h := hear(t, a)
		g.Expect(h.content).To(HavePrefix("PLB-" + strconv.Itoa(i) + "X "))
		g.Expect(strings.Count(h.content+h.reasoning, "PLB-")).To(Equal(1), "no other request's marker")
		ids[h.chunks[0]["id"]] = true
	}
	g.Expect(ids).To(HaveLen(len(replies)))
	g.Expect(s.slots.activity().started).To(Equal(int64(len(replies))))
}

func TestCloseLetsRepliesEndThenCutsThemOff(t *testing.T) {
	g := NewWithT(t)
	before := gleak.Goroutines()
	stuck := Pace{Curve: []Point{{0, time.Millisecond}}, Decode: time.Hour}
	for _, tc := range []struct {
		pace Pace
		ends bool
	}{{paces[0], true}, {stuck, false}} {
		s, err := Start(t.Context(), Options{Pace: tc.pace})
		g.Expect(err).NotTo(HaveOccurred())
		c := &http.Client{Transport: &http.Transport{}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/chat/completions",
			strings.NewReader(body("hello", `"stream":true`)))
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := c.Do(req)
		g.Expect(err).NotTo(HaveOccurred())
		stream := bufio.NewReader(resp.Body)
		_, err = stream.ReadString('\n') // the role: the reply has begun
		g.Expect(err).NotTo(HaveOccurred())

		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if !tc.ends {
			cancel()
		}
		err = s.Close(ctx)
		cancel()
		rest, readErr := io.ReadAll(stream)
		if tc.ends {
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(readErr).NotTo(HaveOccurred())
			g.Expect(string(rest)).To(HaveSuffix("data: [DONE]\n\n"))
		} else {
			g.Expect(err).To(MatchError(context.Canceled))
			g.Expect(readErr).To(HaveOccurred())
		}
		resp.Body.Close()
		_, err = new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL(), "http://"))
		g.Expect(err).To(HaveOccurred(), "nobody listens")
		c.CloseIdleConnections()
	}
	g.Eventually(gleak.Goroutines).WithTimeout(30 * time.Second).ShouldNot(gleak.HaveLeaked(before))
}

func TestEndOfTheContextEndsTheEngine(t *testing.T) {
	g := NewWithT(t)
	before := gleak.Goroutines()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Start(ctx, Options{})
	g.Expect(err).NotTo(HaveOccurred())
	cancel()
	<-s.served
	g.Expect(s.Close(t.Context())).To(Succeed())
	g.Eventually(gleak.Goroutines).WithTimeout(30 * time.Second).ShouldNot(gleak.HaveLeaked(before))
}

func TestEngineThatCannotBeIsRefused(t *testing.T) {
	g := NewWithT(t)
	for name, o := range map[string]Options{
		"slots":   {Slots: -1},
		"context": {ContextTokens: -1},
		"pace":    {Pace: Pace{Decode: time.Second}},
		"listen":  {Listen: "no address"},
	} {
		_, err := Start(t.Context(), o)
		g.Expect(err).To(MatchError(HavePrefix("start mock engine")), name)
	}
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer taken.Close()
	_, err = Start(t.Context(), Options{Listen: taken.Addr().String()})
	g.Expect(err).To(MatchError(ContainSubstring(taken.Addr().String())))
}

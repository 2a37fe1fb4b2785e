package engine

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/tidwall/gjson"

	"plumbline/fixtures"
	"plumbline/harness/settings"
)

func ask(t *testing.T, pages map[string]string) fixtures.EngineFacts {
	t.Helper()
	facts, err := Ask(t.Context(), serve(t, pages).URL, nil, quick)
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func TestALlamaServerIsReadFromItsRealAnswers(t *testing.T) {
	g := NewWithT(t)
	facts := ask(t, map[string]string{
		"GET /health": "llama.cpp/A00_health.http", "GET /v1/models": "llama.cpp/A00_v1_models.http", "GET /props": "llama.cpp/B00_props.http",
		"GET /slots": "llama.cpp/B00_slots.http", "GET /metrics": "llama.cpp/A00_metrics_fresh.http", "GET /version": "llama.cpp/A00_version.http",
		"POST /tokenize": "llama.cpp/A60_tokenize.http",
	})
	g.Expect(facts.Name).To(Equal("llama.cpp"))
	g.Expect(facts.Version).To(Equal("b10573"))
	g.Expect(facts.Commit).To(Equal("d775b8967"))
	g.Expect(facts.ServedModels).To(Equal([]string{"tiny-chat"}))
	g.Expect(*facts.ContextTokens).To(Equal(4096))
	g.Expect(*facts.Capacity).To(Equal(4), "four slots")
	g.Expect(facts.ModelPath).To(Equal("models/tiny-chat.gguf"))
	g.Expect(facts.ChatTemplate).To(HavePrefix("{%- if messages[0].role == 'system' %}"))
	g.Expect(facts.RequestsServed).To(BeNil(), "llama.cpp counts no requests")
	g.Expect(facts.CanTokenize).To(BeTrue())
	g.Expect(facts.Options).To(HaveKeyWithValue("model_ftype", "Q8_0"))
	g.Expect(facts.ModelAliases).To(BeEmpty(), "its alias is its id")
	g.Expect(facts.Sources).To(HaveKeyWithValue("capacity", "GET /slots"))
	g.Expect(facts.Sources).To(HaveKeyWithValue("name", "GET /v1/models"))
	g.Expect(facts.Sources).To(HaveKeyWithValue("version", "GET /props"))
}

func TestALlamaServerWithoutItsOptionalEndpointsStillTellsItsCapacity(t *testing.T) {
	g := NewWithT(t)
	facts := ask(t, map[string]string{
		"GET /v1/models": "llama.cpp/A00_v1_models.http", "GET /props": "llama.cpp/B00_props.http",
		"GET /slots": "llama.cpp/C00_slots_disabled.http", "GET /metrics": "llama.cpp/C00_metrics_disabled.http",
	})
	g.Expect(*facts.Capacity).To(Equal(4))
	g.Expect(facts.Sources["capacity"]).To(Equal("GET /props"))
	g.Expect(facts.CanTokenize).To(BeFalse())
}

func TestStrataTellsItsCapacityInStatusAndNeverInTheConstantOfProps(t *testing.T) {
	pages := map[string]string{
		"GET /health": "strata/health.json", "GET /v1/models": "strata/models.json", "GET /props": "strata/props.json",
		"GET /metrics": "strata/metrics.json", "GET /v1/status": "strata/status.json",
	}
	g := NewWithT(t)
	facts := ask(t, pages)
	g.Expect(facts.Name).To(Equal("strata"))
	g.Expect(facts.Version).To(Equal("0.1.51"))
	g.Expect(facts.ServedModels).To(Equal([]string{"flash-next-iq3_s"}), "an alias is not a second model")
	g.Expect(*facts.Capacity).To(Equal(3))
	g.Expect(*facts.ContextTokens).To(Equal(131072))
	g.Expect(*facts.RequestsServed).To(Equal(int64(22)))
	g.Expect(facts.ModelPath).To(Equal("/models/flash-next-iq3_s.gguf"))
	g.Expect(facts.ChatTemplate).To(Equal("{{ messages }}"))
	g.Expect(facts.Options).To(And(HaveKeyWithValue("kv", "q8_0"), HaveKeyWithValue("expert_slots", "96"), HaveKeyWithValue("mtp", "true"),
		HaveKeyWithValue("prefill", `{"mode": "auto", "chunk": 32768}`)))
	for _, name := range []string{"web_key", "version", "nothing", "max_context"} {
		g.Expect(facts.Options).NotTo(HaveKey(name))
	}
	g.Expect(ResolveModel(facts, "flash")).To(Equal("flash-next-iq3_s"))

	delete(pages, "GET /v1/status")
	g.Expect(ask(t, pages).Capacity).To(BeNil())
}

func TestVLLMIsReadFromItsModelsVersionAndMetrics(t *testing.T) {
	g := NewWithT(t)
	version := "vllm/version.json"
	f := serve(t, map[string]string{"GET /v1/models": "vllm/models.json", "GET /version": version, "GET /metrics": "vllm/metrics.txt"})
	facts, err := Ask(t.Context(), f.URL, nil, quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Name).To(Equal("vllm"))
	g.Expect(facts.Version).To(Equal("0.11.0"))
	g.Expect(*facts.ContextTokens).To(Equal(32768))
	g.Expect(facts.ModelPath).To(Equal("org/Model-7B"))
	g.Expect(facts.Capacity).To(BeNil())
	g.Expect(*facts.RequestsServed).To(Equal(int64(43)), "summed over the reasons to finish")
}

func TestSGLangIsReadWithoutItsKeys(t *testing.T) {
	g := NewWithT(t)
	facts := ask(t, map[string]string{"GET /v1/models": "sglang/models.json", "GET /get_server_info": "sglang/server_info.json"})
	g.Expect(facts.Name).To(Equal("sglang"))
	g.Expect(facts.Version).To(Equal("0.5.5"))
	g.Expect(*facts.Capacity).To(Equal(128), "two ranks of 64")
	g.Expect(*facts.ContextTokens).To(Equal(40960))
	g.Expect(facts.Options).To(HaveKeyWithValue("quantization", "fp8"))
	all, err := json.Marshal(facts)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(all)).NotTo(ContainSubstring("topsecret"))
}

func TestOllamaIsKnownByItsOwnVersionPath(t *testing.T) {
	g := NewWithT(t)
	facts := ask(t, map[string]string{"GET /v1/models": "ollama/models.json", "GET /api/version": "ollama/version.json", "GET /api/ps": "ollama/ps.json"})
	g.Expect(facts.Name).To(Equal("ollama"))
	g.Expect(facts.Version).To(Equal("0.12.6"))
	g.Expect(facts.ServedModels).To(Equal([]string{"gemma3:latest", "qwen3:8b"}))
	g.Expect(*facts.ContextTokens).To(Equal(4096))
}

func TestAnUnknownServerTellsItsModelsAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			w.Write([]byte(`{"data":[{"id":"m"},{"id":7},{"id":""},{"x":1},null]}`))
			return
		}
		w.Write([]byte("<!doctype html><title>a page for every path</title>"))
	}))
	defer s.Close()
	facts, err := Ask(t.Context(), s.URL+"/", nil, quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.URL).To(Equal(s.URL))
	g.Expect(facts.ServedModels).To(Equal([]string{"m", "7"}))
	g.Expect(facts.Name).To(BeEmpty())
	g.Expect(facts.Capacity).To(BeNil())
	g.Expect(facts.CanTokenize).To(BeFalse())
}

func TestTheKeyGoesToEveryEndpoint(t *testing.T) {
	g := NewWithT(t)
	f := serve(t, map[string]string{"GET /v1/models": "vllm/models.json"})
	_, err := Ask(t.Context(), f.URL, bearer("k1"), quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(f.seen)).To(Equal(len(endpoints) + 1))
	for _, r := range f.seen {
		g.Expect(r.Header.Get("Authorization")).To(Equal("Bearer k1"))
	}
	g.Expect(Authorize(settings.Secret{})).To(BeEmpty())
	t.Setenv("TEST_ENGINE_KEY", "k1")
	secret, err := resolved(t, "--credential-env=TEST_ENGINE_KEY").Credential()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Authorize(secret)).To(Equal(bearer("k1")))
}

func TestOnly503IsAskedAgain(t *testing.T) {
	g := NewWithT(t)
	calls := 0 // the questions come one after the other until the server is ready
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		if calls++; calls <= 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte(`{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`))
			return
		}
		w.Write([]byte(`{"data":[{"id":"m"}]}`))
	}))
	defer s.Close()
	facts, err := Ask(t.Context(), s.URL, nil, quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.ServedModels).To(Equal([]string{"m"}))
	g.Expect(calls).To(Equal(4))
}

func TestAfterTellsWhatMayHaveChanged(t *testing.T) {
	g := NewWithT(t)
	f := serve(t, map[string]string{"GET /v1/models": "strata/models.json", "GET /v1/status": "strata/status.json"})
	after, err := After(t.Context(), f.URL, nil, quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after.ServedModels).To(Equal([]string{"flash-next-iq3_s"}))
	g.Expect(*after.RequestsServed).To(Equal(int64(22)))
	f.Close()
	_, err = After(t.Context(), f.URL, nil, quick)
	g.Expect(err).To(HaveOccurred())
}

func TestCountsComeFromEitherFormOfTokenize(t *testing.T) {
	g := NewWithT(t)
	llama := serve(t, map[string]string{"POST /tokenize": "llama.cpp/A60_tokenize.http"})
	g.Expect(CountTokens(t.Context(), llama.URL, nil, []string{"Hello world, how are you?", ""}, quick)).To(Equal([]int{9, 0}))

	var asked map[string]any
	vllm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewDecoder(r.Body).Decode(&asked)
		w.Write([]byte(`{"count":3,"max_model_len":8192,"tokens":[1,2,3]}`))
	}))
	defer vllm.Close()
	g.Expect(CountTokens(t.Context(), vllm.URL, nil, []string{"a b c"}, quick)).To(Equal([]int{3}))
	g.Expect(asked).To(Equal(map[string]any{"content": "a b c", "prompt": "a b c", "add_special_tokens": false}))
}

func TestNoCountIsMadeUp(t *testing.T) {
	for body, status := range map[string]int{`{"error":"x"}`: 404, `{"tokens":"many"}`: 200, `{"count":-1}`: 200, `{"tokens":[]}`: 200,
		`{"count":1e3}`: 200, `{"count":"3"}`: 200, `{"count":40}`: 200, `not JSON`: 200} {
		counts, err := CountTokens(t.Context(), always(t, status, nil, body).URL, nil, []string{"some text"}, quick)
		if err == nil || counts != nil {
			t.Errorf("%d %s: got %v, %v; want no counts and an error", status, body, counts, err)
		}
	}
}

// Every reader must bear any body, as unknown servers have pages of their own at these paths.
func FuzzEndpoints(f *testing.F) {
	for _, seed := range []string{`{"service":"strata","engine":{"a":1},"internal_states":[{}],"model_path":1,"models":[1]}`, `[]`, `[{"id":1}]`, `3`,
		"vllm:request_success_total{} 1e999\n", `{"data":[{"id":"a","aliases":["a","b",null]}],"engine":{"":1}}`} {
		f.Add([]byte(seed))
	}
	for _, file := range []string{"strata/metrics.json", "sglang/server_info.json", "vllm/metrics.txt"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, name := range []string{"", nameStrata, nameVLLM, nameOllama} {
			tell := newTelling("http://h")
			tell.facts.Name = name
			a := answer{status: 200, header: http.Header{}, body: body}
			if gjson.ValidBytes(body) {
				a.json = gjson.ParseBytes(body)
			}
			for _, e := range endpoints {
				tell.at = e.path
				e.tell(tell, a)
			}
			facts := tell.finish()
			if facts.Capacity != nil && *facts.Capacity < 1 || facts.ContextTokens != nil && *facts.ContextTokens < 1 ||
				facts.RequestsServed != nil && *facts.RequestsServed < 0 || slices.Contains(facts.ServedModels, "") {
				t.Errorf("impossible facts %+v from %q", facts, body)
			}
			if _, err := json.Marshal(facts); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAnInterruptedQuestionSaysSo(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Ask(ctx, serve(t, nil).URL, nil, quick)
	g.Expect(problem(err)).To(Equal(Interrupted))
	g.Expect(strings.Contains(err.Error(), "interrupted")).To(BeTrue())
}

func TestAServerThatSpeaksOnlyHTTP2IsAskedOverIt(t *testing.T) {
	g := NewWithT(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Proto != "HTTP/2.0" || r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte(`{"data":[{"id":"m"}]}`))
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	set := resolved(t, "--url="+s.URL, "--http2")
	facts, err := Ask(t.Context(), s.URL, nil, OptionsFor(set))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.ServedModels).To(Equal([]string{"m"}))
}

func TestAServerThatDoesNotSpeakHTTP2SaysSo(t *testing.T) {
	g := NewWithT(t)
	set := resolved(t, "--http2")
	old := serve(t, map[string]string{"GET /v1/models": "vllm/models.json"})
	_, err := Ask(t.Context(), old.URL, nil, OptionsFor(set))
	g.Expect(problem(err)).To(Equal(NotHTTP))
	g.Expect(err).To(MatchError(ContainSubstring("--http2")))
}

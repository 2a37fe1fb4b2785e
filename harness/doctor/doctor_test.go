package doctor

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/settings"
	"plumbline/mockserver"
)

// examine resolves flags as the command does and examines.
func examine(t *testing.T, within time.Duration, args ...string) *Result {
	t.Helper()
	fs := flag.NewFlagSet("doctor", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	loader := settings.Register(fs)
	if err := fs.Parse(append([]string{"--out", filepath.Join(t.TempDir(), "deep", "run")}, args...)); err != nil {
		t.Fatal(err)
	}
	s, err := loader.Resolve(os.Environ(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Examine(t.Context(), s, Options{Within: within})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Result) at(t *testing.T, id string) Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("no check %q", id)
	return Check{}
}

// not lists the checks of the engine that are not ok, with their status.
func (r *Result) not() map[string]Status {
	odd := map[string]Status{}
	for _, c := range r.Checks {
		if c.Status != OK && c.ID != "gpu" && c.ID != "docker" {
			odd[c.ID] = c.Status
		}
	}
	return odd
}

func mock(t *testing.T, o mockserver.Options) string {
	t.Helper()
	server, err := mockserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = server.Close(over)
	})
	return server.URL()
}

// engine is a server made for one claim: it lists one model, and answers a chat as the claim has it.
func engineWith(t *testing.T, chat http.HandlerFunc) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
		case "/v1/chat/completions":
			chat(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// stream answers a chat with these events.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
	}
}

const (
	word   = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Yes"},"finish_reason":null}]}`
	last   = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	counts = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":0}}}`
	done   = `[DONE]`
)

// all is every check of the engine, with one status, from a check on.
func from(first string, status Status, also map[string]Status) map[string]Status {
	odd := map[string]Status{}
	on := false
	for _, c := range checks {
		on = on || c.id == first
		if on && c.id != "disk" && c.id != "clock" && c.id != "gpu" && c.id != "docker" {
			odd[c.id] = status
		}
	}
	for id, s := range also {
		odd[id] = s
	}
	return odd
}

func deadPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// silent accepts connections and never says a word.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	return "http://" + l.Addr().String()
}

// recorded replays exchanges of a real server. With anyBody one exchange answers every chat.
func recorded(t *testing.T, id string) string {
	t.Helper()
	replays, err := fixtures.ReadReplays("../../fixtures/recorded/llamacpp-b10573.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if id != "" {
		var one []fixtures.Replay
		for _, r := range replays {
			if r.Name == id {
				r.AnyBody = true
				one = append(one, r)
			}
		}
		replays = one
	}
	p, err := mockserver.StartReplay(t.Context(), mockserver.ReplayOptions{Replays: replays})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Close(over)
	})
	return p.URL()
}

func TestEveryKindOfServerGetsItsAnswers(t *testing.T) {
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCTOR_KEY", "sk-right-0123456789")
	t.Setenv("DOCTOR_WRONG", "sk-wrong-0123456789")
	untold := map[string]Status{"timings": Warning, "tokenizer": Warning, "template": Warning, "capacity": Warning, "context": Warning, "model-file": Warning}
	with := func(more map[string]Status) map[string]Status {
		all := map[string]Status{}
		for id, s := range untold {
			all[id] = s
		}
		for id, s := range more {
			all[id] = s
		}
		return all
	}
	noModelFile := map[string]Status{"model-file": Warning}
	for name, c := range map[string]struct {
		url    func(t *testing.T) string // nil for none
		args   []string
		within time.Duration
		odd    map[string]Status
		says   map[string]string // check to a part of its answer
	}{
		"the built-in mock": {odd: noModelFile, says: map[string]string{"server": "rehearsal", "usage": " in, 16 out"}},
		"a mock at an address": {
			url: func(t *testing.T) string { return mock(t, mockserver.Options{Pack: pack}) }, odd: noModelFile,
			says: map[string]string{"server": "plumbline-mock 0.1.0 at http", "context": "131072", "capacity": "4", "tokenizer": "every prompt"}},
		"the right key": {
			url:  func(t *testing.T) string { return mock(t, mockserver.Options{APIKey: "sk-right-0123456789"}) },
			args: []string{"--credential-env", "DOCTOR_KEY"}, odd: noModelFile, says: map[string]string{"key": "not refused"}},
		"a wrong key": {
			url:  func(t *testing.T) string { return mock(t, mockserver.Options{APIKey: "sk-right-0123456789"}) },
			args: []string{"--credential-env", "DOCTOR_WRONG"}, odd: from("interface", NotAsked, map[string]Status{"key": Failed}),
			says: map[string]string{"key": "refuses the API key"}},
		"no key": {
			url: func(t *testing.T) string { return mock(t, mockserver.Options{APIKey: "sk-right-0123456789"}) },
			odd: from("interface", NotAsked, map[string]Status{"key": Failed}), says: map[string]string{"key": "--credential-env"}},
		"a key that is not where it should be": {
			url:  func(t *testing.T) string { return mock(t, mockserver.Options{}) },
			args: []string{"--credential-file", "no-such-file"}, odd: from("server", NotAsked, map[string]Status{"key": Failed})},
		"a key asked for by chats alone": {
			url: func(t *testing.T) string {
				return engineWith(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
			},
			odd: from("stream", NotAsked, with(map[string]Status{"key": Failed, "timings": NotAsked})), says: map[string]string{"key": "lists its models to anybody"}},
		"an unknown model": {
			url: func(t *testing.T) string { return mock(t, mockserver.Options{}) }, args: []string{"--model", "other"},
			odd:  map[string]Status{"model": Failed, "stream": NotAsked, "usage": NotAsked, "cache": NotAsked, "timings": NotAsked, "model-file": Warning},
			says: map[string]string{"model": `does not serve the model "other": served: "plumbline-mock"`}},
		"a small context": {
			url: func(t *testing.T) string { return mock(t, mockserver.Options{Pack: pack, ContextTokens: 8192}) },
			odd: map[string]Status{"context": Failed, "model-file": Warning}, says: map[string]string{"context": "5 of 22 requests do not fit"}},
		"a dead port": {
			url: deadPort, odd: from("server", NotAsked, map[string]Status{"server": Failed}), says: map[string]string{"server": "connection refused"}},
		"a server that says nothing": {
			url: silent, within: time.Second, odd: from("server", NotAsked, map[string]Status{"server": Failed}), says: map[string]string{"server": "gives no answer"}},
		"a web page": {
			url: func(t *testing.T) string {
				return serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/html")
					fmt.Fprint(w, "<html><body>It works!</body></html>")
				})
			},
			odd: from("key", NotAsked, map[string]Status{"interface": Failed}), says: map[string]string{"interface": "not JSON (text/html)"}},
		"a server that is loading": {
			url: func(t *testing.T) string {
				return serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
			},
			odd: from("key", NotAsked, map[string]Status{"interface": Failed}), says: map[string]string{"interface": "503"}},
		"no streaming": {
			url: func(t *testing.T) string {
				return engineWith(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`)
				})
			},
			odd:  with(map[string]Status{"stream": Failed, "usage": NotAsked, "cache": NotAsked, "timings": NotAsked}),
			says: map[string]string{"stream": "no event stream"}},
		"a refused parameter": {
			url: func(t *testing.T) string {
				return engineWith(t, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprint(w, `{"error":{"message":"unknown field top_k","type":"invalid_request_error"}}`)
				})
			},
			odd:  with(map[string]Status{"stream": Failed, "usage": NotAsked, "cache": NotAsked, "timings": NotAsked}),
			says: map[string]string{"stream": "unknown field top_k"}},
		"a chat that never begins": {
			url: func(t *testing.T) string {
				return engineWith(t, func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // the server sees the client go only then
					<-r.Context().Done()
				})
			},
			within: time.Second, odd: with(map[string]Status{"stream": Failed, "usage": NotAsked, "cache": NotAsked, "timings": NotAsked})},
		"a stream with all but times": {
			url: func(t *testing.T) string { return engineWith(t, stream(word, last, counts, done)) }, odd: untold, says: map[string]string{"usage": "9 in, 1 out"}},
		"a stream without usage": {
			url: func(t *testing.T) string { return engineWith(t, stream(word, last, done)) },
			odd: with(map[string]Status{"usage": Warning, "cache": Warning})},
		"a stream without its end marker": {
			url: func(t *testing.T) string { return engineWith(t, stream(word, last, counts)) }, odd: with(map[string]Status{"stream": Warning})},
		"an address where every other path hangs": {
			url: func(t *testing.T) string {
				return serve(t, func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/v1/models":
						fmt.Fprint(w, `{"object":"list","data":[{"id":"m"}]}`)
					case "/v1/chat/completions":
						stream(word, last, counts, done)(w, r)
					default:
						_, _ = io.Copy(io.Discard, r.Body)
						<-r.Context().Done()
					}
				})
			},
			within: 2 * time.Second, odd: untold},
		"a replay that has no answer to this": {
			url: func(t *testing.T) string { return recorded(t, "") }, args: []string{"--model", "tiny-chat"},
			odd: with(map[string]Status{"stream": Failed, "usage": NotAsked, "cache": NotAsked, "timings": NotAsked}), says: map[string]string{"stream": "HTTP 404"}},
		"a real server's stream": {
			url: func(t *testing.T) string { return recorded(t, "A10_chat_stream_usage") }, odd: with(map[string]Status{"timings": OK}), says: map[string]string{"usage": " in, ", "cache": "from a cache"}},
		"a capacity that the operator knows": {
			url:  func(t *testing.T) string { return engineWith(t, stream(word, last, counts, done)) },
			args: []string{"--server-capacity", "3"}, odd: with(map[string]Status{"capacity": OK})},
		"a model file that is there":     {args: []string{"--model-file", "doctor_test.go"}, odd: map[string]Status{"model-file": OK}},
		"a model file that is not there": {args: []string{"--model-file", "/no/such/file"}, odd: noModelFile, says: map[string]string{"model-file": "no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			args := c.args
			for i, a := range args { // relative to here, not to the folder of the run
				if strings.HasSuffix(a, ".go") {
					args[i], _ = filepath.Abs(a)
				}
			}
			if c.url != nil {
				args = append([]string{"--url", c.url(t)}, args...)
			}
			r := examine(t, c.within, args...)
			want := map[string]Status{}
			for id, s := range c.odd {
				if s != OK {
					want[id] = s
				}
			}
			g.Expect(r.not()).To(Equal(want), "%+v", r.Checks)
			for id, part := range c.says {
				g.Expect(r.at(t, id).Answer).To(ContainSubstring(part))
			}
			runnable := true
			for _, check := range r.Checks {
				runnable = runnable && check.Status != Failed
				g.Expect(check.Answer).NotTo(BeEmpty(), check.ID)
				g.Expect(check.Mend != "").To(Equal(check.Status == Warning || check.Status == Failed), check.ID)
			}
			g.Expect(r.Runnable()).To(Equal(runnable))
			shown, err := json.Marshal(r)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(shown)).NotTo(ContainSubstring("0123456789"))
		})
	}
}

func TestAKeyThatAServerEchoesIsNotShown(t *testing.T) {
	g := NewWithT(t)
	const key = "sk-echo-0123456789"
	t.Setenv("DOCTOR_KEY", key)
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"what is %s?","type":"%s"}}`, r.Header.Get("Authorization"), r.Header.Get("Authorization"))
	}
	for _, url := range []string{engineWith(t, echo), serve(t, echo)} {
		r := examine(t, 0, "--url", url, "--credential-env", "DOCTOR_KEY")
		shown, err := json.Marshal(r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(shown)).NotTo(ContainSubstring(key))
		g.Expect(string(shown)).To(ContainSubstring("what is"))
		g.Expect(r.Runnable()).To(BeFalse())
	}
}

func TestTheProbeIsNoPromptOfTheCorpusAndAsksAsARunDoes(t *testing.T) {
	g := NewWithT(t)
	var sent map[string]any
	url := engineWith(t, func(w http.ResponseWriter, r *http.Request) {
		g.Expect(json.NewDecoder(r.Body).Decode(&sent)).To(Succeed())
		stream(word, last, counts, done)(w, r)
	})
	r := examine(t, 0, "--url", url)
	g.Expect(r.Runnable()).To(BeTrue())
	g.Expect(sent["stream"]).To(BeTrue())
	g.Expect(sent["model"]).To(Equal("m"))
	g.Expect(sent["max_tokens"]).To(BeNumerically("==", probeMaxTokens))
	for _, field := range []string{"stream_options", "temperature", "chat_template_kwargs"} {
		g.Expect(sent).To(HaveKey(field), "the profile's")
	}
	pack, err := corpus.Default()
	g.Expect(err).NotTo(HaveOccurred())
	text := sent["messages"].([]any)[0].(map[string]any)["content"].(string)
	for _, p := range pack.Prompts {
		g.Expect(p.Text[:4]).NotTo(Equal(text[:4]), p.ID)
	}
}

func TestARunsFolderMustBeNewAndWritable(t *testing.T) {
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, recordName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for out, says := range map[string]string{used: "another run", file: "no folder", filepath.Join(file, "below"): "not a directory", "/proc/run": "write in"} {
		r := examine(t, 0, "--out", out)
		NewWithT(t).Expect(r.at(t, "disk")).To(And(HaveField("Status", Failed), HaveField("Answer", ContainSubstring(says))))
		NewWithT(t).Expect(r.Runnable()).To(BeFalse())
	}
	fresh := filepath.Join(t.TempDir(), "a", "b")
	r := examine(t, 0, "--out", fresh)
	NewWithT(t).Expect(r.at(t, "disk").Status).To(Equal(OK))
	entries, err := os.ReadDir(filepath.Dir(filepath.Dir(fresh)))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(entries).To(BeEmpty(), "nothing is left behind")
}

func TestDockerIsAskedWhereItsVariableLeads(t *testing.T) {
	engine := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if strings.HasPrefix(r.URL.Path, "/images/") && r.URL.Path != "/images/here/it/is:1/json" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	for name, c := range map[string]struct {
		host, image string
		want        docker
		fails       bool
	}{
		"an engine":          {"tcp://" + strings.TrimPrefix(engine, "http://"), "", docker{version: "1.41"}, false},
		"an image":           {"tcp://" + strings.TrimPrefix(engine, "http://"), "here/it/is:1", docker{version: "1.41", image: true}, false},
		"an image not there": {"tcp://" + strings.TrimPrefix(engine, "http://"), "not/here", docker{version: "1.41"}, false},
		"nothing":            {"unix:///no/such/socket", "", docker{}, true},
		"another way":        {"ssh://host", "", docker{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("DOCKER_HOST", c.host)
			got := askDocker(t.Context(), c.image)
			g.Expect(got.err != nil).To(Equal(c.fails))
			got.err = nil
			g.Expect(got).To(Equal(c.want))
		})
	}
}

func TestAnEngineThatIsStartedForTheRunIsNotStartedForThis(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("DOCKER_HOST", "unix:///no/such/socket")
	program, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	r := examine(t, 0, "--engine", "llama.cpp-process", "--command", program)
	g.Expect(r.at(t, "server")).To(And(HaveField("Status", OK), HaveField("Answer", ContainSubstring(program))))
	g.Expect(r.at(t, "stream").Status).To(Equal(NotAsked))
	g.Expect(r.EngineAsked).To(BeFalse())
	g.Expect(r.Runnable()).To(BeTrue())
	r = examine(t, 0, "--engine", "llama.cpp-process", "--command", "/no/such/program")
	g.Expect(r.at(t, "server").Status).To(Equal(Failed))
	r = examine(t, 0, "--engine", "llama.cpp-container")
	g.Expect(r.at(t, "docker")).To(HaveField("Status", Failed))
	g.Expect(r.Runnable()).To(BeFalse())
}

func TestADriveThatHangsHoldsNobodyUp(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := make(chan int)
	_, ok := inTime(ctx, func() int { return <-never })
	g.Expect(ok).To(BeFalse())
	close(never)
}

func TestEveryRowOfTheTableIsFilledIn(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, c := range checks {
		g.Expect(seen).NotTo(HaveKey(c.id))
		seen[c.id] = true
		for _, text := range []string{c.id, c.question, c.how, c.mend} {
			g.Expect(text).NotTo(BeEmpty(), c.id)
		}
	}
}

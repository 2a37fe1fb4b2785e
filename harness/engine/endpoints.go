package engine

import (
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"plumbline/fixtures"
)

// The engines that are told apart.
const (
	nameStrata = "strata"
	nameLlama  = "llama.cpp"
	nameVLLM   = "vllm"
	nameSGLang = "sglang"
	nameOllama = "ollama"
	nameMock   = fixtures.MockEngine
)

// endpoint is a place to ask and what to take from a 200 answer of it. Every reader must bear any body: other servers
// have pages of their own at these paths.
type endpoint struct {
	path string
	tell func(t *telling, a answer)
}

// endpoints in their order of trust: where two tell the same fact, the first has the word.
var endpoints = []endpoint{
	{"/health", tellHealth},
	{"/v1/status", tellStatus},
	{modelsPath, tellModels},
	{"/slots", tellSlots},
	{"/props", tellProps},
	{"/server_info", tellServerInfo},
	{"/get_server_info", tellServerInfo},
	{"/version", tellVersion},
	{"/api/version", tellOllamaVersion},
	{"/api/ps", tellOllamaProcesses},
	{"/metrics", tellMetrics},
}

// services are names that engines give themselves in "service".
var services = map[string]string{"strata": nameStrata, nameMock: nameMock}

// owners are values of owned_by that an engine puts into its list of models. Ollama puts a namespace of its library
// there, which says nothing.
var owners = map[string]string{"llamacpp": nameLlama, "vllm": nameVLLM, "sglang": nameSGLang, "plumbline": nameMock}

// tellHealth: Strata answers service, model, max_context, loaded (Niko1221/Strata serve/server.py, do_GET /health);
// llama.cpp {"status":"ok"}; vLLM and SGLang an empty body.
func tellHealth(t *telling, a answer) {
	t.name(services[a.json.Get("service").String()])
	if t.facts.Name == nameStrata {
		t.contextTokens(a.json.Get("max_context"))
	}
}

// tellStatus: Strata (Niko1221/Strata serve/server.py, v1_status) and the mock. concurrency.serving is how many
// requests are served at once, activity.requests the requests since the start. "engine" is Strata's version as a text,
// and an object of name and version in the mock.
func tellStatus(t *telling, a answer) {
	name, version := services[a.json.Get("service").String()], a.json.Get("engine")
	if version.IsObject() {
		name, version = services[version.Get("name").String()], version.Get("version")
	}
	if name == "" {
		return
	}
	t.name(name)
	t.version(version.String())
	t.capacity(a.json.Get("concurrency.serving"))
	t.contextTokens(a.json.Get("context.max_positions"))
	if n, ok := whole(a.json.Get("activity.requests")); ok {
		t.served(n)
	}
}

// tellModels reads the list of the interface (OpenAI API reference, List models: data[].id, owned_by) with what
// engines add: llama.cpp aliases and meta.n_ctx (ggml-org/llama.cpp tools/server/server-context.cpp,
// get_res_model_info); vLLM and SGLang root and max_model_len (vllm-project/vllm PR 4643; sgl-project/sglang
// python/sglang/srt/entrypoints/openai/protocol.py, ModelCard); Strata a further entry per alias with alias_of
// (Niko1221/Strata serve/server.py, do_GET /v1/models).
func tellModels(t *telling, a answer) {
	var one gjson.Result
	for _, m := range a.json.Get("data").Array() {
		id := m.Get("id").String()
		if id == "" || len(id) > maxText {
			continue
		}
		t.name(owners[m.Get("owned_by").String()])
		if of := m.Get("alias_of").String(); of != "" && of != id {
			t.facts.ModelAliases[id] = of
			continue
		}
		for _, alias := range m.Get("aliases").Array() {
			if text := alias.String(); text != id && text != "" {
				t.facts.ModelAliases[text] = id
			}
		}
		t.facts.ServedModels = append(t.facts.ServedModels, id)
		one = m
	}
	if len(t.facts.ServedModels) > 0 {
		t.facts.Sources["served_models"] = t.at
	}
	if a.header.Get("Server") == nameLlama {
		t.name(nameLlama) // sent with every answer, also by its router
	}
	if len(t.facts.ServedModels) == 1 {
		t.contextTokens(one.Get("meta.n_ctx"))
		t.contextTokens(one.Get("max_model_len"))
		if t.facts.Name == nameVLLM || t.facts.Name == nameSGLang {
			t.text("model_path", &t.facts.ModelPath, one.Get("root").String())
		}
	}
}

// tellSlots: llama.cpp and Strata list their slots (ggml-org/llama.cpp tools/server/README.md, GET /slots). An idle
// slot has n_ctx, the context of one slot, and speculative.
func tellSlots(t *telling, a answer) {
	slots := a.json.Array()
	if !a.json.IsArray() || len(slots) == 0 || !slots[0].Get("id").Exists() {
		return
	}
	t.capacity(number(int64(len(slots))))
	t.contextTokens(slots[0].Get("n_ctx"))
	t.option("speculative", slots[0].Get("speculative"))
}

var llamaBuild = regexp.MustCompile(`^(b\d+)-([0-9a-f]{7,40})$`)

// tellProps: llama.cpp (ggml-org/llama.cpp tools/server/server-context.cpp, get_res_props) and Strata
// (Niko1221/Strata serve/server.py, _props). llama.cpp's build_info is "b10573-d775b8967", Strata's "Strata 0.1.41".
// n_ctx is that of one slot. total_slots counts llama.cpp's slots and is a constant 1 in Strata. A llama.cpp router
// has the role "router" and placeholders instead of a model's facts.
func tellProps(t *telling, a answer) {
	build := a.json.Get("build_info").String()
	if m := llamaBuild.FindStringSubmatch(build); m != nil {
		t.name(nameLlama)
		t.version(m[1])
		t.text("commit", &t.facts.Commit, m[2])
	} else if v, ok := strings.CutPrefix(build, "Strata "); ok {
		t.name(nameStrata)
		t.version(v)
	} else {
		t.version(build) // some other server's own form
	}
	if a.json.Get("role").String() == "router" {
		return
	}
	if t.facts.Name != nameStrata {
		t.capacity(a.json.Get("total_slots"))
	}
	t.contextTokens(a.json.Get("default_generation_settings.n_ctx"))
	t.text("model_path", &t.facts.ModelPath, a.json.Get("model_path").String())
	if template := a.json.Get("chat_template").String(); template != "" && t.facts.ChatTemplate == "" {
		t.facts.ChatTemplate = template
		t.facts.Sources["chat_template"] = t.at
	}
	t.option("model_ftype", a.json.Get("model_ftype"))
}

// sglangOptions are the server arguments of SGLang that say how it was run. It tells all of them, its keys among
// them, so only these are taken.
var sglangOptions = []string{"dtype", "quantization", "kv_cache_dtype", "tp_size", "dp_size", "speculative_algorithm",
	"chunked_prefill_size", "disable_radix_cache", "attention_backend"}

// tellServerInfo: SGLang (docs.sglang.io, native API, /server_info, before /get_server_info): its server arguments,
// version, and in internal_states one entry per data-parallel rank with effective_max_running_requests_per_dp.
func tellServerInfo(t *telling, a answer) {
	states := a.json.Get("internal_states")
	if !states.IsArray() || !a.json.Get("model_path").Exists() {
		return
	}
	t.name(nameSGLang)
	t.version(a.json.Get("version").String())
	t.text("model_path", &t.facts.ModelPath, a.json.Get("model_path").String())
	total := int64(0)
	for _, s := range states.Array() {
		n, _ := whole(s.Get("effective_max_running_requests_per_dp"))
		total += max(n, 0)
	}
	t.capacity(number(total))
	t.capacity(a.json.Get("max_running_requests"))
	t.contextTokens(a.json.Get("context_length"))
	for _, name := range sglangOptions {
		t.option(name, a.json.Get(name))
	}
}

// tellVersion: vLLM (docs.vllm.ai, OpenAI-compatible server, GET /version): {"version": "0.11.0"}.
func tellVersion(t *telling, a answer) {
	if t.facts.Name == nameVLLM {
		t.version(a.json.Get("version").String())
	}
}

// tellOllamaVersion: Ollama (docs.ollama.com, GET /api/version): {"version": "0.12.6"}. Only a server that has not
// told its name yet is called so: others imitate this path.
func tellOllamaVersion(t *telling, a answer) {
	if v := a.json.Get("version").String(); v != "" {
		t.name(nameOllama)
		if t.facts.Name == nameOllama {
			t.version(v)
		}
	}
}

// tellOllamaProcesses: Ollama lists the loaded models with their context_length (docs.ollama.com, GET /api/ps).
func tellOllamaProcesses(t *telling, a answer) {
	if loaded := a.json.Get("models").Array(); t.facts.Name == nameOllama && len(loaded) == 1 {
		t.contextTokens(loaded[0].Get("context_length"))
	}
}

// notOptions are keys of Strata's "engine" object that are facts of their own, or no options.
var notOptions = map[string]bool{"model": true, "max_context": true, "images": true, "version": true, "engine": true,
	"efforts": true, "effort_default": true, "build_kind": true, "commit": true}

// tellMetrics: Strata answers JSON with an object "engine" of its facts and options (Niko1221/Strata
// serve/server.py, metrics); vLLM and SGLang count finished requests in Prometheus metrics
// (docs.vllm.ai, Production metrics; docs.sglang.io, Production metrics). Strata's Prometheus page bears vLLM's names,
// so a name there proves nothing about who answers. llama.cpp counts no requests.
func tellMetrics(t *telling, a answer) {
	if engine := a.json.Get("engine"); engine.IsObject() {
		if t.facts.Name != nameStrata && t.facts.Name != nameMock {
			return
		}
		t.version(engine.Get("version").String())
		t.text("build_kind", &t.facts.BuildKind, engine.Get("build_kind").String())
		t.text("commit", &t.facts.Commit, engine.Get("commit").String())
		engine.ForEach(func(key, value gjson.Result) bool {
			if !notOptions[key.String()] {
				t.option(key.String(), value)
			}
			return true
		})
		return
	}
	for _, name := range []string{"vllm:request_success_total", "sglang:num_requests_total"} {
		if n, ok := metric(a.body, name); ok {
			t.served(int64(n))
		}
	}
}

package capacity

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"plumbline/fixtures"
)

// Fingerprint identifies the configuration that a run measured: "sha256:" and 64 hex digits over the format's own text
// (names sorted, two spaces of indent, ASCII) of an object with the members engine, gpus, model and settings.
//
// It holds what makes two runs of the same load on the same engine: the engine's name, version, commit and build, its
// options and context window, the GPUs, the model, and the settings that shape requests and their arrival. It leaves out
// what differs between repetitions of one configuration: address, seed, number of requests, time-out, abort rule, clock,
// objective, sweep and calibration.
func Fingerprint(h *fixtures.Header) string {
	run := h.Capacity
	options := object{}
	for name, value := range h.Engine.Options {
		options[name] = value
	}
	gpus := list{}
	if h.Host.EngineHere {
		for _, g := range h.Host.GPUs {
			gpus = append(gpus, object{"name": g.Name, "memory_bytes": g.MemoryBytes})
		}
	}
	var b bytes.Buffer
	err := encode(&b, object{
		"engine": object{
			"name": h.Engine.Name, "version": h.Engine.Version, "commit": h.Engine.Commit, "build_kind": h.Engine.BuildKind,
			"build_options": h.Engine.BuildOptions, "options": options, "context_tokens": h.Engine.ContextTokens,
		},
		"gpus":  gpus,
		"model": h.Model,
		"settings": object{
			"concurrency": run.Concurrency, "burst": run.Burst, "ctx_tokens": run.CtxTokens,
			"shared_prefix_tokens": run.SharedPrefixTokens, "prompt_cache_mode": run.PromptCacheMode,
			"max_tokens": run.MaxTokens, "response_words": run.ResponseWords, "request_canaries": run.RequestCanaries,
			"controlled_output_policy": run.ControlledOutputPolicy, "max_model_len": run.MaxModelLen, "margin": run.Margin,
			"thinking_mode": run.ThinkingMode, "reasoning_effort": run.ReasoningEffort,
			"temperature": run.Temperature, "top_p": run.TopP, "arrival": run.Arrival, "rate": run.Rate,
		},
	})
	if err != nil { // a setting that is no number: it has no fingerprint, and the document that holds it is refused
		return ""
	}
	sum := sha256.Sum256(b.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:])
}

package strata

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/tidwall/sjson"
)

// mutation is one thing wrong: the member at path gets a raw value ("" deletes it), and the validator must name pointer.
type mutation struct{ path, raw, pointer string }

// shared are mutations of anything that the reference and our own document have in common.
var shared = []mutation{
	{"format", `"other"`, "/format"},
	{"schema_version", `2`, "/schema_version"},
	{"schema_version", `1.0`, "/schema_version"},
	{"schema_version", `"1"`, "/schema_version"},
	{"quality", ``, "/quality"},
	{"unknown", `1`, "/unknown"},
	{"protocol.id", `""`, "/protocol/id"},
	{"protocol.corpus_sha256", `"E75EFF8B9FEEA04F745520B392C4C17D97AEFC1BA185E222AA6740EFA8F68407"`, "/protocol/corpus_sha256"},
	{"protocol.corpus_sha256", `"` + strings.Repeat("0", 64) + `"`, "/protocol/corpus_sha256"},
	{"protocol.model_card_revision", `"r1"`, "/missing/~1protocol~1model_card_revision"},
	{"protocol.profile", `null`, "/protocol/profile"},
	{"run.id", `"20261027T000709Z-53BBC5D8"`, "/run/id"},
	{"run.id", `"19991027T000709Z-53bbc5d8"`, "/run/id"},
	{"run.started_at", `"2026-10-27T00:07:09.5Z"`, "/run/started_at"},
	{"run.started_at", `"2026-13-27T00:07:09Z"`, "/run/started_at"},
	{"run.status", `"fine"`, "/run/status"},
	{"run.status", `"incomplete"`, "/run/status"},
	{"run.required_duration_s", `102.0711`, "/run/required_duration_s"},
	{"run.required_duration_s", `12.5`, "/run/required_duration_s"},
	{"run.required_duration_s", `1e3`, "/run/required_duration_s"},
	{"run.command", ``, "/run/command"},
	{"hardware.gpus.0.power_limit_w", `250`, "/hardware/gpus/0/power_limit_w"},
	{"hardware.gpus.0.memory_bytes", `25769803776.0`, "/hardware/gpus/0/memory_bytes"},
	{"hardware.gpus.0.memory_kind", `"shared"`, "/hardware/gpus/0/memory_kind"},
	{"hardware.ram_bytes", `-1`, "/hardware/ram_bytes"},
	{"hardware.cpu", `null`, "/hardware/cpu"},
	{"software.os.kernel", `"x"`, "/software/os/kernel"},
	{"software.drivers.0.version", `595`, "/software/drivers/0/version"},
	{"configuration.context_tokens", `null`, "/configuration/context_tokens"},
	{"configuration.template.sha256", `"` + strings.Repeat("1", 64) + `"`, "/configuration/template/sha256"},
	{"configuration.sampling", `[]`, "/configuration/sampling"},
	{"configuration.sampling.temperature", `1e0`, "/configuration/sampling/temperature"},
	{"configuration.sampling.top_k", `null`, "/configuration/sampling/top_k"},
	{"request_counts.sanity.planned", `13`, "/request_counts/sanity/planned"},
	{"request_counts.performance.completed", `5`, "/request_counts/performance/completed"},
	{"request_counts.warmup.failed", `1`, "/request_counts/warmup/attempted"},
	{"requests.0.id", `"warm-up"`, "/requests/0/id"},
	{"requests.1.id", `"performance-short-r2"`, "/requests/1/id"},
	{"requests.1.case_id", `"prompt-4k"`, "/requests/1/id"},
	{"requests.4.repetition", `1`, "/requests/4/id"},
	{"requests.4.seed", `3`, "/requests/4/seed"},
	{"requests.4.seed", `0`, "/requests/4/seed"},
	{"requests.4.concurrency", `2`, "/requests/4/concurrency"},
	{"requests.4.round", `1`, "/requests/4/round"},
	{"requests.4.round", `1`, "/missing/~1requests~14~1round"},
	{"requests.0.phase", `"sanity"`, "/requests/0"},
	{"requests.1.status", `"truncated"`, "/requests/1/finish_reason"},
	{"requests.1.status", `"failed"`, "/requests/1/error"},
	{"requests.1.status", `"failed"`, "/summaries/0/n"},
	{"requests.1.status", `"skipped"`, "/requests/1/tokens/input_tokens"},
	{"requests.1.status", `"done"`, "/requests/1/status"},
	{"requests.1.finish_reason", `"length"`, "/requests/1/finish_reason"},
	{"requests.1.error", `"oops"`, "/requests/1/error"},
	{"requests.1.tokens.input_tokens", `78`, "/requests/1/tokens/read_tokens"},
	{"requests.1.tokens.cached_tokens", `1`, "/requests/1/tokens/read_tokens"},
	{"requests.1.tokens.cached_tokens", `78`, "/requests/1/tokens/cached_tokens"},
	{"requests.1.tokens.read_tokens", `76`, "/requests/1/metrics/prompt_tps"},
	{"requests.1.tokens.output_tokens", `381`, "/requests/1/token_accounting_note"},
	{"requests.1.tokens.output_tokens", `380.0`, "/requests/1/tokens/output_tokens"},
	{"requests.1.tokens.decode_tokens", `379`, "/requests/1/metrics/decode_tps"},
	{"requests.1.timings.prompt_s", `0.37645`, "/requests/1/timings/prompt_s"},
	{"requests.1.timings.decode_s", `3.5497`, "/requests/1/metrics/decode_tps"},
	{"requests.1.timings.decode_s", `35.496`, "/requests/1/timings/decode_s"},
	{"requests.1.timings.ttft_s", `1.266815`, "/requests/1/timings/first_answer_s"},
	{"requests.1.timings.ttft_s", `0.392836`, "/summaries/2/min"},
	{"requests.1.timings.ttft_s", `0.3928350`, "/requests/1/timings/ttft_s"},
	{"requests.1.timings.first_answer_s", `3.931352`, "/requests/1/timings/first_answer_s"},
	{"requests.1.timings.total_s", `null`, "/requests/1/timings/total_s"},
	{"requests.1.timings.total_s", `4`, "/requests/1/timings/total_s"},
	{"requests.1.metrics.decode_tps", `107.054317`, "/requests/1/metrics/decode_tps"},
	{"requests.1.metrics.prompt_tps", `204.5696071`, "/requests/1/metrics/prompt_tps"},
	{"requests.1.metrics.tps", `1.0`, "/requests/1/metrics/tps"},
	{"requests.1.sources.input_tokens", `null`, "/requests/1/sources/input_tokens"},
	{"requests.1.first_delta_kind", `"thought"`, "/requests/1/first_delta_kind"},
	{"requests.1.first_delta_kind", `null`, "/requests/1/first_delta_kind"},
	{"requests.1.token_accounting_note", `"odd"`, "/requests/1/token_accounting_note"},
	{"requests.1.evaluation", `{"category":"retrieval","passed":true,"reason":"x"}`, "/requests/1/evaluation"},
	{"requests.10.evaluation", `null`, "/requests/10/evaluation"},
	{"requests.10.evaluation.category", `"retrieval"`, "/requests/10/evaluation/category"},
	{"requests.10.evaluation.passed", `false`, "/quality/passed"},
	{"requests.10.evaluation.passed", `false`, "/quality/categories/instruction/passed"},
	{"requests.2.max_output_tokens", `511`, "/requests/2/tokens/output_tokens"},
	{"configuration.template.path", `"provenance/other.jinja"`, "/configuration/template/path"},
	{"requests.2", ``, "/request_counts/performance/planned"},
	{"requests.2", ``, "/extensions/request_checks/performance-prompt-4k-r1"},
	{"requests", `{}`, "/requests"},
	{"summaries.0.median", `165.378008`, "/summaries/0/median"},
	{"summaries.0.median", `null`, "/summaries/0/median"},
	{"summaries.1.min", `107.05`, "/summaries/1/min"},
	{"summaries.2.max", `0.490478`, "/summaries/2/max"},
	{"summaries.3.n", `2`, "/summaries/3/n"},
	{"summaries.3.unit", `"tokens/s"`, "/summaries/3/unit"},
	{"summaries.4.metric", `"ttft_s"`, "/summaries/4/metric"},
	{"summaries.4.concurrency", `2`, "/summaries/4/concurrency"},
	{"summaries.5.case_id", `"short"`, "/summaries/5/case_id"},
	{"summaries.13.included_request_ids.0", `"performance-prompt-16k-r1"`, "/summaries/13/included_request_ids/0"},
	{"summaries.13.excluded.0.request_id", `"performance-prompt-16k-r2"`, "/summaries/13/excluded/0/request_id"},
	{"summaries.13.excluded", `[]`, "/summaries/13/excluded"},
	{"summaries.13.excluded.0.reason", `""`, "/summaries/13/excluded/0/reason"},
	{"summaries.14", ``, "/summaries"},
	{"concurrency_rounds", `[{}]`, "/concurrency_rounds/0/wall_s"},
	{"quality.total", `11`, "/quality/total"},
	{"quality.categories.tool_call.passed", `3`, "/quality/categories/tool_call/passed"},
	{"quality.categories.poetry", `{"passed":0,"total":0}`, "/quality/categories/poetry"},
	{"artifacts.0.kind", `"provenance"`, "/artifacts"},
	{"artifacts.0.sha256", `"abc"`, "/artifacts/0/sha256"},
	{"artifacts.1.path", `"../config.json"`, "/artifacts/1/path"},
	{"artifacts.1.path", `"outputs.jsonl"`, "/artifacts/1/path"},
	{"missing./requests/0/round", ``, "/requests/0/round"},
	{"missing./requests/0/round", `""`, "/missing/~1requests~10~1round"},
	{"missing./requests/0/round", `7`, "/missing/~1requests~10~1round"},
	{"missing./nowhere", `"x"`, "/missing/~1nowhere"},
	{"missing./run/id", `"x"`, "/missing/~1run~1id"},
	{"extensions", ``, "/extensions"},
	{"extensions.status_reasons", ``, "/extensions/status_reasons"},
	{"extensions.status_reason_codes", `["a","b","c"]`, "/extensions/status_reason_codes"},
	{"extensions.request_checks.warmup.unexpected_payload_reuse", `true`, "/extensions/request_checks/warmup/unexpected_payload_reuse"},
	{"extensions.request_checks.warmup.max_shared_prefix_tokens", `4.5`, "/extensions/request_checks/warmup/max_shared_prefix_tokens"},
	{"extensions.request_checks.stray", `{}`, "/extensions/request_checks/stray"},
	{"extensions.note", `1e9`, "/extensions/note"},
	{"extensions.note", `null`, "/extensions/note"},
	{"extensions.timing_basis", `"guess"`, "/extensions/timing_basis"},
}

// ofTheReference and ofOurs are mutations of what only one of them has.
var ofTheReference = []mutation{
	{"run.status", `"conforming"`, "/run/status"},
	{"extensions.status_reasons", `[]`, "/run/status"},
	{"run.optional_duration_s", `1.5`, "/run/optional_duration_s"},
	{"request_counts.concurrency.planned", `1`, "/request_counts/concurrency/planned"},
	{"extensions.request_checks.sanity-R4.length_outside_tolerance", `true`, "/extensions/request_checks/sanity-R4/length_outside_tolerance"},
}

const oneFinding = `[{"id":"missing-done","severity":"warning","count":1,"sentence":"it is not there"}]`

var ofOurs = []mutation{
	{"run.status", `"nonconforming"`, "/run/status"},
	{"extensions.status_reasons", `["some reason"]`, "/run/status"},
	{"extensions.status_reasons", `["some reason"]`, "/extensions/status_reason_codes"},
	{"run.optional_concurrency", `false`, "/run/optional_duration_s"},
	{"run.optional_concurrency", `false`, "/requests/22/phase"},
	{"requests.1.max_output_tokens", `600`, "/run/status"},
	{"extensions.request_checks.warmup.length_outside_tolerance", `true`, "/extensions/request_checks/warmup/length_outside_tolerance"},
	{"extensions.timing_basis", `"client"`, "/extensions/timing_basis"},
	{"extensions.timing_basis", `null`, "/extensions/timing_basis"},
	{"extensions.engine_kind", `"mock"`, "/extensions/status_reason_codes"},
	{"extensions.engine_name", `"plumbline-mock"`, "/extensions/status_reason_codes"},
	{"extensions.engine_kind", `"replay"`, "/extensions/status_reason_codes"},
	{"extensions.status_reason_codes", `["engine_mock"]`, "/extensions/status_reason_codes/0"},
	{"extensions.status_reason_codes", `["made_up"]`, "/extensions/status_reason_codes/0"},
	{"extensions.client_decode_tps", `{}`, "/extensions/client_decode_tps/warmup"},
	{"extensions.client_decode_tps.stray", `1.5`, "/extensions/client_decode_tps/stray"},
	{"extensions.repetition_drift", `{}`, "/extensions/repetition_drift/prompt-16k"},
	{"extensions.repetition_drift", ``, "/extensions/repetition_drift"},
	{"extensions.served_models_after", ``, "/extensions/served_models_after"},
	{"extensions.served_models_after", `["other"]`, "/extensions/status_reason_codes"},
	{"extensions.served_models_after", `null`, "/extensions/status_reason_codes"},
	{"extensions.request_checks.performance-prompt-4k-r1.unexpected_payload_reuse", `null`, "/extensions/status_reason_codes"},
	{"extensions.request_checks.performance-prompt-4k-r1.length_outside_tolerance", `null`, "/extensions/status_reason_codes"},
	{"extensions.optional_stage_skipped", `true`, "/extensions/optional_stage_skipped"},
	{"extensions.notes", `[]`, "/extensions/notes"},
	{"extensions.findings", ``, "/extensions/findings"},
	{"extensions.findings", `[]`, "/extensions/findings"},
	{"extensions.findings.stray", oneFinding, "/extensions/findings/stray"},
	{"extensions.findings.warmup", `[]`, "/extensions/findings/warmup"},
	{"extensions.findings.warmup", strings.Replace(oneFinding, `1`, `0`, 1), "/extensions/findings/warmup/0/count"},
	{"extensions.findings.warmup", strings.Replace(oneFinding, `1`, `1.5`, 1), "/extensions/findings/warmup/0/count"},
	{"extensions.findings.warmup", strings.Replace(oneFinding, `warning`, `dire`, 1), "/extensions/findings/warmup/0/severity"},
	{"extensions.findings.warmup", strings.Replace(oneFinding, `missing-done`, `full-moon`, 1), "/extensions/findings/warmup/0/id"},
	{"extensions.findings.warmup", "[" + strings.Trim(oneFinding, "[]") + "," + strings.Trim(oneFinding, "[]") + "]", "/extensions/findings/warmup/1/id"},
	{"extensions.findings", `{"sanity-I1":` + oneFinding + `,"warmup":` + oneFinding + `}`, "/extensions/findings/warmup"},
	{"requests.1.tokens.output_tokens", `null`, "/extensions/status_reason_codes"},
	{"model.files.0.sha256", `null`, "/extensions/status_reason_codes"},
	{"requests.22.max_output_tokens", `600`, "/requests/22/max_output_tokens"},
	{"concurrency_rounds.0.foreign_markers", ``, "/concurrency_rounds/0/foreign_markers"},
	{"concurrency_rounds.0.foreign_markers", `[{"request_id":"warmup","marker":"M","owner":"concurrency-c2-r2-1","in_thinking":false}]`,
		"/concurrency_rounds/0/foreign_markers/0/request_id"},
	{"concurrency_rounds.0.foreign_markers", `[{"request_id":"concurrency-c2-r1-1","marker":"M","owner":"concurrency-c2-r1-1","in_thinking":false}]`,
		"/concurrency_rounds/0/foreign_markers/0/owner"},
	{"requests.1.timings.decode_s", `null`, "/requests/1/metrics/decode_tps"},
	{"requests.22.round", `null`, "/requests/22/round"},
	{"requests.22.concurrency", `1`, "/requests/22/concurrency"},
	{"requests.22.id", `"concurrency-2-1"`, "/requests/22/id"},
	{"requests.22.round", `2`, "/requests/22"},
	{"concurrency_rounds.0.wall_s", `4.9`, "/concurrency_rounds/0/wall_s"},
	{"concurrency_rounds.0.output_tokens", `201`, "/concurrency_rounds/0/output_tokens"},
	{"concurrency_rounds.0.output_tps", `41.0`, "/concurrency_rounds/0/output_tps"},
	{"concurrency_rounds.0.all_decoding_s", `5.1`, "/concurrency_rounds/0/all_decoding_s"},
	{"concurrency_rounds.0.slowest_to_fastest", `0.7`, "/concurrency_rounds/0/slowest_to_fastest"},
	{"concurrency_rounds.0.fastest_decode_tps", `51.0`, "/concurrency_rounds/0/fastest_decode_tps"},
	{"concurrency_rounds.0.request_ids.0", `"warmup"`, "/concurrency_rounds/0/request_ids/0"},
	{"concurrency_rounds.1.round", `3`, "/concurrency_rounds/1/round"},
	{"concurrency_rounds.1", ``, "/concurrency_rounds"},
	{"extensions.repetition_drift.short.decode_tps", `0.1`, "/extensions/repetition_drift/short/decode_tps"},
	{"extensions.repetition_drift.long", `{"prompt_tps":0.0,"decode_tps":0.0}`, "/extensions/repetition_drift/long"},
	{"extensions.clock_resolution_s", `3e-8`, "/extensions/clock_resolution_s"},
	{"extensions.gpu_states", ``, "/extensions/gpu_states"},
	{"extensions.gpu_states", `null`, "/extensions/gpu_states"},
	{"extensions.gpu_states.0.phase", `"lunch"`, "/extensions/gpu_states/0/phase"},
	{"extensions.gpu_states.0.when", `"during"`, "/extensions/gpu_states/0/when"},
	{"extensions.gpu_states.0.when", `"after"`, "/extensions/gpu_states/0/when"},
	{"extensions.gpu_states.1.when", `"before"`, "/extensions/gpu_states/1/when"},
	{"extensions.gpu_states.0.readings", `null`, "/extensions/gpu_states/0/readings"},
	{"extensions.gpu_states.0.readings.0.power_w", `31`, "/extensions/gpu_states/0/readings/0/power_w"},
	{"extensions.gpu_states.0.readings.0.power_w", `-1.0`, "/extensions/gpu_states/0/readings/0/power_w"},
	{"extensions.gpu_states.0.readings.0.core_clock_mhz", `null`, "/extensions/gpu_states/0/readings/0/core_clock_mhz"},
	{"extensions.gpu_states.0.readings.1.device_index", `1.0`, "/extensions/gpu_states/0/readings/1/device_index"},
	{"extensions.gpu_states.0.readings.1.fan", `1.0`, "/extensions/gpu_states/0/readings/1/fan"},
}

func TestEveryMutationIsRefusedAtItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		data      []byte
		mutations [][]mutation
	}{
		"the reference": {reference(t), [][]mutation{shared, ofTheReference}},
		"our own":       {ours(t), [][]mutation{shared, ofOurs}},
	} {
		for _, list := range c.mutations {
			for _, m := range list {
				t.Run(fmt.Sprintf("%s %s=%.20s", name, m.path, m.raw), func(t *testing.T) {
					g := NewWithT(t)
					faults := Validate(mutate(t, c.data, m), nil)
					if m.pointer == "" {
						g.Expect(faults).To(BeEmpty())
						return
					}
					var pointers []string
					for _, f := range faults {
						g.Expect(f.Message).NotTo(BeEmpty())
						pointers = append(pointers, f.Pointer)
					}
					g.Expect(pointers).To(ContainElement(m.pointer))
				})
			}
		}
	}
}

// mutate edits a document; an edit that changes nothing fails the test.
func mutate(t testing.TB, data []byte, m mutation) []byte {
	t.Helper()
	var out []byte
	var err error
	if m.raw == "" {
		out, err = sjson.DeleteBytes(data, m.path)
	} else {
		out, err = sjson.SetRawBytes(data, m.path, []byte(m.raw))
	}
	if err != nil {
		t.Fatal(err)
	}
	if string(out) == string(data) {
		t.Fatalf("%s=%s changes nothing", m.path, m.raw)
	}
	return out
}

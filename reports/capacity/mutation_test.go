package capacity

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/tidwall/sjson"
)

// mutation is an edit of a right document, and the pointer of one problem that it must lead to; "" for none.
type mutation struct {
	path    string
	raw     string // new value, "" deletes
	pointer string
}

// shared are mutations of what the reference and our own document both hold.
var shared = []mutation{
	{"schema", `"anvil-serving.benchmark/v2"`, "/schema"},
	{"schema", ``, "/schema"},
	{"measurement_protocol", `"capacity-v5"`, "/measurement_protocol"},
	{"run_id", `"benchmark-20261005T112705Z"`, "/run_id"},
	{"run_id", `"20261005T112704Z"`, "/run_id"},
	{"started_at", `"2026-10-05T11:27:05Z"`, "/started_at"},
	{"started_at", `"2026-10-05 11:27:04"`, "/started_at"},
	{"finished_at", `"2026-10-05T11:29:31Z"`, "/finished_at"},
	{"started_at_unix_ns", `1700000000000000000`, "/started_at"},
	{"started_at_unix_ns", `1700000000000000000`, "/wall_clock_ms"},
	{"finished_at_unix_ns", `1700000000000000000`, "/finished_at_unix_ns"},
	{"finished_at_unix_ns", `1.5`, "/finished_at_unix_ns"},
	{"wall_clock_ms", `200.0`, "/wall_clock_ms"},
	{"wall_clock_ms", `200.0`, "/request_timings/0/e2e_ms"},
	{"wall_clock_ms", `-1.0`, "/wall_clock_ms"},
	{"wall_clock_ms", `86912`, "/wall_clock_ms"},
	{"clock_domain_id", `"a b"`, "/clock_domain_id"},
	{"configuration_fingerprint", `"sha256:12"`, "/configuration_fingerprint"},
	{"model", `""`, "/model"},
	{"model", ``, "/model"},
	{"requests", `2`, "/requests"},
	{"requests", `0`, "/requests"},
	{"requests", `9`, "/context_distribution"},
	{"completed", `2`, "/completed"},
	{"failed", `9`, "/failed"},
	{"responses_received", `1`, "/responses_received"},
	{"concurrency", `0`, "/concurrency"},
	{"context_distribution", `{"32768":1}`, "/context_distribution"},
	{"context_distribution.many", `1`, "/context_distribution/many"},
	{"context_tokens", `8`, "/context_tokens"},
	{"context_seed", `18`, "/request_timings/0/request_canary/marker"},
	{"max_context_tokens", `0`, "/max_context_tokens"},
	{"max_tokens", `15`, "/max_tokens"},
	{"request_canaries", `false`, "/request_timings/0/request_canary"},
	{"controlled_output_policy", `"lax"`, "/controlled_output_policy"},
	{"prompt_cache_mode", `"none"`, "/prompt_cache_mode"},
	{"metric_population.attempted_requests", `7`, "/metric_population/attempted_requests"},
	{"metric_population.successful_requests", `1`, "/metric_population/successful_requests"},
	{"metric_population.performance_eligible_requests", `1`, "/metric_population/performance_eligible_requests"},
	{"metric_population.excluded_requests", `1`, "/metric_population/excluded_requests"},
	{"metric_population.p99_interpretation", `"tail-estimate"`, "/metric_population/p99_interpretation"},
	{"metric_population.p99_interpretation", `"sure"`, "/metric_population/p99_interpretation"},
	{"metric_population.p99_interpretation_by_metric.tpot", `"tail-estimate"`, "/metric_population/p99_interpretation_by_metric/tpot"},
	{"metric_population.p99_samples_by_metric.ttft", `99`, "/metric_population/p99_samples_by_metric/ttft"},
	{"metric_population.p99_minimum_recommended_samples", `30`, "/metric_population/p99_minimum_recommended_samples"},
	{"metric_population.failure_policy", `1`, "/metric_population/failure_policy"},
	{"metrics", `[]`, "/metrics"},
	{"metrics.ttft_mean_ms", ``, "/metrics/ttft_mean_ms"},
	{"metrics.ttft_mean_ms", `28596.2`, "/metrics/ttft_mean_ms"},
	{"metrics.ttft_mean_ms", `null`, "/metrics/ttft_mean_ms"},
	{"metrics.e2e_stddev_ms", `1518.5`, "/metrics/e2e_stddev_ms"},
	{"metrics.e2e_mean_ci95_low_ms", `27251.0`, "/metrics/e2e_mean_ci95_low_ms"},
	{"metrics.generation_mean_ci95_high_ms", `null`, "/metrics/generation_mean_ci95_high_ms"},
	{"metrics.tpot_min_ms", `1.0`, "/metrics/tpot_min_ms"},
	{"metrics.decode_tok_s_max", `93.0`, "/metrics/decode_tok_s_max"},
	{"metrics.prompt_tokens_p50", `7417.5`, "/metrics/prompt_tokens_p50"},
	{"metrics.prompt_tokens_p50", `7417`, "/metrics/prompt_tokens_p50"},
	{"metrics.completion_tokens_p99", `1.0`, "/metrics/completion_tokens_p99"},
	{"metrics.ttft_samples", `9`, "/metrics/ttft_samples"},
	{"metrics.ttft_samples", `3.0`, "/metrics/ttft_samples"},
	{"metrics.output_tokens", `1`, "/metrics/output_tokens"},
	{"metrics.output_tokens", `null`, "/metrics/output_tokens"},
	{"metrics.prompt_tokens", `1`, "/metrics/prompt_tokens"},
	{"metrics.prompt_token_samples", `1`, "/metrics/prompt_token_samples"},
	{"metrics.output_token_sources", `{}`, "/metrics/output_token_sources/usage"},
	{"metrics.output_token_sources.content_chunks", `1`, "/metrics/output_token_sources/content_chunks"},
	{"metrics.content_chunks", `1`, "/metrics/content_chunks"},
	{"metrics.reasoning_chunks", `1`, "/metrics/reasoning_chunks"},
	{"metrics.content_chunks_s", `1.5`, "/metrics/content_chunks_s"},
	{"metrics.throughput_tok_s", `12.0`, "/metrics/throughput_tok_s"},
	{"metrics.request_canary_passed", `1`, "/metrics/request_canary_passed"},
	{"metrics.request_canary_samples", `1`, "/metrics/request_canary_samples"},
	{"metrics.controlled_output_samples", `1`, "/metrics/controlled_output_samples"},
	{"metrics.controlled_output_exact_adherence", `1`, "/metrics/controlled_output_exact_adherence"},
	{"metrics.controlled_output_exact_adherence_rate", `0.5`, "/metrics/controlled_output_exact_adherence_rate"},
	{"metrics.controlled_output_unobservable", `1`, "/metrics/controlled_output_unobservable"},
	{"metrics.prefix_cache_hit_avg", `1.5`, "/metrics/prefix_cache_hit_avg"},
	{"request_timings.0", ``, "/completed"},
	{"request_timings.0.ttft_ms", ``, "/request_timings/0/ttft_ms"},
	{"request_timings.0.ttft_ms", `null`, "/request_timings/0/ttft_ms"},
	{"request_timings.0.ttft_ms", `"fast"`, "/request_timings/0/ttft_ms"},
	{"request_timings.0.ttft_ms", `1.0`, "/request_timings/0/ttft_ms"},
	{"request_timings.0.ttft_ms", `1e5`, "/request_timings/0/e2e_ms"},
	{"request_timings.0.e2e_ms", `31000.0`, "/request_timings/0/generation_ms"},
	{"request_timings.0.e2e_ms", `31000.0`, "/metrics/e2e_max_ms"},
	{"request_timings.0.generation_ms", `3338.4126001`, "/request_timings/0/generation_ms"},
	{"request_timings.0.visible_generation_ms", `353.7`, "/request_timings/0/visible_generation_ms"},
	{"request_timings.0.visible_generation_ms", `353`, "/request_timings/0/visible_generation_ms"},
	{"request_timings.0.effective_prefill_tok_s", `301.0`, "/request_timings/0/effective_prefill_tok_s"},
	{"request_timings.0.effective_prefill_tok_s", `null`, "/request_timings/0/effective_prefill_tok_s"},
	{"request_timings.0.prompt_tokens", `null`, "/request_timings/0/effective_prefill_tok_s"},
	{"request_timings.0.decode_tok_s", `82.0`, "/request_timings/0/decode_tok_s"},
	{"request_timings.0.decode_tok_s", `null`, "/request_timings/0/decode_tok_s"},
	{"request_timings.0.tpot_ms", `12.3`, "/request_timings/0/tpot_ms"},
	{"request_timings.0.mean_inter_token_latency_ms", `12.3`, "/request_timings/0/mean_inter_token_latency_ms"},
	{"request_timings.0.mean_time_per_output_token_ms", `12.3`, "/request_timings/0/mean_time_per_output_token_ms"},
	{"request_timings.0.output_tokens", `275`, "/request_timings/0/decode_tok_s"},
	{"request_timings.0.output_tokens", `-1`, "/request_timings/0/output_tokens"},
	{"request_timings.0.output_token_source", `"guess"`, "/request_timings/0/output_token_source"},
	{"request_timings.0.output_token_source", `"content_chunks"`, "/request_timings/0/output_tokens"},
	{"request_timings.0.output_token_source", `"content_chunks"`, "/request_timings/0/tpot_ms"},
	{"request_timings.0.planned_context_tokens", `77`, "/request_timings/0/planned_context_tokens"},
	{"request_timings.0.request_index", `3`, "/request_timings/1/request_index"},
	{"request_timings.1.request_index", `0`, "/request_timings/1/request_index"},
	{"request_timings.2.request_index", `100`, "/request_timings/2/request_index"},
	{"request_timings.0.request_canary", `null`, "/request_timings/0/request_canary"},
	{"request_timings.0.request_canary.passed", `false`, "/request_timings/0/request_canary/passed"},
	{"request_timings.0.request_canary.marker_at_start", `false`, "/request_timings/0/request_canary/passed"},
	{"request_timings.0.request_canary.foreign_marker_count", `1`, "/request_timings/0/request_canary/passed"},
	{"request_timings.0.request_canary.capture_complete", `false`, "/request_timings/0/request_canary/passed"},
	{"request_timings.0.request_canary.observed_marker_count", `0`, "/request_timings/0/request_canary/observed_marker_count"},
	{"request_timings.0.request_canary.marker", `"ANVIL_REQ_17_00009"`, "/request_timings/0/request_canary/marker"},
	{"request_timings.0.request_canary.marker", `"REQ"`, "/request_timings/0/request_canary/marker"},
	{"request_timings.0.visible_content_truncated", `true`, "/request_timings/0/request_canary/capture_complete"},
	{"sampling.temperature.sent", `false`, "/sampling/temperature/effective_request"},
	{"sampling.temperature.effective_request", `0.5`, "/sampling/temperature/effective_request"},
	{"sampling.temperature.effective_request", `null`, "/sampling/temperature/effective_request"},
	{"serve_flags.thinking_mode", `"maybe"`, "/serve_flags/thinking_mode"},
	{"timing_methodology.ttft", `3`, "/timing_methodology/ttft"},
	{"timing_methodology.ttft", ``, "/timing_methodology/ttft"},
	{"extensions", `[]`, "/extensions"},
	{"failures", `null`, "/failures"},
	// what a later writer may add
	{"newer", `{"key":[1,null]}`, ""},
	{"metrics.newer_p50", `1.5`, ""},
	{"request_timings.0.newer", `"x"`, ""},
	{"extensions.other", `{"a":null}`, ""},
	{"timing_methodology.newer", `"y"`, ""},
	{"serve_flags.newer", `true`, ""},
}

// ofTheReference are mutations of what only it holds.
var ofTheReference = []mutation{
	{"measurement_protocol", `"capacity-v3"`, "/measurement_protocol"},
	{"controlled_output_policy", `"strict"`, "/controlled_output_policy"},
	{"response_words", `7`, "/request_timings/0/controlled_output"},
	{"shared_prefix_tokens", `8000`, "/shared_prefix_tokens"},
	{"serve_flags.shared_prefix_burst", `true`, "/serve_flags/shared_prefix_burst"},
	{"serve_flags.no_thinking", `true`, "/serve_flags/no_thinking"},
	{"performance_eligible", `false`, "/performance_eligible"},
	{"metrics.throughput_performance_eligible", `false`, "/metrics/throughput_performance_eligible"},
	{"metric_population.aggregate_throughput_eligible", `false`, "/metric_population/aggregate_throughput_eligible"},
	{"context_tokens", `4096`, "/context_distribution/8192"},
	{"failures.0", `{"request_index":1,"failure_class":"request_error","error_type":"x","error_message":"y",` +
		`"error_message_truncated":false,"response_received":false,"performance_eligible":false}`, "/failures/0/request_index"},
}

// ofOurs are mutations of the made-up run's document: its failures and our extensions.
var ofOurs = []mutation{
	{"measurement_protocol", `"capacity-v3"`, "/measurement_protocol"},
	{"performance_eligible", `true`, "/performance_eligible"},
	{"metrics.throughput_performance_eligible", `true`, "/metrics/throughput_performance_eligible"},
	{"configuration_fingerprint", `null`, "/configuration_fingerprint"},
	{"request_timings.0.controlled_output", `null`, "/request_timings/0/controlled_output"},
	{"request_timings.0.controlled_output.observed_words", `11`, "/request_timings/0/controlled_output/exact_adherence"},
	{"request_timings.0.controlled_output.exact_adherence", `null`, "/request_timings/0/controlled_output/exact_adherence"},
	{"request_timings.0.controlled_output.requested_words", `3`, "/request_timings/0/controlled_output/requested_words"},
	{"failures.0", ``, "/failed"},
	{"failures.0.failure_class", `"bad_luck"`, "/failures/0/failure_class"},
	{"failures.0.failure_class", `"stream_validation_failed"`, "/failures/0/response_received"},
	{"failures.0.failure_class", `"request_canary_failed"`, "/failures/0/request_canary"},
	{"failures.0.error_message", `"` + strings.Repeat("x", 2049) + `"`, "/failures/0/error_message"},
	{"failures.0.performance_eligible", `true`, "/failures/0/performance_eligible"},
	{"failures.0.response_received", `true`, "/failures/0/response_metadata"},
	{"failures.0.response_metadata", `{}`, "/failures/0/response_metadata"},
	{"failures.0.elapsed_ms", `1000000.0`, "/failures/0/elapsed_ms"},
	{"failures.0.planned_context_tokens", `12`, "/failures/0/planned_context_tokens"},
	{"failures.1.request_index", `0`, "/failures/1/request_index"},
	{"failures.1.response_received", `false`, "/failures/1/response_timing"},
	{"failures.1.response_timing.generation_ms", `1.0`, "/failures/1/response_timing/generation_ms"},
	{"failures.1.response_timing.request_index", `7`, "/failures/1/response_timing/request_index"},
	{"failures.1.response_metadata.reasoning_chunks", `0`, "/measurement_protocol"},
	{"failures.1.response_metadata.finish_reasons", `"stop"`, "/failures/1/response_metadata/finish_reasons"},
	{"failures.2.request_canary.passed", `true`, "/failures/2/request_canary/passed"},
	{"failures.2.request_canary.foreign_marker_count", `0`, "/failures/2/request_canary/passed"},
	{"failures.2.failure_class", `"controlled_output_failed"`, "/failures/2/failure_class"},
	{"failures.3.controlled_output.exact_adherence", `true`, "/failures/3/controlled_output/exact_adherence"},
	{"controlled_output_policy", `"observe"`, "/failures/3/failure_class"},
	{"extensions.plumbline.format", `"plumbline.capacity/9"`, "/extensions/plumbline/format"},
	{"extensions.plumbline.canaries", ``, "/extensions/plumbline/canaries"},
	{"extensions.plumbline.canaries.attempted", `9`, "/extensions/plumbline/canaries/attempted"},
	{"extensions.plumbline.canaries.passed", `4`, "/extensions/plumbline/canaries/passed"},
	{"extensions.plumbline.canaries.foreign_markers", `0`, "/extensions/plumbline/canaries/foreign_markers"},
	{"extensions.plumbline.interrupted_reason", ``, "/extensions/plumbline/interrupted_reason"},
	{"extensions.plumbline.interrupted", `"signal"`, "/extensions/plumbline/incomplete"},
	{"extensions.plumbline.interrupted", `"signal"`, "/extensions/plumbline/interrupted_reason"},
	{"extensions.plumbline.incomplete", `true`, "/extensions/plumbline/incomplete"},
	{"extensions.plumbline.not_sent", `3`, "/extensions/plumbline/not_sent"},
	{"extensions.plumbline.not_sent", `null`, "/extensions/plumbline/not_sent_reason"},
	{"extensions.plumbline.without_result", `1`, "/extensions/plumbline/without_result"},
	{"extensions.plumbline.failure_classes", `{}`, "/extensions/plumbline/failure_classes/request_error"},
	{"extensions.plumbline.failure_classes.runner_error", `1`, "/extensions/plumbline/failure_classes/runner_error"},
	{"extensions.plumbline.findings.missing-done", `0`, "/extensions/plumbline/findings/missing-done"},
	{"extensions.plumbline.connections.reused", `7`, "/extensions/plumbline/connections/new"},
	{"extensions.plumbline.client.read_lag_ms_reason", `""`, "/extensions/plumbline/client/read_lag_ms_reason"},
	{"extensions.plumbline.cached_tokens.mean", `1.0`, "/extensions/plumbline/cached_tokens/mean"},
	{"extensions.plumbline.cached_tokens.samples", `5`, "/extensions/plumbline/cached_tokens/samples"},
	{"extensions.plumbline.intervals.means.ttft_ms", ``, "/extensions/plumbline/intervals/means/ttft_ms"},
	{"extensions.plumbline.intervals.means.ttft_ms.mean", `1.0`, "/extensions/plumbline/intervals/means/ttft_ms/mean"},
	{"extensions.plumbline.intervals.means.ttft_ms.student_low", `1.0`, "/extensions/plumbline/intervals/means/ttft_ms/student_low"},
	{"extensions.plumbline.intervals.means.ttft_ms.bootstrap_high", `1.0`, "/extensions/plumbline/intervals/means/ttft_ms/bootstrap_high"},
	{"extensions.plumbline.goodput.met", `3`, "/extensions/plumbline/goodput/met"},
	{"extensions.plumbline.goodput.of", `4`, "/extensions/plumbline/goodput/of"},
	{"extensions.plumbline.goodput.share", `0.5`, "/extensions/plumbline/goodput/share"},
	{"extensions.plumbline.goodput.requests_per_s", `8.0`, "/extensions/plumbline/goodput/requests_per_s"},
	{"extensions.plumbline.goodput.objective.0.limit_ms", `1.0`, "/extensions/plumbline/goodput/met"},
	{"extensions.plumbline.goodput.objective.0.figure", `"itl"`, "/extensions/plumbline/goodput/objective/0/figure"},
	{"extensions.plumbline.open_loop.results", `3`, "/extensions/plumbline/open_loop/results"},
	{"extensions.plumbline.open_loop.requests", `2`, "/extensions/plumbline/open_loop/results"},
	{"extensions.plumbline.open_loop.from_schedule.ttft_ms.p95", `1.0`, "/extensions/plumbline/open_loop/from_schedule/ttft_ms/p95"},
	{"extensions.plumbline.open_loop.goodput.share", `1.0`, "/extensions/plumbline/open_loop/goodput/share"},
	{"extensions.plumbline.sweep.knee.concurrency", `4`, "/extensions/plumbline/sweep/knee/concurrency"},
	{"extensions.plumbline.sweep.knee.concurrency", `null`, "/extensions/plumbline/sweep/knee/concurrency"},
	{"extensions.plumbline.sweep.levels.2.throughput_tok_s", `900.0`, "/extensions/plumbline/sweep/knee/concurrency"},
	{"extensions.plumbline.sweep.levels.0.failed", `5`, "/extensions/plumbline/sweep/levels/0/failed"},
	{"extensions.plumbline.sweep.levels.0.results", `5`, "/extensions/plumbline/sweep/levels/0/results"},
	{"extensions.plumbline.gpu_states", ``, "/extensions/plumbline/gpu_states"},
	{"extensions.plumbline.gpu_states", `null`, "/extensions/plumbline/gpu_states_reason"},
	{"extensions.plumbline.gpu_states.0.when", `"during"`, "/extensions/plumbline/gpu_states/0/when"},
	{"extensions.plumbline.gpu_states.0.when", `"after"`, "/extensions/plumbline/gpu_states/0/when"},
	{"extensions.plumbline.gpu_states.1.when", `"before"`, "/extensions/plumbline/gpu_states/1/when"},
	{"extensions.plumbline.gpu_states.1.stage", `"lunch"`, "/extensions/plumbline/gpu_states/1/when"},
	{"extensions.plumbline.gpu_states.1.readings_reason", ``, "/extensions/plumbline/gpu_states/1/readings_reason"},
	{"extensions.plumbline.gpu_states.0.readings.0.power_w", `-1.0`, "/extensions/plumbline/gpu_states/0/readings/0/power_w"},
	{"extensions.plumbline.gpu_states.0.readings.1.power_w_reason", ``, "/extensions/plumbline/gpu_states/0/readings/1/power_w_reason"},
	{"extensions.plumbline.newer", `1`, ""},
}

func TestEveryMutationIsRefusedAtItsPlace(t *testing.T) {
	made, _ := mustWrite(t, madeUp())
	for name, c := range map[string]struct {
		data      []byte
		mutations [][]mutation
	}{
		"the reference": {reference(t), [][]mutation{shared, ofTheReference}},
		"our own":       {made, [][]mutation{shared, ofOurs}},
	} {
		for _, list := range c.mutations {
			for _, m := range list {
				t.Run(fmt.Sprintf("%s %s=%.20s", name, m.path, m.raw), func(t *testing.T) {
					g := NewWithT(t)
					problems := Validate(mutate(t, c.data, m))
					if m.pointer == "" {
						g.Expect(problems).To(BeEmpty())
						return
					}
					var pointers []string
					for _, p := range problems {
						g.Expect(p.Message).NotTo(BeEmpty())
						pointers = append(pointers, p.Pointer)
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

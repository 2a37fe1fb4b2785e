package capacity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"plumbline/fixtures"
)

// reference is the document that the format was read from.
func reference(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// indented is JSON in the layout of Python's json.dumps with indent=2 and sort_keys=True. The reference is sorted and
// ASCII already, and json.Indent leaves numbers and escapes alone.
func indented(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

func referenceInput(t testing.TB) Input {
	t.Helper()
	doc := gjson.ParseBytes(reference(t))
	h := &fixtures.Header{
		RunID: "20261005T112704Z-00000000", Model: doc.Get("model").String(), RunnerVersion: "test",
		Engine: fixtures.EngineFacts{Name: doc.Get("engine").String(), URL: doc.Get("base_url").String()},
		Host:   fixtures.HostFacts{EngineHere: true, GPUs: []fixtures.GPU{{Name: doc.Get("gpu").String()}}},
		Capacity: &fixtures.CapacityRun{
			Requests: 3, Concurrency: 1, CtxTokens: 8192, SharedPrefixTokens: 8000, PromptCacheMode: "unique", Seed: 17,
			MaxTokens: 8192, RequestCanaries: true, ControlledOutputPolicy: "observe", MaxModelLen: 32768,
			MaxModelLenSource: "setting", Margin: 1024, ThinkingMode: "default", Temperature: new(0.9), TopP: new(0.95),
			Calibration: fixtures.Calibration{CharsPerToken: 3, Source: "assumed"},
		},
	}
	return Input{
		Header: h, End: &fixtures.RunEnd{}, PlannedSizes: []int{8192, 8192, 8192}, Rows: referenceRows(t),
		Stages: []fixtures.Stage{{Name: "closed", Arrival: "closed", Concurrency: 1, Requests: 3, Sent: 3,
			StartedAt:  time.Unix(0, doc.Get("started_at_unix_ns").Int()),
			FinishedAt: time.Unix(0, doc.Get("finished_at_unix_ns").Int()), Wall: doc.Get("wall_clock_ms").Float() / 1000}},
	}
}

func referenceRows(t testing.TB) Rows {
	t.Helper()
	number := func(v gjson.Result) *float64 { return new(v.Float()) }
	var rows []*fixtures.Row
	at := time.Duration(0)
	for _, r := range gjson.GetBytes(reference(t), "request_timings").Array() {
		row := &fixtures.Row{
			Stage: "closed", RequestIndex: int(r.Get("request_index").Int()), PlannedContextTokens: 8192, SinceStart: at,
			Status: 200, ResponseReceived: true, TimeToFirstOutputMS: number(r.Get("time_to_first_output_ms")),
			TTFTMS: number(r.Get("ttft_ms")), E2EMS: r.Get("e2e_ms").Float(), GenerationMS: number(r.Get("generation_ms")),
			VisibleGenerationMS:  number(r.Get("visible_generation_ms")),
			EffectivePrefillTokS: number(r.Get("effective_prefill_tok_s")), DecodeTokS: number(r.Get("decode_tok_s")),
			TPOTMS: number(r.Get("tpot_ms")), PromptTokens: new(r.Get("prompt_tokens").Int()),
			CompletionTokens: new(r.Get("output_tokens").Int()), CachedTokens: new(int64(0)),
			OutputTokens: r.Get("output_tokens").Int(), OutputTokenSource: "usage",
			ContentChunks: int(r.Get("content_chunks").Int()), ReasoningChunks: int(r.Get("reasoning_chunks").Int()),
			FinishReasons: []string{"stop"}, StreamTerminalObserved: true,
		}
		if err := json.Unmarshal([]byte(r.Get("request_canary").Raw), &row.Canary); err != nil {
			t.Fatal(err)
		}
		at += time.Duration(row.E2EMS * 1e6)
		rows = append(rows, row)
	}
	return yielding(rows)
}

func yielding(rows []*fixtures.Row) Rows {
	return func() iter.Seq2[*fixtures.Row, error] {
		return func(yield func(*fixtures.Row, error) bool) {
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

func mustWrite(t testing.TB, in Input) ([]byte, *Summary) {
	t.Helper()
	var b bytes.Buffer
	s, err := Write(&b, in)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), s
}

// madeUp is a small run with everything in it: failures of every class, an open loop, a sweep, an objective.
func madeUp() Input {
	start := time.Date(2026, 11, 3, 9, 30, 0, 123456789, time.UTC)
	slo := []fixtures.Objective{{Figure: "ttft", Limit: 150 * time.Millisecond}, {Figure: "tpot", Limit: 10400 * time.Microsecond}}
	run := &fixtures.CapacityRun{
		Requests: 8, Concurrency: 4, SharedPrefixTokens: 8000, PromptCacheMode: "shared", Seed: 5, MaxTokens: 64,
		ResponseWords: 12, RequestCanaries: true, ControlledOutputPolicy: "strict", MaxModelLen: 131072,
		MaxModelLenSource: "engine", Margin: 1024, ThinkingMode: "disabled", Temperature: new(0.0), Timeout: time.Minute,
		AbortErrorRate: 0.5, Arrival: "poisson", Rate: 20, OpenRequests: 4, Sweep: []int{1, 2, 4}, SweepRequests: 4, SLO: slo,
		Calibration: fixtures.Calibration{CharsPerToken: 4.25, OverheadTokens: 11, Source: "usage"},
	}
	in := Input{
		Header: &fixtures.Header{
			RunID: "20261103T093000Z-0badcafe", StartedAt: start.Add(-time.Second), Model: "made-up “modèl” 🦙",
			Command: "plumbline-suite --protocols capacity --slo ttft=150ms,tpot=10.4ms", RunnerVersion: "0.0.0-test",
			Engine: fixtures.EngineFacts{Name: "plumbline-mock", Version: "1", URL: "http://127.0.0.1:8080", ContextTokens: new(131072),
				Options: map[string]string{"kv": "q8_0"}},
			Host:     fixtures.HostFacts{EngineHere: true, GPUs: []fixtures.GPU{{Name: "Card A"}, {Name: "Card B"}, {Name: "Card A"}}},
			Capacity: run,
		},
		GPUs: []fixtures.GPUMoment{
			{Phase: "closed", When: fixtures.BeforePhase, State: fixtures.GPUState{Readings: []fixtures.GPUReading{
				{PowerW: new(31.49), TemperatureC: new(41.0), CoreClockMHz: new(210.0), MemoryClockMHz: new(405.0)},
				{DeviceIndex: 1, TemperatureC: new(-2.5)}}, Reasons: map[string]string{"readings.1.power_w": "card B has no gauge"}}},
			{Phase: "closed", When: fixtures.AfterPhase, State: fixtures.GPUState{Reasons: map[string]string{"readings": "nvidia-smi: no answer within 2s"}}},
		},
		End: &fixtures.RunEnd{}, PlannedSizes: []int{16000, 32768, 16000, 65536, 16000, 32768, 16000, 16000},
	}
	client := func(overloaded bool) *fixtures.ClientCheck {
		c := &fixtures.ClientCheck{
			DispatchLate: fixtures.Spread{Mean: new(0.2), P50: new(0.1), P99: new(0.9), Max: new(1.5), Samples: 8},
			CPUShare:     new(0.25), Bounds: map[string]float64{"dispatch_late_ms.p99": 50}, Overloaded: overloaded, Reasons: []string{},
		}
		if overloaded {
			c.Reasons = []string{"1 % of the requests were dispatched more than 61.0 ms late, more than 50 ms"}
		}
		return c
	}
	at := time.Second
	stage := func(name, arrival string, concurrency, requests int, rate float64, wall time.Duration, overloaded bool) {
		in.Stages = append(in.Stages, fixtures.Stage{
			Name: name, Arrival: arrival, Concurrency: concurrency, Rate: rate, Requests: requests, Sent: requests,
			StartedAt: start.Add(at - time.Second), FinishedAt: start.Add(at - time.Second + wall), SinceStart: at, Wall: wall.Seconds(),
			Client: client(overloaded),
		})
		at += wall + 100*time.Millisecond
	}
	var rows []*fixtures.Row
	for i, size := range in.PlannedSizes {
		rows = append(rows, madeRow(run, "closed", i, size, at+time.Duration(i)*50*time.Millisecond))
	}
	broken := func(i int, class, kind, message string) {
		rows[i].Failure = &fixtures.RowFailure{Class: class, Type: kind, Message: message}
	}
	broken(1, fixtures.FailRequest, "connection", "connect: connection refused – \u007f🦙")
	refused := *rows[1]
	*rows[1] = fixtures.Row{Stage: "closed", RequestIndex: 1, PlannedContextTokens: refused.PlannedContextTokens,
		SinceStart: refused.SinceStart, E2EMS: 1.25, Failure: refused.Failure}
	broken(2, fixtures.FailStream, "no_terminal", "the stream ended without [DONE]")
	rows[2].StreamTerminalObserved, rows[2].ReasoningChunks, rows[2].Findings = false, 9, []string{"missing-done"}
	rows[2].TTFTMS, rows[2].VisibleGenerationMS, rows[2].Canary, rows[2].ControlledOutput = nil, nil, nil, nil
	rows[2].ContentChunks = 0
	broken(4, fixtures.FailCanary, "canary", "the reply holds the marker of another request")
	rows[4].Canary.Passed, rows[4].Canary.ForeignMarkerCount = false, 1
	rows[4].ForeignMarkers, rows[4].ForeignInThinking = []string{"ANVIL_REQ_5_00006"}, 2
	broken(5, fixtures.FailControlled, "word_count", "12 words were asked for, 11 came")
	rows[5].ControlledOutput = &fixtures.ControlledOutput{RequestedWords: 12, ObservedWords: new(11)}
	rows[6].CachedTokens, rows[6].Reused, rows[6].ConnectMS = nil, true, 0
	stage("closed", "closed", 4, 8, 0, 900*time.Millisecond, false)
	for i := range run.OpenRequests {
		row := madeRow(run, "open", i, 16000, at+time.Duration(60*i)*time.Millisecond)
		row.Scheduled = new(at + time.Duration(50*i)*time.Millisecond)
		rows = append(rows, row)
	}
	stage("open", "poisson", 0, 4, 20, 500*time.Millisecond, true)
	for level, concurrency := range run.Sweep {
		for i := range run.SweepRequests {
			rows = append(rows, madeRow(run, fixtures.SweepStage(concurrency), i, 16000, at+time.Duration(i)*10*time.Millisecond))
		}
		wall := []time.Duration{800, 420, 400}[level] * time.Millisecond
		stage(fixtures.SweepStage(concurrency), "closed", concurrency, run.SweepRequests, 0, wall, false)
	}
	in.Rows = yielding(rows)
	return in
}

// madeRow is a valid reply whose figures follow from its index.
func madeRow(run *fixtures.CapacityRun, stage string, i, size int, at time.Duration) *fixtures.Row {
	first, content, end := 0.1+0.0013*float64(i), 0.125+0.0017*float64(i), 0.3+0.011*float64(i)
	tokens, prompt := int64(20+i), int64(size-40+3*i)
	generation := end - first
	r := &fixtures.Row{
		Stage: stage, RequestIndex: i, PlannedContextTokens: size, SinceStart: at, ConnectMS: 0.5, Status: 200, ResponseReceived: true,
		TimeToFirstOutputMS: new(first * 1000), TTFTMS: new(content * 1000), E2EMS: end * 1000,
		GenerationMS: new(generation * 1000), VisibleGenerationMS: new((end - content) * 1000),
		EffectivePrefillTokS: new(float64(prompt) / first), DecodeTokS: new(float64(tokens-1) / generation),
		TPOTMS: new(generation * 1000 / float64(tokens-1)), PromptTokens: &prompt, CompletionTokens: &tokens,
		CachedTokens: new(prompt / 2), OutputTokens: tokens, OutputTokenSource: "usage", ContentChunks: 12, ReasoningChunks: 3,
		FinishReasons: []string{"stop"}, StreamTerminalObserved: true,
		Usage: json.RawMessage(fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"note":"x"}`,
			prompt, tokens, prompt+tokens)),
	}
	if run.RequestCanaries {
		r.Canary = &fixtures.Canary{CaptureComplete: true, Marker: marker(run.Seed, i), MarkerAtStart: true,
			ObservedMarkerCount: 1, Passed: true}
	}
	if run.ResponseWords > 0 {
		r.ControlledOutput = &fixtures.ControlledOutput{RequestedWords: run.ResponseWords, ObservedWords: &run.ResponseWords, Exact: true}
	}
	return r
}

func marker(seed int64, i int) string { return fmt.Sprintf("ANVIL_REQ_%d_%05d", seed, i) }

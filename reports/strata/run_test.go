package strata

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/judge"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

var update = flag.Bool("update", false, "rewrite the golden documents of testdata")

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reference is the result document of another runner.
func reference(t testing.TB) []byte { return readFile(t, "testdata/reference.results.json") }

// referenceHead is the template's length that the tests take for the reference's prompts.
const referenceHead = 21

var outputsDigest = strings.Repeat("0f", 32)

var parsedReference = sync.OnceValues(func() (*Document, error) {
	data, err := os.ReadFile("testdata/reference.results.json")
	if err != nil {
		return nil, err
	}
	return Parse(data)
})

func ptr[T any](v T) *T { return &v }

// referenceRun is a run that did what the reference's did: the same plan, one second between dispatches. Its exchanges
// are empty; referenceReplies says what was in them.
func referenceRun(t testing.TB) *fixtures.Run {
	t.Helper()
	ref, err := parsedReference()
	if err != nil {
		t.Fatal(err)
	}
	run := &fixtures.Run{
		Header: fixtures.Header{
			Format: fixtures.RunFormat, RunID: "20261130T101112Z-00c0ffee",
			StartedAt:     time.Date(2026, 11, 30, 10, 11, 12, 345e6, time.UTC),
			Command:       `plumbline run --url http://127.0.0.1:8080 --track-notes 'two <windows> & more'`,
			RunnerVersion: "0.1.0", RunnerCommit: "1111111111111111111111111111111111111111",
			Protocol: fixtures.Protocol{ID: "strata-open-thinking-v1-draft.1", Profile: "qwen3.8-flash-next-thinking",
				CorpusSHA256: strings.Repeat("ab", 32), BuiltIn: true},
			Profile: fixtures.Profile{Sampling: json.RawMessage(`{"temperature":1.0,"top_p":0.95,"top_k":20}`),
				ChatTemplateKwargs: json.RawMessage(`{"enable_thinking":true}`)},
			Engine: fixtures.EngineFacts{Kind: "live", URL: "http://127.0.0.1:8080", Name: "strata", Version: "0.1.51",
				Commit: "2222222222222222222222222222222222222222", BuildKind: "source", ServedModels: []string{"tiny"},
				ContextTokens: ptr(131072), Capacity: ptr(4), ModelPath: "/models/tiny.gguf", RequestsServed: ptr(int64(7)),
				Options: map[string]string{"kv": "q8_0", "spec": "on", "another": "1"}},
			Host: fixtures.HostFacts{EngineHere: true,
				GPUs: []fixtures.GPU{{Name: "RTX 3090", MemoryBytes: 25769803776, MemoryKind: "dedicated", PowerLimitW: ptr(250.0)}, {DeviceIndex: 1, Name: "iGPU"}},
				CPU:  "a CPU", RAMBytes: 64 << 30, OSName: "Debian 13", OSVersion: "6.12",
				Drivers: []fixtures.NameVersion{{Name: "gpu-driver", Version: "595.71.05"}}, Runtime: []fixtures.NameVersion{{Name: "cuda"}},
				ModelFiles: []fixtures.ModelFile{{Path: "/models/tiny.gguf", Bytes: 123, SHA256: strings.Repeat("cd", 32)}},
				Reasons:    map[string]string{"storage": "the drive is a network share"}},
			Declared:        fixtures.Declared{Quantization: "Q8_0", Track: "custom"},
			Model:           "tiny",
			ClockResolution: 30 * time.Nanosecond,
			Artifacts: []fixtures.Artifact{
				{Kind: "config", Path: "config.json", SHA256: strings.Repeat("12", 32)},
				{Kind: "provenance", Path: templatePath, SHA256: strings.Repeat("34", 32)},
				{Kind: "provenance", Path: manifestPath, SHA256: strings.Repeat("ab", 32)},
			},
		},
		GPUs: []fixtures.GPUMoment{
			{Phase: corpus.PhaseWarmup, When: fixtures.BeforePhase, State: fixtures.GPUState{Readings: []fixtures.GPUReading{
				{PowerW: ptr(31.49), TemperatureC: ptr(41.0), CoreClockMHz: ptr(210.0), MemoryClockMHz: ptr(405.0)},
				{DeviceIndex: 1, TemperatureC: ptr(-2.5)}}, Reasons: map[string]string{"readings.1.power_w": "an iGPU has no gauge"}}},
			{Phase: corpus.PhaseWarmup, When: fixtures.AfterPhase, SinceStart: time.Second,
				State: fixtures.GPUState{Reasons: map[string]string{"readings": "nvidia-smi: no answer within 2s"}}},
		},
		After: &fixtures.After{ServedModels: []string{"tiny"}, RequestsServed: ptr(int64(7 + 22))},
		End:   &fixtures.RunEnd{At: 103 * time.Second},
	}
	var at time.Duration
	for _, r := range ref.Requests {
		checks, _ := ref.Extensions.RequestChecks.Get(r.ID)
		prefix, _ := checks.MaxSharedPrefix.Get()
		input, _ := r.Tokens.Input.Get()
		total, _ := r.Timings.Total.Get()
		verdict, _ := r.Evaluation.Get()
		run.Header.Plan = append(run.Header.Plan, fixtures.Planned{
			ID: r.ID, Phase: r.Phase, CaseID: r.CaseID, Category: verdict.Category, Repetition: r.Repetition, Seed: r.Seed,
			MaxOutputTokens: r.MaxOutputTokens, Concurrency: r.Concurrency, Tools: verdict.Category == "tool_call",
			ContentTokens: ptr(int(input) - referenceHead), SharedPrefixTokens: ptr(prefix),
		})
		took := time.Duration(total.Float64() * 1e9)
		run.Exchanges = append(run.Exchanges, answered(r.ID, at, took))
		at += took + time.Second
	}
	return run
}

// answered is an exchange that the engine answered.
func answered(id string, at, took time.Duration) fixtures.Exchange {
	return fixtures.Exchange{ID: id, SinceStart: at, Response: &fixtures.Response{Status: 200},
		End: fixtures.End{Kind: fixtures.EndClose, At: took}}
}

// replies says what each exchange of a run was, by id.
type replies map[string]reply

func (r replies) read(p fixtures.Planned, e *fixtures.Exchange) (reply, error) {
	x := r[p.ID]
	x.start, x.end = e.SinceStart, e.SinceStart+e.End.At
	return x, nil
}

// edit changes the figures of one request.
func (r replies) edit(id string, change func(*measure.Figures)) {
	x := r[id]
	change(&x.figures)
	r[id] = x
}

// say gives one request a reply's text.
func (r replies) say(id string, t *transcript.Transcript) {
	x := r[id]
	x.transcript = t
	r[id] = x
}

// find gives one request's reply a finding.
func (r replies) find(id, finding string, severity transcript.Severity) {
	x := r[id]
	x.findings = append(x.findings, Finding{ID: finding, Severity: string(severity), Count: 1, Sentence: "seen by a test"})
	r[id] = x
}

// referenceReplies are the figures and verdicts of the reference.
func referenceReplies(t testing.TB) replies {
	t.Helper()
	ref, err := parsedReference()
	if err != nil {
		t.Fatal(err)
	}
	all := replies{}
	for _, r := range ref.Requests {
		f := measure.Figures{
			Status: measure.Status(r.Status), FinishReason: maybe(r.FinishReason, ""),
			InputTokens: maybe(r.Tokens.Input, r.Sources.Input), CachedTokens: maybe(r.Tokens.Cached, r.Sources.Cached),
			ReadTokens: maybe(r.Tokens.Read, r.Sources.Read), OutputTokens: maybe(r.Tokens.Output, r.Sources.Output),
			DecodeTokens:  maybe(r.Tokens.Decode, r.Sources.Decode),
			PromptSeconds: decimal(r.Timings.Prompt, r.Sources.EngineTimings), DecodeSeconds: decimal(r.Timings.Decode, r.Sources.EngineTimings),
			TTFT: decimal(r.Timings.TTFT, r.Sources.ClientTimings), FirstAnswer: decimal(r.Timings.FirstAnswer, r.Sources.ClientTimings),
			Total:     decimal(r.Timings.Total, r.Sources.ClientTimings),
			PromptTPS: decimal(r.Metrics.PromptTPS, "computed"), DecodeTPS: decimal(r.Metrics.DecodeTPS, "computed"),
			FirstDeltaKind: maybe(r.FirstDeltaKind, ""), Basis: measure.EngineBasis, Convention: measure.AllTokens,
		}
		x := reply{figures: f}
		if e, judged := r.Evaluation.Get(); judged {
			x.evaluation = &judge.Evaluation{Passed: e.Passed, Reason: e.Reason}
		}
		all[r.ID] = x
	}
	return all
}

func maybe[T any](n Null[T], source string) measure.Maybe[T] {
	v, known := n.Get()
	if !known {
		return measure.Unknown[T](n.Reason())
	}
	return measure.Known(v, source)
}

func decimal(n Null[Number], source string) measure.Maybe[float64] {
	v, known := n.Get()
	if !known {
		return measure.Unknown[float64](n.Reason())
	}
	return measure.Known(v.Float64(), source)
}

// fail breaks one request.
func (r replies) fail(id string) {
	x := r[id]
	x.figures = failed()
	if x.evaluation != nil {
		x.evaluation = &judge.Evaluation{Reason: "not judged: the request failed"}
	}
	r[id] = x
}

// failed are the figures of a request whose connection broke.
func failed() measure.Figures {
	const why = "the connection was reset"
	f := unsent(why)
	f.Status = measure.Failed
	f.TTFT, f.Total = measure.Known(0.25, "client clock"), measure.Known(0.5, "client clock")
	f.FirstDeltaKind = measure.Known("reasoning", "")
	return f
}

// withStage adds a concurrency stage of one level to a run: rounds of as many requests as the level.
func withStage(run *fixtures.Run, all replies, level, rounds int) {
	run.Header.ConcurrencyStage = true
	at := 200 * time.Second
	for round := 1; round <= rounds; round++ {
		for place := 1; place <= level; place++ {
			p := fixtures.Planned{Phase: corpus.PhaseConcurrency, CaseID: "c" + string(rune('0'+level)), Repetition: round,
				Seed: int64(round), MaxOutputTokens: 512, Concurrency: level, Round: ptr(round)}
			p.ID = requestID(p.Phase, p.CaseID, int64(round)) + "-" + string(rune('0'+place))
			run.Header.Plan = append(run.Header.Plan, p)
			took := time.Duration(place+3) * time.Second
			run.Exchanges = append(run.Exchanges, answered(p.ID, at, took))
			f := all["performance-short-r1"].figures
			f.OutputTokens, f.DecodeTokens = measure.Known(int64(100), "usage"), measure.Known(int64(100), "timings")
			f.DecodeSeconds, f.DecodeTPS = measure.Known(float64(place+1), "timings"), measure.Known(rounded(100/float64(place+1)), "computed")
			f.PromptSeconds, f.ReadTokens, f.PromptTPS = measure.Known(0.5, "timings"), measure.Known(int64(77), "timings"), measure.Known(154.0, "computed")
			f.TTFT, f.FirstAnswer, f.Total = measure.Known(1.0, "client"), measure.Known(1.5, "client"), measure.Known(took.Seconds(), "client")
			x := reply{figures: f}
			for i := range 100 { // deltas spread evenly from one second after dispatch to the end
				x.outputs = append(x.outputs, at+time.Second+time.Duration(i)*(took-time.Second)/99)
			}
			all[p.ID] = x
		}
		at += time.Minute
	}
	run.After.RequestsServed = ptr(*run.Header.Engine.RequestsServed + int64(len(run.Exchanges)))
}

// rounded rounds to a rate's decimals.
func rounded(v float64) float64 {
	n, err := NewNumber(v, rateDecimals)
	if err != nil {
		panic(err)
	}
	return n.Float64()
}

func mustBuild(t testing.TB, run *fixtures.Run, all replies) (*Document, []byte) {
	t.Helper()
	d, err := build(run, outputsDigest, all.read)
	if err != nil {
		t.Fatal(err)
	}
	data, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return d, data
}

func replaceOnce(s, old, replacement string) string { return strings.Replace(s, old, replacement, 1) }

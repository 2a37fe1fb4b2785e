package capacity

import (
	"errors"
	"flag"
	"io"
	"iter"
	"math"
	"os"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"github.com/tidwall/gjson"

	"plumbline/fixtures"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestTheReferencesRowsGiveItsMetricsByteForByte(t *testing.T) {
	g := NewWithT(t)
	data, _ := mustWrite(t, referenceInput(t))
	got, want := gjson.GetBytes(data, "metrics"), gjson.GetBytes(reference(t), "metrics")
	g.Expect(got.Map()).To(HaveLen(159))
	g.Expect(string(indented(t, []byte(got.Raw)))).To(Equal(string(indented(t, []byte(want.Raw)))))
}

func TestTheLayoutIsPythons(t *testing.T) {
	g := NewWithT(t)
	for name, in := range map[string]Input{"reference": referenceInput(t), "made up": madeUp()} {
		data, _ := mustWrite(t, in)
		g.Expect(string(indented(t, data))).To(Equal(string(data)), name)
	}
}

// differing are the paths at which our document, of rows equal to the reference's, differs: what is in our own words,
// the computed fingerprint and the extensions.
var differing = []string{
	"configuration_fingerprint", "extensions", "metric_population.failure_policy", "timestamp_precision",
	"timing_methodology.artifact_timestamps", "timing_methodology.clock", "timing_methodology.controlled_output",
	"timing_methodology.decode", "timing_methodology.distributions", "timing_methodology.effective_prefill",
	"timing_methodology.generation", "timing_methodology.mean_inter_token_latency", "timing_methodology.p99",
	"timing_methodology.request_canaries", "timing_methodology.time_to_first_output", "timing_methodology.tpot",
	"timing_methodology.ttft",
}

func TestADocumentOfTheReferencesRowsDiffersOnlyWhereItIsMeantTo(t *testing.T) {
	g := NewWithT(t)
	data, _ := mustWrite(t, referenceInput(t))
	var got []string
	var compare func(path string, ours, theirs gjson.Result)
	compare = func(path string, ours, theirs gjson.Result) {
		if !ours.IsObject() || !theirs.IsObject() {
			if ours.Get("@ugly").Raw != theirs.Get("@ugly").Raw {
				got = append(got, path)
			}
			return
		}
		names := map[string]bool{}
		ours.ForEach(func(k, _ gjson.Result) bool { names[k.String()] = true; return true })
		theirs.ForEach(func(k, _ gjson.Result) bool { names[k.String()] = true; return true })
		for name := range names {
			at := name
			if path != "" {
				at = path + "." + name
			}
			compare(at, ours.Get(name), theirs.Get(name))
		}
	}
	compare("", gjson.ParseBytes(data), gjson.ParseBytes(reference(t)))
	slices.Sort(got)
	g.Expect(got).To(Equal(differing))
}

func TestTheDocumentOfAMadeUpRunIsTheGoldenOne(t *testing.T) {
	g := NewWithT(t)
	data, summary := mustWrite(t, madeUp())
	for file, got := range map[string]string{"testdata/made-up.json": string(data), "testdata/made-up.txt": Text(summary)} {
		if *update {
			g.Expect(os.WriteFile(file, []byte(got), 0o644)).To(Succeed())
		}
		want, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(string(want)))
	}
}

func TestAKilledRunIsIncompleteAndSaysWhy(t *testing.T) {
	g := NewWithT(t)
	data, s := mustWrite(t, killed())
	d := gjson.ParseBytes(data)
	g.Expect(d.Get("requests").Int()).To(BeEquivalentTo(8))
	g.Expect(d.Get("completed").Int()).To(BeEquivalentTo(2))
	g.Expect(d.Get("failed").Int()).To(BeEquivalentTo(3))
	g.Expect(d.Get("context_distribution.65536").Int()).To(BeEquivalentTo(1))
	g.Expect(d.Get("performance_eligible").Bool()).To(BeFalse())
	g.Expect(d.Get("metrics.throughput_tok_s").Value()).To(BeNil())
	g.Expect(d.Get("started_at_unix_ns").Int()).To(Equal(madeUp().Header.StartedAt.Add(time.Second).UnixNano()), "the first dispatch")
	g.Expect(d.Get("wall_clock_ms").Float()).To(BeNumerically("~", 200+344, 1e-3), "to the end of the last reply")
	ours := d.Get("extensions.plumbline")
	g.Expect(ours.Get("incomplete").Bool()).To(BeTrue())
	g.Expect(ours.Get("without_result").Int()).To(BeEquivalentTo(3))
	g.Expect(ours.Get("not_sent").Value()).To(BeNil())
	g.Expect(ours.Get("not_sent_reason").String()).To(Equal(whyCutOff))
	g.Expect(s.IncompleteBecause).To(ContainElements(
		ContainSubstring("killed"), ContainSubstring("3 of the 8"), ContainSubstring(`"sweep-4"`)))
	g.Expect(Text(s)).To(ContainSubstring("incomplete: 3 of the 8 requests"))
}

func TestAnEarlyEndIsToldWithItsReason(t *testing.T) {
	g := NewWithT(t)
	data, s := mustWrite(t, allFailed())
	g.Expect(gjson.GetBytes(data, "extensions.plumbline.aborted").Raw).To(MatchJSON(
		`{"stage":"closed","reason":"3 of 3 requests failed","limit":0.5,"requests":8,"sent":3}`))
	g.Expect(gjson.GetBytes(data, "extensions.plumbline.not_sent").Int()).To(BeEquivalentTo(5))
	g.Expect(gjson.GetBytes(data, "metrics.ttft_mean_ms").Value()).To(BeNil())
	g.Expect(s.Aborted).To(Equal("3 of 3 requests failed"))
	g.Expect(Text(s)).To(ContainSubstring("stage closed ended early: 3 of 3 requests failed"))
	data, s = mustWrite(t, interrupted())
	g.Expect(gjson.GetBytes(data, "extensions.plumbline.interrupted").String()).To(Equal("interrupt"))
	g.Expect(s.Interrupted).To(Equal("interrupt"))
}

func TestTheHostsClockIsToldBesideTheMonotonicOne(t *testing.T) {
	for name, step := range map[string]time.Duration{"set ahead": 3 * time.Second, "set back": -time.Hour, "steered": 1500 * time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := madeUp()
			in.Stages[0].FinishedAt = in.Stages[0].FinishedAt.Add(step)
			data, _ := mustWrite(t, in)
			g.Expect(gjson.GetBytes(data, "wall_clock_ms").Float()).To(Equal(900.0))
			g.Expect(gjson.GetBytes(data, "finished_at_unix_ns").Int()).To(Equal(in.Stages[0].FinishedAt.UnixNano()))
			g.Expect(gjson.GetBytes(data, "extensions.plumbline.clock_step_ms").Float()).To(BeNumerically("~", milliseconds(step), 1e-6))
			g.Expect(Validate(data)).To(BeEmpty())
		})
	}
}

func TestARequestThatNeverConnectedOpenedNoConnection(t *testing.T) {
	g := NewWithT(t)
	data, _ := mustWrite(t, madeUp()) // one of eight was refused, one had a kept connection
	g.Expect(gjson.GetBytes(data, "extensions.plumbline.connections.new").Int()).To(BeEquivalentTo(6))
	g.Expect(gjson.GetBytes(data, "extensions.plumbline.connections.reused").Int()).To(BeEquivalentTo(1))
	g.Expect(gjson.GetBytes(data, "extensions.plumbline.connections.connect_ms.samples").Int()).To(BeEquivalentTo(7))
	data, _ = mustWrite(t, allFailed())
	g.Expect(gjson.GetBytes(data, "extensions.plumbline.connections").Raw).To(MatchJSON(
		`{"new":0,"reused":0,"connect_ms":null,"connect_ms_reason":"no request had a connection"}`))
}

func TestAFailureWithoutAMessageIsNamedByItsClass(t *testing.T) {
	g := NewWithT(t)
	in := madeUp()
	rowsOf(in)[1].Failure = &fixtures.RowFailure{Class: fixtures.FailRequest}
	data, _ := mustWrite(t, in)
	g.Expect(gjson.GetBytes(data, "failures.0.error_message").String()).To(Equal(fixtures.FailRequest))
	g.Expect(Validate(data)).To(BeEmpty())
}

func TestUnknownTokensGiveChunksAndNoThroughput(t *testing.T) {
	g := NewWithT(t)
	data, s := mustWrite(t, withoutUsage())
	m := gjson.GetBytes(data, "metrics")
	g.Expect(m.Get("throughput_tok_s").Value()).To(BeNil())
	g.Expect(m.Get("output_tokens").Value()).To(BeNil())
	g.Expect(m.Get("prompt_tokens").Value()).To(BeNil())
	g.Expect(m.Get("prefix_cache_hit_avg").Value()).To(BeNil())
	g.Expect(m.Get("content_chunks_s").Float()).To(BeNumerically("~", 8*12/0.9, 1e-9))
	g.Expect(m.Get("tpot_samples").Int()).To(BeZero())
	g.Expect(m.Get("output_token_sources").Raw).To(MatchJSON(`{"content_chunks":8}`))
	g.Expect(gjson.GetBytes(data, "request_timings.0.output_tokens").Int()).To(BeEquivalentTo(12))
	g.Expect(gjson.GetBytes(data, "performance_eligible").Bool()).To(BeTrue())
	g.Expect(Text(s)).To(ContainSubstring("throughput: unknown"))
}

func TestReasoningOfAFailedReplyNamesTheProtocol(t *testing.T) {
	g := NewWithT(t)
	in := madeUp()
	for i, r := range rowsOf(in) {
		if i != 2 { // which failed
			r.ReasoningChunks = 0
		}
	}
	data, _ := mustWrite(t, in)
	g.Expect(gjson.GetBytes(data, "measurement_protocol").String()).To(Equal(ProtocolReasoning))
	rows := rowsOf(in)
	rows[2].ReasoningChunks = 0
	data, _ = mustWrite(t, in)
	g.Expect(gjson.GetBytes(data, "measurement_protocol").String()).To(Equal(ProtocolPlain))
}

func TestAFailureHoldsNoTextOfTheReplyAndOnlyTheCountsOfUsage(t *testing.T) {
	g := NewWithT(t)
	in := madeUp()
	rows := rowsOf(in)
	rows[4].Failure.Message = strings.Repeat("é", 3000)
	rows[4].Usage = []byte(`{"prompt_tokens":7,"completion_tokens":"x","total_tokens":1e3,"secret":"reply"}`)
	rows[2].Failure = &fixtures.RowFailure{Class: fixtures.FailStream, Type: "in_band_error", Message: "the server sent an error: it quoted", Truncated: true}
	data, _ := mustWrite(t, in)
	g.Expect(Validate(data)).To(BeEmpty(), "a message may lack the part that quotes the reply, however short it is")
	f := gjson.GetBytes(data, "failures.2")
	g.Expect(f.Get("response_metadata.usage").Raw).To(MatchJSON(`{"prompt_tokens":7,"completion_tokens":24}`))
	g.Expect(utf8.RuneCountInString(f.Get("error_message").String())).To(Equal(2048))
	g.Expect(f.Get("error_message_truncated").Bool()).To(BeTrue())
	g.Expect(gjson.GetBytes(data, "failures.0").Map()).NotTo(HaveKey("response_timing"))
}

func TestLatencyOfTheOpenLoopCountsFromTheScheduledTime(t *testing.T) {
	g := NewWithT(t)
	in := madeUp()
	in.Header.Capacity.SLO = in.Header.Capacity.SLO[:1] // TTFT of 150 ms
	data, _ := mustWrite(t, in)
	open := gjson.GetBytes(data, "extensions.plumbline.open_loop")
	late := open.Get("from_schedule.ttft_ms.max").Float() - open.Get("from_dispatch.ttft_ms.max").Float()
	g.Expect(late).To(BeNumerically("~", 30, 1e-9))
	g.Expect(open.Get("goodput.met").Int()).To(BeEquivalentTo(3), "of four that all meet it from dispatch")
	g.Expect(open.Get("achieved_rate").Float()).To(BeNumerically("~", 1/0.06, 1e-9))
}

func TestAReplyWithoutAFigureOfTheObjectiveDoesNotMeetIt(t *testing.T) {
	g := NewWithT(t)
	in := withoutUsage()
	data, s := mustWrite(t, in)
	g.Expect(gjson.GetBytes(data, "extensions.plumbline.goodput.unknown").Int()).To(BeEquivalentTo(8))
	g.Expect([]int{s.GoodputMet, s.GoodputOf}).To(Equal([]int{0, 8}))
}

func TestARecordThatContradictsItselfIsRefused(t *testing.T) {
	change := func(f func(in *Input, rows []*fixtures.Row)) Input {
		in := madeUp()
		rows := rowsOf(in)
		in.Rows = yielding(rows)
		f(&in, rows)
		return in
	}
	for want, in := range map[string]Input{
		"expected the header of a capacity run":        {},
		"expected the planned size of every request":   change(func(in *Input, _ []*fixtures.Row) { in.PlannedSizes = nil }),
		"expected the rows of the record":              change(func(in *Input, _ []*fixtures.Row) { in.Rows = nil }),
		`row 8 of stage "closed": expected an index`:   change(func(_ *Input, r []*fixtures.Row) { r[7].RequestIndex = 8 }),
		`row 0 of stage "closed": expected an index a`: change(func(_ *Input, r []*fixtures.Row) { r[1].RequestIndex = 0 }),
		`stage "closed": expected the rows of a stage`: change(func(_ *Input, r []*fixtures.Row) { r[9].Stage = "closed" }),
		`stage "sweep-9": the plan has no such stage`:  change(func(_ *Input, r []*fixtures.Row) { r[20].Stage = "sweep-9" }),
		"expected a finite ttft_ms, received NaN":      change(func(_ *Input, r []*fixtures.Row) { r[0].TTFTMS = new(math.NaN()) }),
		"expected a finite connect_ms, received +Inf":  change(func(_ *Input, r []*fixtures.Row) { r[0].ConnectMS = math.Inf(1) }),
		`expected each once, received "closed" twice`:  change(func(in *Input, _ []*fixtures.Row) { in.Stages[1].Name = "closed" }),
		`at "/sampling/temperature/effective_request"`: change(func(in *Input, _ []*fixtures.Row) {
			in.Header.Capacity.Temperature = new(math.NaN())
		}),
		"read rows again: expected 8": change(func(in *Input, r []*fixtures.Row) {
			calls := 0
			in.Rows = func() iter.Seq2[*fixtures.Row, error] {
				calls++
				if calls > 1 {
					return yielding(r[:7])()
				}
				return yielding(r)()
			}
		}),
		"read row: it is torn": change(func(in *Input, _ []*fixtures.Row) {
			in.Rows = func() iter.Seq2[*fixtures.Row, error] {
				return func(yield func(*fixtures.Row, error) bool) { yield(nil, errors.New("it is torn")) }
			}
		}),
	} {
		t.Run(want, func(t *testing.T) {
			g := NewWithT(t)
			s, err := Write(io.Discard, in)
			g.Expect(err).To(MatchError(And(HavePrefix("write capacity document of run "), ContainSubstring(want))))
			g.Expect(s).To(BeNil())
		})
	}
}

func TestWritingStopsWhereTheFileCannotBeWritten(t *testing.T) {
	g := NewWithT(t)
	_, err := Write(full{}, endless(1000))
	g.Expect(err).To(MatchError(ContainSubstring("no space")))
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestAHundredThousandRequestsNeedLittleMemory(t *testing.T) {
	g := NewWithT(t)
	in := endless(100_000)
	rows, greatest := in.Rows, uint64(0)
	in.Rows = func() iter.Seq2[*fixtures.Row, error] {
		return func(yield func(*fixtures.Row, error) bool) {
			n := 0
			for r, err := range rows() {
				if n++; n%5000 == 0 {
					sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
					metrics.Read(sample)
					greatest = max(greatest, sample[0].Value.Uint64())
				}
				if !yield(r, err) {
					return
				}
			}
		}
	}
	s, err := Write(io.Discard, in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Completed).To(Equal(100_000))
	g.Expect(greatest).To(BeNumerically("<", 80<<20))
}

func BenchmarkWriteOf100000(b *testing.B) {
	in := endless(100_000)
	for b.Loop() {
		if _, err := Write(io.Discard, in); err != nil {
			b.Fatal(err)
		}
	}
}

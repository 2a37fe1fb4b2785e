package measure

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"plumbline/fixtures"
	"plumbline/harness/transcript"

	. "github.com/onsi/gomega"
)

func some[T any](v T) *T { return &v }

// whole is a right exchange and what was read of it: 75 tokens read in 0.5133 s, 128 decoded in 1.4776 s.
func whole() (*fixtures.Exchange, *transcript.Transcript) {
	e := &fixtures.Exchange{
		Request:  fixtures.Request{Method: "POST", Path: "/v1/chat/completions", Body: []byte(`{"stream":true}`)},
		Response: &fixtures.Response{Status: 200},
		Pieces:   []fixtures.Piece{{Bytes: []byte("data: …")}},
		End:      fixtures.End{Kind: fixtures.EndClose, At: 1994651 * time.Microsecond},
	}
	t := &transcript.Transcript{
		Stream: true, DoneSeen: true, FinishReason: some("length"), Content: "a b", Reasoning: "so",
		Deltas: []transcript.Delta{
			{Kind: transcript.Reasoning, At: 535657 * time.Microsecond, Text: "so"},
			{Kind: transcript.Content, At: 1405000 * time.Microsecond, Text: "\n"},
			{Kind: transcript.Content, At: 1405646 * time.Microsecond, Text: "a b"},
			{Kind: transcript.Content, At: 1805657 * time.Microsecond, Text: " c"},
		},
		Usage: &transcript.Usage{PromptTokens: some(int64(75)), CompletionTokens: some(int64(128)), TotalTokens: some(int64(203)),
			CachedTokens: some(int64(0))},
		Timings: &transcript.Timings{CacheN: some(int64(0)), PromptN: some(int64(75)), PromptMS: some(513.3), PromptPerSecond: some(146.1),
			PredictedN: some(int64(128)), PredictedMS: some(1477.6), PredictedPerSecond: some(86.6)},
	}
	return e, t
}

func TestFiguresOfAWholeReply(t *testing.T) {
	g := NewWithT(t)
	f := Of(whole())
	g.Expect(f.Status).To(Equal(Truncated))
	g.Expect(f.Error.Known).To(BeFalse())
	g.Expect(f.Basis).To(Equal(EngineBasis))
	g.Expect(f.Convention).To(Equal(AllTokens))
	g.Expect(f.Broken).To(BeEmpty())
	for name, x := range map[string]struct {
		got  Maybe[int64]
		want int64
	}{"input": {f.InputTokens, 75}, "cached": {f.CachedTokens, 0}, "read": {f.ReadTokens, 75}, "output": {f.OutputTokens, 128}, "decode": {f.DecodeTokens, 128}} {
		g.Expect(x.got.Known).To(BeTrue(), name)
		g.Expect(x.got.Value).To(Equal(x.want), name)
		g.Expect(x.got.Source).NotTo(BeEmpty(), name)
	}
	for name, x := range map[string]struct {
		got  Maybe[float64]
		want float64
	}{"prompt": {f.PromptSeconds, 0.5133}, "decode": {f.DecodeSeconds, 1.4776}, "ttft": {f.TTFT, 0.535657},
		"answer": {f.FirstAnswer, 1.405646}, "total": {f.Total, 1.994651}, "prompt rate": {f.PromptTPS, 146.113384},
		"decode rate": {f.DecodeTPS, 86.626963}, "client's rate": {f.ClientDecodeTPS, 100}} {
		g.Expect(x.got.Known).To(BeTrue(), name)
		g.Expect(x.got.Value).To(Equal(x.want), name)
		g.Expect(x.got.Source).NotTo(BeEmpty(), name)
	}
	g.Expect(f.FirstDeltaKind.Value).To(Equal("reasoning"))
	g.Expect(f.AccountingNote.Known).To(BeFalse())
}

// The rows are counts, seconds and rates of a published result document of the standard protocol.
func TestRatesAreTheOnesThatAReaderOfTheDocumentComputes(t *testing.T) {
	for _, row := range []struct {
		read, decode              int64
		promptS, decodeS          float64
		promptTPS, decodeTPS      float64
		promptMS, predictedMS, ps float64
	}{
		{77, 380, 0.3764, 3.5496, 204.569607, 107.054316, 376.4, 3549.6, 107.1},
		{4093, 425, 2.4085, 3.4927, 1699.397966, 121.682366, 2408.5, 3492.7, 121.7},
		{16387, 512, 7.3074, 4.3822, 2242.52128, 116.836292, 7307.4, 4382.2, 116.8},
		{71, 42, 0.387, 0.3572, 183.462532, 117.581187, 387.0, 357.2, 117.6},
		{352, 90, 0.947, 0.5262, 371.700106, 171.037628, 947.0, 526.2, 171.0},
		{4093, 512, 2.6557, 5.3853, 1541.213239, 95.073626, 2655.7, 5385.3, 95.1},
	} {
		e, tr := whole()
		e.End.At = time.Minute
		tr.Usage.PromptTokens, tr.Usage.CompletionTokens = &row.read, &row.decode
		tr.Timings = &transcript.Timings{PromptN: &row.read, PromptMS: &row.promptMS, PredictedN: &row.decode,
			PredictedMS: &row.predictedMS, PredictedPerSecond: &row.ps}
		f := Of(e, tr)
		g := NewWithT(t)
		g.Expect([]float64{f.PromptSeconds.Value, f.DecodeSeconds.Value, f.PromptTPS.Value, f.DecodeTPS.Value}).
			To(Equal([]float64{row.promptS, row.decodeS, row.promptTPS, row.decodeTPS}))
		g.Expect(f.Convention).To(Equal(AllTokens))
		g.Expect(f.Broken).To(BeEmpty())
	}
}

func TestRoundingIsToTheNearestDecimal(t *testing.T) {
	for _, c := range []struct {
		x        float64
		decimals int
		want     float64
	}{
		{0.5133, 4, 0.5133}, {1.00005, 4, 1.0001}, {0.00005, 4, 0.0001}, {2.675, 2, 2.67}, {1.005, 2, 1}, {0.1 + 0.2, 6, 0.3},
		{2.5, 0, 2}, {-1.23456789, 6, -1.234568}, {1e15 + 0.3, 4, 1e15 + 0.25}, {123456789.1234567, 6, 123456789.123457},
	} {
		NewWithT(t).Expect(Round(c.x, c.decimals)).To(Equal(c.want), "%v to %d", c.x, c.decimals)
	}
	NewWithT(t).Expect(math.IsInf(Round(math.Inf(1), 4), 1)).To(BeTrue())
}

type edit func(e *fixtures.Exchange, t *transcript.Transcript)

func TestTheStatusOfARequest(t *testing.T) {
	ends := func(k fixtures.EndKind) edit {
		return func(e *fixtures.Exchange, t *transcript.Transcript) { e.End.Kind, e.End.Error = k, "cause" }
	}
	cut := func(k fixtures.EndKind) edit {
		return func(e *fixtures.Exchange, t *transcript.Transcript) { ends(k)(e, t); t.DoneSeen = false }
	}
	reason := func(s string) edit {
		return func(e *fixtures.Exchange, t *transcript.Transcript) { t.FinishReason = &s }
	}
	for name, c := range map[string]struct {
		edit edit
		want Status
		err  string // in the error
		kept bool   // counts stay
	}{
		"stop":                {reason("stop"), Completed, "", true},
		"tool calls":          {reason("tool_calls"), Completed, "", true},
		"length":              {reason("length"), Truncated, "", true},
		"filtered":            {reason("content_filter"), Failed, "content_filter", false},
		"error reason":        {reason("error"), Failed, "error", false},
		"cut after its end":   {ends(fixtures.EndTruncate), Truncated, "", true},
		"reset after its end": {ends(fixtures.EndReset), Truncated, "", true},
		"open after its end":  {ends(fixtures.EndIdle), Truncated, "", true},
		"cut before [DONE]":   {cut(fixtures.EndTruncate), Failed, "closed before the end of the reply: cause", false},
		"reset":               {cut(fixtures.EndReset), Failed, "reset", false},
		"idle":                {cut(fixtures.EndIdle), Failed, "idle", false},
		"refused": {func(e *fixtures.Exchange, t *transcript.Transcript) {
			e.Response, e.End.Kind = nil, fixtures.EndRefused
			*t = transcript.Transcript{}
		}, Failed, "no connection", false},
		"HTTP status": {func(e *fixtures.Exchange, t *transcript.Transcript) {
			e.Response.Status = 503
			*t = transcript.Transcript{Error: &transcript.APIError{Message: "loading", Type: "busy"}}
		}, Failed, "HTTP 503: loading (busy)", false},
		"error in the stream": {func(e *fixtures.Exchange, t *transcript.Transcript) {
			t.Error = &transcript.APIError{Message: "out of memory"}
		}, Failed, "out of memory", false},
		"no finish reason": {func(e *fixtures.Exchange, t *transcript.Transcript) { t.FinishReason = nil }, Failed, "no finish reason", true},
		"neither":          {func(e *fixtures.Exchange, t *transcript.Transcript) { t.FinishReason, t.DoneSeen = nil, false }, Failed, "no finish reason", false},
		"one document":     {func(e *fixtures.Exchange, t *transcript.Transcript) { t.Stream, t.Deltas = false, nil }, Failed, "no event stream", true},
		"one document, asked": {func(e *fixtures.Exchange, t *transcript.Transcript) {
			t.Stream, t.Deltas, e.Request.Body = false, nil, []byte("{}")
		}, Truncated, "", true},
		"a page": {func(e *fixtures.Exchange, t *transcript.Transcript) { *t = transcript.Transcript{} }, Failed, "no event stream", false},
		"an empty body": {func(e *fixtures.Exchange, t *transcript.Transcript) {
			e.Pieces, *t = nil, transcript.Transcript{}
		}, Failed, "the reply is empty", false},
		"an empty body, one document asked": {func(e *fixtures.Exchange, t *transcript.Transcript) {
			e.Pieces, *t, e.Request.Body = nil, transcript.Transcript{}, []byte("{}")
		}, Failed, "the reply is empty", false},
		"an empty body of a refusal": {func(e *fixtures.Exchange, t *transcript.Transcript) {
			e.Pieces, *t, e.Response.Status = nil, transcript.Transcript{}, 503
		}, Failed, "HTTP 503", false},
		"a chunk without sense": {func(e *fixtures.Exchange, t *transcript.Transcript) {
			t.Findings = []transcript.Finding{{ID: transcript.InvalidJSONChunk, Severity: transcript.Fault, Sentence: "no JSON"}}
		}, Failed, "no JSON", false},
		"a chunk read anyway": {func(e *fixtures.Exchange, t *transcript.Transcript) {
			t.Findings = []transcript.Finding{{ID: transcript.InvalidJSONChunk, Severity: transcript.Warning}}
		}, Truncated, "", true},
		"left open": {func(e *fixtures.Exchange, t *transcript.Transcript) {
			cut(fixtures.EndIdle)(e, t)
			t.Findings = []transcript.Finding{{ID: transcript.StreamNotTerminated}}
		}, Failed, "idle", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e, tr := whole()
			c.edit(e, tr)
			f := Of(e, tr)
			g.Expect(f.Status).To(Equal(c.want))
			g.Expect(f.Error.Known).To(Equal(c.want == Failed))
			g.Expect(f.Error.Value).To(ContainSubstring(c.err))
			g.Expect(f.OutputTokens.Known).To(Equal(c.kept))
			g.Expect(f.Total.Known).To(Equal(c.kept && e.Whole()))
			explained(t, f)
		})
	}
}

// explained checks that every figure is known with a source or unknown with a reason, and is fit for JSON.
func explained(t *testing.T, f Figures) {
	t.Helper()
	b, err := json.Marshal(f)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var figures map[string]json.RawMessage
	NewWithT(t).Expect(json.Unmarshal(b, &figures)).To(Succeed())
	for name, raw := range figures {
		var m Maybe[any]
		if !strings.HasPrefix(string(raw), `{"Value"`) {
			continue
		}
		NewWithT(t).Expect(json.Unmarshal(raw, &m)).To(Succeed())
		if m.Known {
			NewWithT(t).Expect(m.Source).NotTo(BeEmpty(), name)
		} else {
			NewWithT(t).Expect(m.Reason).NotTo(BeEmpty(), name)
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	e, tr := whole()
	tr.Error = &transcript.APIError{Message: strings.Repeat("é", 4000)}
	NewWithT(t).Expect([]rune(Of(e, tr).Error.Value)).To(HaveLen(errorLimit))
}

func TestFirstTimesOfAFailedRequestStay(t *testing.T) {
	e, tr := whole()
	e.End.Kind, tr.DoneSeen = fixtures.EndReset, false
	f := Of(e, tr)
	g := NewWithT(t)
	g.Expect(f.Status).To(Equal(Failed))
	g.Expect(f.TTFT.Value).To(Equal(0.535657))
	g.Expect(f.FirstAnswer.Value).To(Equal(1.405646))
	g.Expect(f.Total.Known).To(BeFalse())
	g.Expect(f.DecodeTPS.Known).To(BeFalse())
}

func TestFirstAnswerIsTextOrACall(t *testing.T) {
	for name, c := range map[string]struct {
		deltas []transcript.Delta
		known  bool
		kind   string
	}{
		"a call":        {[]transcript.Delta{{Kind: transcript.Reasoning, At: 1, Text: "x"}, {Kind: transcript.Call, At: 2 * time.Second, Text: "f"}}, true, "reasoning"},
		"only thinking": {[]transcript.Delta{{Kind: transcript.Reasoning, At: 1, Text: "x"}}, false, "reasoning"},
		"only blanks":   {[]transcript.Delta{{Kind: transcript.Content, At: 1, Text: "\n \n"}}, false, "content"},
		"tags":          {[]transcript.Delta{{Kind: transcript.Markup, At: 1, Text: "<think>"}}, false, "reasoning"},
		"call first":    {[]transcript.Delta{{Kind: transcript.Call, At: 2 * time.Second, Text: "f"}}, true, "tool_call"},
	} {
		e, tr := whole()
		tr.Deltas = c.deltas
		f := Of(e, tr)
		NewWithT(t).Expect(f.FirstAnswer.Known).To(Equal(c.known), name)
		NewWithT(t).Expect(f.FirstDeltaKind.Value).To(Equal(c.kind), name)
		if c.known {
			NewWithT(t).Expect(f.FirstAnswer.Value).To(Equal(2.0), name)
		}
	}
}

func TestAccountsThatDifferAreNotedAndBrokenWhenByMoreThanOne(t *testing.T) {
	for name, c := range map[string]struct {
		edit   edit
		note   string
		broken bool
	}{
		"equal":    {func(*fixtures.Exchange, *transcript.Transcript) {}, "", false},
		"one less": {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Usage.CompletionTokens = some(int64(127)) }, "127 and timings.predicted_n is 128 (-1)", false},
		"two more": {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Usage.CompletionTokens = some(int64(130)) }, "(+2)", true},
		"prompt":   {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Usage.PromptTokens = some(int64(76)) }, "76 prompt tokens to read", true},
		"cached": {func(_ *fixtures.Exchange, t *transcript.Transcript) {
			t.Usage.CachedTokens, t.Timings.PromptN = some(int64(25)), some(int64(50))
		}, "", false},
		"more than all": {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Usage.CachedTokens = some(int64(76)) }, "", true},
		"cached not told": {func(_ *fixtures.Exchange, t *transcript.Transcript) {
			t.Usage.CachedTokens, t.Timings.CacheN, t.Timings.PromptN = nil, nil, some(int64(50))
		}, "", false},
		"no timings": {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Timings = nil }, "", false},
		"no usage":   {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Usage = nil }, "", false},
	} {
		e, tr := whole()
		c.edit(e, tr)
		f := Of(e, tr)
		g := NewWithT(t)
		g.Expect(f.AccountingNote.Known).To(Equal(c.note != ""), name)
		g.Expect(f.AccountingNote.Value).To(ContainSubstring(c.note), name)
		g.Expect(len(f.Broken) > 0).To(Equal(c.broken), "%s: %v", name, f.Broken)
		explained(t, f)
	}
}

func TestCachedTokensComeFromTimingsWhereUsageHasNone(t *testing.T) {
	e, tr := whole()
	tr.Usage.CachedTokens, tr.Timings.CacheN, tr.Timings.PromptN = nil, some(int64(5)), some(int64(70))
	f := Of(e, tr)
	NewWithT(t).Expect(f.CachedTokens).To(Equal(Known[int64](5, "timings.cache_n")))
	NewWithT(t).Expect(f.Broken).To(BeEmpty())
}

func TestWithoutTimingsTheRateIsTheClients(t *testing.T) {
	for name, c := range map[string]struct {
		edit   edit
		reason string
	}{
		"right":     {func(*fixtures.Exchange, *transcript.Transcript) {}, ""},
		"no usage":  {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Usage = nil }, "no usage"},
		"one token": {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Usage.CompletionTokens = some(int64(1)) }, "one token"},
		"no tokens": {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Usage.CompletionTokens = some(int64(0)) }, "0 completion tokens"},
		"one delta": {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Deltas = t.Deltas[:1] }, "one delta"},
		"one moment": {func(_ *fixtures.Exchange, t *transcript.Transcript) {
			t.Deltas = []transcript.Delta{t.Deltas[0], t.Deltas[0]}
		}, "one moment"},
		"one lump":                    {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Deltas[3].Text = strings.Repeat("x", 99) }, "most of the output"},
		"parts larger than the whole": {func(_ *fixtures.Exchange, t *transcript.Transcript) { t.Usage.ReasoningTokens = some(int64(400)) }, "contradicts"},
	} {
		e, tr := whole()
		tr.Timings = nil
		c.edit(e, tr)
		f := Of(e, tr)
		g := NewWithT(t)
		g.Expect(f.Basis).To(Equal(ClientBasis), name)
		g.Expect(f.Convention).To(Equal(NotDetermined), name)
		g.Expect(f.PromptTPS.Known).To(BeFalse(), name)
		g.Expect(f.PromptSeconds.Known || f.DecodeSeconds.Known).To(BeFalse(), name)
		g.Expect(f.DecodeTPS.Reason).To(ContainSubstring(c.reason), name)
		g.Expect(f.DecodeTPS.Known).To(Equal(c.reason == ""), name)
		if c.reason == "" {
			g.Expect(f.DecodeTPS.Value).To(Equal(100.0), "127 tokens in 1.27 s")
		}
		explained(t, f)
	}
}

func TestATimeThatTheClientRefutesMakesNoRate(t *testing.T) {
	for path, rate := range map[string]func(Figures) Maybe[float64]{
		"timings.prompt_ms":    func(f Figures) Maybe[float64] { return f.PromptTPS },
		"timings.predicted_ms": func(f Figures) Maybe[float64] { return f.DecodeTPS },
	} {
		e, tr := whole()
		tr.Findings = []transcript.Finding{{ID: transcript.TimingsImplausible, Path: path, Sentence: "too short"}}
		NewWithT(t).Expect(rate(Of(e, tr))).To(Equal(Unknown[float64]("too short")), path)
	}
}

func TestAHeldBackStreamHasNoFirstToken(t *testing.T) {
	e, tr := whole()
	tr.Findings = []transcript.Finding{{ID: transcript.StreamBuffered, Sentence: "held back"}}
	f := Of(e, tr)
	NewWithT(t).Expect(f.TTFT).To(Equal(Unknown[float64]("held back")))
	NewWithT(t).Expect(f.Total.Known).To(BeTrue())
}

// FuzzOf holds that whatever timings and usage say, each figure is explained and is a number that JSON can hold.
func FuzzOf(f *testing.F) {
	f.Add(int64(75), int64(128), int64(0), 513.3, 1477.6, 86.6)
	f.Add(int64(-1), int64(0), int64(math.MaxInt64), math.Inf(1), -1.0, 1e308)
	f.Fuzz(func(t *testing.T, n, m, k int64, a, b, c float64) {
		finite := func(x float64) *float64 {
			if math.IsInf(x, 0) || math.IsNaN(x) {
				return nil
			}
			return &x
		}
		e, tr := whole()
		tr.Usage = &transcript.Usage{PromptTokens: &n, CompletionTokens: &m, CachedTokens: &k}
		tr.Timings = &transcript.Timings{PromptN: &m, PredictedN: &n, CacheN: &k, PromptMS: finite(a), PredictedMS: finite(b), PredictedPerSecond: finite(c)}
		explained(t, Of(e, tr))
	})
}

func ExampleRound() {
	fmt.Println(Round(128/1.4776, 6))
	// Output: 86.626963
}

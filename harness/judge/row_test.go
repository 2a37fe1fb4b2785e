package judge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

const (
	stopped  = `{"id":"i1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	done     = "[DONE]"
	fewUsage = `{"id":"i1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":4,"total_tokens":104}}`
)

// piece is a chunk with a piece of a channel.
func piece(channel, text string) string {
	return fmt.Sprintf(`{"id":"i1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{%q:%s},"finish_reason":null}]}`, channel, strconv.Quote(text))
}

func usage(members string) string { return `{"id":"i1","choices":[],"usage":` + members + `}` }

// events is a stream of these events: the first after 100 ms, then 40 ms apart, the end with the last one and 10 ms later.
func events(data ...string) *fixtures.Exchange {
	e := &fixtures.Exchange{
		SinceStart: 3 * time.Second,
		Connection: &fixtures.Connection{Reused: true, Wait: 2 * time.Millisecond},
		Response:   &fixtures.Response{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, At: time.Millisecond},
	}
	at := 60 * time.Millisecond
	for _, d := range data {
		at += 40 * time.Millisecond
		e.Pieces = append(e.Pieces, fixtures.Piece{At: at, Bytes: []byte("data: " + strings.ReplaceAll(d, "\n", "\ndata: ") + "\n\n")})
	}
	e.End = fixtures.End{Kind: fixtures.EndClose, At: at + 10*time.Millisecond}
	return e
}

// answered is a right reply with these pieces of content.
func answered(words ...string) *fixtures.Exchange {
	var all []string
	for _, w := range words {
		all = append(all, piece("content", w))
	}
	return events(append(all, stopped, fewUsage, done)...)
}

func TestARowHoldsWhatThePlanAndTheExchangeSay(t *testing.T) {
	g := NewWithT(t)
	due := 2900 * time.Millisecond
	row := Row(fixtures.LoadRequest{Stage: "open", Index: 7, PlannedContextTokens: 8192, Scheduled: &due},
		events(piece("reasoning_content", "hm"), piece("reasoning_content", "so"), piece("content", "It"), piece("content", " is."), stopped, fewUsage, done))
	g.Expect(row).To(Equal(fixtures.Row{
		Stage: "open", RequestIndex: 7, PlannedContextTokens: 8192,
		SinceStart: 3 * time.Second, Scheduled: &due, ConnectMS: 2, Reused: true, Status: 200, ResponseReceived: true,
		TimeToFirstOutputMS: new(0.1 * 1000), TTFTMS: new(0.18 * 1000), E2EMS: 0.35 * 1000,
		GenerationMS: new((0.35 - at(0.1)) * 1000), VisibleGenerationMS: new((0.35 - at(0.18)) * 1000),
		EffectivePrefillTokS: new(100 / at(0.1)), DecodeTokS: new(3 / (0.35 - at(0.1))), TPOTMS: new((0.35 - at(0.1)) * 1000 / 3),
		PromptTokens: new(int64(100)), CompletionTokens: new(int64(4)), OutputTokens: 4, OutputTokenSource: "usage",
		ContentChunks: 2, ReasoningChunks: 2, FinishReasons: []string{"stop"}, StreamTerminalObserved: true,
		Usage: json.RawMessage(`{"prompt_tokens":100,"completion_tokens":4,"total_tokens":104}`),
	}))
}

// at keeps the compiler from computing with more digits than a float64 has.
func at(seconds float64) float64 { return seconds }

func TestARowIsTheSameWithoutTheRequestsBody(t *testing.T) {
	g := NewWithT(t)
	sent := answered("It", " is.")
	sent.Request = fixtures.Request{Method: "POST", Path: "/v1/chat/completions", Body: []byte(`{"model":"m","messages":[{"role":"user","content":"<think>"}],"stream":true,"max_tokens":1}`)}
	kept := *sent
	kept.Request = fixtures.Request{Method: "POST", Path: "/elsewhere", BodySHA256: "00"}
	g.Expect(Row(fixtures.LoadRequest{}, sent)).To(Equal(Row(fixtures.LoadRequest{}, &kept)))
}

// The times of the reference document of the protocol are those of another clock, so its moments are looked for: they are
// the float64 values near the printed ones that give those back, and with which all other figures come out to the bit.
func TestTheFormulasGiveTheReferencesBits(t *testing.T) {
	for _, ref := range []struct {
		prompt, output                                             int64
		first, ttft, e2e, generation, visible, prefill, decode, ms float64
	}{
		{7415, 274, 24636.383199998818, 27621.021299997665, 27974.79580000072, 3338.4126000019023, 353.77450000305544,
			300.97762077350524, 81.77539229268558, 12.228617582424551},
		{7417, 448, 25867.335900002217, 30354.38939999949, 30717.87939999922, 4850.543499997002, 363.48999999972875,
			286.7322722630808, 92.15462143577854, 10.851327740485463},
		{7418, 334, 24597.396000001027, 27812.978400001157, 28217.62469999885, 3620.228699997824, 404.64629999769386,
			301.57663843764965, 91.98313907632414, 10.871557657651124},
	} {
		exact := false
		for _, f := range momentsOf(ref.first) {
			for _, c := range momentsOf(ref.ttft) {
				for _, e := range momentsOf(ref.e2e) {
					row := fixtures.Row{PromptTokens: &ref.prompt, OutputTokens: ref.output, OutputTokenSource: "usage"}
					timeRow(&row, &f, &c, e)
					exact = exact || slices.Equal(
						[]float64{*row.TimeToFirstOutputMS, *row.TTFTMS, row.E2EMS, *row.GenerationMS, *row.VisibleGenerationMS,
							*row.EffectivePrefillTokS, *row.DecodeTokS, *row.TPOTMS},
						[]float64{ref.first, ref.ttft, ref.e2e, ref.generation, ref.visible, ref.prefill, ref.decode, ref.ms})
				}
			}
		}
		NewWithT(t).Expect(exact).To(BeTrue(), "row of %d output tokens", ref.output)
	}
}

// momentsOf are the moments in seconds whose milliseconds are exactly ms.
func momentsOf(ms float64) []float64 {
	var all []float64
	s := ms / 1000
	for range 4 {
		s = math.Nextafter(s, 0)
	}
	for range 9 {
		if s*1000 == ms {
			all = append(all, s)
		}
		s = math.Nextafter(s, math.Inf(1))
	}
	return all
}

func TestWhatCannotBeComputedIsNull(t *testing.T) {
	one, many := int64(1), int64(9)
	for claim, c := range map[string]struct {
		row            fixtures.Row
		first, content *float64
		end            float64
		null           string // names of the figures that must be null; the others must not
	}{
		"no output":               {row: fixtures.Row{PromptTokens: &many, OutputTokens: 9, OutputTokenSource: sourceUsage}, end: 2, null: "first ttft generation visible prefill decode tpot"},
		"thinking only":           {row: fixtures.Row{PromptTokens: &many, OutputTokens: 9, OutputTokenSource: sourceUsage}, first: new(1.0), end: 2, null: "ttft visible"},
		"no prompt tokens":        {row: fixtures.Row{OutputTokens: 9, OutputTokenSource: sourceUsage}, first: new(1.0), content: new(1.0), end: 2, null: "prefill"},
		"output at dispatch":      {row: fixtures.Row{PromptTokens: &many, OutputTokens: 9, OutputTokenSource: sourceUsage}, first: new(0.0), content: new(0.0), end: 2, null: "prefill"},
		"chunks are not tokens":   {row: fixtures.Row{PromptTokens: &many, OutputTokens: 9, OutputTokenSource: sourceChunks}, first: new(1.0), content: new(1.0), end: 2, null: "decode tpot"},
		"one token":               {row: fixtures.Row{PromptTokens: &many, OutputTokens: one, OutputTokenSource: sourceUsage}, first: new(1.0), content: new(1.0), end: 2, null: "decode tpot"},
		"all at one moment":       {row: fixtures.Row{PromptTokens: &many, OutputTokens: 9, OutputTokenSource: sourceUsage}, first: new(2.0), content: new(2.0), end: 2, null: "decode tpot"},
		"output behind the end":   {row: fixtures.Row{PromptTokens: &many, OutputTokens: 9, OutputTokenSource: sourceUsage}, first: new(3.0), content: new(3.0), end: 2, null: "generation visible decode tpot"},
		"everything can be there": {row: fixtures.Row{PromptTokens: &many, OutputTokens: 9, OutputTokenSource: sourceUsage}, first: new(1.0), content: new(1.0), end: 2},
	} {
		t.Run(claim, func(t *testing.T) {
			timeRow(&c.row, c.first, c.content, c.end)
			for name, x := range map[string]*float64{"first": c.row.TimeToFirstOutputMS, "ttft": c.row.TTFTMS, "generation": c.row.GenerationMS,
				"visible": c.row.VisibleGenerationMS, "prefill": c.row.EffectivePrefillTokS, "decode": c.row.DecodeTokS, "tpot": c.row.TPOTMS} {
				NewWithT(t).Expect(x == nil).To(Equal(slices.Contains(strings.Fields(c.null), name)), name)
			}
		})
	}
}

func TestUsageThatCannotBeTrueIsNull(t *testing.T) {
	const null = int64(-1)
	for members, want := range map[string]struct{ prompt, completion, cached int64 }{
		`{"prompt_tokens":100,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":64}}`: {100, 4, 64},
		`{"prompt_tokens":100,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":0}}`:  {100, 4, 0},
		`{"prompt_tokens":100,"completion_tokens":4,"prompt_tokens_details":[1]}`:                  {100, 4, null},
		`{"prompt_tokens":100,"completion_tokens":4,"prompt_tokens_details":"64"}`:                 {100, 4, null},
		`{"prompt_tokens":100,"completion_tokens":4,"prompt_tokens_details":null}`:                 {100, 4, null},
		`{"prompt_tokens":100,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":true}}`: {
			100, 4, null},
		`{"prompt_tokens":100,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":101}}`: {100, 4, null},
		`{"prompt_tokens":"100","completion_tokens":"4"}`:                                           {null, null, null},
		`{"prompt_tokens":-100,"completion_tokens":-4}`:                                             {null, null, null},
		`{"prompt_tokens":1e300,"completion_tokens":99999999999999999999}`:                          {null, null, null},
		`{"prompt_tokens":4000000000,"completion_tokens":9223372036854775807}`:                      {null, null, null},
		`{"prompt_tokens":100.5,"completion_tokens":4.0}`:                                           {null, 4, null},
		`{"prompt_tokens":0,"completion_tokens":0}`:                                                 {null, null, null},
		`{"prompt_tokens":{},"completion_tokens":[]}`:                                               {null, null, null},
		`[]`:   {null, null, null},
		`null`: {null, null, null},
	} {
		t.Run(members, func(t *testing.T) {
			g := NewWithT(t)
			row := Row(fixtures.LoadRequest{}, events(piece("content", "It"), piece("content", " is."), stopped, usage(members), done))
			for name, x := range map[string]struct {
				got  *int64
				want int64
			}{"prompt": {row.PromptTokens, want.prompt}, "completion": {row.CompletionTokens, want.completion}, "cached": {row.CachedTokens, want.cached}} {
				if x.want == null {
					g.Expect(x.got).To(BeNil(), name)
				} else {
					g.Expect(x.got).To(HaveValue(Equal(x.want)), name)
				}
			}
			if want.completion == null {
				g.Expect(row.OutputTokenSource).To(Equal("content_chunks"))
				g.Expect(row.OutputTokens).To(Equal(int64(2)))
				g.Expect(row.DecodeTokS).To(BeNil())
			}
			g.Expect(row.Failure).To(BeNil(), "odd usage spoils no reply")
			_, err := json.Marshal(row)
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestUsageIsKeptUnlessItIsLong(t *testing.T) {
	g := NewWithT(t)
	with := func(note string) fixtures.Row {
		return Row(fixtures.LoadRequest{}, events(piece("content", "a"), stopped, usage(`{"prompt_tokens":100,"completion_tokens":4,"note":"`+note+`"}`), done))
	}
	g.Expect(string(with("x").Usage)).To(ContainSubstring(`"note":"x"`))
	long := with(strings.Repeat("x", rowUsageLimit))
	g.Expect(long.Usage).To(BeNil())
	g.Expect(long.PromptTokens).To(HaveValue(Equal(int64(100))))
}

func TestChannelsCountAsTheyWereSent(t *testing.T) {
	call := `{"id":"i1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"k","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`
	role := `{"id":"i1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`
	for claim, c := range map[string]struct {
		e                   *fixtures.Exchange
		first, content      float64 // 0 for null
		contents, reasoning int
	}{
		"thinking comes first":               {events(piece("reasoning_content", "a"), piece("content", "b"), stopped, done), 100, 140, 1, 1},
		"the other field of thinking":        {events(piece("reasoning", "a"), piece("content", "b"), stopped, done), 100, 140, 1, 1},
		"a role and an empty text are none":  {events(role, piece("content", "b"), stopped, done), 140, 140, 1, 0},
		"a tool call is none":                {events(call, piece("content", "b"), stopped, done), 140, 140, 1, 0},
		"only thinking":                      {events(piece("reasoning", "a"), stopped, done), 100, 0, 0, 1},
		"leaked thinking is content":         {events(piece("content", "<think>"), piece("content", "hm\n</think>\n\n"), piece("content", "b"), stopped, done), 100, 100, 3, 0},
		"thinking leaked in one piece":       {events(piece("content", "<think>hm</think>b"), stopped, done), 100, 100, 1, 0},
		"a closing tag without opening":      {events(piece("content", "hm"), piece("content", "</think>"), piece("content", "b"), stopped, done), 100, 100, 3, 0},
		"one document has no times":          {status(200, `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":`+few+`}`), 0, 0, 0, 0},
		"both channels in one chunk are two": {events(`{"id":"i1","choices":[{"index":0,"delta":{"reasoning_content":"a","content":"b"}}]}`, stopped, done), 100, 100, 1, 1},
	} {
		t.Run(claim, func(t *testing.T) {
			g := NewWithT(t)
			row := Row(fixtures.LoadRequest{}, c.e)
			for name, x := range map[string]struct {
				got  *float64
				want float64
			}{"first": {row.TimeToFirstOutputMS, c.first}, "content": {row.TTFTMS, c.content}} {
				if x.want == 0 {
					g.Expect(x.got).To(BeNil(), name)
				} else {
					g.Expect(x.got).To(HaveValue(BeNumerically("~", x.want, 1e-9)), name)
				}
			}
			g.Expect([]int{row.ContentChunks, row.ReasoningChunks}).To(Equal([]int{c.contents, c.reasoning}))
		})
	}
}

func finishing(reason string) string {
	return `{"id":"i1","choices":[{"index":0,"delta":{},"finish_reason":` + reason + `}]}`
}

func TestFinishReasonsAreKeptOnceEach(t *testing.T) {
	long := strings.Repeat("é", 100)
	for claim, c := range map[string]struct {
		sent []string
		want []string
	}{
		"one":                  {[]string{finishing(`"length"`)}, []string{"length"}},
		"null is none":         {[]string{finishing("null")}, nil},
		"the same again":       {[]string{finishing(`"stop"`), finishing(`"stop"`)}, []string{"stop"}},
		"another":              {[]string{finishing(`"stop"`), finishing(`"length"`)}, []string{"stop", "length"}},
		"the one that counts":  {[]string{finishing(`"length"`), finishing(`"length"`), finishing(`"stop"`)}, []string{"length", "stop"}},
		"a long one is cut":    {[]string{finishing(`"` + long + `"`)}, []string{long[:rowReasonLength]}},
		"another choice's not": {[]string{`{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`, finishing(`"stop"`), finishing(`"stop"`)}, []string{"stop"}},
	} {
		t.Run(claim, func(t *testing.T) {
			row := Row(fixtures.LoadRequest{}, events(slices.Concat([]string{piece("content", "a")}, c.sent, []string{done, finishing(`"late"`)})...))
			NewWithT(t).Expect(row.FinishReasons).To(Equal(c.want))
		})
	}
	var many []string
	for i := range 100 {
		many = append(many, finishing(strconv.Quote(fmt.Sprint("r", i))))
	}
	row := Row(fixtures.LoadRequest{}, events(append(many, done)...))
	NewWithT(t).Expect(row.FinishReasons).To(And(HaveLen(rowReasonsLimit), ContainElement("r99")))
}

func TestFindingsAreSortedOnceEachAndBounded(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Row(fixtures.LoadRequest{}, events(piece("content", "a"), finishing(`""`), finishing(`""`), done)).Findings).To(Equal(
		[]string{transcript.FinishReasonEmptyString, transcript.MissingFinishReason, transcript.UsageMissing}))
	var all []transcript.Finding
	for _, id := range transcript.FindingIDs() {
		all = append(all, transcript.Finding{ID: id}, transcript.Finding{ID: id, Path: "x"})
	}
	g.Expect(findingIDs(all)).To(Equal(transcript.FindingIDs()[:rowFindingsLimit]))
	g.Expect(findingIDs(nil)).To(BeNil())
}

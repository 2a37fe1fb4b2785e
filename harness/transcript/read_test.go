package transcript

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"plumbline/fixtures"

	. "github.com/onsi/gomega"
)

func TestAReplyIsReadWithItsTimes(t *testing.T) {
	g := NewWithT(t)
	e := answer(told("stop", think("We"), think(" look."), say("Amber"), say(".")))
	tr := Read(e)
	g.Expect(tr.Stream).To(BeTrue())
	g.Expect(tr.Role).To(Equal("assistant"))
	g.Expect(tr.Reasoning).To(Equal("We look."))
	g.Expect(tr.ReasoningField).To(Equal("reasoning_content"))
	g.Expect(tr.Content).To(Equal("Amber."))
	g.Expect(*tr.FinishReason).To(Equal("stop"))
	g.Expect(tr.DoneSeen).To(BeTrue())
	g.Expect(*tr.Usage.PromptTokens).To(BeEquivalentTo(10))
	g.Expect(tr.Events).To(HaveLen(len(e.Pieces)))
	g.Expect(tr.Deltas).To(Equal([]Delta{
		{Kind: Reasoning, At: 140 * time.Millisecond, Event: 1, Text: "We"},
		{Kind: Reasoning, At: 180 * time.Millisecond, Event: 2, Text: " look."},
		{Kind: Content, At: 220 * time.Millisecond, Event: 3, Text: "Amber"},
		{Kind: Content, At: 260 * time.Millisecond, Event: 4, Text: "."},
	}))
}

func TestOnlyTheFirstChoiceIsTheAnswer(t *testing.T) {
	tr := Read(answer(told("stop", chunk(`{"index":1,"delta":{"content":"x"},"finish_reason":"length"},{"index":0,"delta":{"content":"a"}}`), chunk(`{"index":0,"delta":{"content":"b"}}`))))
	NewWithT(t).Expect(tr.Content).To(Equal("ab"))
	NewWithT(t).Expect(tr.FinishReasonCount).To(Equal(1))
}

func TestThinkingBetweenTagsIsMovedAndKeepsItsTimes(t *testing.T) {
	g := NewWithT(t)
	tr := Read(answer(told("stop", say("<thi"), say("nk>We"), say(" look.</think>\n"), say("\nAmber"), say("."))))
	g.Expect(tr.Content).To(Equal("Amber."))
	g.Expect(tr.Reasoning).To(Equal("We look."))
	g.Expect(tr.ContentSent).To(Equal("<think>We look.</think>\n\nAmber."))
	var got []string
	for _, d := range tr.Deltas {
		got = append(got, fmt.Sprintf("%s %q %d", d.Kind, d.Text, d.At.Milliseconds()))
	}
	g.Expect(got).To(Equal([]string{`markup "<thi" 140`, `markup "nk>" 180`, `reasoning "We" 180`, `reasoning " look." 220`,
		`markup "</think>\n" 220`, `markup "\n" 260`, `content "Amber" 260`, `content "." 300`}))
}

func TestThinkingThatWasNeverClosedIsAllThinking(t *testing.T) {
	tr := Read(answer(told("length", say("<think>We look"))))
	g := NewWithT(t)
	g.Expect(tr.Content).To(BeEmpty())
	g.Expect(tr.Reasoning).To(Equal("We look"))
	g.Expect(ids(tr)).To(ConsistOf(ThinkTagsInContent, BudgetExhaustedInReasoning))
}

func TestTextThatCameTwiceIsKeptOnce(t *testing.T) {
	for name, output := range map[string][]string{
		"growing":       {say("The lamp"), say("The lamp is"), say("The lamp is lit"), say("The lamp is lit now.")},
		"once more":     {say("The lamp"), say(" is"), say(" lit"), say(" now."), say("The lamp is lit now.")},
		"growing twice": {say("The lamp"), say("The lamp is"), say("The lamp is"), say("The lamp is lit"), say("The lamp is lit now.")},
	} {
		NewWithT(t).Expect(Read(answer(told("stop", output...))).Content).To(Equal("The lamp is lit now."), name)
	}
}

func TestACharacterCutBetweenTwoStringsIsJoined(t *testing.T) {
	for name, c := range map[string]struct {
		output []string
		want   string
	}{
		"pair in two deltas":     {[]string{delta(`{"content":"a\ud83d"}`), delta(`{"content":"\udc4bb"}`)}, "a👋b"},
		"other text in between":  {[]string{delta(`{"content":"\ud83d"}`), delta(`{"content":"x"}`)}, "\uFFFDx"},
		"a low half alone":       {[]string{delta(`{"content":"\udc4bx"}`)}, "\uFFFDx"},
		"a high half at the end": {[]string{delta(`{"content":"x\ud83d"}`)}, "x\uFFFD"},
		"two high halves":        {[]string{delta(`{"content":"\ud83d\ud83d\udc4b"}`)}, "\uFFFD👋"},
		"channels apart":         {[]string{delta(`{"reasoning":"\ud83d"}`), delta(`{"content":"\udc4b"}`)}, "\uFFFD"},
	} {
		tr := Read(answer(told("stop", c.output...)))
		NewWithT(t).Expect(tr.Content).To(Equal(c.want), name)
		NewWithT(t).Expect(ids(tr)).To(ContainElement(LoneSurrogate), name)
	}
}

func TestTextPartsAreTakenAndMarked(t *testing.T) {
	tr := Read(answer(told("stop", say("The"), delta(`{"content":[{"type":"text","text":" lamp"},{"type":"image_url"},"!"]}`))))
	g := NewWithT(t)
	g.Expect(tr.Content).To(Equal("The lamp!"))
	g.Expect(tr.Deltas[1].Recovered).To(BeTrue())
}

func TestCountsOfTheWrongTypeAreNone(t *testing.T) {
	tr := Read(answer(told("stop", say("a"), `data: {"choices":[],"usage":{"prompt_tokens":"9","completion_tokens":2.0,"total_tokens":1.5,"prompt_tokens_details":null},"timings":{"prompt_n":3,"prompt_ms":"4","predicted_ms":1e999}}`+"\n\n")[:3]))
	g := NewWithT(t)
	g.Expect(tr.Usage.PromptTokens).To(BeNil())
	g.Expect(*tr.Usage.CompletionTokens).To(BeEquivalentTo(2))
	g.Expect(tr.Usage.TotalTokens).To(BeNil())
	g.Expect(tr.Usage.CachedTokens).To(BeNil())
	g.Expect(*tr.Timings.PromptN).To(BeEquivalentTo(3))
	g.Expect(tr.Timings.PromptMS).To(BeNil())
	g.Expect(tr.Timings.PredictedMS).To(BeNil())
	g.Expect(ids(tr)).To(ContainElements(UsageInconsistent, TimingsIncomplete))
}

func TestErrorsAreReadInAllTheirForms(t *testing.T) {
	for body, want := range map[string]APIError{
		`{"error":{"message":"m","type":"t","code":7,"param":null}}`: {Type: "t", Code: "7", CodeNumber: true, Message: "m"},
		`{"error":"m"}`:                               {Message: "m"},
		`{"detail":"m"}`:                              {Message: "m"},
		`{"detail":[{"msg":"m"}]}`:                    {Message: `[{"msg":"m"}]`},
		`{"object":"error","message":"m","code":"c"}`: {Code: "c", Message: "m"},
		"data: {\"error\":{\"message\":\"m\"}}\n\n":   {Message: "m", Event: 0},
		"<html>m</html>":                              {Message: "<html>m</html>"},
		"":                                            {},
	} {
		tr := Read(answer(pieces(body), status(500)))
		want.Status = 500
		if !strings.HasPrefix(body, "data") {
			want.Event = -1
		}
		NewWithT(t).Expect(tr.Error).To(Equal(&want), body)
		NewWithT(t).Expect(ids(tr)).To(ContainElement(HTTP5xx))
	}
}

func TestAnErrorInsideAStreamIsKeptWithItsEvent(t *testing.T) {
	for _, event := range []string{"data: {\"error\":{\"message\":\"m\",\"code\":502}}\n\n", "event: error\ndata: {\"message\":\"m\",\"code\":502}\n\n",
		"error: {\"message\":\"m\",\"code\":502}\n\n", "data: {\"choices\":[{\"delta\ndata: {\"error\":{\"message\":\"m\",\"code\":502}}\n\n"} {
		tr := Read(answer(pieces(role, say("a"), event, done)))
		g := NewWithT(t)
		g.Expect(tr.Error).To(Equal(&APIError{Status: 200, Event: 2, Code: "502", CodeNumber: true, Message: "m"}), event)
		g.Expect(ids(tr)).To(ContainElement(InBandError))
		g.Expect(ids(tr)).NotTo(ContainElements(MissingFinishReason, MissingDone))
	}
}

func TestWhatComesAfterDoneIsCountedAndNotRead(t *testing.T) {
	tr := Read(answer(append(words(), say("late"), done)))
	g := NewWithT(t)
	g.Expect(tr.Content).To(Equal("The lamp is lit."))
	g.Expect(tr.EventsAfterDone).To(Equal(2))
	g.Expect(tr.DoneAt).To(Equal(tr.Events[len(tr.Events)-3].At))
}

func TestOtherPathsAreNotHeldToTheShapeOfAChat(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/models": `{"object":"list","data":[]}`, "/health": `{"status":"ok"}`, "/metrics": "# HELP x\nx 1\n",
		"/completion": "data: {\"content\":\"a\",\"stop\":true}\n\n", "/v1/responses": "event: response.created\ndata: {\"type\":\"x\"}\n\n",
	} {
		e := answer(pieces(body), kind("application/octet-stream"))
		e.Request = fixtures.Request{Method: "GET", Path: path}
		NewWithT(t).Expect(Read(e).Findings).To(BeEmpty(), path)
	}
}

func TestAnExchangeWithoutAResponseIsRead(t *testing.T) {
	for _, k := range fixtures.EndKinds {
		e := answer(nil, ended(k))
		e.Response = nil
		tr := Read(e)
		NewWithT(t).Expect(tr.Content).To(BeEmpty())
		NewWithT(t).Expect(tr.Events).To(BeEmpty())
	}
}

// coded returns the body in a content coding, one flush a piece, cut into the pieces that the flushes gave.
func coded(t *testing.T, coding string, body []string) []string {
	t.Helper()
	var buf bytes.Buffer
	var w interface {
		io.WriteCloser
		Flush() error
	}
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&buf)
	case "zlib":
		w = zlib.NewWriter(&buf)
	case "bare":
		w, _ = flate.NewWriter(&buf, flate.DefaultCompression)
	}
	var out []string
	for i, p := range body {
		_, err := io.WriteString(w, p)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(w.Flush()).To(Succeed())
		if i == len(body)-1 {
			NewWithT(t).Expect(w.Close()).To(Succeed())
		}
		out = append(out, buf.String())
		buf.Reset()
	}
	return out
}

func encoding(s string) option {
	return func(e *fixtures.Exchange) { e.Response.Header["content-encoding"] = []string{s} }
}

func TestACodedBodyIsReadWithTheTimesOfItsPieces(t *testing.T) {
	plain := Read(answer(words()))
	for coding, header := range map[string]string{"gzip": "gzip", "zlib": "deflate", "bare": "Deflate"} {
		tr := Read(answer(coded(t, coding, words()), encoding(header)))
		NewWithT(t).Expect(tr).To(Equal(plain), coding)
	}
	NewWithT(t).Expect(Read(answer(words(), encoding("identity")))).To(Equal(plain))
}

func TestACodedBodyThatIsCutOrWrongIsAFinding(t *testing.T) {
	whole := coded(t, "gzip", words())
	for name, e := range map[string]*fixtures.Exchange{
		"cut":     answer(whole[:4], encoding("gzip")),
		"no gzip": answer(words(), encoding("gzip")),
		"unknown": answer(words(), encoding("br")),
	} {
		NewWithT(t).Expect(ids(Read(e))).To(ContainElement(StreamTruncated), name)
	}
	NewWithT(t).Expect(Read(answer(whole[:4], encoding("gzip"))).Content).To(Equal("The lamp is"), "what came is kept")
}

func TestABodyThatUnpacksWithoutEndIsStopped(t *testing.T) {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	zeros := make([]byte, 1<<20)
	for range MaxDecoded>>20 + 2 {
		_, err := w.Write(zeros)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	NewWithT(t).Expect(w.Close()).To(Succeed())
	b := newBody(answer(pieces(buf.String()), encoding("gzip")))
	total := 0
	b.each(func(_ time.Duration, p []byte) bool { total += len(p); return true })
	NewWithT(t).Expect(b.err).To(MatchError(errTooLarge))
	NewWithT(t).Expect(total).To(BeNumerically("<=", MaxDecoded))
}

func TestAnEndlessLineOfACutBodyIsNotCopied(t *testing.T) {
	e := answer(append(words()[:3], strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20)), ended(fixtures.EndTooLarge))
	r := &reader{e: e}
	total := 0
	b := newBody(e)
	b.each(r.whole(b, func(_ time.Duration, p []byte) bool { total += len(p); return true }))
	NewWithT(t).Expect(total).To(Equal(len(strings.Join(words()[:3], ""))))
	NewWithT(t).Expect(Read(e).Content).To(Equal("The lamp"))
}

func TestOfABodyThatIsTooLargeOnlyTheBeginningIsRead(t *testing.T) {
	e := answer(pieces(strings.Repeat(say("word"), 20_000)), ended(fixtures.EndTooLarge))
	tr := Read(e)
	g := NewWithT(t)
	g.Expect(e.Size()).To(BeNumerically(">", 2*tooLargeRead))
	g.Expect(tr.Deltas[0].At).To(Equal(firstPiece))
	g.Expect(len(tr.Events) * len(say("word"))).To(And(BeNumerically("<=", tooLargeRead), BeNumerically(">", tooLargeRead/2)))
	g.Expect(ids(tr)).To(ContainElement(StreamTruncated))
}

// recut is the exchange with its body cut anew, all at one time so that only the cuts differ.
func recut(e *fixtures.Exchange, size func(left int) int) *fixtures.Exchange {
	c := *e
	var all []byte
	for _, p := range e.Pieces {
		all = append(all, p.Bytes...)
	}
	c.Pieces = nil
	for len(all) > 0 {
		n := size(len(all))
		c.Pieces = append(c.Pieces, fixtures.Piece{At: time.Millisecond, Bytes: all[:n]})
		all = all[n:]
	}
	return &c
}

func TestTheTranscriptDoesNotDependOnWhereTheBodyIsCut(t *testing.T) {
	bodies := map[string]*fixtures.Exchange{
		"crlf":        answer(pieces(strings.ReplaceAll(strings.Join(words(), ""), "\n", "\r\n"))),
		"cr":          answer(pieces(strings.ReplaceAll(strings.Join(words(), ""), "\n", "\r"))),
		"characters":  answer(told("stop", say("Löwe 🦁"), delta(`{"content":"caf\u00e9 \"o\" \ud83d\udc4b"}`))),
		"tags":        answer(told("stop", say("<thi"), say("nk>so</th"), say("ink>\n\nyes"))),
		"gzip":        answer(pieces(strings.Join(coded(t, "gzip", words()), "")), encoding("gzip")),
		"document":    answer(document(`{"content":"Löwe"}`, `"stop"`), plain),
		"page":        answer(pieces("  <html>Löwe</html>"), kind("text/html")),
		"unnamed":     answer(words(), kind("text/plain")),
		"space first": answer(append([]string{"\n\n  \n"}, words()...), kind("text/plain")),
	}
	for id, k := range kinds {
		bodies[id] = k.shows
	}
	for name, e := range bodies {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := Read(recut(e, func(left int) int { return left }))
			g.Expect(Read(recut(e, func(int) int { return 1 }))).To(Equal(want), "one byte a piece")
			size := e.Size()
			step := 1
			if _, ok := kinds[name]; ok {
				step = 1 + size/60 // the bodies above are cut everywhere, the many of this kind at some places
			}
			for at := 1; at < size; at += step {
				first := true
				got := Read(recut(e, func(left int) int {
					if first {
						first = false
						return at
					}
					return left
				}))
				if !equal(got, want) {
					g.Expect(got).To(Equal(want), "cut at %d", at)
				}
			}
			r := rand.New(rand.NewPCG(1, uint64(size)))
			for range 20 {
				got := Read(recut(e, func(left int) int { return 1 + r.IntN(min(left, 40)) }))
				g.Expect(got).To(Equal(want))
			}
		})
	}
}

// equal compares the exact JSON of two transcripts, which is much quicker than their values.
func equal(a, b *Transcript) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

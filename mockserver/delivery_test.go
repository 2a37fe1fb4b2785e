package mockserver

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// slow is a pace with times that read well: prefill 300 ms, 20 ms a token.
var slow = Pace{Name: "slow", Curve: []Point{{0, 300 * time.Millisecond}}, Decode: 20 * time.Millisecond}

// tokenTimes are the moments of the writes that carry a token, and of the last write.
func tokenTimes(rec *recorder) (tokens []time.Duration, end time.Duration) {
	for _, w := range rec.writes {
		if strings.Contains(w.bytes, `"reasoning_content"`) || strings.Contains(w.bytes, `"delta":{"content":`) {
			tokens = append(tokens, w.at)
		}
		end = w.at
	}
	return tokens, end
}

func TestEveryTokenIsWrittenAtItsDeadline(t *testing.T) {
	numbers, err := ParsePace("ttft=50ms,tpot=10ms,per-1k=70ms,jitter=0.3")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, p := range append(paces, numbers) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			s := engine(t, Options{Pace: p, Pack: pack})
			rec := newRecorder()
			request := body(pack.Prompts[0].Text, `"stream":true,"max_tokens":200`)
			post(t, s, rec, request)

			j, refusal := s.readChat([]byte(request))
			g.Expect(refusal).To(BeNil())
			const promptTokens = headTokens + 51
			due, last := p.deadlines(promptTokens, 200, j.seed.rand(forPace))
			times, end := tokenTimes(rec)
			g.Expect(times).To(Equal(due))
			g.Expect(end).To(Equal(last))
			g.Expect(rec.writes[0].at).To(BeZero(), "the role goes out with the head")
			g.Expect(times[0]).To(Equal(p.Prefill(promptTokens)))

			timings := hear(t, rec.answer()).timings
			g.Expect(timings["prompt_ms"]).To(BeNumerically("~", p.Prefill(promptTokens).Seconds()*1000, 0.0005))
			g.Expect(timings["predicted_ms"]).To(BeNumerically("~", p.PerToken().Seconds()*1000*200, 0.0005))
			g.Expect(timings["predicted_per_second"]).To(BeNumerically("~", 1/p.PerToken().Seconds(), 0.01/p.PerToken().Seconds()))
		})
	}
}

func TestSlowClientShiftsNoLaterDeadlineAndNoFigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := engine(t, Options{Pace: slow})
		rec := newRecorder()
		// The role's write outlasts the first four tokens; a later token's write outlasts the next two.
		rec.stall = map[int]time.Duration{0: 370 * time.Millisecond, 2: 50 * time.Millisecond}
		post(t, s, rec, body("hello", `"stream":true,"max_tokens":30`))

		at := func(i int) time.Duration { return slow.Prefill(0) + time.Duration(i)*slow.Decode }
		g.Expect(rec.writes[1].at).To(Equal(370 * time.Millisecond))
		g.Expect(strings.Count(rec.writes[1].bytes, "data: ")).To(Equal(4), "late tokens catch up, each as an event of its own")
		g.Expect(rec.writes[2].at).To(Equal(at(4)))
		g.Expect(rec.writes[3].at).To(Equal(at(4) + 50*time.Millisecond))
		g.Expect(strings.Count(rec.writes[3].bytes, "data: ")).To(Equal(2))
		g.Expect(rec.writes[4].at).To(Equal(at(7)))
		_, end := tokenTimes(rec)
		g.Expect(end).To(Equal(at(30)))
		timings := hear(t, rec.answer()).timings
		g.Expect(timings["prompt_ms"]).To(Equal(300.0), "an engine reads on while its client is slow")
		g.Expect(timings["predicted_ms"]).To(Equal(600.0))
	})
}

func TestLongSilenceIsFilledWithComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p := Pace{Curve: []Point{{0, 17 * time.Second}}, Decode: time.Second}
		rec := newRecorder()
		post(t, engine(t, Options{Pace: p}), rec, body("hello", `"stream":true,"max_tokens":3`))
		var comments []time.Duration
		for _, w := range rec.writes {
			if w.bytes == ": keep-alive\n\n" {
				comments = append(comments, w.at)
			}
		}
		g.Expect(comments).To(Equal([]time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second}))
		g.Expect(hear(t, rec.answer()).timings["prompt_ms"]).To(Equal(17000.0))

		quiet := newRecorder()
		post(t, engine(t, Options{Pace: p}), quiet, body("hello", `"max_tokens":3`))
		g.Expect(string(quiet.answer().body)).NotTo(ContainSubstring("keep-alive"), "a reply in one piece has no comments")
	})
}

func TestReplyInOnePieceComesWhenItsLastTokenIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := newRecorder()
		post(t, engine(t, Options{Pace: slow}), rec, body("hello", `"max_tokens":10`))
		g.Expect(rec.writes).To(HaveLen(1))
		g.Expect(rec.writes[0].at).To(Equal(500 * time.Millisecond))
		timings := rec.answer().json(t)["timings"].(map[string]any)
		g.Expect(timings).To(HaveKeyWithValue("predicted_ms", 200.0))
		g.Expect(timings).To(HaveKeyWithValue("predicted_per_second", 50.0))
		g.Expect(timings).To(HaveKeyWithValue("prompt_ms", 300.0))
	})
}

func TestClientThatLeavesEndsTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := engine(t, Options{Pace: slow})
		ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions",
			strings.NewReader(body("hello", `"stream":true,"max_tokens":500`)))
		g.Expect(err).NotTo(HaveOccurred())
		rec := newRecorder()
		s.Handler().ServeHTTP(rec, req)
		g.Expect(time.Since(rec.began)).To(Equal(350 * time.Millisecond))
		g.Expect(s.slots.activity().busy).To(BeZero())
		times, _ := tokenTimes(rec)
		g.Expect(times).To(HaveLen(3))
	})
}

func TestEndOfPrefillNoticedLateNeverShortensDecoding(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	plan := []frame{{due: ms(300), mark: prefillEnd}, {due: ms(300), text: "a"}, {due: ms(320), text: "b"}, {due: ms(340), mark: decodeEnd, text: "end"}}
	for _, tc := range []struct {
		noticed int
		shift   int
	}{{300, 0}, {319, 19}, {320, 20}, {350, 50}} {
		g := NewWithT(t)
		d := &delivery{}
		rest, _ := d.take(plan, ms(tc.noticed), true, new(bytes.Buffer))
		g.Expect(rest).To(HaveLen(2), "one token comes with the end of prefill")
		g.Expect(d.clock.prefill).To(Equal(ms(tc.noticed)))
		g.Expect(d.shift).To(Equal(ms(tc.shift)))
		rest, _ = d.take(rest, ms(320+tc.shift), true, new(bytes.Buffer))
		g.Expect(rest).To(HaveLen(1))
		d.take(rest, ms(340+tc.shift), true, new(bytes.Buffer))
		g.Expect(d.clock.last).To(Equal(ms(340 + tc.shift)))
	}
}

func TestRatesAreNeverInfinite(t *testing.T) {
	g := NewWithT(t)
	for _, c := range []clock{{}, {prefill: time.Second, last: time.Second}, {prefill: 1, last: 2}} {
		for _, n := range []int{0, 1} {
			x := newTimings(timings{PromptN: n, PredictedN: n}, c)
			for _, v := range []float64{x.PromptPerSecond, x.PromptPerTokenMS, x.PredictedPerSecond, x.PredictedPerTokenMS} {
				g.Expect(math.IsInf(v, 0) || math.IsNaN(v)).To(BeFalse())
			}
		}
	}
}

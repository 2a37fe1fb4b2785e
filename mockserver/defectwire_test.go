package mockserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// The two conversations of these tests.
var (
	before = body("ANVIL_REQ_5_00001 first. "+repeatWord("granite", 20), usageAsked+`,"seed":3`)
	after  = body("ANVIL_REQ_5_00002 first. "+repeatWord("amber", 20), usageAsked+`,"seed":3`)
)

// tellTale is what a client saw of one stream on a socket.
type tellTale struct {
	answer
	err    error         // from reading the body
	head   time.Duration // from sending to the response's head
	token  time.Duration // from there to the first token
	events []string      // in order, without the blank lines
}

// watch asks for a reply and reads it to its end, or to the second comment in it.
func watch(t *testing.T, s *Server, c *http.Client, request string) tellTale {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/chat/completions", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	saw := tellTale{answer: answer{status: resp.StatusCode, header: resp.Header}, head: time.Since(sent)}
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadString('\n')
		saw.body = append(saw.body, line...)
		if event := strings.TrimSpace(line); event != "" {
			saw.events = append(saw.events, event)
		}
		if saw.token == 0 && strings.Contains(line, `_content":"`) {
			saw.token = time.Since(sent) - saw.head
		}
		if err != nil || strings.HasPrefix(line, ":") {
			if !errors.Is(err, io.EOF) {
				saw.err = err
			}
			return saw
		}
	}
}

// content is the text of the answer's chunks, those of any id.
func (s *tellTale) content(g *WithT) string {
	var h heard
	for _, event := range s.events {
		var chunk map[string]any
		if data := strings.TrimPrefix(event, "data: "); json.Unmarshal([]byte(data), &chunk) == nil && chunk["choices"] != nil {
			h.take(chunk)
		}
	}
	return h.content
}

func (s *tellTale) last() string { return s.events[len(s.events)-1] }

// volatile is what differs between two equal replies.
var volatile = regexp.MustCompile(`chatcmpl-[A-Z0-9]+|call_[A-Z0-9]+|"(prompt|predicted)(_per_token)?_(ms|second)":[0-9.e-]+|"(prompt|predicted)_per_second":[0-9.e+-]+`)

func steady(b []byte) string { return volatile.ReplaceAllString(string(b), "~") }

// faults are what each defect must show on the wire, beside the reply of an engine without it.
var faults = map[string]func(g *WithT, right, wrong tellTale){
	"cut-stream": func(g *WithT, right, wrong tellTale) {
		g.Expect(wrong.err).To(MatchError(io.ErrUnexpectedEOF), "no end of the body")
		g.Expect(steady(right.body)).To(HavePrefix(steady(wrong.body)))
		expectHalf(g, right, wrong)
		g.Expect(string(wrong.body)).To(HaveSuffix("\n\n"))
		g.Expect(string(wrong.body)).NotTo(ContainAny(`"finish_reason":"`, "[DONE]"))
	},
	"error-event": func(g *WithT, right, wrong tellTale) {
		g.Expect(wrong.err).NotTo(HaveOccurred(), "the body ends as it should")
		expectHalf(g, right, wrong)
		var failure map[string]map[string]any
		g.Expect(json.Unmarshal([]byte(strings.TrimPrefix(wrong.last(), "data: ")), &failure)).To(Succeed())
		g.Expect(failure).To(And(HaveLen(1), HaveKeyWithValue("error", HaveKeyWithValue("message", Not(BeEmpty())))))
		g.Expect(string(wrong.body)).To(HaveSuffix("\n\n"))
	},
	"rate-limit": func(g *WithT, _, wrong tellTale) {
		g.Expect(wrong.status).To(Equal(http.StatusTooManyRequests))
		g.Expect(wrong.header.Get("Retry-After")).To(Equal("1"))
		g.Expect(wrong.header.Get("Content-Type")).To(HavePrefix("application/json"))
		g.Expect(string(wrong.body)).To(ContainSubstring(`"type":"rate_limit_error"`))
	},
	"stall": func(g *WithT, right, wrong tellTale) {
		expectHalf(g, right, wrong)
		g.Expect(wrong.last()).To(Equal(": keep-alive"))
	},
	"foreign-chunks": func(g *WithT, right, wrong tellTale) {
		ids := map[string]int{}
		for _, id := range regexp.MustCompile(`chatcmpl-[A-Z0-9]+`).FindAllString(string(wrong.body), -1) {
			ids[id]++
		}
		g.Expect(ids).To(HaveLen(2))
		g.Expect(slices.Collect(maps.Values(ids))).To(ContainElement(countPieces("ANVIL_REQ_5_00001")+20), "as the other reply had tokens")
		own := right.content(g)
		theirs := "ANVIL_REQ_5_00001" + strings.Repeat(" granite", 20)
		g.Expect(wrong.content(g)).To(ContainSubstring(theirs))
		g.Expect(strings.Replace(wrong.content(g), theirs, "", 1)).To(Equal(own))
		g.Expect(wrong.content(g)).To(HavePrefix("ANVIL_REQ_5_00002 amber"), "its own answer comes first")
	},
	"foreign-marker": func(g *WithT, right, wrong tellTale) {
		g.Expect(wrong.content(g)).To(Equal(strings.Replace(right.content(g), "00002", "00001", 1)))
	},
	"nan": func(g *WithT, right, wrong tellTale) {
		g.Expect(wrong.events).To(HaveLen(len(right.events)))
		var spoiled []string
		for i, event := range wrong.events {
			if steady([]byte(event)) != steady([]byte(right.events[i])) {
				spoiled = append(spoiled, event)
			}
		}
		g.Expect(spoiled).To(HaveLen(1))
		data := strings.TrimPrefix(spoiled[0], "data: ")
		g.Expect(json.Valid([]byte(data))).To(BeFalse())
		g.Expect(json.Valid([]byte(strings.Replace(data, "NaN", "-0.5", 1)))).To(BeTrue(), data)
		g.Expect(data).To(ContainSubstring(`"logprob":NaN`))
	},
	"no-done": func(g *WithT, right, wrong tellTale) {
		g.Expect(wrong.err).NotTo(HaveOccurred())
		g.Expect(steady(right.body)).To(Equal(steady(wrong.body) + "data: [DONE]\n\n"))
	},
	"no-finish": func(g *WithT, right, wrong tellTale) {
		expectMissing(g, right, wrong, `"finish_reason":"stop"`)
	},
	"usage-missing": func(g *WithT, right, wrong tellTale) {
		expectMissing(g, right, wrong, `"usage":{`)
	},
	"usage-details-list":   promptDetailsAre(`[{"cached_tokens":0}]`),
	"usage-details-string": promptDetailsAre(`"none"`),
	"usage-details-null":   promptDetailsAre(`null`),
	"cached": func(g *WithT, right, wrong tellTale) {
		r, w := lastChunk(g, right), lastChunk(g, wrong)
		tokens := r["usage"].(map[string]any)["prompt_tokens"].(float64)
		g.Expect(w["usage"].(map[string]any)).To(And(HaveKeyWithValue("prompt_tokens", tokens),
			HaveKeyWithValue("prompt_tokens_details", HaveKeyWithValue("cached_tokens", tokens-4))))
		g.Expect(w["timings"]).To(And(HaveKeyWithValue("cache_n", tokens-4), HaveKeyWithValue("prompt_n", 4.0)))
		g.Expect(r["timings"]).To(And(HaveKeyWithValue("cache_n", 0.0), HaveKeyWithValue("prompt_n", tokens)))
	},
	"role-only": func(g *WithT, right, wrong tellTale) {
		g.Expect(wrong.events[0]).To(ContainSubstring(`"delta":{"role":"assistant","content":""}`))
		g.Expect(wrong.token).To(BeNumerically(">", 500*time.Millisecond), "the head, and then nothing for long")
		g.Expect(wrong.content(g)).To(Equal(right.content(g)))
		g.Expect(wrong.last()).To(Equal("data: [DONE]"))
	},
	"wrong-words": func(g *WithT, right, wrong tellTale) {
		g.Expect(wrong.content(g)).To(Equal(right.content(g) + " amber"))
	},
	"no-canary": func(g *WithT, right, wrong tellTale) {
		g.Expect("ANVIL_REQ_5_00002 " + wrong.content(g)).To(Equal(right.content(g)))
	},
	"slow-headers": func(g *WithT, right, wrong tellTale) {
		g.Expect(wrong.head).To(BeNumerically(">=", time.Second))
		g.Expect(steady(wrong.body)).To(Equal(steady(right.body)))
	},
}

// expectHalf says that about half of the answer came, and the thinking before it.
func expectHalf(g *WithT, right, wrong tellTale) {
	whole, half := right.content(g), wrong.content(g)
	g.Expect(whole).To(HavePrefix(half))
	g.Expect(strings.Count(half, "amber")).To(And(BeNumerically(">", 0), BeNumerically("<", 20)))
	g.Expect(wrong.status).To(Equal(http.StatusOK))
	g.Expect(string(wrong.body)).NotTo(ContainAny("[DONE]", `"usage":{`))
}

// expectMissing says that one event is not there, and all others are.
func expectMissing(g *WithT, right, wrong tellTale, which string) {
	g.Expect(string(wrong.body)).NotTo(ContainSubstring(which))
	rest := slices.DeleteFunc(slices.Clone(right.events), func(e string) bool { return strings.Contains(e, which) })
	g.Expect(rest).To(HaveLen(len(right.events) - 1))
	g.Expect(steady([]byte(strings.Join(wrong.events, "\n")))).To(Equal(steady([]byte(strings.Join(rest, "\n")))))
}

func promptDetailsAre(text string) func(*WithT, tellTale, tellTale) {
	return func(g *WithT, right, wrong tellTale) {
		const field = `"prompt_tokens_details":`
		g.Expect(steady(wrong.body)).To(Equal(strings.Replace(steady(right.body), field+`{"cached_tokens":0}`, field+text, 1)))
		g.Expect(string(wrong.body)).To(ContainSubstring(field + text))
	}
}

// lastChunk is the chunk with the usage.
func lastChunk(g *WithT, saw tellTale) map[string]any {
	var chunk map[string]any
	g.Expect(json.Unmarshal([]byte(strings.TrimPrefix(saw.events[len(saw.events)-2], "data: ")), &chunk)).To(Succeed())
	return chunk
}

func TestEveryDefectShowsItsFaultOnTheWire(t *testing.T) {
	NewWithT(t).Expect(slices.Collect(maps.Keys(faults))).To(ConsistOf(DefectNames()))
	epoch := time.Unix(1700000000, 0)
	right, client := start(t, Options{Epoch: epoch})
	watch(t, right, client, before)
	clean := watch(t, right, client, after)
	NewWithT(t).Expect(clean.err).NotTo(HaveOccurred())
	NewWithT(t).Expect(clean.content(NewWithT(t))).To(Equal("ANVIL_REQ_5_00002" + strings.Repeat(" amber", 20)))
	for _, name := range DefectNames() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(notices(faults[name], clean)).To(BeTrue(), "a reply without the fault must not pass for one")
			s, c := start(t, Options{Epoch: epoch, Defects: []Defect{{name, 1}}})
			watch(t, s, c, before)
			faults[name](g, clean, watch(t, s, c, after))
			g.Eventually(func() int { return s.slots.activity().busy }).Should(BeZero(), "its slot is free again")
		})
	}
}

// notices says whether a check of a fault fails for the right reply.
func notices(check func(g *WithT, right, wrong tellTale), clean tellTale) (failed bool) {
	defer func() { recover() }()
	check(NewGomega(func(string, ...int) {
		failed = true
		panic("stop here")
	}).(*WithT), clean, clean)
	return failed
}

func TestRepliesOutsideTheShareAreUntouched(t *testing.T) {
	epoch := time.Unix(1700000000, 0)
	said := func(t *testing.T, s *Server, request string) (string, time.Duration) {
		rec := newRecorder()
		post(t, s, rec, request)
		return steady(rec.answer().body), rec.writes[len(rec.writes)-1].at
	}
	whole := strings.Replace(after, `"stream":true`, `"stream":false`, 1)
	for _, name := range DefectNames() {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			clean := engine(t, Options{Epoch: epoch})
			s := engine(t, Options{Epoch: epoch, Defects: []Defect{{name, 0.5}}})
			for _, request := range []string{whole, after} {
				if request == after {
					for range max(1, find(name).run) { // those that have the defect
						j, refusal := s.readChat([]byte(before))
						g.Expect(refusal).To(BeNil())
						s.defects.draw(j)
					}
				}
				want, ends := said(t, clean, request)
				got, ended := said(t, s, request)
				g.Expect(got).To(Equal(want), name)
				g.Expect(ended).To(Equal(ends), name)
			}
		})
	}
}

func TestStalledStreamIsKeptAliveUntilTheClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := engine(t, Options{Pace: slow, Defects: []Defect{{"stall", 1}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(after))
		g.Expect(err).NotTo(HaveOccurred())
		rec := newRecorder()
		s.Handler().ServeHTTP(rec, req)
		var comments []time.Duration
		for _, w := range rec.writes {
			if w.bytes == keepAlive {
				comments = append(comments, w.at)
			}
		}
		g.Expect(len(comments)).To(Equal(12))
		for i := 1; i < len(comments); i++ {
			g.Expect(comments[i] - comments[i-1]).To(Equal(keepAliveEvery))
		}
		g.Expect(s.slots.activity().busy).To(BeZero())
	})
}

func TestDefectsMeetInOneReply(t *testing.T) {
	g := NewWithT(t)
	s, c := start(t, Options{Defects: []Defect{{"no-done", 1}, {"wrong-words", 1}, {"usage-missing", 1}}})
	saw := watch(t, s, c, after)
	g.Expect(saw.content(g)).To(HaveSuffix(strings.Repeat(" amber", 21)))
	g.Expect(string(saw.body)).NotTo(ContainAny("[DONE]", `"usage"`))
	g.Expect(saw.last()).To(ContainSubstring(`"finish_reason":"stop"`))
}

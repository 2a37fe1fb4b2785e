package plan

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/fixtures"
)

func TestTheStagesFollowTheSettings(t *testing.T) {
	g := NewWithT(t)
	stages := load(t, allStages).Stages()
	open := stages[1].Schedule
	g.Expect(open).To(HaveLen(7))
	stages[1].Schedule = nil
	g.Expect(stages).To(Equal([]LoadStage{
		{Name: "closed", Arrival: "closed", Concurrency: 20, Requests: 60},
		{Name: "open", Arrival: "poisson", Rate: 2, Requests: 7},
		{Name: "sweep-4", Arrival: "closed", Concurrency: 4, Requests: 5},
		{Name: "sweep-2", Arrival: "closed", Concurrency: 2, Requests: 5},
	}))
	g.Expect(load(t, func(run *fixtures.CapacityRun) { run.Burst = 9 }).Stages()).To(Equal([]LoadStage{
		{Name: "closed", Arrival: "closed", Concurrency: 9, Requests: 9},
	}), "a burst replaces both numbers")
}

func TestARequestSaysAllThatItsJudgementNeeds(t *testing.T) {
	g := NewWithT(t)
	g.Expect(load(t).Request("closed", 2)).To(Equal(fixtures.LoadRequest{Stage: "closed", Index: 2, PlannedContextTokens: 32768}))
	l := load(t, allStages, func(run *fixtures.CapacityRun) {
		run.RequestCanaries, run.ResponseWords, run.ControlledOutputPolicy, run.Seed = true, 100, "strict", 17
	})
	at := l.Stages()[1].Schedule[3]
	g.Expect(at).To(BeNumerically(">", time.Millisecond))
	g.Expect(l.Request("open", 3)).To(Equal(fixtures.LoadRequest{
		Stage: "open", Index: 3, PlannedContextTokens: l.Sizes("open")[3], Marker: "ANVIL_REQ_17_00063",
		ResponseWords: 100, Word: "amber", Strict: true, Scheduled: &at,
	}))
	g.Expect(l.Sizes("no such stage")).To(BeNil())
}

func TestMarkersAreUniqueOverTheRun(t *testing.T) {
	g := NewWithT(t)
	l := load(t, allStages, func(run *fixtures.CapacityRun) { run.RequestCanaries, run.CtxTokens = true, 200 })
	var markers []string
	for _, stage := range l.Stages() {
		for i := range stage.Requests {
			r := l.Request(stage.Name, i)
			markers = append(markers, r.Marker)
			g.Expect(strings.Count(message(l.Body(stage.Name, i)), "ANVIL_REQ_")).To(Equal(1))
			g.Expect(message(l.Body(stage.Name, i))).To(ContainSubstring(r.Marker))
		}
	}
	want := make([]string, 60+7+5+5)
	for i := range want {
		want[i] = fmt.Sprintf("ANVIL_REQ_0_%05d", i)
	}
	g.Expect(markers).To(Equal(want))
}

func TestTheTaskEndsTheMessage(t *testing.T) {
	for _, c := range []struct {
		words   int
		canary  bool
		pattern string
	}{
		{0, false, `\n\nSum up the notes above in one line\.$`},
		{0, true, `\n\nSum up the notes above in one line\. .*ANVIL_REQ_0_00000.*one space.*$`},
		{100, false, `\n\nWrite the word amber exactly 100 times, separated by single spaces, and nothing else\.$`},
		{1, true, `\n\nWrite the word amber exactly 1 times, separated by single spaces, and nothing else\. .*ANVIL_REQ_0_00000.*$`},
	} {
		l := load(t, func(run *fixtures.CapacityRun) { run.ResponseWords, run.RequestCanaries = c.words, c.canary })
		NewWithT(t).Expect(regexp.MustCompile(c.pattern).MatchString(message(l.Body("closed", 0)))).To(BeTrue(), c.pattern)
	}
}

func TestUniquePromptsShareNoBeginning(t *testing.T) {
	l := load(t, unique, allStages, func(run *fixtures.CapacityRun) { run.RequestCanaries, run.Requests, run.CtxTokens = true, 300, 300 })
	all := append(slices.Collect(maps.Values(messages(l))), l.CalibrationTexts()...)
	for _, other := range []int64{1, 2} {
		all = append(all, message(load(t, unique, func(run *fixtures.CapacityRun) { run.Seed = other }).Body("closed", 0)))
	}
	slices.Sort(all) // the texts with the longest common start are neighbours now
	for i := range len(all) - 1 {
		if n := commonStart(all[i], all[i+1]); n >= 16 {
			t.Errorf("two prompts begin with %q", all[i][:n])
		}
	}
	NewWithT(t).Expect(all).To(HaveLen(300 + 7 + 5 + 5 + 2 + 2))
}

func TestSharedPromptsBeginWithTheCommonPrefixAndNothingMore(t *testing.T) {
	g := NewWithT(t)
	l := load(t, allStages)
	whole := 8000 * 3
	first := message(l.Body("closed", 0))
	for name, text := range messages(l) {
		if text == first {
			continue
		}
		g.Expect(commonStart(first, text)).To(BeNumerically("~", whole, longestWord), name)
	}
	for _, text := range l.CalibrationTexts() {
		g.Expect(commonStart(first, text)).To(BeNumerically("<", 16), "calibrating must not fill the prefix cache")
	}
}

func TestAPrefixTakesNoMoreThanThePromptHasRoomFor(t *testing.T) {
	g := NewWithT(t)
	sized := func(tokens int) string {
		return message(load(t, func(run *fixtures.CapacityRun) { run.Requests, run.CtxTokens = 2, tokens }).Body("closed", 0))
	}
	long := sized(4000)
	for tokens, want := range map[int]int{1000: 3000, 300: 900} {
		text := sized(tokens)
		g.Expect(len(text)).To(BeNumerically("~", want, longestWord))
		g.Expect(commonStart(long, text)).To(BeNumerically("~", want-len(ownPart(t, text)), longestWord), "a shorter prefix begins the longer one")
		g.Expect(len(ownPart(t, text))).To(BeNumerically(">", 300))
	}
	for _, tokens := range []int{32, 100, 150} {
		g.Expect(commonStart(long, sized(tokens))).To(BeNumerically("<", 16), fmt.Sprint(tokens))
	}
	none := load(t, func(run *fixtures.CapacityRun) { run.SharedPrefixTokens = 0 })
	g.Expect(commonStart(message(none.Body("closed", 0)), message(none.Body("closed", 1)))).To(BeNumerically("<", 16))
}

func TestAMessageHasTheLengthThatTheCalibrationSays(t *testing.T) {
	for _, c := range []fixtures.Calibration{Assumed, {CharsPerToken: 3.417, OverheadTokens: 23.5}, {CharsPerToken: 0.9, OverheadTokens: 1000}} {
		for _, mode := range []string{"shared", "unique"} {
			for _, canary := range []bool{false, true} {
				l := load(t, func(run *fixtures.CapacityRun) {
					run.Calibration, run.PromptCacheMode, run.RequestCanaries, run.Requests = c, mode, canary, 12
				})
				for i, size := range l.Sizes("closed") {
					want := (float64(size) - c.OverheadTokens) * c.CharsPerToken
					got := float64(len(message(l.Body("closed", i))))
					if got > want+1 || got < want-longestWord {
						t.Errorf("%+v, %s: %d tokens have %v characters, want up to %d below %v", c, mode, size, got, longestWord, want)
					}
				}
			}
		}
	}
}

func TestAPromptTooSmallForItsTaskIsTheHeadingAndTheTask(t *testing.T) {
	for _, overhead := range []float64{0, 1000} {
		l := load(t, func(run *fixtures.CapacityRun) {
			run.CtxTokens, run.RequestCanaries, run.Calibration.OverheadTokens = 32, true, overhead
		})
		text := message(l.Body("closed", 0))
		NewWithT(t).Expect(text).To(MatchRegexp(`^[0-9a-f]{16} is the shelf mark of the notes that follow\.\n\nSum up .*$`))
	}
}

func TestABodyHasTheKeysOfTheProtocolAndNoOthers(t *testing.T) {
	const always = `"model":"a-model","messages":[{"role":"user","content":%s}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":64`
	half, zero := 0.5, 0.0
	for name, c := range map[string]struct {
		edit func(*fixtures.CapacityRun)
		more string
	}{
		"as it comes":      {func(*fixtures.CapacityRun) {}, ``},
		"sampling":         {func(r *fixtures.CapacityRun) { r.Temperature, r.TopP = &zero, &half }, `,"temperature":0,"top_p":0.5`},
		"thinking on":      {func(r *fixtures.CapacityRun) { r.ThinkingMode = "enabled" }, `,"chat_template_kwargs":{"enable_thinking":true}`},
		"thinking off":     {func(r *fixtures.CapacityRun) { r.ThinkingMode = "disabled" }, `,"chat_template_kwargs":{"enable_thinking":false}`},
		"without":          {func(r *fixtures.CapacityRun) { r.ThinkingMode = "unsupported" }, ``},
		"reasoning":        {func(r *fixtures.CapacityRun) { r.ReasoningEffort = "low" }, `,"reasoning_effort":"low"`},
		"a seed is no key": {func(r *fixtures.CapacityRun) { r.Seed = 17 }, ``},
	} {
		t.Run(name, func(t *testing.T) {
			body := load(t, c.edit, func(r *fixtures.CapacityRun) { r.CtxTokens = 500 }).Body("closed", 0)
			content, err := json.Marshal(message(body))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(string(body)).To(Equal("{" + fmt.Sprintf(always, content) + c.more + "}"))
		})
	}
}

func TestAModelsNameCannotBreakABody(t *testing.T) {
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	const name = `x","content":"y` + "\n\u2028"
	l, err := Capacity(capacityRun(func(r *fixtures.CapacityRun) { r.CtxTokens = 500 }), name, pack)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var body struct {
		Model    string
		Messages []struct{ Content string }
	}
	NewWithT(t).Expect(json.Unmarshal(l.Body("closed", 0), &body)).To(Succeed())
	NewWithT(t).Expect(body.Model).To(Equal(name))
	NewWithT(t).Expect(len(body.Messages[0].Content)).To(BeNumerically("~", 1500, longestWord))
}

func TestTheSameSettingsMakeTheSameBytes(t *testing.T) {
	g := NewWithT(t)
	one, again := load(t, unique), load(t, unique)
	for _, i := range []int{5, 0, 5} {
		g.Expect(one.Body("closed", i)).To(Equal(again.Body("closed", i)))
	}
	other := load(t, unique, func(run *fixtures.CapacityRun) { run.Seed = 1 })
	g.Expect(one.Body("closed", 0)).NotTo(Equal(other.Body("closed", 0)))
}

// A record of a run holds its settings and not its prompts: other texts for the same settings would be another run.
func TestTheTextsAreFrozen(t *testing.T) {
	l := load(t, func(run *fixtures.CapacityRun) { run.RequestCanaries = true })
	NewWithT(t).Expect(fmt.Sprintf("%x", sha256.Sum256(l.Body("closed", 1)))).To(Equal("7ff2411bc3c923dfb715f884df26618fa55b1c02d45d5eeefddf82b2d31d66cf"))
}

func TestCalibrationRequestsAreSmallAndOfDifferentSize(t *testing.T) {
	for name, c := range map[string]struct {
		tokens, window int
		short, long    int
	}{
		"large prompts":            {131072, 0, 8192, 49152},
		"usual ones":               {8192, 0, 1500, 9000},
		"a window that fits fewer": {0, 64 + 1024 + 2000, 666, 4000},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := load(t, func(run *fixtures.CapacityRun) {
				run.CtxTokens, run.MaxModelLen, run.RequestCanaries, run.ResponseWords = c.tokens, c.window, true, 40
			})
			texts, bodies := l.CalibrationTexts(), l.CalibrationBodies()
			g.Expect(texts).To(HaveLen(2))
			g.Expect(len(texts[0])).To(BeNumerically("~", c.short, longestWord))
			g.Expect(len(texts[1])).To(BeNumerically("~", c.long, longestWord))
			for i, body := range bodies {
				g.Expect(message(body)).To(Equal(texts[i]))
				g.Expect(string(body)).To(ContainSubstring(`"max_tokens":1}`))
				g.Expect(texts[i]).To(ContainSubstring(loadMarker(0, l.total()+i)), "a marker of its own, as the others have")
			}
		})
	}
}

func TestSettingsThatMakeNoPlanAreRefusedByName(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*fixtures.CapacityRun)
		want []string
	}{
		"no requests":                 {func(r *fixtures.CapacityRun) { r.Requests = 0 }, []string{`"capacity-requests" is 0`, "1 to 100000"}},
		"no workers":                  {func(r *fixtures.CapacityRun) { r.Concurrency = 0 }, []string{`"capacity-concurrency" is 0`}},
		"a small prompt":              {func(r *fixtures.CapacityRun) { r.CtxTokens = 31 }, []string{`"capacity-ctx-tokens" is 31`, "32"}},
		"below zero":                  {func(r *fixtures.CapacityRun) { r.CtxTokens = -1 }, []string{`"capacity-ctx-tokens" is -1`}},
		"a small window":              {func(r *fixtures.CapacityRun) { r.MaxModelLen = 31 + 64 + 1024 }, []string{`"capacity-max-model-len" is 1119`, "leaves 31", "at least 32"}},
		"an unknown mode":             {func(r *fixtures.CapacityRun) { r.PromptCacheMode = "none" }, []string{`"capacity-prompt-cache-mode" is "none"`}},
		"a unique burst":              {func(r *fixtures.CapacityRun) { r.PromptCacheMode, r.Burst = "unique", 3 }, []string{`"capacity-burst" is 3`}},
		"a seed below zero":           {func(r *fixtures.CapacityRun) { r.Seed = -1 }, []string{`"capacity-seed" is -1`}},
		"an unknown arrival":          {func(r *fixtures.CapacityRun) { r.Arrival = "closed" }, []string{`"capacity-arrival" is "closed"`}},
		"an open loop of none":        {func(r *fixtures.CapacityRun) { r.Arrival, r.Rate = "poisson", 1 }, []string{`"capacity-open-requests" is 0`}},
		"an open loop without a rate": {func(r *fixtures.CapacityRun) { r.Arrival, r.OpenRequests = "poisson", 1 }, []string{`"capacity-rate" is 0`}},
		"a level twice":               {func(r *fixtures.CapacityRun) { r.Sweep, r.SweepRequests = []int{2, 2}, 4 }, []string{`"capacity-sweep" is 2`, "once"}},
		"effort and mode": {func(r *fixtures.CapacityRun) { r.ThinkingMode, r.ReasoningEffort = "enabled", "low" },
			[]string{`"capacity-reasoning-effort" is "low"`}},
		"an unknown thinking mode": {func(r *fixtures.CapacityRun) { r.ThinkingMode = "maybe" }, []string{`"capacity-thinking-mode" is "maybe"`}},
		"too many requests": {func(r *fixtures.CapacityRun) { r.CtxTokens, r.Sweep, r.SweepRequests = 32, []int{1}, 99941 },
			[]string{`"capacity-sweep-requests" is 99941`, "100001", "100000"}},
		"too many tokens": {func(r *fixtures.CapacityRun) { r.Requests = 10000 }, []string{`"capacity-requests" is 10000`, "67108864"}},
		"too many tokens of a burst": {func(r *fixtures.CapacityRun) { r.Burst, r.CtxTokens, r.MaxModelLen = 256, 262145, 0 },
			[]string{`"capacity-burst" is 256`, "67109120", "67108864"}},
		"too many tokens of a sweep": {func(r *fixtures.CapacityRun) { r.Sweep, r.SweepRequests = []int{1}, 9000 },
			[]string{`"capacity-sweep-requests" is 9000`, `"sweep-1"`}},
	} {
		t.Run(name, func(t *testing.T) {
			run := capacityRun(c.edit)
			_, err := Capacity(run, "m", &corpus.Pack{})
			_, dry := DryRun(run)
			for _, want := range append(c.want, "plan capacity run: ") {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
				NewWithT(t).Expect(dry).To(MatchError(ContainSubstring(want)))
			}
		})
	}
}

func TestThePlannedTokensMayFillTheirBound(t *testing.T) {
	_, err := DryRun(capacityRun(func(r *fixtures.CapacityRun) { r.Burst, r.CtxTokens, r.MaxModelLen = 256, 262144, 0 }))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

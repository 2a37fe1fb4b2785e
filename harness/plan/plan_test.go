package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/tidwall/gjson"

	"plumbline/corpus"
)

func asker(t *testing.T, profile string) Asker {
	t.Helper()
	p, err := corpus.LoadProfile(profile)
	if err != nil {
		t.Fatal(err)
	}
	return Asker{Profile: p, Model: "a-model"}
}

func standard(t *testing.T, profile string) []Request {
	t.Helper()
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	requests, err := Standard(pack, asker(t, profile))
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

const thinking = "qwen3.8-flash-next-thinking"

func TestTheStandardPlanHasTheProtocolsOrder(t *testing.T) {
	want := []string{"warmup"}
	for r := 1; r <= corpus.Repetitions; r++ {
		for _, c := range corpus.PerformanceCases {
			want = append(want, fmt.Sprintf("performance-%s-r%d", c, r))
		}
	}
	for _, c := range corpus.SanityCases {
		want = append(want, "sanity-"+c)
	}
	var got []string
	for _, r := range standard(t, thinking) {
		got = append(got, r.ID)
	}
	NewWithT(t).Expect(got).To(Equal(want))
}

func TestEveryRequestSendsWhatTheProtocolFixes(t *testing.T) {
	g := NewWithT(t)
	a := asker(t, thinking)
	for _, r := range standard(t, thinking) {
		body := gjson.ParseBytes(r.Body)
		g.Expect(json.Valid(r.Body)).To(BeTrue(), r.ID)
		g.Expect(body.Get("stream").Bool()).To(BeTrue(), r.ID)
		g.Expect(body.Get("stream_options.include_usage").Bool()).To(BeTrue(), r.ID)
		g.Expect(body.Get("model").String()).To(Equal("a-model"), r.ID)
		g.Expect(body.Get("seed").Int()).To(Equal(int64(r.Repetition)), r.ID)
		g.Expect(body.Get("max_tokens").Int()).To(Equal(map[string]int64{"warmup": 128, "performance": 512, "sanity": 2048}[r.Phase]), r.ID)
		g.Expect(body.Get("messages.#").Int()).To(Equal(int64(1)), r.ID)
		g.Expect(body.Get("messages.0.content").String()).To(Equal(r.Text), r.ID)
		g.Expect(body.Get("tools").Exists()).To(Equal(strings.HasPrefix(r.CaseID, "T")), r.ID)
		for field, value := range gjson.ParseBytes(a.Profile.Sampling).ForEach {
			g.Expect(body.Get(field.String()).Raw).To(Equal(value.Raw), r.ID+" "+field.String())
		}
		g.Expect(body.Get("chat_template_kwargs").Raw).To(MatchJSON(a.Profile.ChatTemplateKwargs), r.ID)
	}
}

func TestAProfileWithoutATokenizerPlansNoCounts(t *testing.T) {
	g := NewWithT(t)
	for _, r := range standard(t, "plain-greedy") {
		g.Expect(r.ContentTokens).To(BeNil(), r.ID)
		g.Expect(r.SharedPrefixTokens).To(BeNil(), r.ID)
		g.Expect(r.FrozenInputTokens).To(BeNil(), r.ID)
	}
}

func TestTheConcurrencyStageServesEachLevelThriceWithMarkersOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	requests, err := Concurrency(asker(t, thinking), 6, "run")
	g.Expect(err).NotTo(HaveOccurred())
	markers, ids := map[string]bool{}, map[string]bool{}
	for _, r := range requests {
		markers[r.Marker], ids[r.ID] = true, true
		g.Expect(r.Text).To(ContainSubstring(r.Marker))
		g.Expect(*r.Round).To(Equal(int(r.Seed)))
	}
	g.Expect(requests).To(HaveLen(3 * (2 + 4 + 6)))
	g.Expect(markers).To(HaveLen(len(requests)))
	g.Expect(ids).To(HaveLen(len(requests)))
	for _, level := range []int{2, 4, 6} {
		rounds := Level(requests, level)
		g.Expect(rounds).To(HaveLen(corpus.ConcurrencyRounds))
		for _, round := range rounds {
			g.Expect(round).To(HaveLen(level))
		}
	}
	g.Expect(Level(requests, 8)).To(BeNil())
}

func TestAnotherRunHasOtherMarkers(t *testing.T) {
	one, err := Concurrency(asker(t, thinking), 2, "one")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Concurrency(asker(t, thinking), 2, "other")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range one {
		if slices.ContainsFunc(other, func(o Request) bool { return o.Marker == r.Marker }) {
			t.Errorf("marker %q stands in both runs", r.Marker)
		}
	}
}

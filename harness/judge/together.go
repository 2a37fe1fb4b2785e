package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"plumbline/harness/transcript"
)

// compare finds what only several exchanges show together: what leaked from one to the other, answers that should be
// the same, and how a level was served.
func (v *verdict) compare() {
	v.sideLists()
	for i, x := range v.all {
		if !x.answered() {
			continue
		}
		x.mixed()
		for j, other := range v.all {
			if i != j && other.chat {
				x.leaksFrom(other)
			}
		}
		for _, earlier := range v.all[:i] {
			if earlier.answered() {
				x.repeats(earlier)
			}
		}
	}
	if level := v.level(); level != nil {
		v.serialised(level)
		if served := servedOf(level); len(served) < len(level) {
			v.joint = append(v.joint, finding(FailureRate, fmt.Sprintf("%d of %d served", len(served), len(level))))
		}
	}
}

// sideLists lowers what a model list without an answer means where chat answers all the same.
func (v *verdict) sideLists() {
	if !slices.ContainsFunc(v.all, func(x *asked) bool { return x.answered() }) {
		return
	}
	for _, x := range v.all {
		if x.chat || !has(x.found, transcript.ModelsUnavailable) {
			continue
		}
		for i := range x.found {
			x.found[i].Severity = transcript.Warning
		}
	}
}

// leaksFrom looks for what only another request knew: its canary, or the fact that it asks for. A fact counts where the own
// task failed, for two requests may well share one.
func (x *asked) leaksFrom(other *asked) {
	foreign := other.secrets(x)
	for _, secret := range foreign {
		if !strings.Contains(x.said(), secret) {
			continue
		}
		if other.end() <= x.begin() {
			x.add(StateLeak, fmt.Sprintf("%s of %s", cut(secret), other.name))
		} else {
			x.add(CrossRequestContamination, fmt.Sprintf("%s of %s", cut(secret), other.name))
		}
		return
	}
	// One id of the other's in a reply that has ids of its own: its chunks were mixed in.
	if x.t.DistinctIDs > 1 && other.t.DistinctIDs > 0 && slices.Contains(x.t.IDs, other.t.IDs[0]) && !slices.Contains(other.t.IDs, x.t.IDs[0]) {
		x.add(CrossRequestContamination, fmt.Sprintf("chunks with the id %s of %s", cut(other.t.IDs[0]), other.name))
	}
}

// said is everything that a reply says.
func (x *asked) said() string {
	var b strings.Builder
	b.WriteString(x.t.Content + "\n" + x.t.Reasoning)
	for _, c := range x.t.ToolCalls {
		b.WriteString("\n" + c.Arguments)
	}
	return b.String()
}

// shortestSecret is the least length of a fact that no answer holds by chance.
const shortestSecret = 4

// secrets are the texts of a request that the reply to another must not hold.
func (x *asked) secrets(by *asked) []string {
	var all []string
	own := by.p.Task
	if t := x.p.Task; t != nil {
		if t.Canary != "" && (own == nil || own.Canary != t.Canary) {
			all = append(all, t.Canary)
		}
		fact, _ := t.Text()
		mine := ""
		if own != nil {
			mine, _ = own.Text()
		}
		if (t.Kind == "contains" || t.Kind == "exact") && len(fact) >= shortestSecret && by.task.state == stateFail &&
			!strings.Contains(mine, fact) && own != nil && own.Kind != "not_contains" {
			all = append(all, fact)
		}
	}
	// What a reply must not hold is what an earlier request brought up.
	if own != nil && own.Kind == "not_contains" {
		if unwanted, _ := own.Text(); unwanted != "" {
			all = append(all, unwanted)
		}
	}
	return all
}

// mixed looks within one reply for another request's text: a canary that is made like the own one and is not it, or
// chunks of a second id without which the task would have gone right.
func (x *asked) mixed() {
	t := x.p.Task
	if t == nil {
		return
	}
	if foreign := likeCanary(x.said(), t.Canary); foreign != "" {
		x.add(CrossRequestContamination, cut(foreign))
		return
	}
	fact, _ := t.Text()
	if x.task.state != stateFail || x.t.DistinctIDs < 2 || t.Kind != "contains" && t.Kind != "exact" {
		return
	}
	alone := textOfID(x.t, x.t.ID)
	if strings.TrimSpace(alone) == fact || t.Kind == "contains" && strings.Contains(alone, fact) {
		x.add(CrossRequestContamination, "without the chunks of other ids the answer is right")
	}
}

// likeCanary finds a word that is made like the canary, letter for letter and digit for digit behind one same head, and
// is not it.
func likeCanary(text, canary string) string {
	head := strings.IndexByte(canary, '-')
	if head <= 0 {
		return ""
	}
	for rest := text; ; {
		i := strings.Index(rest, canary[:head+1])
		if i < 0 {
			return ""
		}
		rest = rest[i:]
		if len(rest) >= len(canary) && rest[:len(canary)] != canary && madeAlike(rest[:len(canary)], canary) {
			return rest[:len(canary)]
		}
		rest = rest[head+1:]
	}
}

func madeAlike(a, b string) bool {
	word := func(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
	for i := range len(a) {
		if word(a[i]) != word(b[i]) || !word(a[i]) && a[i] != b[i] {
			return false
		}
	}
	return true
}

// textOfID is the answer text in the chunks of one id.
func textOfID(t *transcript.Transcript, id string) string {
	var b strings.Builder
	for _, ev := range t.Events {
		if chunk := gjson.ParseBytes(ev.Data); chunk.Get("id").Str == id {
			b.WriteString(chunk.Get("choices.0.delta.content").Str)
		}
	}
	return b.String()
}

// repeats compares the answers to one request that was sent twice. A seed is compared only where the two did not run at
// the same time: a batch may change what a seed gives.
func (x *asked) repeats(earlier *asked) {
	if len(x.e.Request.Body) == 0 || x.e.Request.Digest() != earlier.e.Request.Digest() {
		return
	}
	cold, warm := cachedTokens(earlier), cachedTokens(x)
	if earlier.task.state == stateOK && x.task.state == stateFail && warm > cold {
		x.add(CacheHitCorruption, fmt.Sprintf("%d prompt tokens cached, %d before", warm, cold))
		return
	}
	if earlier.t.Content == x.t.Content && sameCalls(earlier.t.ToolCalls, x.t.ToolCalls) {
		return
	}
	differ := fmt.Sprintf("%s and %s", cut(earlier.t.Content), cut(x.t.Content))
	switch apart := earlier.end() <= x.begin(); {
	case x.p.Temperature != nil && *x.p.Temperature == 0:
		x.add(NondeterministicAtTemperature, differ)
	case x.p.Seed != nil && apart:
		x.add(SeedNotReproducible, differ)
	}
}

func cachedTokens(x *asked) int64 {
	if !x.f.CachedTokens.Known {
		return 0
	}
	return x.f.CachedTokens.Value
}

func sameCalls(a, b []transcript.ToolCall) bool {
	return slices.EqualFunc(a, b, func(a, b transcript.ToolCall) bool {
		return a.Name == b.Name && a.Arguments == b.Arguments
	})
}

// level returns the exchanges of chat that were under way together, null when the case is no level: two at least, each
// begun before the first one ended.
func (v *verdict) level() []*asked {
	var level []*asked
	var first time.Duration
	for _, x := range v.all {
		if !x.chat {
			continue
		}
		if len(level) == 0 || x.end() < first {
			first = x.end()
		}
		level = append(level, x)
	}
	meant := v.focus != nil && v.focus.p.Concurrency > 1
	if len(level) < 2 || slices.ContainsFunc(level, func(x *asked) bool { return !meant && x.begin() >= first }) {
		return nil
	}
	return level
}

func servedOf(level []*asked) []*asked {
	return slices.DeleteFunc(slices.Clone(level), func(x *asked) bool { return !x.answered() })
}

// serialisedDeltas is how many pieces of output each reply needs for their times to tell an order, and
// serialisedFactor how much longer each must have waited than the one before it.
const (
	serialisedDeltas = 3
	serialisedFactor = 1.5
)

// serialised finds a level whose replies came one after the other: each began only when the one before had said its
// last word, although all had been asked together.
func (v *verdict) serialised(level []*asked) {
	served := servedOf(level)
	if len(served) < 2 || len(served) < len(level) {
		return
	}
	type span struct{ asked, first, last time.Duration }
	var spans []span
	for _, x := range served {
		d := x.t.Deltas
		if x.t.Untimed || len(d) < serialisedDeltas || d[0].At == d[len(d)-1].At {
			return
		}
		spans = append(spans, span{x.begin(), x.begin() + d[0].At, x.begin() + d[len(d)-1].At})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.first - b.first) })
	for i := 1; i < len(spans); i++ {
		before, now := spans[i-1], spans[i]
		if now.first < before.last || now.asked >= before.first ||
			float64(now.first-now.asked) < serialisedFactor*float64(before.first-before.asked) {
			return
		}
	}
	v.joint = append(v.joint, finding(RequestsSerialised, fmt.Sprintf("%d requests, effective concurrency 1", len(spans))))
}

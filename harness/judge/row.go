package judge

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// Bounds of what a row keeps, against replies made to fill the record.
const (
	rowUsageLimit    = 4 << 10 // bytes
	rowFindingsLimit = 20
	rowReasonsLimit  = 8
	rowReasonLength  = 64 // bytes
)

// captureLimit is how many characters of visible text the capacity protocol looks at. A longer text counts as cut.
const captureLimit = 8192

// Row reads, measures and judges one exchange of a capacity run. It is a pure function, and what it returns keeps nothing of
// the exchange in memory.
//
// The visible text is the answer channel exactly as it was sent, without the repairs of a transcript, for that is what a
// client shows: thinking that a server lets through between tags stands in front of the marker there, and is the first
// content. No text of the reply is in the row; finish reasons, usage and the markers of other requests are.
func Row(r fixtures.LoadRequest, e *fixtures.Exchange) fixtures.Row {
	x := loaded{r: r, e: e, t: readLoad(e)}
	x.row = fixtures.Row{
		Stage: r.Stage, RequestIndex: r.Index, PlannedContextTokens: r.PlannedContextTokens,
		SinceStart: e.SinceStart, Scheduled: r.Scheduled,
		ResponseReceived:        e.Response != nil,
		FinishReasons:           finishReasons(x.t),
		StreamTerminalObserved:  x.t.DoneSeen,
		VisibleContentTruncated: longerThan(x.t.ContentSent, captureLimit),
		Findings:                findingIDs(x.t.Findings),
	}
	if c := e.Connection; c != nil {
		x.row.ConnectMS, x.row.Reused = c.Wait.Seconds()*msPerSecond, c.Reused
	}
	x.measure()
	if e.Response != nil {
		x.row.Status = e.Response.Status
		x.canary()
		x.controlledOutput()
	}
	x.row.Failure = x.failure()
	return x.row
}

// loaded is one exchange of a capacity run under judgement.
type loaded struct {
	r   fixtures.LoadRequest
	e   *fixtures.Exchange
	t   *transcript.Transcript
	row fixtures.Row
}

// loadBody is the part of every load request's body that bears on reading the reply. It stands in for the body, which a
// record leaves out and which is too long to be parsed again for each reply: so a row is the same from the run and from its
// record. With it and no path, the reply is read as a chat completion.
var loadBody = []byte(`{"messages":[],"stream":true,"stream_options":{"include_usage":true}}`)

func readLoad(e *fixtures.Exchange) *transcript.Transcript {
	bare := *e
	bare.Request = fixtures.Request{Body: loadBody}
	return transcript.Read(&bare)
}

// measure fills in counts and times.
func (x *loaded) measure() {
	row, t := &x.row, x.t
	if u := t.Usage; u != nil {
		row.PromptTokens, row.CompletionTokens, row.CachedTokens = usageCounts(t)
		if len(u.Raw) <= rowUsageLimit {
			row.Usage = u.Raw
		}
	}
	first, content := x.output()
	row.OutputTokens, row.OutputTokenSource = int64(row.ContentChunks), sourceChunks
	if row.CompletionTokens != nil {
		row.OutputTokens, row.OutputTokenSource = *row.CompletionTokens, sourceUsage
	}
	timeRow(row, first, content, x.e.End.At.Seconds())
}

// output counts the chunks of each channel as it was sent and returns when the first output and the first content came, in
// seconds; null for none. Text that a transcript moved out of the answer channel was sent in it; thinking was sent as such
// only where a field of its own carried it.
func (x *loaded) output() (first, content *float64) {
	thinks := x.t.ReasoningField != ""
	lastContent, lastThinking := -1, -1
	for i := range x.t.Deltas {
		d := &x.t.Deltas[i]
		switch {
		case d.Kind == transcript.Call:
			continue
		case d.Kind == transcript.Reasoning && thinks:
			if d.Event != lastThinking {
				lastThinking = d.Event
				x.row.ReasoningChunks++
			}
		default:
			if content == nil {
				content = new(d.At.Seconds())
			}
			if d.Event != lastContent {
				lastContent = d.Event
				x.row.ContentChunks++
			}
		}
		if first == nil {
			first = new(d.At.Seconds())
		}
	}
	return first, content
}

// longerThan reports whether s has more than so many characters.
func longerThan(s string, limit int) bool {
	return len(s) > limit && utf8.RuneCountInString(s) > limit
}

// findingIDs are the ids of deviations, each once and sorted, the first few.
func findingIDs(found []transcript.Finding) []string {
	if len(found) == 0 {
		return nil
	}
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return slices.Clip(ids[:min(len(ids), rowFindingsLimit)])
}

// finishReasons are the different finish reasons, the one that counts at the end, the first few of the others in front of it.
// A transcript keeps only that one, so the events are looked at again where there were several.
func finishReasons(t *transcript.Transcript) []string {
	if t.FinishReason == nil {
		return nil
	}
	final := firstBytes(*t.FinishReason, rowReasonLength)
	if t.FinishReasonCount == 1 {
		return []string{strings.Clone(final)}
	}
	var all []string
	for _, ev := range t.Events[:len(t.Events)-t.EventsAfterDone] {
		gjson.GetBytes(ev.Data, "choices").ForEach(func(_, choice gjson.Result) bool {
			reason := choice.Get("finish_reason")
			if choice.Get("index").Int() != 0 || reason.Type != gjson.String || reason.Str == "" {
				return true
			}
			if s := firstBytes(reason.Str, rowReasonLength); s != final && len(all) < rowReasonsLimit-1 && !slices.Contains(all, s) {
				all = append(all, strings.Clone(s))
			}
			return true
		})
	}
	return append(all, strings.Clone(final))
}

// firstBytes is the beginning of a text in at most so many bytes, without the part of a character that was cut.
func firstBytes(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }

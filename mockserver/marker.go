package mockserver

import (
	"regexp"
	"strconv"
	"strings"
)

// marker is a sign that some prompts ask a reply to begin with.
type marker struct {
	// lead is how every such sign begins. It is looked for first: prompts have hundreds of kilobytes, and a pattern takes
	// its time for each.
	lead    string
	pattern *regexp.Regexp // at the start of a text
	// brief says that such prompts come with budgets too small for long thinking.
	brief bool
}

// markers are those of the concurrency stage and of the capacity protocol.
var markers = []marker{
	{lead: "PLB-", pattern: regexp.MustCompile(`^PLB-[0-9A-Z-]+\b`)},
	{lead: "ANVIL_REQ_", pattern: regexp.MustCompile(`^ANVIL_REQ_[0-9]+_[0-9]{5,}\b`), brief: true},
}

// maxMarker is how many bytes a sign may have.
const maxMarker = 256

// findMarker returns the first marker in a text, "" when there is none.
func findMarker(text string) (sign string, brief bool) {
	for _, m := range markers {
		if found := m.first(text); found != "" {
			return found, m.brief
		}
	}
	return "", false
}

// first is the first such sign in a text that no letter, digit or underscore touches.
func (m *marker) first(text string) string {
	for at := 0; ; at++ {
		next := strings.Index(text[at:], m.lead)
		if next < 0 {
			return ""
		}
		at += next
		if at > 0 && wordByte(text[at-1]) {
			continue
		}
		if found := m.pattern.FindString(text[at:min(len(text), at+maxMarker)]); found != "" {
			return found
		}
	}
}

// wordByte says what \b counts as part of a word.
func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// The task of a prompt that fixes its reply to a word said so many times.
const repetitionLead = "Write the word "

var repetitionTask = regexp.MustCompile(
	`^Write the word (\S+) exactly ([1-9][0-9]{0,6}) times, separated by single spaces, and nothing else\.`)

// maxTask is how many bytes such a task may have.
const maxTask = 512

// findRepetition returns what the last such task in a text asks for, a count of 0 when there is none.
func findRepetition(text string) repetition {
	for end := len(text); ; {
		at := strings.LastIndex(text[:end], repetitionLead)
		if at < 0 {
			return repetition{}
		}
		if found := repetitionTask.FindStringSubmatch(text[at:min(len(text), at+maxTask)]); found != nil {
			count, _ := strconv.Atoi(found[2]) // seven digits at most
			return repetition{word: found[1], count: count}
		}
		end = at
	}
}

// shortTask is how the last sentences of a prompt ask for little; its budget is as little, and long thinking would leave
// nothing of it for the answer.
var shortTask = regexp.MustCompile(`(?i)\bone[- ](line|sentence)\b`)

// asksLittle says whether a text's task is to be answered in a line.
func asksLittle(text string) bool { return shortTask.MatchString(text[max(0, len(text)-maxTask):]) }

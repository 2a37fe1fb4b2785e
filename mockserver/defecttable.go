package mockserver

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// defect is one way of being wrong. A reply with it is right in everything else.
type defect struct {
	name, says string
	// run is how many streams in succession one hit spoils; 0 is one.
	run int64
	// refusal is answered instead of a reply.
	refusal *apiError
	// say changes what is said.
	say func(*speech, stranger)
	// deliver changes what is written, and when: a stream's whole list of events, its times never falling.
	deliver func([]frame, *scene) []frame
}

// scene is what a change of a stream's events may need to know.
type scene struct {
	shape *form      // of the stream's tokens
	head  completion // of the chunks of the other request
	r     *reply
	other stranger
}

// tooLate is how much later than they should be the late things come.
const tooLate = time.Second

// defects is the table of them all.
var defects = []defect{
	{name: "cut-stream", says: "The connection is closed in the middle of the answer.", deliver: cutStream},
	{name: "error-event", says: "In the middle of the answer comes an error object, and the stream ends there without [DONE].",
		deliver: errorEvent},
	{name: "rate-limit", says: "Five requests in succession get status 429 and Retry-After.", run: 5,
		refusal: &apiError{status: http.StatusTooManyRequests, kind: "rate_limit_error", code: "rate_limit_exceeded", retry: true,
			message: "too many requests: come back later"}},
	{name: "stall", says: "From the middle of the answer on only keep-alive comments come, for ever.", deliver: stall},
	{name: "foreign-chunks", says: "In the middle of the answer come chunks of another request, with its id, marker and words.",
		deliver: foreignChunks},
	{name: "foreign-marker", says: "The answer begins with another request's marker.",
		say: func(s *speech, other stranger) { s.sign = other.sign }},
	{name: "nan", says: "A chunk in the middle of the answer has the log probability NaN, and so is not JSON.", deliver: notANumber},
	{name: "no-done", says: "The stream ends without [DONE].",
		deliver: drop(func(f *frame) bool { return f.text == endMarker })},
	{name: "no-finish", says: "No chunk has a finish reason.",
		deliver: drop(func(f *frame) bool { return f.mark == decodeEnd })},
	{name: "usage-missing", says: "The chunk with the usage does not come.",
		deliver: drop(func(f *frame) bool { return f.body != nil && f.body.Usage != nil })},
	{name: "usage-details-list", says: "The prompt_tokens_details of the usage are a list instead of an object.",
		deliver: promptDetailsAs([]promptDetails{{}})},
	{name: "usage-details-string", says: "The prompt_tokens_details of the usage are a string instead of an object.",
		deliver: promptDetailsAs("none")},
	{name: "usage-details-null", says: "The prompt_tokens_details of the usage are null instead of an object.",
		deliver: promptDetailsAs(nil)},
	{name: "cached", says: "Usage and timings claim that all but four of the prompt's tokens were in the cache.", deliver: cached},
	{name: "role-only", says: "The role comes at once, as a chunk with empty content, and the first token a second late.",
		deliver: roleOnly},
	{name: "wrong-words", says: "Of a word that is to be repeated there is one too many.",
		say: func(s *speech, _ stranger) {
			if s.words.count > 0 {
				s.words.count++
			}
		}},
	{name: "no-canary", says: "The answer lacks the marker that it was to begin with.",
		say: func(s *speech, _ stranger) { s.sign = "" }},
	{name: "slow-headers", says: "The head of the response comes a second late, and everything after it too.", deliver: slowHeaders},
}

// middle is the place in a list after half of the answer's tokens, half of the thinking's where there is no answer, and
// after the role where there is neither. Something always follows it.
func middle(list []frame) int {
	var thinking, answer []int
	for i := range list {
		switch f := &list[i]; f.part {
		case verbatim:
		case reasoning:
			thinking = append(thinking, i+1)
		default:
			answer = append(answer, i+1)
		}
	}
	if len(answer) == 0 {
		answer = thinking
	}
	if len(answer) == 0 {
		return 1
	}
	return answer[(len(answer)-1)/2]
}

// endWith ends a list in its middle, with a frame at the moment of the one that would have followed.
func endWith(list []frame, last frame) []frame {
	at := middle(list)
	last.due = list[at].due
	return append(list[:at], last)
}

func cutStream(list []frame, _ *scene) []frame { return endWith(list, frame{then: breakUp}) }

func stall(list []frame, _ *scene) []frame {
	return endWith(list, frame{text: keepAlive, then: repeat})
}

func errorEvent(list []frame, _ *scene) []frame {
	failure := apiError{status: http.StatusInternalServerError, kind: "server_error", code: "internal_error",
		message: "decoding failed in the middle of the reply"}
	var b bytes.Buffer
	b.WriteString("data: ")
	appendJSON(&b, failure.body()) // ends the line
	b.WriteByte('\n')
	return endWith(list, frame{text: b.String()})
}

func foreignChunks(list []frame, s *scene) []frame {
	theirs := newForm(s.head, s.r)
	at := middle(list)
	strange := make([]frame, 0, len(s.other.opening)+len(list)-at)
	for _, t := range s.other.opening {
		var b bytes.Buffer
		theirs.appendTo(&b, content, t.shown)
		strange = append(strange, frame{due: list[at].due, text: b.String()})
	}
	return append(list[:at], append(strange, list[at:]...)...)
}

// notANumber spoils the token before the middle.
func notANumber(list []frame, s *scene) []frame {
	f := &list[middle(list)-1]
	if f.part == verbatim {
		return list // no token to be unsure of
	}
	var token, b bytes.Buffer
	appendString(&token, f.text)
	around := s.shape[f.part]
	b.WriteString(around.before)
	b.Write(token.Bytes())
	b.WriteString(strings.Replace(around.after, `"finish_reason"`,
		`"logprobs":{"content":[{"token":`+token.String()+`,"logprob":NaN,"top_logprobs":[]}]},"finish_reason"`, 1))
	f.part, f.text = verbatim, b.String()
	return list
}

// drop keeps some frames from being written; the moments that they mark pass all the same.
func drop(which func(*frame) bool) func([]frame, *scene) []frame {
	return func(list []frame, _ *scene) []frame {
		for i := range list {
			if f := &list[i]; which(f) {
				f.body, f.text = nil, ""
			}
		}
		return list
	}
}

func promptDetailsAs(v any) func([]frame, *scene) []frame {
	return func(list []frame, _ *scene) []frame {
		for i := range list {
			if b := list[i].body; b != nil && b.Usage != nil {
				b.Usage.PromptDetails = v
			}
		}
		return list
	}
}

// newTokens is how many tokens of a prompt are not claimed to come from the cache.
const newTokens = 4

func cached(list []frame, _ *scene) []frame {
	for i := range list {
		b := list[i].body
		if b != nil && b.Usage != nil {
			b.Usage.PromptDetails = promptDetails{CachedTokens: max(0, b.Usage.PromptTokens-newTokens)}
		}
		if b != nil && b.Timings != nil {
			b.Timings.CacheN = max(0, b.Timings.PromptN-newTokens)
			b.Timings.PromptN -= b.Timings.CacheN
		}
	}
	return list
}

// roleOnly sends the role as vLLM does.
func roleOnly(list []frame, _ *scene) []frame {
	empty := ""
	list[0].body.Choices[0].Delta = roleDelta{Role: "assistant", Content: &empty}
	later(list[1:])
	return list
}

func slowHeaders(list []frame, _ *scene) []frame {
	later(list)
	return list
}

func later(list []frame) {
	for i := range list {
		list[i].due += tooLate
	}
}

package measure

import (
	"fmt"
	"strings"
	"unicode"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// errorLimit bounds the text of an error in characters.
const errorLimit = 500

// endings says in words how an exchange ended, where that was not the body's proper end.
var endings = map[fixtures.EndKind]string{
	fixtures.EndTruncate:       "the connection was closed before the end of the reply",
	fixtures.EndReset:          "the connection was reset",
	fixtures.EndRefused:        "no connection could be had",
	fixtures.EndMalformed:      "the response is not HTTP",
	fixtures.EndConnectTimeout: "no connection within the connect time-out",
	fixtures.EndFirstByte:      "no byte of the body within the first-byte time-out",
	fixtures.EndFirstToken:     "no output within the first-token time-out",
	fixtures.EndIdle:           "no event with data within the idle time-out",
	fixtures.EndTotal:          "no end within the total time-out",
	fixtures.EndCanceled:       "the run was interrupted",
	fixtures.EndTooLarge:       "the body is larger than the client accepts",
	fixtures.EndUnsent:         "the request could not be sent",
}

// status decides how the request ended. A stream that had said its finish reason and [DONE] is a whole reply however
// its connection ended.
func (m *measurer) status() {
	t := m.t
	m.f.FinishReason = Unknown[string]("no finish reason was sent")
	if t.FinishReason != nil {
		m.f.FinishReason = Known(*t.FinishReason, "finish_reason of choice 0")
	}
	m.f.Error = Unknown[string]("the request did not fail")
	said := t.FinishReason != nil && t.DoneSeen
	switch {
	case m.e.Response != nil && m.e.Response.Status/100 != 2:
		m.fail("HTTP status", fmt.Sprintf("HTTP %d", m.e.Response.Status), serverText(t.Error))
	case t.Error != nil:
		m.fail("error object in the reply", "the server sent an error", serverText(t.Error))
	case !m.e.Whole() && !said:
		m.fail("transport", endings[m.e.End.Kind], m.e.End.Error)
		m.void = !m.leftOpen()
	case m.e.Response == nil:
		m.fail("transport", "no response came", m.e.End.Error)
	case m.e.Size() == 0:
		m.fail("reply", "the reply is empty", "")
	case streamAsked(m.e.Request) && !t.Stream:
		m.fail("reply", "a stream was asked for and the body is no event stream", "")
		m.void = t.FinishReason == nil
	case m.unreadable(said) != nil:
		m.fail("reply", m.unreadable(said).Sentence, "")
	case t.FinishReason == nil:
		m.fail("reply", "no finish reason was sent", "")
		m.void = !t.DoneSeen
	default:
		m.finished(*t.FinishReason)
	}
}

// leftOpen reports whether the server had said all that a reply holds, usage too, and then only failed to end it. The
// counts and the times of its output are true then.
func (m *measurer) leftOpen() bool {
	return m.found(transcript.StreamNotTerminated, "") != nil && m.t.FinishReason != nil && m.t.Usage != nil
}

func (m *measurer) finished(reason string) {
	switch reason {
	case "stop", "tool_calls", "function_call":
		m.f.Status = Completed
	case "length":
		m.f.Status = Truncated
	default:
		m.fail("reply", fmt.Sprintf("the finish reason is %q", reason), "")
		// A reason that the interface does not know ends a whole reply all the same.
		m.void = m.found(transcript.FinishReasonWrong, "") == nil
	}
}

// unreadable is the finding that keeps a reply from being whole and readable, nil for none.
func (m *measurer) unreadable(said bool) *transcript.Finding {
	for i := range m.t.Findings {
		f := &m.t.Findings[i]
		switch f.ID {
		case transcript.MalformedEvent, transcript.InvalidJSONChunk:
			if f.Severity == transcript.Fault {
				return f
			}
		case transcript.StreamTruncated:
			if !said {
				return f
			}
		}
	}
	return nil
}

// fail records a failure: what happened, and the details where there are any.
func (m *measurer) fail(source, what, details string) {
	m.f.Status = Failed
	m.void = true
	if details = strings.TrimSpace(details); details != "" && details != what {
		what += ": " + details
	}
	m.f.Error = Known(bounded(what), source)
}

func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// serverText is what the server said of its error, in one line.
func serverText(a *transcript.APIError) string {
	if a == nil {
		return ""
	}
	s := strings.Join(strings.Fields(a.Message), " ")
	if a.Type != "" {
		s = strings.TrimSpace(s + " (" + a.Type + ")")
	}
	return s
}

// bounded is s without control characters, which a server could use to write over a terminal, and not too long.
func bounded(s string) string {
	s = strings.Map(printable, s)
	r := []rune(s)
	if len(r) <= errorLimit {
		return s
	}
	return string(r[:errorLimit-1]) + "…"
}

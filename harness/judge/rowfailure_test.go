package judge

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

// ended is an exchange that ended so, with a cause as the client words it.
func ended(e *fixtures.Exchange, kind fixtures.EndKind, cause string) *fixtures.Exchange {
	e.End.Kind, e.End.Error = kind, cause
	return e
}

// headed is an exchange with this status and content type.
func headed(e *fixtures.Exchange, status int, header map[string][]string) *fixtures.Exchange {
	e.Response.Status, e.Response.Header = status, header
	return e
}

// wrongSum is the exchange with its body compressed, and a checksum that is another body's.
func wrongSum(e *fixtures.Exchange) *fixtures.Exchange {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for _, p := range e.Pieces {
		w.Write(p.Bytes)
	}
	w.Close()
	b.Bytes()[b.Len()-8]++
	e.Pieces = []fixtures.Piece{{At: e.End.At, Bytes: b.Bytes()}}
	e.Response.Header["Content-Encoding"] = []string{"gzip"}
	return e
}

// withID is the chunk under another id.
func withID(id, chunk string) string { return strings.Replace(chunk, `"id":"i1"`, `"id":"`+id+`"`, 1) }

func TestAReplyFailsByTheFirstThingThatIsWrong(t *testing.T) {
	const refusal = `{"error":{"message":"slow down","type":"rate_limit"}}`
	strict := fixtures.LoadRequest{ResponseWords: 2, Word: "plumb", Strict: true}
	marked := fixtures.LoadRequest{Marker: ownMarker}
	gzipped := map[string][]string{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}}
	for claim, c := range map[string]struct {
		r           fixtures.LoadRequest
		e           *fixtures.Exchange
		class, kind string
		says        string // part of the message
	}{
		"a right reply":              {e: answered("It is.")},
		"cut by the token limit":     {e: events(piece("content", "It"), finishing(`"length"`), done)},
		"an unknown reason":          {e: events(piece("content", "It"), finishing(`"eos"`), done)},
		"a new id in each chunk":     {e: events(withID("a", piece("content", "It")), withID("b", piece("content", " is")), withID("c", stopped), done)},
		"another id at the end":      {e: events(piece("content", "It"), stopped, withID("b", fewUsage), done)},
		"a foreign id behind [DONE]": {e: events(withID("a", piece("content", "It")), withID("b", stopped), done, withID("a", fewUsage))},
		"a member twice":             {e: events(piece("content", "It"), `{"id":"i1","id":"i1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, done)},

		"not sent":                   {e: &fixtures.Exchange{End: fixtures.End{Kind: fixtures.EndUnsent, Error: "make request: net/http: invalid method"}}, class: fixtures.FailRunner, kind: "unsent", says: "could not be sent: invalid method"},
		"interrupted":                {e: ended(events(piece("content", "It")), fixtures.EndCanceled, "canceled: interrupt"), class: fixtures.FailRunner, kind: "canceled"},
		"interrupted in a refusal":   {e: ended(status(503, refusal), fixtures.EndCanceled, ""), class: fixtures.FailRunner, kind: "canceled"},
		"refused":                    {e: &fixtures.Exchange{End: fixtures.End{Kind: fixtures.EndRefused, Error: "dial tcp 10.1.2.3:80: connect: connection refused"}}, class: fixtures.FailRequest, kind: "refused", says: "no connection could be had: connection refused"},
		"cut":                        {e: ended(events(piece("content", "It")), fixtures.EndTruncate, "unexpected EOF"), class: fixtures.FailRequest, kind: "truncate", says: "before the end of the reply: unexpected EOF"},
		"cut behind [DONE]":          {e: ended(answered("It"), fixtures.EndReset, ""), class: fixtures.FailRequest, kind: "reset", says: "[DONE] had come"},
		"left open":                  {e: ended(answered("It"), fixtures.EndIdle, ""), class: fixtures.FailRequest, kind: "idle-timeout"},
		"cut behind an error":        {e: ended(events(piece("content", "It"), refusal), fixtures.EndTruncate, ""), class: fixtures.FailRequest, kind: "truncate", says: "slow down"},
		"a status":                   {e: status(429, refusal), class: fixtures.FailRequest, kind: "http_429", says: "status 429; the server sent an error: slow down (rate_limit)"},
		"a status without a word":    {e: status(502, ""), class: fixtures.FailRequest, kind: "http_502", says: "the server answered with status 502"},
		"a cut refusal":              {e: ended(status(503, refusal), fixtures.EndTruncate, ""), class: fixtures.FailRequest, kind: "http_503"},
		"a redirect":                 {e: status(307, ""), class: fixtures.FailRequest, kind: "http_307"},
		"a stream with a bad status": {e: headed(answered("It"), 500, nil), class: fixtures.FailRequest, kind: "http_500"},
		"no response":                {e: &fixtures.Exchange{End: fixtures.End{Kind: fixtures.EndClose}}, class: fixtures.FailRequest, kind: "no_response"},
		"no end":                     {e: &fixtures.Exchange{}, class: fixtures.FailRequest, kind: "unknown_end"},
		"a chunk that is no JSON":    {e: events(piece("content", "It"), `{"choices":[{"delta":{"content":" is`, stopped, done), class: fixtures.FailRequest, kind: "invalid_json_chunk"},
		"a chunk that is a list":     {e: events(piece("content", "It"), `[1]`, stopped, done), class: fixtures.FailRequest, kind: "malformed_event"},
		"two chunks in one event":    {e: events(piece("content", "It")+"\n"+piece("content", " is"), stopped, done), class: fixtures.FailRequest, kind: "malformed_event"},
		"NaN":                        {e: events(piece("content", "It"), `{"choices":[{"index":0,"delta":{"content":" is"},"logprobs":{"x":NaN}}]}`, stopped, done), class: fixtures.FailRequest, kind: "non_finite_number"},
		"no UTF-8":                   {e: events(`{"choices":[{"index":0,"delta":{"content":"`+"\xff"+`"}}]}`, stopped, done), class: fixtures.FailRequest, kind: "invalid_utf8"},
		"one document":               {e: status(200, `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"It"},"finish_reason":"stop"}]}`), class: fixtures.FailRequest, kind: "not_event_stream"},
		"a refusal with status 200":  {e: status(200, refusal), class: fixtures.FailRequest, kind: "not_event_stream", says: "slow down"},
		"a page":                     {e: status(200, `<html>It is.</html>`), class: fixtures.FailRequest, kind: "not_event_stream"},
		"nothing":                    {e: events(), class: fixtures.FailRequest, kind: "empty_body"},
		"gzip that is none":          {e: headed(answered("It"), 200, gzipped), class: fixtures.FailRequest, kind: "undecodable_body"},

		"gzip with a wrong sum": {e: wrongSum(answered("It")), class: fixtures.FailRequest, kind: "undecodable_body"},

		"an error in the stream":        {e: events(piece("content", "It"), refusal), class: fixtures.FailStream, kind: "in_band_error", says: "the server sent an error: slow down (rate_limit); the stream ended without [DONE]; no finish_reason was sent"},
		"an error and a proper end":     {e: events(piece("content", "It"), refusal, stopped, done), class: fixtures.FailStream, kind: "in_band_error"},
		"no [DONE]":                     {e: events(piece("content", "It"), stopped), class: fixtures.FailStream, kind: "missing_done"},
		"no finish reason":              {e: events(piece("content", "It"), done), class: fixtures.FailStream, kind: "missing_finish_reason"},
		"an empty finish reason":        {e: events(piece("content", "It"), finishing(`""`), done), class: fixtures.FailStream, kind: "missing_finish_reason"},
		"a finish reason of an error":   {e: events(piece("content", "It"), finishing(`"error"`), done), class: fixtures.FailStream, kind: "finish_reason_error"},
		"aborted":                       {e: events(piece("content", "It"), finishing(`"abort"`), done), class: fixtures.FailStream, kind: "finish_reason_error"},
		"an error, then another reason": {e: events(piece("content", "It"), finishing(`"error"`), stopped, done), class: fixtures.FailStream, kind: "finish_reason_error"},
		"filtered":                      {e: events(piece("content", "It"), finishing(`"content_filter"`), done), class: fixtures.FailStream, kind: "content_filter"},
		"thinking only":                 {e: events(piece("reasoning_content", "hm"), finishing(`"length"`), done), class: fixtures.FailStream, kind: "no_visible_content", says: "token limit"},
		"white space only":              {e: answered("\n", " "), class: fixtures.FailStream, kind: "no_visible_content"},
		"cut in order":                  {e: events(piece("content", "It")), class: fixtures.FailStream, kind: "missing_done", says: "no finish_reason was sent"},
		"only a keep-alive":             {e: &fixtures.Exchange{Response: answered().Response, Pieces: []fixtures.Piece{{Bytes: []byte(": ping\n\n")}}, End: fixtures.End{Kind: fixtures.EndClose}}, class: fixtures.FailStream, kind: "missing_done"},
		"a chunk of another reply":      {e: events(piece("content", "It"), withID("b", piece("content", "No")), piece("content", " is"), stopped, done), class: fixtures.FailStream, kind: "foreign_chunks"},
		"that comes before the canary":  {r: marked, e: events(piece("content", ownMarker), withID("b", piece("content", "ANVIL_REQ_17_00003")), stopped, done), class: fixtures.FailStream, kind: "foreign_chunks"},

		"another's marker":       {r: marked, e: answered(ownMarker + " ANVIL_REQ_17_00003"), class: fixtures.FailCanary, kind: "canary_foreign", says: "of other requests, 1 in all"},
		"no marker":              {r: marked, e: answered("It is."), class: fixtures.FailCanary, kind: "canary_missing", says: "0 times"},
		"thinking before it":     {r: marked, e: answered("<think>", "hm", "</think>", ownMarker), class: fixtures.FailCanary, kind: "canary_missing", says: "thinking stands in front"},
		"too long for a canary":  {r: marked, e: answered(ownMarker + " " + strings.Repeat("plumb ", 2000)), class: fixtures.FailCanary, kind: "canary_capture_incomplete"},
		"canaries before words":  {r: fixtures.LoadRequest{Marker: ownMarker, ResponseWords: 2, Word: "plumb", Strict: true}, e: answered("plumb"), class: fixtures.FailCanary, kind: "canary_missing"},
		"too few words":          {r: strict, e: events(piece("content", "plumb"), finishing(`"length"`), done), class: fixtures.FailControlled, kind: "word_count", says: "2 words were asked for, and the reply has 1; the token limit"},
		"enough words at limit":  {r: strict, e: events(piece("content", "plumb plumb"), finishing(`"length"`), done)},
		"other words":            {r: strict, e: answered("plumb Plumb"), class: fixtures.FailControlled, kind: "other_words"},
		"too many to be counted": {r: strict, e: answered(strings.Repeat("plumb ", 2000)), class: fixtures.FailControlled, kind: "word_count_unknown"},
	} {
		t.Run(claim, func(t *testing.T) {
			g := NewWithT(t)
			f := Row(c.r, c.e).Failure
			if c.class == "" {
				g.Expect(f).To(BeNil())
				return
			}
			g.Expect(f).NotTo(BeNil())
			g.Expect(f.Class+" "+f.Type).To(Equal(c.class+" "+c.kind), f.Message)
			g.Expect(f.Message).To(ContainSubstring(c.says))
			g.Expect(f.Truncated).To(BeFalse())
		})
	}
}

func TestEveryEndFails(t *testing.T) {
	for _, kind := range fixtures.EndKinds {
		g := NewWithT(t)
		f := Row(fixtures.LoadRequest{}, ended(answered("It"), kind, "")).Failure
		if kind == fixtures.EndClose {
			g.Expect(f).To(BeNil())
			continue
		}
		g.Expect(f).NotTo(BeNil(), "%s", kind)
		g.Expect(f.Type).To(Equal(string(kind)))
		g.Expect(f.Message).NotTo(BeEmpty())
	}
}

func TestAMessageHoldsNothingOfTheReply(t *testing.T) {
	const secret = "the heron stands in the shallow water at dawn"
	inBand := func(message string) string { return fmt.Sprintf(`{"error":{"message":%q}}`, message) }
	for claim, e := range map[string]*fixtures.Exchange{
		"a chunk that is no JSON":     events(`{"choices":[{"delta":{"content":"`+secret, stopped, done),
		"glued chunks":                events(piece("content", secret)+"\n"+piece("content", secret), stopped, done),
		"a text for a chunk":          events(`"`+secret+`"`, done),
		"a document":                  status(200, `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"`+secret+`"}}]}`),
		"a page":                      status(200, "<p>"+secret),
		"not HTTP":                    ended(&fixtures.Exchange{}, fixtures.EndMalformed, `malformed HTTP response "`+secret+`"`),
		"an error that quotes it":     events(piece("content", "So "+secret), inBand("cannot parse: "+secret)),
		"or what it thought":          events(piece("reasoning", "So "+secret), inBand("cannot parse at 8: "+secret[8:])),
		"or the end of a long one":    events(piece("content", strings.Repeat("plumb ", 9000)+secret), inBand("cannot parse: "+secret)),
		"or a marker":                 events(inBand("cannot parse ANVIL_REQ_17_00002 " + secret)),
		"an error that is half JSON":  headed(errorEvent(`{"choices":[{"delta":{"content":"`+secret), 200, nil),
		"an error that is a list":     events(`{"error":[{"delta":{"content":"` + secret + `"}}]}`),
		"a chunk called an error":     errorEvent(piece("content", secret)),
		"words instead of the marker": answered(secret),
	} {
		t.Run(claim, func(t *testing.T) {
			f := Row(fixtures.LoadRequest{Marker: ownMarker, ResponseWords: 1, Word: "plumb", Strict: true}, e).Failure
			NewWithT(t).Expect(f.Message).NotTo(Or(ContainSubstring("heron stands"), ContainSubstring("shallow"), ContainSubstring("at dawn")))
		})
	}
}

// errorEvent is a stream with one event of the name error.
func errorEvent(data string) *fixtures.Exchange {
	e := events()
	e.Pieces = []fixtures.Piece{{At: time.Millisecond, Bytes: []byte("event: error\ndata: " + data + "\n\n")}}
	return e
}

func TestAnErrorIsQuotedUpToWhereItQuotesTheReply(t *testing.T) {
	g := NewWithT(t)
	f := Row(fixtures.LoadRequest{}, events(piece("content", "a heron in the shallow water"), `{"error":{"message":"cannot parse: heron in the shallow water","type":"server_error"}}`)).Failure
	g.Expect(f.Message).To(HavePrefix("the server sent an error: cannot parse: (server_error)"))
	g.Expect(f.Truncated).To(BeTrue())
}

func TestAMessageIsOneBoundedLine(t *testing.T) {
	g := NewWithT(t)
	for n, cut := range map[int]bool{saidLimit: false, saidLimit + 1: true, 100_000: true} {
		f := Row(fixtures.LoadRequest{}, status(500, `{"error":{"message":"`+strings.Repeat("x", n)+`"}}`)).Failure
		g.Expect(f.Truncated).To(Equal(cut), "%d", n)
		g.Expect(strings.Count(f.Message, "x")).To(Equal(min(n, saidLimit)))
	}
	f := Row(fixtures.LoadRequest{}, status(500, `{"error":{"message":"a\n\tb\u001b[2Jc"}}`)).Failure
	g.Expect(f.Message).To(HaveSuffix(": a b [2Jc"))
	f = Row(fixtures.LoadRequest{}, ended(events(), fixtures.EndReset, strings.Repeat("é", 9000))).Failure
	g.Expect(utf8.RuneCountInString(f.Message)).To(Equal(messageLimit))
	g.Expect(f.Truncated).To(BeTrue())
}

func TestFailuresAreLookedForInTheOrderOfTheProtocol(t *testing.T) {
	var classes []string
	for _, f := range failing {
		classes = append(classes, f.class)
	}
	NewWithT(t).Expect(slices.Compact(classes)).To(Equal([]string{fixtures.FailRunner, fixtures.FailRequest, fixtures.FailStream,
		fixtures.FailCanary, fixtures.FailControlled}))
}

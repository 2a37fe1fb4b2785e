package transcript

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"plumbline/fixtures"
)

// The functions here write exchanges for the tests: a body of events, one a piece, 40 ms apart, the first at 100 ms.

const (
	firstPiece = 100 * time.Millisecond
	pieceGap   = 40 * time.Millisecond
	question   = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`
	offering   = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}],` +
		`"tools":[{"type":"function","function":{"name":"look_up","parameters":{"type":"object","required":["port"],"properties":{"port":{},"day":{}}}}},` +
		`{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}]}`
)

type option func(*fixtures.Exchange)

// answer is an exchange whose body comes in the given pieces.
func answer(pieces []string, options ...option) *fixtures.Exchange {
	e := &fixtures.Exchange{
		Request:  fixtures.Request{Method: "POST", Path: "/v1/chat/completions", Body: []byte(question)},
		Response: &fixtures.Response{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, At: time.Millisecond},
	}
	at := firstPiece
	for _, p := range pieces {
		e.Pieces = append(e.Pieces, fixtures.Piece{At: at, Bytes: []byte(p)})
		at += pieceGap
	}
	e.End = fixtures.End{Kind: fixtures.EndClose, At: at}
	for _, o := range options {
		o(e)
	}
	return e
}

func pieces(pieces ...string) []string { return pieces }

func request(s string) option { return func(e *fixtures.Exchange) { e.Request.Body = []byte(s) } }
func with(old, new string) option {
	return func(e *fixtures.Exchange) {
		e.Request.Body = []byte(strings.Replace(string(e.Request.Body), old, new, 1))
	}
}
func status(n int) option { return func(e *fixtures.Exchange) { e.Response.Status = n } }
func kind(s string) option {
	return func(e *fixtures.Exchange) { e.Response.Header["Content-Type"] = []string{s} }
}
func ended(k fixtures.EndKind) option { return func(e *fixtures.Exchange) { e.End.Kind = k } }

// later moves the piece and all after it, and the end.
func later(piece int, by time.Duration) option {
	return func(e *fixtures.Exchange) {
		for i := piece; i < len(e.Pieces); i++ {
			e.Pieces[i].At += by
		}
		e.End.At += by
	}
}

// plain is a question that asks for no stream.
func plain(e *fixtures.Exchange) {
	request(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)(e)
	kind("application/json")(e)
}

// listed is a question for the model list.
func listed(e *fixtures.Exchange) {
	e.Request = fixtures.Request{Method: "GET", Path: "/v1/models"}
	kind("application/json")(e)
}

// shaped is a question that demands JSON: an object with a port.
func shaped(e *fixtures.Exchange) {
	with(`"model"`, `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","required":["port"],`+
		`"properties":{"port":{"type":"string"}},"additionalProperties":false}}},"model"`)(e)
}

// stopped is a question with a stop string.
func stopped(stop string) option {
	return with(`"model"`, `"stop":[`+strconv.Quote(stop)+`],"model"`)
}

func chunk(choice string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[` + choice + "]}\n\n"
}
func delta(d string) string { return chunk(`{"index":0,"delta":` + d + `,"finish_reason":null}`) }
func say(s string) string   { return delta(`{"content":` + strconv.Quote(s) + `}`) }
func think(s string) string { return delta(`{"reasoning_content":` + strconv.Quote(s) + `}`) }
func calls(s string) string { return delta(`{"tool_calls":[` + s + `]}`) }
func finish(s string) string {
	return chunk(`{"index":0,"delta":{},"finish_reason":"` + s + `"}`)
}
func usage(prompt, completion int, more ...string) string {
	return fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d%s}}`+"\n\n",
		prompt, completion, prompt+completion, strings.Join(more, ""))
}
func timed(timings string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14},"timings":` + timings + "}\n\n"
}

const (
	role  = `data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}` + "\n\n"
	done  = "data: [DONE]\n\n"
	opens = `{"index":0,"id":"k1","type":"function","function":{"name":"look_up","arguments":""}}`
)

func more(args string) string {
	return calls(`{"index":0,"function":{"arguments":` + strconv.Quote(args) + `}}`)
}

// told is a whole reply with that output between the role and the end.
func told(reason string, output ...string) []string {
	b := append([]string{role}, output...)
	return append(b, finish(reason), usage(10, 4), done)
}

// words is a right reply.
func words() []string {
	return told("stop", say("The"), say(" lamp"), say(" is"), say(" lit."))
}

// called is a reply with one right call, built of the given pieces.
func called(pieces ...string) []string { return told("tool_calls", pieces...) }

func rightCall() []string { return called(calls(opens), more(`{"port":`), more(`"Aldwick"}`)) }

func document(message, reason string) []string {
	return pieces(`{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":` + message +
		`,"finish_reason":` + reason + `}],"usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14}}`)
}

func ids(t *Transcript) []string {
	var out []string
	for _, f := range t.Findings {
		out = append(out, f.ID)
	}
	return out
}

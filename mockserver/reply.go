package mockserver

import (
	"crypto/rand"
	"strings"
)

// channel is where a token of the reply goes.
type channel int

const (
	reasoning channel = iota
	content
	callHead // the call's id and name, as one token
	callArguments
)

// token is one generated pseudo-token. shown is what the client gets of it: less than all, or nothing, where a stop string
// took the rest.
type token struct {
	channel channel
	shown   string
}

// reply is what was generated within the limits of a request.
type reply struct {
	tokens   []token
	callID   string
	callName string
	finish   string // stop, length, tool_calls
}

// generate turns what there is to say into tokens: at most budget of them, ending with the one that completes a stop
// string. Stop strings act on the answer's text alone.
func generate(said speech, budget int, stops []string) reply {
	r := reply{finish: "stop"}
	r.say(reasoning, said.reasoning)
	if said.call == nil {
		r.say(content, said.content)
	} else {
		r.finish = "tool_calls"
		r.callID, r.callName = "call_"+rand.Text(), said.call.Name
		r.tokens = append(r.tokens, token{callHead, r.callName})
		r.say(callArguments, compact(said.call.Arguments))
	}
	if len(r.tokens) > budget {
		r.tokens, r.finish = r.tokens[:budget], "length"
	}
	r.stop(stops)
	return r
}

func (r *reply) say(to channel, text string) {
	for piece := range pieces(text) {
		r.tokens = append(r.tokens, token{to, piece})
	}
}

// text is the join of what is shown on one channel.
func (r *reply) text(of channel) string {
	var b strings.Builder
	for _, t := range r.tokens {
		if t.channel == of {
			b.WriteString(t.shown)
		}
	}
	return b.String()
}

// count is the number of tokens of one channel.
func (r *reply) count(of channel) int {
	n := 0
	for _, t := range r.tokens {
		if t.channel == of {
			n++
		}
	}
	return n
}

// stop ends the reply at the stop string that is complete first. The text before it is shown; the tokens that made it
// were generated all the same.
func (r *reply) stop(stops []string) {
	start, end := firstStop(r.text(content), stops)
	if end < 0 {
		return
	}
	at := 0
	for i := range r.tokens {
		t := &r.tokens[i]
		if t.channel != content {
			continue
		}
		size := len(t.shown)
		t.shown = t.shown[:min(size, max(0, start-at))]
		if at += size; at >= end {
			r.tokens, r.finish = r.tokens[:i+1], "stop"
			return
		}
	}
}

// firstStop is where in text the stop string lies that ends first, the longest of those; -1, -1 for none.
func firstStop(text string, stops []string) (start, end int) {
	start, end = -1, -1
	for _, s := range stops {
		i := strings.Index(text, s)
		if i < 0 {
			continue
		}
		if e := i + len(s); end < 0 || e < end || e == end && i < start {
			start, end = i, e
		}
	}
	return start, end
}

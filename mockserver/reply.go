package mockserver

import (
	"crypto/rand"
	"slices"
	"strings"
)

// channel is where a token of the reply goes.
type channel uint8

const (
	verbatim channel = iota // nowhere: no token, but bytes that are written as they stand
	reasoning
	content
	callHead // the call's id and name, as one token
	callArguments
	channels int = iota
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
	r.say(reasoning, said.reasoning, budget)
	if said.call == nil {
		text := said.text()
		r.say(content, text, budget)
		r.repeat(said.words, text == "", budget)
	} else {
		r.finish = "tool_calls"
		r.callID, r.callName = "call_"+rand.Text(), said.call.Name
		r.tokens = append(r.tokens, token{callHead, r.callName})
		r.say(callArguments, compact(said.call.Arguments), budget)
	}
	if len(r.tokens) > budget {
		r.tokens, r.finish = r.tokens[:budget], "length"
	}
	r.stop(stops)
	return r
}

// say adds a text's tokens, up to the one that shows that the budget does not suffice.
func (r *reply) say(to channel, text string, budget int) {
	for piece := range pieces(text) {
		if len(r.tokens) > budget {
			return
		}
		r.tokens = append(r.tokens, token{to, piece})
	}
}

// repeat adds repeated words with single spaces between them, each a token of its own however long it is, and within
// the budget as say does. Unless it is the answer's start the first has a space before it too.
func (r *reply) repeat(words repetition, start bool, budget int) {
	n := min(words.count, budget+1-len(r.tokens))
	r.tokens = slices.Grow(r.tokens, max(n, 0))
	spaced := " " + words.word
	for i := range n {
		shown := spaced
		if i == 0 && start {
			shown = words.word
		}
		r.tokens = append(r.tokens, token{content, shown})
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
	if len(stops) == 0 {
		return
	}
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

package mockserver

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strings"

	"plumbline/corpus"
)

// speech is what the engine has to say to a request before any limit: thinking, then a call, or a sign, a text and a word
// repeated.
type speech struct {
	reasoning string
	sign      string // what the request asks its reply to begin with, "" for nothing
	content   string
	words     repetition
	call      *corpus.Call
}

// repetition is a word said so many times.
type repetition struct {
	word  string
	count int
}

// text is what is said before the repeated words: a sign, and one space between it and anything that follows.
func (s *speech) text() string {
	if s.sign == "" || s.content == "" {
		return s.sign + s.content
	}
	return s.sign + " " + s.content
}

// question is the part of a request that decides what is said.
type question struct {
	messages []chatMessage
	tools    []tool
	choice   toolChoice
	format   *responseFormat
	thinking bool
}

// seed drives everything about a reply that could be otherwise.
type seed [2]uint64

// seedOf mixes the conversation with the request's seed. No seed counts as 0: the engine never draws at random. At
// temperature 0 the seed has no say, as in any engine.
func seedOf(msgs []chatMessage, given *int64, temperature *float64) seed {
	var number int64
	if given != nil && (temperature == nil || *temperature != 0) {
		number = *given
	}
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, number)
	for _, m := range msgs {
		for _, part := range []string{m.Role, m.text} {
			binary.Write(h, binary.LittleEndian, int64(len(part)))
			h.Write([]byte(part))
		}
	}
	sum := h.Sum(nil)
	return seed{binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])}
}

// rand is a generator of its own for each purpose, so that one does not shift another's draws.
func (s seed) rand(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(s[0], s[1]^purpose)) }

// The purposes of draws.
const (
	forThinking = iota + 1
	forText
	forValues
	forPace
	forStranger
)

// decide says what is answered. In order of weight: a call that the request forces, JSON that it demands, the corpus's
// own answer, a seeded text.
func (s *Server) decide(q question, from seed) (speech, *apiError) {
	last := q.messages[len(q.messages)-1]
	var asked string
	var prompt *corpus.Prompt
	if last.Role == "user" {
		asked = last.text
		prompt = s.prompts[asked]
	}
	sign, brief := findMarker(asked)
	words := findRepetition(asked)
	brief = brief || words.count > 0 || sign == "" && asksLittle(asked)
	var said speech
	if q.thinking {
		said.reasoning = thinkingText(from.rand(forThinking), brief)
		if prompt != nil && prompt.Answer != nil {
			said.reasoning = prompt.Answer.Reasoning
		}
	}

	var err *apiError
	switch {
	case q.choice.mode == "required" || q.choice.mode == "named":
		said.call, err = forcedCall(q, prompt, from)
	case q.format != nil && q.format.Type != "text":
		said.content, err = formatted(q.format, from)
	case prompt != nil && prompt.Answer != nil && prompt.Answer.Call != nil:
		if q.choice.mode == "auto" && toolNamed(q.tools, prompt.Answer.Call.Name) != nil {
			said.call = prompt.Answer.Call
			break
		}
		said.content = answerText(from.rand(forText))
	case prompt != nil && prompt.Answer != nil:
		said.content = prompt.Answer.Text
	case words.count > 0:
		said.sign, said.words = sign, words
	default:
		said.sign, said.content = sign, answerText(from.rand(forText))
	}
	return said, err
}

// forcedCall is the corpus's call where it is allowed, else one made up for the named tool, or for the first.
func forcedCall(q question, prompt *corpus.Prompt, from seed) (*corpus.Call, *apiError) {
	chosen := &q.tools[0]
	if prompt != nil && prompt.Answer != nil && prompt.Answer.Call != nil {
		call := prompt.Answer.Call
		if t := toolNamed(q.tools, call.Name); t != nil && (q.choice.mode == "required" || q.choice.name == call.Name) {
			return call, nil
		}
	}
	if q.choice.mode == "named" {
		chosen = toolNamed(q.tools, q.choice.name)
	}
	arguments := []byte("{}")
	if !absent(chosen.Function.Parameters) {
		var err *apiError
		if arguments, err = instance("tools", chosen.Function.Parameters, from.rand(forValues)); err != nil {
			return nil, err
		}
	}
	return &corpus.Call{Name: chosen.Function.Name, Arguments: arguments}, nil
}

// anyObject is what a request for JSON without a schema gets an instance of.
const anyObject = `{"type": "object", "properties": {
	"summary": {"type": "string", "minLength": 24}, "count": {"type": "integer"}, "complete": {"type": "boolean"}}}`

func formatted(f *responseFormat, from seed) (string, *apiError) {
	schema := []byte(anyObject)
	const where = "response_format"
	switch f.Type {
	case "json_object":
	case "json_schema":
		if f.JSONSchema == nil || absent(f.JSONSchema.Schema) {
			return "", invalid(where+".json_schema.schema", "read field %q: expected a schema, received none", where+".json_schema.schema")
		}
		schema = f.JSONSchema.Schema
	default:
		return "", invalid(where+".type", "read field %q: expected one of %s, received %q",
			where+".type", strings.Join(formats, ", "), f.Type)
	}
	text, err := instance(where+".json_schema.schema", schema, from.rand(forValues))
	return string(text), err
}

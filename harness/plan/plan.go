// Package plan turns a corpus pack and a profile into the ordered requests of a run, with their bodies. It never sends
// one, and never looks at an answer.
package plan

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"plumbline/corpus"
	"plumbline/fixtures"
)

// ChatPath is the path of every request of the standard protocol.
const ChatPath = "/v1/chat/completions"

// Request is one request of a run: what the record keeps of it, and the body to send.
type Request struct {
	fixtures.Planned
	Path string
	Body []byte
	// Text is the user message, for engines that count tokens.
	Text string
}

// Asker says whom a plan asks, and how.
type Asker struct {
	Profile *corpus.Profile
	Model   string
}

// Standard returns the requests of the required phases in the protocol's order.
func Standard(pack *corpus.Pack, a Asker) ([]Request, error) {
	requests := make([]Request, 0, len(pack.Prompts))
	for i := range pack.Prompts {
		r, err := a.request(&pack.Prompts[i])
		if err != nil {
			return nil, fmt.Errorf("plan request %q: %w", pack.Prompts[i].ID, err)
		}
		requests = append(requests, r)
	}
	return requests, nil
}

// budgets are the output budgets of the phases.
var budgets = map[string]int{
	corpus.PhaseWarmup:      corpus.WarmupMaxTokens,
	corpus.PhasePerformance: corpus.PerformanceMaxTokens,
	corpus.PhaseSanity:      corpus.SanityMaxTokens,
	corpus.PhaseConcurrency: corpus.ConcurrencyMaxTokens,
}

func (a Asker) request(p *corpus.Prompt) (Request, error) {
	planned := fixtures.Planned{
		ID: p.ID, Phase: p.Phase, CaseID: p.CaseID, Category: p.Category, Repetition: p.Repetition,
		Seed: int64(p.Repetition), MaxOutputTokens: budgets[p.Phase], Concurrency: 1, Tools: len(p.Tools) > 0,
	}
	if n, ok := p.ContentTokens[a.Profile.Tokenizer]; ok {
		planned.ContentTokens = &n
		head := a.Profile.TemplateHead.Plain
		if planned.Tools {
			head = a.Profile.TemplateHead.Tools
		}
		if a.Profile.TemplateHead.Pinned && !planned.Tools { // a tools block has a length of its own
			frozen := n + head
			planned.FrozenInputTokens = &frozen
		}
		if shared, ok := p.SharedPrefixTokens[a.Profile.Tokenizer]; ok {
			shared += head
			planned.SharedPrefixTokens = &shared
		}
	}
	if p.Expect != nil {
		expect, err := json.Marshal(p.Expect)
		if err != nil {
			return Request{}, fmt.Errorf("write answer key: %w", err)
		}
		planned.Expect = expect
	}
	body, err := a.body(planned, p.Text, p.Tools)
	if err != nil {
		return Request{}, err
	}
	return Request{Planned: planned, Path: ChatPath, Body: body, Text: p.Text}, nil
}

// golden is the request that all others are edits of. Every sampling field of the profile is added to it: an omitted
// one would take the server's default, and those differ between engines.
const golden = `{"model":"","messages":[{"role":"user","content":""}],"stream":true,"stream_options":{"include_usage":true}}`

func (a Asker) body(p fixtures.Planned, text string, tools json.RawMessage) ([]byte, error) {
	e := edit{body: []byte(golden)}
	e.set("model", a.Model)
	e.set("messages.0.content", text)
	for field, value := range gjson.ParseBytes(a.Profile.Sampling).ForEach {
		e.setRaw(field.String(), value.Raw)
	}
	e.set("seed", p.Seed)
	e.set("max_tokens", p.MaxOutputTokens)
	if len(a.Profile.ChatTemplateKwargs) > 0 {
		e.setRaw("chat_template_kwargs", string(a.Profile.ChatTemplateKwargs))
	}
	if len(tools) > 0 {
		e.setRaw("tools", string(tools))
	}
	return e.body, e.err
}

// edit applies path edits to a body and keeps the first error.
type edit struct {
	body []byte
	err  error
}

func (e *edit) set(path string, value any) {
	if e.err == nil {
		e.body, e.err = sjson.SetBytes(e.body, path, value)
	}
}

func (e *edit) setRaw(path, raw string) {
	if e.err == nil {
		e.body, e.err = sjson.SetRawBytes(e.body, path, []byte(raw))
	}
}

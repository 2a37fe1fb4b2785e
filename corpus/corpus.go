// Package corpus holds the frozen prompts, cases, answers and profiles as data embedded in the program, and the
// protocol's own numbers (protocol.go). It reads a pack, checks it against its manifest and hands it out; it never
// sends, judges or counts tokens. The program that builds the pack is in corpus/build; no tokenizer is needed to use
// a pack.
package corpus

import "encoding/json"

// Pack is a frozen set of prompts: what a protocol asks, in what words.
type Pack struct {
	// ID is the protocol id, such as "strata-open-thinking-v1-draft.1".
	ID string
	// ManifestSHA256 is the SHA-256 of the pack's manifest.sha256, in hex.
	ManifestSHA256 string
	// Manifest and BuildRecord are the exact bytes of manifest.sha256 and corpus-build.json.
	Manifest, BuildRecord []byte
	// Tokenizer names the tokenizer that the prompts were sized with, such as "qwen3".
	Tokenizer string
	// BuiltIn says whether the pack is the embedded one.
	BuiltIn bool
	// Prompts are all prompts in the protocol's order: warm-up; performance by repetition; sanity.
	Prompts []Prompt
}

// Prompt is one frozen prompt.
type Prompt struct {
	// ID is the request id: "warmup", "performance-short-r1", "sanity-I1".
	ID         string
	Phase      string // warmup, performance, sanity
	CaseID     string // warmup; short, prompt-4k, prompt-16k; I1 … T4
	Category   string // sanity only: instruction, retrieval, tool_call
	Repetition int
	// Text is the one user message.
	Text string
	// Tools is the JSON array of offered tools in the interface's own form; nil for none.
	Tools json.RawMessage
	// ContentTokens counts Text by tokenizer name.
	ContentTokens map[string]int
	// SharedPrefixTokens is the longest common prefix of Text with another text of the pack, by tokenizer name.
	SharedPrefixTokens map[string]int
	// Expect is the answer key; nil where nothing is judged.
	Expect *Expect
	// Answer is one right reply, which the mock engine gives; nil where nothing is judged.
	Answer *Answer
}

// ExpectKind is how an answer is judged.
type ExpectKind string

// The kinds of answer key.
const (
	ExpectJSON     ExpectKind = "json"      // the reply is one JSON value equal to JSON
	ExpectText     ExpectKind = "text"      // the reply, outer white space removed, is Text exactly
	ExpectToolCall ExpectKind = "tool_call" // the reply is exactly one tool call equal to Call, and no other
)

// Expect is an answer key: what the prompt demands, no more. Exactly one of JSON, Text, Call is set, as Kind says.
type Expect struct {
	Kind ExpectKind      `json:"kind"`
	JSON json.RawMessage `json:"json,omitempty"`
	Text string          `json:"text,omitempty"`
	Call *Call           `json:"call,omitempty"`
}

// Call is a tool call: the function's name and its arguments as a JSON object.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Answer is a right reply: thinking, then a text or a call.
type Answer struct {
	Reasoning string `json:"reasoning"`
	Text      string `json:"text,omitempty"`
	Call      *Call  `json:"call,omitempty"`
}

// Profile is what a model family needs to be asked properly. Adding one is a file in profiles/, not code.
type Profile struct {
	Name string `json:"name"`
	// Sampling and ChatTemplateKwargs are sent as they stand, key by key, and shown as they stand.
	Sampling           json.RawMessage `json:"sampling"`
	ChatTemplateKwargs json.RawMessage `json:"chat_template_kwargs"`
	// Tokenizer names the pack's tokenizer that this family uses; "" when none of them.
	Tokenizer string `json:"tokenizer"`
	// TemplateHead is how many tokens the chat template puts around a prompt, plain and with tools.
	TemplateHead TemplateHead `json:"template_head"`
	// Notes says where the numbers come from.
	Notes string `json:"notes"`
	// BuiltIn says whether the profile is one of the program's own.
	BuiltIn bool `json:"-"`
}

// TemplateHead is the template's length in tokens. Until it is pinned by a run against the real engine it serves only
// as the allowance for shared prefixes and for sizing, and frozen_input_tokens is null.
type TemplateHead struct {
	Plain  int  `json:"plain"`
	Tools  int  `json:"tools"`
	Pinned bool `json:"pinned"`
}

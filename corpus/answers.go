package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

func addAnswers(p *Pack, keys []AnswerKey) error {
	var faults []error
	for _, key := range keys {
		i := slices.IndexFunc(p.Prompts, func(prompt Prompt) bool { return prompt.ID == key.ID })
		switch {
		case i < 0:
			faults = append(faults, fmt.Errorf("%s: the pack has no prompt %q", AnswersFile, key.ID))
			continue
		case p.Prompts[i].Phase != PhaseSanity:
			faults = append(faults, fmt.Errorf("%s: prompt %q is not of the sanity phase: nothing in it is judged", AnswersFile, key.ID))
			continue
		case p.Prompts[i].Expect != nil:
			faults = append(faults, fmt.Errorf("%s: prompt %q has two answers", AnswersFile, key.ID))
			continue
		}
		if err := key.check(p.Prompts[i].Tools); err != nil {
			faults = append(faults, fmt.Errorf("%s: prompt %q: %w", AnswersFile, key.ID, err))
		}
		if err := key.compact(); err != nil {
			faults = append(faults, fmt.Errorf("%s: prompt %q: %w", AnswersFile, key.ID, err))
		}
		p.Prompts[i].Expect, p.Prompts[i].Answer = &key.Expect, &key.Answer
	}
	for _, prompt := range p.Prompts {
		if prompt.Phase == PhaseSanity && prompt.Expect == nil {
			faults = append(faults, fmt.Errorf("%s: no answer for prompt %q", AnswersFile, prompt.ID))
		}
	}
	return errors.Join(faults...)
}

// check says whether the key is whole and the answer agrees with it.
func (k *AnswerKey) check(tools json.RawMessage) error {
	e, a := k.Expect, k.Answer
	set := map[ExpectKind]bool{ExpectJSON: e.JSON != nil, ExpectText: e.Text != "", ExpectToolCall: e.Call != nil}
	if _, ok := set[e.Kind]; !ok {
		return fmt.Errorf("unknown kind of answer key %q: expected one of %q", e.Kind, []ExpectKind{ExpectJSON, ExpectText, ExpectToolCall})
	}
	for kind, isSet := range set {
		if isSet != (kind == e.Kind) {
			return fmt.Errorf("an answer key of kind %q: expected that and nothing else to be set", e.Kind)
		}
	}
	switch e.Kind {
	case ExpectJSON:
		if !sameJSON(e.JSON, []byte(a.Text)) || a.Call != nil {
			return fmt.Errorf("the answer %q is not the expected JSON %s", a.Text, e.JSON)
		}
	case ExpectText:
		if strings.TrimSpace(e.Text) != e.Text {
			return fmt.Errorf("the expected text %q has outer white space, which no reply is judged with", e.Text)
		}
		if strings.TrimSpace(a.Text) != e.Text || a.Call != nil {
			return fmt.Errorf("the answer %q is not the expected text %q", a.Text, e.Text)
		}
	case ExpectToolCall:
		if a.Call == nil || a.Text != "" || a.Call.Name != e.Call.Name || !sameJSON(a.Call.Arguments, e.Call.Arguments) {
			return fmt.Errorf("the answer is not the expected call to %q", e.Call.Name)
		}
		if jsontext.Value(e.Call.Arguments).Kind() != '{' {
			return fmt.Errorf("the arguments of the expected call to %q are not a JSON object", e.Call.Name)
		}
		if names := toolNames(tools); !slices.Contains(names, e.Call.Name) {
			return fmt.Errorf("the expected call is to %q, the prompt offers %q", e.Call.Name, names)
		}
	}
	return nil
}

// compact takes out the white space that the file's layout put into the values.
func (k *AnswerKey) compact() error {
	values := []*json.RawMessage{&k.Expect.JSON}
	for _, call := range []*Call{k.Expect.Call, k.Answer.Call} {
		if call != nil {
			values = append(values, &call.Arguments)
		}
	}
	for _, raw := range values {
		if *raw != nil {
			if err := (*jsontext.Value)(raw).Compact(); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameJSON says whether two texts are the same JSON value, numbers by value and members in any order.
func sameJSON(a, b []byte) bool {
	x, y := jsontext.Value(slices.Clone(a)), jsontext.Value(slices.Clone(b))
	return x.Canonicalize() == nil && y.Canonicalize() == nil && bytes.Equal(x, y)
}

// readTools reads a file of offered tools and takes the white space out, so that it is sent as it is hashed whatever
// its layout.
func readTools(files map[string][]byte, name string) (json.RawMessage, error) {
	var tools []toolDefinition
	if err := decode(files, name, &tools); err != nil {
		return nil, err
	}
	if len(tools) == 0 {
		return nil, fmt.Errorf("%s: no tools", name)
	}
	seen := map[string]bool{}
	for _, t := range tools {
		if t.Type != "function" || t.Function.Name == "" || jsontext.Value(t.Function.Parameters).Kind() != '{' || seen[t.Function.Name] {
			return nil, fmt.Errorf("%s: tool %q: expected the type \"function\", a name of its own, and an object of parameters",
				name, t.Function.Name)
		}
		seen[t.Function.Name] = true
	}
	value := jsontext.Value(slices.Clone(files[name]))
	if err := value.Compact(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return json.RawMessage(value), nil
}

type toolDefinition struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func toolNames(tools json.RawMessage) []string {
	var defs []toolDefinition
	if json.Unmarshal(tools, &defs) != nil { // none are offered: readTools has read them otherwise
		return nil
	}
	names := make([]string, len(defs))
	for i, d := range defs {
		names[i] = d.Function.Name
	}
	return names
}

package corpus

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

//go:embed profiles/*.json
var profiles embed.FS

// DefaultProfile is the profile of the protocol that the embedded pack is made for.
const DefaultProfile = "qwen3.8-flash-next-thinking"

// Profiles returns the names of the built-in profiles, sorted.
func Profiles() []string {
	entries, err := fs.ReadDir(profiles, "profiles")
	if err != nil {
		panic(err) // the directory is embedded: its absence does not compile
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".json")
	}
	slices.Sort(names)
	return names
}

// LoadProfile returns a built-in profile by its name, or the one in the JSON file that name is the path of: anything
// that ends in ".json" is taken for a path. Sampling and template arguments keep their keys' order and their numbers'
// spelling.
func LoadProfile(name string) (*Profile, error) {
	var (
		data []byte
		err  error
	)
	isPath := strings.HasSuffix(name, ".json")
	if isPath {
		data, err = os.ReadFile(name)
	} else if data, err = profiles.ReadFile("profiles/" + name + ".json"); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("load profile %q: unknown: expected one of %q or the path of a .json file", name, Profiles())
	}
	if err != nil {
		return nil, fmt.Errorf("load profile %q: %w", name, err)
	}
	p, err := parseProfile(data)
	switch {
	case err != nil:
	case !isPath && p.Name != name:
		err = fmt.Errorf("it names itself %q", p.Name)
	case isPath && slices.Contains(Profiles(), p.Name): // its documents would pass for those of the built-in one
		err = fmt.Errorf("the name %q is that of a built-in profile", p.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("load profile %q: %w", name, err)
	}
	p.BuiltIn = !isPath
	return p, nil
}

// requested are the fields of a request that the plan sets itself, or leaves out because they change what is measured
// or how a reply is read, so that a profile may not set them. Neither may it set any other whose name begins as
// streamed does.
var requested = []string{
	"model", "messages", "seed", "max_tokens", "max_completion_tokens", "tools", "tool_choice", "chat_template_kwargs",
	"n", "stop", "response_format", "logprobs",
}

const streamed = "stream"

// numeric are the fields of sampling that are numbers wherever they are known.
var numeric = []string{
	"temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty",
}

func parseProfile(data []byte) (*Profile, error) {
	var p Profile
	if err := json.Unmarshal(data, &p, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if p.Name == "" {
		return nil, errors.New("the name is empty")
	}
	var sampling map[string]jsontext.Value
	if err := json.Unmarshal(p.Sampling, &sampling); err != nil || sampling == nil {
		return nil, errors.New("sampling: expected an object")
	}
	for _, field := range slices.Sorted(maps.Keys(sampling)) {
		if slices.Contains(requested, field) || strings.HasPrefix(field, streamed) {
			return nil, fmt.Errorf("sampling: %q is set by the protocol, not by a profile", field)
		}
		if value := sampling[field]; slices.Contains(numeric, field) && value.Kind() != '0' {
			return nil, fmt.Errorf("sampling: %q: expected a number, received %.80s", field, value)
		}
	}
	var kwargs map[string]jsontext.Value
	if p.ChatTemplateKwargs != nil {
		if err := json.Unmarshal(p.ChatTemplateKwargs, &kwargs); err != nil || kwargs == nil {
			return nil, errors.New("chat_template_kwargs: expected an object, or none")
		}
	}
	if p.TemplateHead.Plain < 0 || p.TemplateHead.Tools < 0 {
		return nil, fmt.Errorf("template_head: expected lengths of 0 or more tokens, received %d and %d", p.TemplateHead.Plain, p.TemplateHead.Tools)
	}
	for _, raw := range []*[]byte{(*[]byte)(&p.Sampling), (*[]byte)(&p.ChatTemplateKwargs)} {
		if *raw != nil {
			if err := (*jsontext.Value)(raw).Compact(); err != nil {
				return nil, err
			}
		}
	}
	return &p, nil
}

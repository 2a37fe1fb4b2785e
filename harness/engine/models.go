package engine

import (
	"fmt"
	"slices"
	"strings"

	"plumbline/fixtures"
)

// ResolveModel is the id that requests name: the served model that named is the id or an alias of, or the only one
// served when named is "". A name that the server does not list is refused even where the server would accept it:
// llama.cpp answers any name with the one model it has, and the result would bear a wrong name. So is a model whose name
// held the key: what is left of it no server knows. The error is an *Error.
func ResolveModel(facts fixtures.EngineFacts, named string) (string, error) {
	fail := func(p Problem, format string, args ...any) (string, error) {
		return "", &Error{Problem: p, URL: facts.URL, Text: fmt.Sprintf(format, args...)}
	}
	served := facts.ServedModels
	switch {
	case len(served) == 0:
		return fail(NoneServed, "it lists no model: load one, and run again")
	case named == "" && len(served) > 1:
		return fail(NoModelNamed, "it serves %d models: choose one with --model: %s", len(served), list(served))
	}
	id, known := named, slices.Contains(served, named)
	if named == "" {
		id, known = served[0], true
	} else if !known {
		id, known = facts.ModelAliases[named]
	}
	switch {
	case !known:
		return fail(UnknownModel, "it does not serve the model %q: served: %s", named, list(served))
	case strings.Contains(id, redacted):
		return fail(UnknownModel, "the name of its model holds the API key, so it can be neither recorded nor asked for: use a key that is no part of a name")
	}
	return id, nil
}

// maxListed bounds how many models a message lists.
const maxListed = 40

func list(ids []string) string {
	quoted := make([]string, 0, min(len(ids), maxListed)+1)
	for _, id := range ids[:min(len(ids), maxListed)] {
		quoted = append(quoted, fmt.Sprintf("%q", id))
	}
	if len(ids) > maxListed {
		quoted = append(quoted, fmt.Sprintf("and %d more", len(ids)-maxListed))
	}
	return strings.Join(quoted, ", ")
}

package engine

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"plumbline/fixtures"
)

const (
	redacted = "[redacted]"
	// minSecret is the shortest secret, in bytes, that is looked for, as in recorded exchanges: a shorter one would hide
	// ordinary text.
	minSecret = 4
)

// newScrubber replaces the values of our own headers in texts that a server wrote: as they are, without their scheme,
// and as JSON or a URL would spell them.
func newScrubber(header http.Header) *strings.Replacer {
	var secrets []string
	for _, values := range header {
		for _, v := range values {
			for _, secret := range []string{v, strings.TrimPrefix(v, "Bearer ")} {
				if len(secret) < minSecret {
					continue
				}
				quoted, _ := json.Marshal(secret) // a string always can be
				inJSON := string(quoted[1 : len(quoted)-1])
				secrets = append(secrets, secret, inJSON, strings.ReplaceAll(inJSON, "/", `\/`), url.QueryEscape(secret), url.PathEscape(secret))
			}
		}
	}
	// The replacer takes the first that fits: the longest goes first, so that no rest of it stays.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, secret := range secrets {
		pairs = append(pairs, secret, redacted)
	}
	return strings.NewReplacer(pairs...)
}

// clean removes our secrets from every text among the facts that the server wrote. The kind, the address and the
// engine's name are our own words, which a common word for a key must not spoil.
func (c *caller) clean(f fixtures.EngineFacts) fixtures.EngineFacts {
	for _, text := range []*string{&f.Version, &f.Commit, &f.BuildKind, &f.BuildOptions, &f.ModelPath, &f.ChatTemplate} {
		*text = c.secrets.Replace(*text)
	}
	for i, id := range f.ServedModels {
		f.ServedModels[i] = c.secrets.Replace(id)
	}
	f.ModelAliases, f.Options, f.Sources = c.cleanMap(f.ModelAliases), c.cleanMap(f.Options), c.cleanMap(f.Sources)
	return f
}

func (c *caller) cleanMap(texts map[string]string) map[string]string {
	clean := make(map[string]string, len(texts))
	for name, text := range texts {
		clean[c.secrets.Replace(name)] = c.secrets.Replace(text)
	}
	return clean
}

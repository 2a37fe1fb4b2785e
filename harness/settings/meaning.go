package settings

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// plainVariable matches names that are surely names of variables. A text outside it may be a key that was given in
// place of the name, and is not shown.
var plainVariable = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)

// check holds the settings against their meaning and against each other.
func (s *Settings) check(env environment) []error {
	var faults []error
	bad := func(flag, format string, args ...any) {
		f, _ := byFlag(flag)
		faults = append(faults, s.fault(f, fmt.Sprintf(format, args...)))
	}
	if s.URL != "" {
		base, problem := checkURL(s.URL)
		if problem != "" {
			bad("url", "%s", problem)
		}
		s.URL = base
	}
	s.checkEngine(bad)
	faults = append(faults, s.checkEngineArgs()...)
	if s.CredentialEnv != "" {
		if s.CredentialFile != "" {
			bad("credential-env", "it contradicts %s: name one place of the key", s.cite("credential-file"))
		}
		if env[s.CredentialEnv] == "" {
			bad("credential-env", "the environment has no such variable, or it is empty: set it to the API key")
		}
	}
	s.settleTimeouts(bad)
	s.checkCapacity(bad)
	return faults
}

// cite names a setting in the words of its source.
func (s *Settings) cite(flag string) string {
	f, _ := byFlag(flag)
	o := s.origins[flag]
	return fmt.Sprintf("%s %q (%s)", o.name(f), maskURL(strings.Join(o.texts, ",")), o.where)
}

// timeoutOrder lists pairs of time-outs of which the first cannot be longer than the second: it would never be the
// one that ends a request.
var timeoutOrder = [][2]string{
	{"timeout-first-token", "timeout-total"},
	{"timeout-first-byte", "timeout-first-token"},
	{"timeout-first-byte", "timeout-total"},
	{"timeout-idle", "timeout-total"},
	{"timeout-connect", "timeout-total"},
}

// settleTimeouts refuses pairs that contradict each other where the operator set both, and shortens a default that a
// shorter chosen time-out makes meaningless.
func (s *Settings) settleTimeouts(bad func(flag, format string, args ...any)) {
	at := map[string]*time.Duration{
		"timeout-connect": &s.TimeoutConnect, "timeout-first-byte": &s.TimeoutFirstByte,
		"timeout-first-token": &s.TimeoutFirstToken, "timeout-idle": &s.TimeoutIdle, "timeout-total": &s.TimeoutTotal,
	}
	for _, pair := range timeoutOrder {
		inner, outer := at[pair[0]], at[pair[1]]
		if *inner <= *outer {
			continue
		}
		switch {
		case s.From(pair[0]) == FromDefault:
			*inner = *outer
		case s.From(pair[1]) == FromDefault && pair[1] != "timeout-total":
			*outer = *inner
		default:
			bad(pair[0], "it is longer than %s, which would always end the request first", s.cite(pair[1]))
		}
	}
}

// checkURL returns the base address without a closing slash, or what is wrong with it.
func checkURL(text string) (string, string) {
	const want = "want an absolute address such as http://127.0.0.1:8080 or https://host/prefix"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return text, want
	case u.Scheme != "http" && u.Scheme != "https", u.Opaque != "", u.Hostname() == "":
		return text, want
	case u.User != nil, strings.Contains(u.Path, "@"): // a slash in a password makes it look like a path
		return text, "an address with user information is refused, as it would be shown and recorded: give the key with --credential-env or --credential-file"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(text, "#"):
		return text, "want a base address without query or fragment"
	}
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return text, "want a port from 1 to 65535"
		}
	}
	base := strings.TrimRight(text, "/")
	if root, _, ok := strings.Cut(base+"/", "/v1/"); ok {
		return text, fmt.Sprintf("the suite adds /v1 and what follows to the address itself: give %s", root)
	}
	return base, ""
}

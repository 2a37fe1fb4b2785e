package settings

import (
	"fmt"
	"regexp"
	"strings"
)

// Fault is one thing wrong with what was set.
type Fault struct {
	// Name is what the setting was called where it was set: --url, PLUMBLINE_URL, url.
	Name string
	// Value is what it was set to, with anything that may be secret left out; "" when there is none to show.
	Value string
	// Where says where it was set: flag, environment, file "x.yaml" line 3.
	Where string
	// Problem says what is wrong and what would be right.
	Problem string
}

// Error implements error.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString("settings: " + f.Name)
	if f.Value != "" {
		fmt.Fprintf(&b, " %q", f.Value)
	}
	if f.Where != "" {
		b.WriteString(" (" + f.Where + ")")
	}
	return b.String() + ": " + f.Problem
}

const hidden = "[not shown]"

var (
	credentialName = regexp.MustCompile(`(?i)(^|[-_.])(api[-_]?key|key|token|secret|password|passwd|credential|auth|authorization|bearer)$`)
	userInfo       = regexp.MustCompile(`://.*@`)
	urlQuery       = regexp.MustCompile(`(://[^?#\s]*)[?#].*`)
)

// holdsCredential reports whether a setting of this name would carry a secret. None of ours does.
func holdsCredential(name string) bool {
	return credentialName.MatchString(strings.TrimLeft(name, "-"))
}

// shown is a value as it may be shown under a name.
func shown(name, value string) string {
	if value != "" && holdsCredential(name) {
		return hidden
	}
	return maskURL(value)
}

// maskURL removes user information, query and fragment from an address in a text: each can hold a key.
func maskURL(text string) string {
	text = userInfo.ReplaceAllString(text, "://***@")
	return urlQuery.ReplaceAllString(text, "${1}?***")
}

// unknown is the fault for a name that is no setting. A name that would hold a credential gets the right way instead
// of a list.
func unknown(name, value, where string, valid []string) *Fault {
	f := &Fault{Name: name, Value: shown(name, value), Where: where}
	if holdsCredential(name) {
		f.Problem = "a key is never taken from here, where others could read it: put it into an environment variable " +
			"and name that with --credential-env NAME, or into a file and name that with --credential-file FILE"
		return f
	}
	f.Problem = fmt.Sprintf("no such setting; %svalid: %s", suggestion(name, valid), strings.Join(valid, " "))
	return f
}

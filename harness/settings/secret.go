package settings

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// maxCredential bounds a credential file, so that a wrong path to something large is noticed.
const maxCredential = 16 << 10

// Secret is a text that no way of printing or encoding shows.
type Secret struct{ text string }

// Reveal is the text itself, for the one place that sends it.
func (s Secret) Reveal() string { return s.text }

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s.text == "" }

const redacted = "[redacted]"

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return redacted }

// Format implements fmt.Formatter, for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON implements json.Marshaler.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText implements encoding.TextMarshaler, which other encodings use.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalYAML implements yaml.Marshaler.
func (Secret) MarshalYAML() (any, error) { return redacted, nil }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Credential reads the API key from where the settings say it is, at the time of the call. It is empty when they name
// no place. White space around it is removed.
func (s *Settings) Credential() (Secret, error) {
	switch {
	case s.CredentialEnv != "":
		text, ok := os.LookupEnv(s.CredentialEnv)
		if !ok {
			return Secret{}, fmt.Errorf("read credential: the environment variable named by credential-env is not set")
		}
		return newCredential(text, "the environment variable named by credential-env")
	case s.CredentialFile != "":
		f, err := os.Open(s.CredentialFile)
		if err != nil {
			return Secret{}, fmt.Errorf("read credential from file %q: %w", s.CredentialFile, withoutPath(err))
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxCredential+1))
		if err != nil {
			return Secret{}, fmt.Errorf("read credential from file %q: %w", s.CredentialFile, withoutPath(err))
		}
		if len(data) > maxCredential {
			return Secret{}, fmt.Errorf("read credential from file %q: longer than %d bytes", s.CredentialFile, maxCredential)
		}
		return newCredential(string(data), fmt.Sprintf("file %q", s.CredentialFile))
	}
	return Secret{}, nil
}

// newCredential checks that a text can be the value of a header: visible ASCII, as RFC 6750 wants of a bearer token.
func newCredential(text, from string) (Secret, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Secret{}, fmt.Errorf("read credential from %s: it is empty", from)
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return Secret{}, fmt.Errorf("read credential from %s: it holds a character that no header may carry; want one line of visible ASCII", from)
		}
	}
	return Secret{text}, nil
}

package mockserver

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// A token's event by the form must be the bytes that its whole chunk would be encoded to.
func TestFormWritesWhatTheEncoderWould(t *testing.T) {
	for _, model := range []string{"m", `a "model" \u0000 with <names>`, "\x00"} {
		s := engine(t, Options{Model: model, Epoch: time.Unix(1700000000, 0)})
		r := &reply{callID: "call_1", callName: "book_table"}
		head := s.head("chatcmpl-1")
		f := newForm(head, r)
		for c := reasoning; int(c) < channels; c++ {
			for _, text := range []string{"a", " light", "\n\n\t", `"`, `\`, "<&>", "é", "\u2028", "\x00", "\x7f", "\xff", "👩‍🚀", "null"} {
				var got, want bytes.Buffer
				f.appendTo(&got, c, text)
				appendEvent(&want, chunk(head, r.delta(token{c, text}), nil))
				NewWithT(t).Expect(got.String()).To(Equal(want.String()))
			}
		}
	}
}

func FuzzStringsAreEncodedAsJSON(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n", "\u2028é\xff", "\x7f<>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got, want bytes.Buffer
		appendString(&got, text)
		appendJSON(&want, text)
		if got.String()+"\n" != want.String() {
			t.Fatalf("%q is encoded as %q, expected %q", text, got.String(), want.String())
		}
	})
}

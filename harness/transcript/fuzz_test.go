package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"plumbline/fixtures/frugal"
)

// sound checks what must hold of every transcript.
func sound(t *testing.T, tr *Transcript) {
	t.Helper()
	g := NewWithT(t)
	_, err := json.Marshal(tr)
	g.Expect(err).NotTo(HaveOccurred())
	joinedBy := map[DeltaKind]string{}
	for _, d := range tr.Deltas {
		g.Expect(d.Text).NotTo(BeEmpty())
		g.Expect(utf8.ValidString(d.Text)).To(BeTrue(), "%q", d.Text)
		joinedBy[d.Kind] += d.Text
	}
	if tr.Stream && tr.ContentSent+tr.Content+tr.Reasoning != "" {
		g.Expect(joinedBy[Content]).To(Equal(tr.Content))
		g.Expect(joinedBy[Reasoning]).To(Equal(tr.Reasoning))
	}
	for _, c := range tr.ToolCalls {
		g.Expect(utf8.ValidString(c.Name + c.ID + c.Arguments)).To(BeTrue())
	}
	g.Expect(len(tr.Findings)).To(BeNumerically("<=", findingsLimit))
	for _, f := range tr.Findings {
		g.Expect(findingKinds).To(HaveKey(f.ID))
		g.Expect(f.Event).To(BeNumerically("<", max(1, len(tr.Events)+1)))
	}
}

// FuzzChunks reads anything as the data of a chunk, in a stream and as a document.
func FuzzChunks(f *testing.F) {
	for _, k := range kinds {
		for _, p := range k.shows.Pieces {
			for line := range strings.Lines(string(p.Bytes)) {
				if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
					f.Add([]byte(data))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		event := "data: " + strings.NewReplacer("\n", "\ndata: ", "\r", "\rdata: ").Replace(string(data)) + "\n\n"
		var stream *Transcript
		frugal.Run(t, func() { stream = Read(answer(told("stop", event, say("x")), request(offering))) })
		sound(t, stream)
		again := Read(answer(told("stop", event, say("x")), request(offering)))
		NewWithT(t).Expect(equal(stream, again)).To(BeTrue(), "reading is a pure function")
		sound(t, Read(answer(pieces(string(data)), plain)))
		sound(t, Read(answer(pieces(string(data)), status(500))))
		hasOutput(data)
	})
}

// FuzzToolCalls assembles calls of random pieces and holds that no byte of well-formed pieces is lost.
func FuzzToolCalls(f *testing.F) {
	f.Add([]byte(opens))
	f.Add([]byte(opens + "," + wholeCall + "," + twoCalls))
	f.Add([]byte(`{"id":"k1","function":{"name":"f","arguments":"{}"}},{"id":"k2","function":{"name":"f","arguments":{"a":1}}}`))
	f.Add([]byte(`{"index":-1},{"index":9e9},{"index":"0"},null,7`))
	f.Fuzz(func(t *testing.T, elements []byte) {
		var tr *Transcript
		frugal.Run(t, func() { tr = Read(answer(called(calls(string(elements)), calls(wholeCall)), request(offering))) })
		sound(t, tr)
		var sent []struct {
			Function struct{ Arguments *string }
		}
		if json.Unmarshal(slices.Concat([]byte("["), elements, []byte("]")), &sent) != nil {
			return
		}
		total, got := 0, 0
		for _, s := range sent {
			if s.Function.Arguments == nil || strings.ContainsRune(*s.Function.Arguments, utf8.RuneError) {
				return
			}
			total += len(*s.Function.Arguments)
		}
		for _, c := range tr.ToolCalls {
			got += len(c.Arguments)
		}
		if jsonIsExact(elements) {
			NewWithT(t).Expect(got).To(BeNumerically(">=", total), strconv.Quote(string(elements)))
		}
	})
}

// jsonIsExact leaves out what the standard library reads in its own way: names without regard to case, and twice.
func jsonIsExact(b []byte) bool {
	_, l := legal(slices.Concat([]byte("["), b, []byte("]")))
	return l == legality{ok: true} && !bytes.Contains(b, []byte(`\u`)) && bytes.Equal(bytes.ToLower(b), b)
}

package client_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/client"
)

// packed writes texts in a content coding, each flushed so that it can be read from its own piece on.
func packed(t testing.TB, coding string, texts ...string) []string {
	t.Helper()
	var out bytes.Buffer
	var w interface {
		io.WriteCloser
		Flush() error
	}
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zlib":
		w = zlib.NewWriter(&out)
	case "flate":
		w, _ = flate.NewWriter(&out, flate.BestSpeed)
	}
	var pieces []string
	take := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, out.String())
		out.Reset()
	}
	for _, text := range texts {
		io.WriteString(w, text)
		take(w.Flush())
	}
	take(w.Close())
	return pieces
}

func coded(name string) http.Header {
	return http.Header{"Content-Encoding": {name}, "Content-Length": {"99"}, "X-Other": {"kept"}}
}

func TestASecretInACodedBodyIsOverwrittenAndTheBodyRecordedDecoded(t *testing.T) {
	const refusal = `{"error":"wrong key: `
	for name, c := range map[string]struct {
		header http.Header
		reads  []string
	}{
		"gzip":                     {coded("gzip"), packed(t, "gzip", refusal, key[:3], key[3:]+`"}`)},
		"its old name":             {coded("X-GZip "), packed(t, "gzip", refusal, key+`"}`)},
		"deflate":                  {coded("deflate"), packed(t, "zlib", refusal, key+`"}`)},
		"deflate, bare":            {coded("deflate"), packed(t, "flate", refusal, key+`"}`)},
		"in two gzip parts":        {coded("gzip"), append(packed(t, "gzip", refusal+key[:5]), packed(t, "gzip", key[5:]+`"}`)...)},
		"byte by byte":             {coded("gzip"), strings.Split(strings.Join(packed(t, "gzip", refusal, key+`"}`), ""), "")},
		"after what no coding has": {coded("gzip"), append(packed(t, "gzip", refusal+key+`"}`), "tail")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			coding := c.header.Get("Content-Encoding")
			x := newClient(t, client.Options{Secrets: []string{key}, Transport: echo(c.header, c.reads...)}).Do(background, post("x"))
			g.Expect(body(x)).To(Equal(refusal + strings.Repeat("*", len(key)) + `"}`))
			g.Expect(x.Response.Header).To(Equal(map[string][]string{
				"X-Other": {"kept"}, "X-Plumbline-Scrubbed": {strings.ToLower(strings.TrimSpace(coding))}}))
			g.Expect(c.header.Get("Content-Encoding")).To(Equal(coding), "what the HTTP layer holds")
		})
	}
}

func TestEachDecodedPieceKeepsTheOffsetOfTheReadThatBroughtIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		script := []step{{0, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"}}
		for _, text := range packed(t, "gzip", "one ", "two "+key, " three") {
			script = append(script, step{time.Second, text})
		}
		x := newClient(t, client.Options{Secrets: []string{key}, Transport: piped(t, 0, script, false)}).Do(background, post("x"))
		g.Expect(x.Pieces).To(Equal([]fixtures.Piece{
			{At: 1 * time.Second, Bytes: []byte("one ")},
			{At: 2 * time.Second, Bytes: []byte("two " + strings.Repeat("*", len(key)))},
			{At: 3 * time.Second, Bytes: []byte(" three")},
		}))
		g.Expect(x.End).To(Equal(fixtures.End{Kind: fixtures.EndClose, At: 4 * time.Second}))
	})
}

func TestACodedBodyWithoutASecretIsRecordedAsItCame(t *testing.T) {
	for name, c := range map[string]struct {
		header http.Header
		reads  []string
	}{
		"gzip":            {coded("gzip"), packed(t, "gzip", "nothing to see")},
		"not gzip at all": {coded("gzip"), []string{"data: plain"}},
		"cut off":         {coded("deflate"), packed(t, "zlib", "nothing", "to see")[:1]},
		"another coding":  {coded("br"), []string{"\x0b\x02\x80abc\x03"}},
		"no body":         {coded("gzip"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := strings.Join(c.reads, "")
			x := newClient(t, client.Options{Secrets: []string{key}, Transport: echo(c.header, c.reads...)}).Do(background, post("x"))
			g.Expect(body(x)).To(Equal(want))
			g.Expect(x.Response.Header).To(Equal(map[string][]string(c.header)))
			g.Expect(x.End.Kind).To(Equal(fixtures.EndClose))
		})
	}
}

func TestADecodedBodyThatDoesNotComeToItsEndIsNotCalledWhole(t *testing.T) {
	g := NewWithT(t)
	x := newClient(t, client.Options{Secrets: []string{key}, Transport: echo(coded("gzip"), packed(t, "gzip", "it is "+key, "more")[:1]...)}).
		Do(background, post("x"))
	g.Expect(body(x)).To(Equal("it is " + strings.Repeat("*", len(key))))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndMalformed))
	g.Expect(x.End.Error).To(And(ContainSubstring("gzip"), ContainSubstring("unexpected EOF")))
}

func TestACodedBodyTooLargeToSearchIsNotRecordedCoded(t *testing.T) {
	g := NewWithT(t)
	block := strings.Repeat(".", 1<<20)
	texts := make([]string, 65) // one block past what is searched
	for i := range texts {
		texts[i] = block
	}
	reads := packed(t, "gzip", append(texts, key)...)
	x := newClient(t, client.Options{Secrets: []string{key}, Transport: echo(coded("gzip"), reads...)}).Do(background, post("x"))
	g.Expect(body(x)).To(Equal(block), "the beginning says what it was")
	g.Expect(x.Response.Header).NotTo(HaveKey("Content-Encoding"))
	g.Expect(x.End.Kind).To(Equal(fixtures.EndTooLarge))
	g.Expect(x.End.Error).To(ContainSubstring("gzip"))
}

func FuzzASecretNeverComesThroughACoding(f *testing.F) {
	f.Add([]byte("ab"), []byte("cd"), uint8(3), "gzip")
	f.Add([]byte(""), bytes.Repeat([]byte("ke"), 300), uint8(1), "deflate")
	f.Fuzz(func(t *testing.T, before, after []byte, cut uint8, coding string) {
		format, ok := map[string]string{"gzip": "gzip", "deflate": "zlib"}[coding]
		if !ok {
			t.Skip()
		}
		text := string(before) + "key-1" + string(after)
		var reads []string
		for rest := strings.Join(packed(t, format, text), ""); rest != ""; {
			n := min(len(rest), int(cut)+1)
			reads, rest = append(reads, rest[:n]), rest[n:]
		}
		x := newClient(t, client.Options{Secrets: []string{"key-1"}, Transport: echo(coded(coding), reads...)}).Do(background, post("x"))
		if want, got := strings.ReplaceAll(text, "key-1", "*****"), body(x); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	})
}

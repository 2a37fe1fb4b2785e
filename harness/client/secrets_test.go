package client_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/client"
)

const key = `sk-a/b"c+42`

// echo answers with the given reads and a header, both of which may repeat the key.
func echo(header http.Header, reads ...string) transportFunc {
	return func(r *http.Request) (*http.Response, error) {
		in := parts(reads)
		return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(&in), Request: r}, nil
	}
}

func TestNoSecretIsRecordedAnywhere(t *testing.T) {
	g := NewWithT(t)
	response := http.Header{"X-Echo": {"got " + key}, "Set-Cookie": {"session=1"}}
	c := newClient(t, client.Options{
		Secrets:   []string{key, "", "abc"},
		Header:    http.Header{"Authorization": {"Bearer tok-from-header"}, "X-Trace": {key}},
		Transport: echo(response, "data: ", key[:3], key[3:]+" and tok-from-", "header abc", ` sk-a\/b\"c+42`, " sk-a%2Fb%22c%2B42"),
	})
	call := post("x")
	call.Path = "/v1/chat/completions?key=" + "sk-a%2Fb%22c%2B42"
	call.Body = []byte("body " + key)
	call.Header = http.Header{"X-Api-Key": {"k1"}, "Api-Key": {"k2"}, "cookie": {"k3"}, "Proxy-Authorization": {"k4"}}
	x := c.Do(background, call)

	stars := func(s string) string { return strings.Repeat("*", len(s)) }
	g.Expect(body(x)).To(Equal("data: " + stars(key) + " and " + stars("tok-from-header") + " abc " +
		stars(`sk-a\/b\"c+42`) + " " + stars("sk-a%2Fb%22c%2B42")))
	g.Expect(string(x.Request.Body)).To(Equal("body " + stars(key)))
	g.Expect(string(call.Body)).To(Equal("body "+key), "the caller's own bytes")
	g.Expect(x.Request.Path).To(Equal("/v1/chat/completions?key=" + stars("sk-a%2Fb%22c%2B42")))
	g.Expect(x.Response.Header).To(Equal(map[string][]string{"X-Echo": {"got " + stars(key)}, "Set-Cookie": {"[redacted]"}}))
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization"} {
		g.Expect(x.Request.Header).To(HaveKeyWithValue(name, []string{"[redacted]"}))
	}
	g.Expect(x.Request.Header).To(HaveKeyWithValue("X-Trace", []string{stars(key)}))
	g.Expect(response).To(HaveKeyWithValue("X-Echo", []string{"got " + key}), "what the HTTP layer holds")

	line, err := fixtures.EncodeLine(fixtures.Line{Exchange: x})
	g.Expect(err).NotTo(HaveOccurred())
	for _, secret := range []string{"sk-a", "tok-from", "k1", "k2", "k3", "k4"} {
		g.Expect(string(line)).NotTo(ContainSubstring(`"` + secret))
	}
}

func TestASecretInAnErrorIsOverwritten(t *testing.T) {
	g := NewWithT(t)
	for _, n := range []int{0, 430, 440} { // the text is cut after the secret, inside it, before it
		url := raw(t, "leak"+strings.Repeat(".", n)+key+"\r\n\r\n", nil)
		x := newClient(t, client.Options{BaseURL: url, Secrets: []string{key}}).Do(background, post("x"))
		g.Expect(x.End.Kind).To(Equal(fixtures.EndMalformed))
		g.Expect(x.End.Error).To(ContainSubstring("leak"))
		g.Expect(x.End.Error).NotTo(ContainSubstring("sk-"))
	}
}

func TestASecretIsFoundHoweverTheBodyIsCut(t *testing.T) {
	text := strings.Repeat("x", 65_530) + "kkkey-1key-1kkey-2" + strings.Repeat("y", 65_500) + "key-1key-2" + "key"
	want := strings.Repeat("x", 65_530) + "kk" + "*****" + "*****" + "k" + "*****" + strings.Repeat("y", 65_500) + "**********" + "key"
	for _, size := range []int{1, 2, 3, 7, 1000, 65_535, len(text)} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var reads []string
			for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
				reads = append(reads, rest[:min(size, len(rest))])
			}
			c := newClient(t, client.Options{Secrets: []string{"key-1", "key-2"}, Transport: echo(nil, reads...)})
			if got := body(c.Do(background, post("x"))); got != want {
				i := 0
				for i < min(len(got), len(want)) && got[i] == want[i] {
					i++
				}
				t.Errorf("want %d bytes with the keys overwritten, got %d, different from byte %d", len(want), len(got), i)
			}
		})
	}
}

func TestOverlappingSecretsAreBothOverwritten(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t, client.Options{Secrets: []string{"abcdef", "defghi", "aaaa"}, Transport: echo(nil, "-abcd", "efghi-aaaaaa-")})
	g.Expect(body(c.Do(background, post("x")))).To(Equal("-*********-******-"))
}

func TestASecretIsFoundInAnySpellingOfJSON(t *testing.T) {
	const secret = `sk-é"/😀`
	for name, spelled := range map[string]string{
		"every character escaped":   `\u0073\u006b\u002d\u00e9\u0022\u002f\ud83d\ude00`,
		"capital digits":            `\u0073\u006B\u002D\u00E9\u0022\u002F\uD83D\uDE00`,
		"one character escaped":     `s\u006b-é\"/😀`,
		"the last one escaped":      `sk-é\"\/\uD83d\uDe00`,
		"short and long escapes":    `s\u006B-é\"\u002f😀`,
		"only the short ones, once": `sk-é"\/😀`,
	} {
		for _, size := range []int{1, 5, 1000} {
			t.Run(fmt.Sprint(name, " in reads of ", size), func(t *testing.T) {
				g := NewWithT(t)
				text := `{"content":"\u0073k-sk` + spelled + `\u0073k"}`
				var reads []string
				for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
					reads = append(reads, rest[:min(size, len(rest))])
				}
				x := newClient(t, client.Options{Secrets: []string{secret}, Transport: echo(nil, reads...)}).Do(background, post("x"))
				g.Expect(body(x)).To(Equal(`{"content":"\u0073k-sk` + strings.Repeat("*", len(spelled)) + `\u0073k"}`))
			})
		}
	}
}

func TestWhatOnlyLooksLikeAnEscapeIsNoSecret(t *testing.T) {
	for _, text := range []string{`\u0073key-`, `\u006`, `\u006bey-\u003`, `\u016bey-1`, `\u006gey-1`, `\`, `key-\u`, `\u006b\u0065y-2`} {
		x := newClient(t, client.Options{Secrets: []string{"key-1"}, Transport: echo(nil, text)}).Do(background, post("x"))
		NewWithT(t).Expect(body(x)).To(Equal(text))
	}
}

func TestAnEscapedSecretIsFoundAtTheSeamOfTwoLooks(t *testing.T) {
	const spelled = `\u006b\u0065\u0079\u002d\u0031`
	for at := 65_536 - len(spelled) - 1; at <= 65_537; at++ {
		text := strings.Repeat("x", at) + spelled + strings.Repeat("y", 70_000)
		x := newClient(t, client.Options{Secrets: []string{"key-1"}, Transport: echo(nil, text[:65_536], text[65_536:])}).Do(background, post("x"))
		if body(x) != strings.Replace(text, spelled, strings.Repeat("*", len(spelled)), 1) {
			t.Errorf("not overwritten at %d", at)
		}
	}
}

func FuzzASecretNeverComesThrough(f *testing.F) {
	f.Add([]byte("abkeykeykey-1zz"), []byte{3, 1, 1})
	f.Add(bytes.Repeat([]byte("key-1"), 30), []byte{1})
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		var reads []string
		for i, rest := 0, string(text); rest != ""; i++ {
			n := len(rest)
			if len(cuts) > 0 {
				n = min(n, int(cuts[i%len(cuts)])+1)
			}
			reads, rest = append(reads, rest[:n]), rest[n:]
		}
		c := newClient(t, client.Options{Secrets: []string{"key-1"}, Transport: echo(nil, reads...)})
		got := body(c.Do(background, post("x")))
		if want := strings.ReplaceAll(string(text), "key-1", "*****"); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	})
}

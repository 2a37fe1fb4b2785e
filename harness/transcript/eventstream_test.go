package transcript

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	sse "github.com/tmaxmax/go-sse"

	"plumbline/fixtures/frugal"
)

// scan feeds pieces, the n-th at n milliseconds, and returns the events as name|data@at and the tail.
func scan(pieces ...string) (events []string, tail string, open bool) {
	show := func(e Event) string { return fmt.Sprintf("%s|%s@%d", e.Name, e.Data, e.At.Milliseconds()) }
	s := NewScanner(func(e Event) { events = append(events, show(e)) })
	for i, p := range pieces {
		s.Feed(time.Duration(i)*time.Millisecond, []byte(p))
	}
	t, open := s.Close()
	return events, show(t), open
}

var streams = map[string]struct {
	body string
	want []string // name|data
}{
	"LF":                             {"data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
	"CRLF":                           {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}},
	"CR":                             {"data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
	"mixed line ends":                {"data: a\r\n\ndata: b\n\rdata: c\r\r\n", []string{"|a", "|b", "|c"}},
	"byte-order mark":                {"\ufeffdata: a\n\n", []string{"|a"}},
	"second byte-order mark stays":   {"\ufeff\ufeffdata: a\n\ndata: b\n\n", []string{"|b"}},
	"mark on a later line":           {"data: a\n\n\ufeffdata: b\n\n", []string{"|a"}},
	"comments":                       {": ping\n\n:\n\ndata: a\n: in between\ndata: b\n\n", []string{"|a\nb"}},
	"no space":                       {"data:a\n\n", []string{"|a"}},
	"one space only":                 {"data:  a \n\n", []string{"| a "}},
	"tab is no space":                {"data:\ta\n\n", []string{"|\ta"}},
	"several data lines, CRLF":       {"data: {\r\ndata: }\r\n\r\n", []string{"|{\n}"}},
	"several data lines, CR":         {"data: {\rdata: }\r\r", []string{"|{\n}"}},
	"several data lines":             {"data: {\ndata: }\n\n", []string{"|{\n}"}},
	"data without colon":             {"data\n\n", []string{"|"}},
	"two of them":                    {"data\ndata\n\n", []string{"|\n"}},
	"empty data":                     {"data:\n\n", []string{"|"}},
	"name":                           {"event: error\ndata: x\n\ndata: y\n\n", []string{"error|x", "|y"}},
	"name without data":              {"event: ping\n\ndata: y\n\n", []string{"|y"}},
	"last name counts":               {"event: a\nevent: b\ndata: y\n\n", []string{"b|y"}},
	"id and retry":                   {"id: 7\nretry: 3000\n\ndata: a\nid\n\n", []string{"|a"}},
	"unknown fields":                 {"foo: 1\nDATA: no\ndata : no\ndata: a\n\n", []string{"|a"}},
	"blank lines in front":           {"\n\r\n\rdata: a\n\n", []string{"|a"}},
	"colon in the value":             {"data: a: b:c\n\n", []string{"|a: b:c"}},
	"NUL and bytes that are no text": {"data: a\x00\xff\n\n", []string{"|a\x00\xff"}},
	"unfinished event":               {"data: a\n\ndata: b\n", []string{"|a"}},
	"nothing":                        {"", nil},
}

func named(events []string) []string {
	var out []string
	for _, e := range events {
		out = append(out, e[:strings.LastIndexByte(e, '@')])
	}
	return out
}

func TestEventsAreReadAsTheStandardSays(t *testing.T) {
	for name, c := range streams {
		t.Run(name, func(t *testing.T) {
			got, _, _ := scan(c.body)
			NewWithT(t).Expect(named(got)).To(Equal(c.want))
		})
	}
}

func TestEventsDoNotDependOnWhereTheBodyIsCut(t *testing.T) {
	for name, c := range streams {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, tail, open := scan(c.body)
			same := func(pieces ...string) {
				t.Helper()
				got, tail2, open2 := scan(pieces...)
				g.Expect(named(got)).To(Equal(c.want), "%q", pieces)
				g.Expect(named([]string{tail2})).To(Equal(named([]string{tail})), "%q", pieces)
				g.Expect(open2).To(Equal(open), "%q", pieces)
			}
			for i := range len(c.body) {
				same(c.body[:i], c.body[i:])
				same(c.body[:i], "", c.body[i:])
			}
			single := make([]string, len(c.body))
			for i := range len(c.body) {
				single[i] = c.body[i : i+1]
			}
			same(single...)
		})
	}
}

func TestAnEventIsStampedWithThePieceThatCompletedIt(t *testing.T) {
	g := NewWithT(t)
	got, _, _ := scan("data: a\n", "\ndata: b\n\nda", "ta: c", "\r\n\r", "\n")
	g.Expect(got).To(Equal([]string{"|a@1", "|b@1", "|c@3"}), "a CR completes the event without its LF")
}

func TestTheTailIsTheEventThatTheStreamEndedInside(t *testing.T) {
	for body, want := range map[string]string{
		"data: a\n\n":               "|@0 false",
		"data: a\n\ndata: [DONE]":   "|[DONE]@0 true",
		"data: a\n\ndata: [DONE]\n": "|[DONE]@0 true",
		"data: a\n\n: bye":          "|@0 false",
		"data: a\n\nevent: x\n":     "x|@0 false",
		"data: a\n\ndat":            "|@0 true",
		"data: a\ndata: b":          "|a\nb@0 true",
		"\ufeffdata: [DONE]":        "|[DONE]@0 true",
	} {
		_, tail, open := scan(body)
		NewWithT(t).Expect(fmt.Sprint(tail, " ", open)).To(Equal(want), "%q", body)
	}
}

func TestFieldsThatTheStandardIgnoresAreTold(t *testing.T) {
	var seen []string
	s := NewScanner(func(Event) {})
	s.Other = func(at time.Duration, name string, value []byte) { seen = append(seen, name+"="+string(value)) }
	s.Feed(0, []byte("error: {\"code\":400}\n: comment\nid: 1\nretry: 2\nevent: e\ndata: d\nplain\n\n"))
	NewWithT(t).Expect(seen).To(Equal([]string{`error={"code":400}`, "plain="}))
}

func TestALineOfAnyLengthIsOneEvent(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	var got int
	s := NewScanner(func(e Event) { got = len(e.Data) })
	body := []byte("data: " + long + "\n\n")
	for len(body) > 0 {
		n := min(4096, len(body))
		s.Feed(0, body[:n])
		body = body[n:]
	}
	NewWithT(t).Expect(got).To(Equal(len(long)))
}

// FuzzEventStream holds the scanner against another reader of the standard, and against itself with other cuts.
func FuzzEventStream(f *testing.F) {
	for _, c := range streams {
		f.Add([]byte(c.body), uint64(1))
	}
	f.Add([]byte("data: a\r\n\r\nevent: x\rdata: b\r\r\ndata\n\n"), uint64(7))
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		var whole []string
		var tail string
		var open bool
		frugal.Run(t, func() { whole, tail, open = scan(string(body)) })
		var pieces []string
		r := rand.New(rand.NewPCG(seed, 1))
		for rest := string(body); rest != ""; {
			n := 1 + r.IntN(min(len(rest), 9))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		cut, tail2, open2 := scan(pieces...)
		g := NewWithT(t)
		g.Expect(named(cut)).To(Equal(named(whole)))
		g.Expect(named([]string{tail2})).To(Equal(named([]string{tail})))
		g.Expect(open2).To(Equal(open))

		// The other reader drops a byte-order mark behind blank lines too, and reports names without data as events.
		if lead := bytes.TrimLeft(body, "\r\n"); len(lead) < len(body) && bytes.HasPrefix(lead, byteOrderMark) {
			return
		}
		var other, ours []string
		for e, err := range sse.Read(bytes.NewReader(body), &sse.ReadConfig{MaxEventSize: len(body) + 64}) {
			if err != nil {
				t.Skip(err)
			}
			if e.Data != "" {
				other = append(other, e.Type+"|"+e.Data)
			}
		}
		s := NewScanner(func(e Event) {
			if len(e.Data) > 0 {
				ours = append(ours, e.Name+"|"+string(e.Data))
			}
		})
		s.Feed(0, body)
		g.Expect(ours).To(Equal(other))
	})
}

func BenchmarkScanner(b *testing.B) {
	event := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" word"}}]}` + "\n\n")
	s := NewScanner(func(Event) {})
	b.SetBytes(int64(len(event)))
	for b.Loop() {
		s.Feed(0, event)
	}
}

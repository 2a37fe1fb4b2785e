package judge

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/fixtures/frugal"
	"plumbline/harness/transcript"
)

// FuzzRow reads anything as a body, cut into pieces, with any status and end.
func FuzzRow(f *testing.F) {
	whole := func(e *fixtures.Exchange) []byte {
		var b []byte
		for _, p := range e.Pieces {
			b = append(b, p.Bytes...)
		}
		return b
	}
	closed := uint8(0)
	for _, e := range []*fixtures.Exchange{
		answered(ownMarker+" plumb", " plumb"), answered("<think>hm</think>"+ownMarker, " ANVIL_REQ_1_2"),
		events(piece("reasoning", "hm"), piece("content", "It"), finishing(`"stop"`), finishing(`"error"`), usage(`{"prompt_tokens":1e30}`), done),
		events(piece("content", "It"), withID("b", piece("content", "No")), piece("content", " is"), `{"error":{"message":"It is"}}`, done),
		events(`{"choices":[{"delta":{"content":NaN}}]}`, `{"choices":`, done), errorEvent(`["x"]`),
		status(200, `{"object":"chat.completion","choices":[{"message":{"content":"a"}}]}`), status(503, no),
	} {
		f.Add(whole(e), uint8(7), uint16(e.Response.Status), closed, int64(time.Millisecond))
	}
	f.Add([]byte("data: [DONE]"), uint8(1), uint16(200), uint8(1), int64(-1))
	f.Add([]byte{0x1f, 0x8b}, uint8(0), uint16(299), uint8(2), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, body []byte, size uint8, code uint16, end uint8, step int64) {
		e := &fixtures.Exchange{
			Response: &fixtures.Response{Status: int(code), Header: map[string][]string{"Content-Type": {"text/event-stream"}}},
			End:      fixtures.End{Kind: fixtures.EndKinds[int(end)%len(fixtures.EndKinds)], At: time.Duration(step)},
		}
		if end >= 128 {
			e.Response.Header["Content-Encoding"] = []string{"gzip"}
		}
		for rest := body; len(rest) > 0; {
			n := min(len(rest), int(size)+1)
			e.Pieces = append(e.Pieces, fixtures.Piece{At: time.Duration(step / 2), Bytes: rest[:n]})
			rest = rest[n:]
		}
		for _, r := range []fixtures.LoadRequest{{}, {Marker: ownMarker, ResponseWords: 2, Word: "plumb", Strict: true}} {
			var row fixtures.Row
			frugal.Run(t, func() { row = Row(r, e) })
			sane(t, row)
			if (!e.Whole() || !row.StreamTerminalObserved || code/100 != 2) && row.Failure == nil {
				t.Errorf("a reply that is not whole is called valid: %+v", row)
			}
			if row.Failure == nil && r.Marker != "" && (!row.Canary.Passed || !row.ControlledOutput.Exact) {
				t.Errorf("a reply that broke its task is called valid: %+v", row)
			}
			if !reflect.DeepEqual(row, Row(r, e)) {
				t.Error("two rows of one exchange differ")
			}
		}
	})
}

// sane checks what must hold of every row.
func sane(t *testing.T, row fixtures.Row) {
	t.Helper()
	g := NewWithT(t)
	line, err := json.Marshal(row)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(line)).To(BeNumerically("<", 32<<10))
	g.Expect(json.Unmarshal(line, new(fixtures.Row))).To(Succeed())
	v := reflect.ValueOf(row)
	for i := range v.NumField() {
		if x, ok := v.Field(i).Interface().(*float64); ok && x != nil && (math.IsNaN(*x) || math.IsInf(*x, 0)) {
			t.Errorf("%s is %v", v.Type().Field(i).Name, *x)
		}
	}
	g.Expect(row.OutputTokens).To(BeNumerically(">=", 0))
	if f := row.Failure; f != nil {
		g.Expect(f.Class).NotTo(BeEmpty())
		g.Expect(f.Type).To(MatchRegexp(`^[a-z0-9_-]{1,40}$`))
		g.Expect(f.Message).NotTo(BeEmpty())
		g.Expect(utf8.ValidString(f.Message)).To(BeTrue())
		g.Expect(utf8.RuneCountInString(f.Message)).To(BeNumerically("<=", messageLimit))
	}
}

// hundred is a reply of a hundred tokens, to a prompt of usual length.
func hundred() (fixtures.LoadRequest, *fixtures.Exchange) {
	e := answered(append([]string{ownMarker}, strings.Fields(strings.Repeat("plumb ", 99))...)...)
	e.Request.Body = []byte(`{"stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("plumb line ", 20_000) + `"}]}`)
	return fixtures.LoadRequest{Marker: ownMarker}, e
}

func BenchmarkRow(b *testing.B) {
	r, e := hundred()
	b.ReportAllocs()
	for b.Loop() {
		Row(r, e)
	}
}

// BenchmarkRowReading is the part of BenchmarkRow that is not this package's.
func BenchmarkRowReading(b *testing.B) {
	_, e := hundred()
	b.ReportAllocs()
	for b.Loop() {
		readLoad(e)
	}
}

// BenchmarkRowReadingTheRequestToo is what it would cost to read the request as well.
func BenchmarkRowReadingTheRequestToo(b *testing.B) {
	_, e := hundred()
	e.Request.Method, e.Request.Path = "POST", "/v1/chat/completions"
	b.ReportAllocs()
	for b.Loop() {
		transcript.Read(e)
	}
}

package judge_test

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/tidwall/sjson"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// recut returns the exchange with its body cut into the given lengths, the rest in one piece, all at one moment.
func recut(e *fixtures.Exchange, body []byte, next func(left int) int) *fixtures.Exchange {
	c := *e
	c.Pieces = nil
	for len(body) > 0 {
		n := min(len(body), max(1, next(len(body))))
		c.Pieces = append(c.Pieces, fixtures.Piece{At: time.Millisecond, Bytes: body[:n]})
		body = body[n:]
	}
	return &c
}

// However a body arrives, the same is read from it.
func TestHowABodyIsCutMakesNoDifference(t *testing.T) {
	for _, c := range cases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			rng := rand.New(rand.NewPCG(3, 120))
			for _, e := range played(t, c) {
				// A long prompt would be read again with every cut.
				e.Request.Body, _ = sjson.SetBytes(e.Request.Body, "messages", []any{})
				var body []byte
				for _, p := range e.Pieces {
					body = append(body, p.Bytes...)
				}
				whole := transcript.Read(recut(e, body, func(left int) int { return left }))
				same := func(how string, at int, next func(int) int) {
					g.Expect(transcript.Read(recut(e, body, next))).To(Equal(whole), "%s %d", how, at)
				}
				for at := 1; at < len(body); at++ {
					same("cut at byte", at, func(left int) int {
						if left == len(body) {
							return at
						}
						return left
					})
				}
				same("one byte a read", 0, func(int) int { return 1 })
				for i := range 20 {
					same("random pieces, try", i, func(int) int { return 1 + rng.IntN(1+rng.IntN(200)) })
				}
			}
		})
	}
}

package client_test

import (
	"io"
	"testing"
	"time"

	"plumbline/harness/client"
)

// BenchmarkPiece measures what the client adds to each read of a stream: the stamp, the copy and the time-outs.
func BenchmarkPiece(b *testing.B) {
	event := []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"object\":\"chat.completion.chunk\"}\n\n")
	const perStream = 10_000
	limits := client.Timeouts{FirstByte: time.Hour, FirstToken: time.Hour, Idle: time.Hour, Total: time.Hour}
	b.ReportAllocs()
	left := b.N
	for left > 0 {
		n := min(left, perStream)
		left -= n
		c := newClient(b, client.Options{Transport: reply(&repeated{event, n}), Timeouts: limits})
		call := post("x")
		call.Watcher = always{}
		if got := len(c.Do(background, call).Pieces); got != n {
			b.Fatalf("want %d pieces, got %d", n, got)
		}
	}
}

type always struct{}

func (always) Piece(time.Duration, []byte) client.Signal {
	return client.Signal{Data: true, Token: true}
}

type repeated struct {
	event []byte
	n     int
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	r.n--
	return copy(b, r.event), nil
}

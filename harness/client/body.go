package client

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"plumbline/fixtures"
)

const (
	// readSize is the size of a read. A stream of tokens brings far less at a time, a large reply few pieces, and a thousand
	// streams at once hold a thousand of them.
	readSize = 16 << 10
	// usualPieces is the room made for a stream's pieces at once, 4 KiB.
	usualPieces = 128
	// maxPieces bounds the memory that the offsets of a body take: a server may send it byte by byte.
	maxPieces = 1 << 20
	// keptOfTooLarge is how much of a body that passed a cap is recorded. No figure can come from it, and its beginning
	// says what it was.
	keptOfTooLarge = 1 << 20
)

var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// reader reads one body into pieces.
type reader struct {
	body    io.Reader
	zero    time.Time
	clock   *clock
	watcher Watcher
	maxBody int64

	arena    arena
	pieces   []fixtures.Piece
	tooLarge string // says which cap the body passed, "" for none
	token    bool
	done     bool
}

// run reads to the end of the body and returns the offset of the end. A nil error is a proper end or a cap passed.
func (r *reader) run() (time.Duration, error) {
	buf := buffers.Get().(*[readSize]byte)
	defer buffers.Put(buf)
	var size int64
	for {
		n, err := r.body.Read(buf[:])
		at := time.Since(r.zero)
		if n > 0 {
			size += int64(n)
			if size > r.maxBody {
				n -= int(size - r.maxBody)
				r.tooLarge = fmt.Sprintf("body longer than %d bytes", r.maxBody)
			}
			r.take(at, buf[:n])
			if len(r.pieces) == maxPieces && r.tooLarge == "" {
				r.tooLarge = fmt.Sprintf("body came in more than %d reads", maxPieces-1)
			}
			if r.tooLarge != "" {
				r.tooLarge += fmt.Sprintf("; at most its first %d are recorded", keptOfTooLarge)
				return at, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return at, nil
		}
		if err != nil {
			return at, err
		}
	}
}

// take copies one piece and tells the time-outs what it brought.
func (r *reader) take(at time.Duration, b []byte) {
	b = r.arena.keep(b)
	if len(r.pieces) == 1 { // more than one is a stream, and of those few are shorter
		r.pieces = slices.Grow(r.pieces, usualPieces)
	}
	r.pieces = append(r.pieces, fixtures.Piece{At: at, Bytes: b})
	if len(r.pieces) == 1 {
		r.clock.gotByte(at)
	}
	var s Signal
	if r.watcher != nil {
		s = r.watcher.Piece(at, b)
	}
	if s.Data || !r.token {
		r.clock.progress.Store(int64(at))
	}
	if s.Token && !r.token {
		r.token = true
		r.clock.gotToken()
	}
	if s.Done && !r.done {
		r.done = true
		r.clock.gotDone()
	}
}

// arena holds the bytes of one exchange in blocks that double up to a limit, so that a piece costs no allocation of its
// own and a large body is never copied to grow.
type arena struct {
	block []byte
	size  int
}

func (a *arena) keep(b []byte) []byte {
	const first, largest = 4 << 10, 1 << 20
	n := len(a.block)
	if n+len(b) > cap(a.block) {
		a.size = min(max(2*a.size, first), largest)
		a.block = make([]byte, 0, max(a.size, len(b)))
		n = 0
	}
	a.block = append(a.block, b...)
	return a.block[n:len(a.block):len(a.block)]
}

// firstBytes returns the pieces that hold the first n bytes, without the memory of the others.
func firstBytes(pieces []fixtures.Piece, n int) []fixtures.Piece {
	for i, p := range pieces {
		if len(p.Bytes) >= n {
			kept := slices.Clone(pieces[:i+1])
			kept[i].Bytes = p.Bytes[:n:n]
			return kept
		}
		n -= len(p.Bytes)
	}
	return pieces
}

package journal

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func line(id, body string) fixtures.Line {
	return fixtures.Line{Exchange: &fixtures.Exchange{Format: fixtures.ExchangeFormat, ID: id,
		Pieces: []fixtures.Piece{{At: time.Second, Bytes: []byte(body)}}, End: fixtures.End{Kind: fixtures.EndClose, At: time.Second}}}
}

// disk counts. Its first sync takes until all the lines that are expected were written.
type disk struct {
	expected      int64
	writes, syncs atomic.Int64
	all           chan struct{}
}

func (d *disk) Write(b []byte) (int, error) {
	if d.writes.Add(1) == d.expected {
		close(d.all)
	}
	return len(b), nil
}

func (d *disk) Sync() error {
	<-d.all
	d.syncs.Add(1)
	return nil
}

func (d *disk) Truncate(int64) error { return nil }
func (d *disk) Close() error         { return nil }

func TestOneSyncServesAllThatWaitForIt(t *testing.T) {
	g := NewWithT(t)
	const n = 32
	d := &disk{expected: n, all: make(chan struct{})}
	j := &Journal{file: d, ids: map[string]bool{}}
	var writers sync.WaitGroup
	for i := range n {
		writers.Go(func() {
			if err := j.Append(line(fmt.Sprint(i), "x")); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	g.Expect(d.writes.Load()).To(BeEquivalentTo(n), "one write a line")
	g.Expect(d.syncs.Load()).To(BeNumerically("<=", 2))
	g.Expect(d.syncs.Load()).To(BeNumerically(">=", 1))
}

func TestALineIsSyncedBeforeAppendReturns(t *testing.T) {
	g := NewWithT(t)
	d := &disk{expected: 1, all: make(chan struct{})}
	j := &Journal{file: d, ids: map[string]bool{}}
	for i := range int64(3) {
		g.Expect(j.Append(line(fmt.Sprint(i), "x"))).To(Succeed())
		g.Expect(d.syncs.Load()).To(Equal(i + 1))
	}
}

package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"plumbline/fixtures"
	"plumbline/harness/judge"
	"plumbline/harness/load"
)

// judging reads, judges and keeps the replies of a stage on one goroutine of its own, so that a worker can send its next
// request meanwhile. Where it does not keep up, workers wait, and their lateness shows it: nothing grows without bound.
type judging struct {
	l      *loadRun
	stage  string
	live   *load.Live
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	changed *sync.Cond
	waiting []unjudged
	size    int // bytes of what waits
	closed  bool

	err  error // the first failure to keep a reply; read after done
	done sync.WaitGroup
}

type unjudged struct {
	request  fixtures.LoadRequest
	exchange *fixtures.Exchange
	size     int
}

// waitingSize is how many bytes of replies, with the requests that they belong to, may wait to be judged.
const waitingSize = 32 << 20

// syncEvery is how often the records of a load go to stable storage: what a power cut may cost. A kill costs nothing.
const syncEvery = time.Second

func (l *loadRun) judging(stage string, live *load.Live, cancel context.CancelCauseFunc) *judging {
	j := &judging{l: l, stage: stage, live: live, cancel: cancel}
	j.changed = sync.NewCond(&j.mu)
	j.done.Go(j.run)
	return j
}

// put hands over a reply.
func (j *judging) put(r fixtures.LoadRequest, x *fixtures.Exchange) {
	f := unjudged{r, x, x.Size() + len(x.Request.Body)}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.size > 0 && j.size+f.size > waitingSize {
		j.changed.Wait()
	}
	j.waiting = append(j.waiting, f)
	j.size += f.size
	j.changed.Broadcast()
}

// next takes the reply that waited longest; false after the last.
func (j *judging) next() (unjudged, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.waiting) == 0 {
		if j.closed {
			return unjudged{}, false
		}
		j.changed.Wait()
	}
	f := j.waiting[0]
	j.waiting[0] = unjudged{}
	j.waiting = j.waiting[1:]
	j.size -= f.size
	j.changed.Broadcast()
	return f, true
}

func (j *judging) run() {
	synced := time.Now()
	for {
		f, ok := j.next()
		if !ok {
			return
		}
		if j.err != nil {
			continue
		}
		err := j.keep(f)
		if err == nil && time.Since(synced) > syncEvery {
			err = errors.Join(j.l.outputs.Sync(), j.l.record.Sync())
			synced = time.Now()
		}
		if err != nil {
			j.err = err
			j.cancel(fmt.Errorf("the record could not be kept: %w", err))
		}
	}
}

// keep judges a reply and writes it down: first what came, then what it means.
func (j *judging) keep(f unjudged) error {
	row := judge.Row(f.request, f.exchange)
	if row.Failure != nil {
		if err := j.l.saved.save(j.l, f, row.Failure); err != nil {
			return err
		}
	}
	withoutBody(f.exchange)
	if err := j.l.outputs.Write(fixtures.Line{Exchange: f.exchange}); err != nil {
		return err
	}
	if err := j.l.record.Write(fixtures.Line{Row: &row}); err != nil {
		return err
	}
	j.live.Judged(f.exchange.End.At, row.Failure != nil)
	return nil
}

// withoutBody leaves the request's body out of an exchange and keeps its digest: the plan makes the same body again.
func withoutBody(x *fixtures.Exchange) {
	sum := sha256.Sum256(x.Request.Body)
	x.Request.BodySHA256 = hex.EncodeToString(sum[:])
	x.Request.Body = nil
}

// faulted notes the requests that this program itself failed.
func (j *judging) faulted(all []load.Fault) {
	for _, f := range all {
		r := j.l.plan.Request(j.stage, f.Request)
		row := fixtures.Row{Stage: j.stage, RequestIndex: f.Request, PlannedContextTokens: r.PlannedContextTokens,
			Failure: &fixtures.RowFailure{Class: fixtures.FailRunner, Type: "panic", Message: f.Message}}
		if err := j.l.record.Write(fixtures.Line{Row: &row}); err != nil {
			j.cancel(err)
		}
	}
}

// finish waits until every reply was judged and kept.
func (j *judging) finish() error {
	j.mu.Lock()
	j.closed = true
	j.changed.Broadcast()
	j.mu.Unlock()
	j.done.Wait()
	return j.err
}

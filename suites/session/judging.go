package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
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
	err     error // the first failure to keep a reply

	judged  chan struct{} // closed once the last reply was judged
	syncing sync.WaitGroup
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
	j := &judging{l: l, stage: stage, live: live, cancel: cancel, judged: make(chan struct{})}
	j.changed = sync.NewCond(&j.mu)
	go func() {
		defer close(j.judged)
		j.run()
	}()
	j.syncing.Go(j.sync)
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
	for {
		f, ok := j.next()
		if !ok {
			return
		}
		if j.broken() {
			continue
		}
		if err := j.keep(f); err != nil {
			j.fail(err)
		}
	}
}

// sync syncs the records every now and then, beside the judging, which a slow disk must not hold up.
func (j *judging) sync() {
	t := time.NewTicker(syncEvery)
	defer t.Stop()
	for {
		select {
		case <-j.judged:
			return
		case <-t.C:
			if err := errors.Join(j.l.outputs.Sync(), j.l.record.Sync()); err != nil {
				j.fail(err)
				return
			}
		}
	}
}

// fail ends the stage, as its record cannot be kept.
func (j *judging) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
		j.cancel(fmt.Errorf("the record could not be kept: %w", err))
	}
}

func (j *judging) broken() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err != nil
}

// keep judges a reply and writes it down: first what came, then what it means.
func (j *judging) keep(f unjudged) error {
	row := j.judge(f)
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

// judge reads and judges a reply, and keeps it as a case where it failed. No reply may end the run: what this program cannot
// do with one is that request's failure.
func (j *judging) judge(f unjudged) (row fixtures.Row) {
	defer func() {
		if p := recover(); p != nil {
			row = j.lost(f.request, fmt.Sprintf("the reply could not be judged: %v", p))
			row.SinceStart, row.E2EMS = f.exchange.SinceStart, f.exchange.End.At.Seconds()*1000
		}
	}()
	row = judge.Row(f.request, f.exchange)
	if row.Failure != nil {
		j.l.saved.save(j.l, f, row.Failure)
	}
	return row
}

// longestMessage is as many characters of a message as a row keeps.
const longestMessage = 2048

// lost is the row of a request that this program failed.
func (j *judging) lost(r fixtures.LoadRequest, message string) fixtures.Row {
	failure := &fixtures.RowFailure{Class: fixtures.FailRunner, Type: "panic", Message: message}
	if runes := []rune(message); len(runes) > longestMessage {
		failure.Message, failure.Truncated = string(runes[:longestMessage]), true
	}
	return fixtures.Row{Stage: j.stage, RequestIndex: r.Index, PlannedContextTokens: r.PlannedContextTokens,
		SinceStart: time.Since(j.l.s.started), Failure: failure}
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
		message, _, _ := strings.Cut(f.Message, "\n") // what follows is a stack, with the paths of the machine that built this
		row := j.lost(j.l.plan.Request(j.stage, f.Request), message)
		if err := j.l.record.Write(fixtures.Line{Row: &row}); err != nil {
			j.fail(err)
		}
	}
}

// finish waits until every reply was judged and kept.
func (j *judging) finish() error {
	j.mu.Lock()
	j.closed = true
	j.changed.Broadcast()
	j.mu.Unlock()
	<-j.judged
	j.syncing.Wait()
	return j.err
}

package load_test

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"plumbline/harness/load"
)

const ms = time.Millisecond

func pipe() (net.Conn, net.Conn, error) {
	a, b := net.Pipe()
	return a, b, nil
}

// virtual runs a test under virtual time, in which nothing but sleeping takes any.
func virtual(t *testing.T, f func(*testing.T, *WithT)) {
	synctest.Test(t, func(t *testing.T) { f(t, NewWithT(t)) })
}

// run is load.Run with pipes for the heartbeat and a Live where the plan has none.
func run(t *testing.T, ctx context.Context, p load.Plan, send load.Send) load.Result {
	t.Helper()
	if p.Live == nil {
		p.Live = &load.Live{}
	}
	if p.Sockets == nil {
		p.Sockets = pipe
	}
	r, err := load.Run(ctx, p, send)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return r
}

// log notes the requests of a stage as they are sent.
type log struct {
	mu       sync.Mutex
	start    time.Time
	requests []int
	at, due  []time.Duration
	inFlight int
	most     int
}

// record makes a Send that takes the time of one request, and calls then before it returns.
func (l *log) record(takes func(i int) time.Duration) load.Send {
	l.start = time.Now()
	return func(ctx context.Context, i int, due time.Time) load.Outcome {
		now := time.Now()
		l.mu.Lock()
		l.requests = append(l.requests, i)
		l.at, l.due = append(l.at, now.Sub(l.start)), append(l.due, due.Sub(l.start))
		l.inFlight++
		l.most = max(l.most, l.inFlight)
		l.mu.Unlock()
		select {
		case <-time.After(takes(i)):
		case <-ctx.Done():
		}
		l.mu.Lock()
		l.inFlight--
		l.mu.Unlock()
		return load.Outcome{Dispatched: now}
	}
}

func each(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func upTo(n int) []int {
	var all []int
	for i := range n {
		all = append(all, i)
	}
	return all
}

func TestAClosedLoopKeepsItsWorkersBusyAndNoMore(t *testing.T) {
	virtual(t, func(t *testing.T, g *WithT) {
		var l log
		r := run(t, t.Context(), load.Plan{Workers: 3, Requests: 10}, l.record(func(i int) time.Duration { return time.Duration(1+i%3) * time.Second }))
		g.Expect(r.Sent).To(Equal(10))
		g.Expect(r.Stopped).To(BeEmpty())
		g.Expect(l.requests).To(HaveExactElements(upTo(10)))
		g.Expect(l.most).To(Equal(3))
		// Requests 0, 1 and 2 take 1, 2 and 3 s; each end sends the next.
		g.Expect(l.at).To(Equal([]time.Duration{0, 0, 0, time.Second, 2 * time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second,
			4 * time.Second, 5 * time.Second}))
		g.Expect(l.due).To(Equal(l.at))
		g.Expect(r.Wall).To(Equal(7 * time.Second))
		g.Expect(r.StartedAt).To(Equal(l.start))
		g.Expect(r.Client.DispatchLate.Samples).To(BeEquivalentTo(10))
		g.Expect(r.Client.DispatchLate.Max).To(HaveValue(BeZero()))
	})
}

func TestTheWorkersOfAClosedLoopMayBeginApart(t *testing.T) {
	virtual(t, func(t *testing.T, g *WithT) {
		var l log
		r := run(t, t.Context(), load.Plan{Workers: 3, Requests: 7, Apart: 100 * ms}, l.record(each(time.Second)))
		g.Expect(l.at).To(Equal([]time.Duration{0, 100 * ms, 200 * ms, time.Second, 1100 * ms, 1200 * ms, 2 * time.Second}))
		g.Expect(l.due).To(Equal(l.at), "nobody is late for beginning apart")
		g.Expect(r.Client.DispatchLate.Max).To(HaveValue(BeZero()))

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(150*ms, cancel)
		r = run(t, ctx, load.Plan{Workers: 3, Requests: 7, Apart: 100 * ms}, new(log).record(each(time.Second)))
		g.Expect(r.Sent).To(Equal(2), "whoever has not begun yet never does")
	})
}

func TestAClosedLoopOfFewRequestsNeedsFewWorkers(t *testing.T) {
	virtual(t, func(t *testing.T, g *WithT) {
		var l log
		r := run(t, t.Context(), load.Plan{Workers: 100, Requests: 2}, l.record(each(time.Second)))
		g.Expect([]any{r.Sent, l.most, r.Wall}).To(Equal([]any{2, 2, time.Second}))
		r = run(t, t.Context(), load.Plan{Workers: 1}, nil)
		g.Expect([]any{r.Sent, r.Stopped, r.Wall, r.Client.CPUShare}).To(Equal([]any{0, "", time.Duration(0), (*float64)(nil)}))
	})
}

func TestInAClosedLoopLatenessCountsFromTheEndOfTheReply(t *testing.T) {
	virtual(t, func(t *testing.T, g *WithT) {
		r := run(t, t.Context(), load.Plan{Workers: 1, Requests: 3}, func(_ context.Context, i int, due time.Time) load.Outcome {
			called := time.Now()
			time.Sleep(30 * ms) // waiting for a connection
			dispatched := time.Now()
			time.Sleep(time.Second)
			ended := time.Now()
			time.Sleep(200 * ms) // putting it on record
			return load.Outcome{Dispatched: dispatched, Waited: dispatched.Sub(called), Ended: ended}
		})
		g.Expect(r.Client.DispatchLate.P50).To(HaveValue(BeNumerically("~", 200, 2)))
		g.Expect(*r.Client.DispatchLate.Mean).To(BeNumerically("~", 400.0/3, 1e-9), "the first was on time")
		g.Expect(r.Wall).To(Equal(3*1030*ms+2*200*ms), "to the end of the last reply")
	})
}

func TestARequestThatWasNeverDispatchedIsNotLate(t *testing.T) {
	virtual(t, func(t *testing.T, g *WithT) {
		r := run(t, t.Context(), load.Plan{Workers: 1, Requests: 3}, func(context.Context, int, time.Time) load.Outcome { return load.Outcome{} })
		g.Expect(r.Sent).To(Equal(3))
		g.Expect(r.Client.DispatchLate.Mean).To(BeNil())
	})
}

func TestAnOpenLoopSendsEachRequestAtItsMoment(t *testing.T) {
	virtual(t, func(t *testing.T, g *WithT) {
		var l log
		schedule := []time.Duration{0, 10 * ms, 10 * ms, 35 * ms, 2 * time.Second}
		r := run(t, t.Context(), load.Plan{Schedule: schedule, MaxInFlight: 4}, l.record(each(time.Second)))
		g.Expect(l.at).To(Equal(schedule))
		g.Expect(l.due).To(Equal(schedule))
		g.Expect(l.requests).To(ConsistOf(0, 1, 2, 3, 4))
		g.Expect(l.most).To(Equal(4))
		g.Expect(r.Client.DispatchLate.Max).To(HaveValue(BeZero()))
		g.Expect([]any{r.Sent, r.Stopped, r.Wall}).To(Equal([]any{5, "", 3 * time.Second}))
	})
}

func TestAnOpenLoopAtItsBoundShowsHowLateItIs(t *testing.T) {
	virtual(t, func(t *testing.T, g *WithT) {
		var l log
		schedule := []time.Duration{0, 10 * ms, 20 * ms, 30 * ms}
		r := run(t, t.Context(), load.Plan{Schedule: schedule, MaxInFlight: 1}, l.record(each(300*ms)))
		g.Expect(l.at).To(Equal([]time.Duration{0, 300 * ms, 600 * ms, 900 * ms}))
		g.Expect(l.due).To(Equal(schedule), "no moment moves")
		g.Expect(l.most).To(Equal(1))
		g.Expect(r.Client.DispatchLate.Max).To(HaveValue(Equal(870.0)))
		g.Expect(*r.Client.DispatchLate.Mean).To(BeNumerically("~", (290+580+870)/4.0, 1e-9))
		g.Expect(r.Client.Overloaded).To(BeTrue())
		g.Expect(r.Client.Reasons).To(ConsistOf(ContainSubstring("dispatched")))
	})
}

// loops are both kinds of plan, of ten requests of a second each, two at a time.
var loops = map[string]load.Plan{
	"closed": {Workers: 2, Requests: 10},
	"open": {MaxInFlight: 2, Schedule: []time.Duration{0, 0, time.Second, time.Second, 2 * time.Second, 2 * time.Second, 3 * time.Second,
		3 * time.Second, 4 * time.Second, 4 * time.Second}},
}

func TestTooManyFailuresEndAStage(t *testing.T) {
	for name, p := range loops {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, g *WithT) {
				var l log
				p.Live, p.AbortErrorRate, p.AbortAfter = &load.Live{}, 0.25, 4
				verdicts := make(chan int, 10)
				var judge sync.WaitGroup
				judge.Go(func() {
					for i := range verdicts {
						time.Sleep(100 * ms) // verdicts come later than replies
						p.Live.Judged(time.Second, i%2 == 1)
					}
				})
				send := l.record(each(time.Second))
				r := run(t, t.Context(), p, func(ctx context.Context, i int, due time.Time) load.Outcome {
					defer func() { verdicts <- i }()
					return send(ctx, i, due)
				})
				close(verdicts)
				judge.Wait()
				g.Expect(r.Sent).To(Equal(6), "the verdicts on the first four are there at 3 s")
				g.Expect(r.Stopped).To(Equal("2 of 4 finished requests failed, more than the abort error rate of 0.25"))
				g.Expect(l.inFlight).To(BeZero())
			})
		})
	}
}

func TestFailuresUpToTheRateEndNothing(t *testing.T) {
	for rate, wantSent := range map[float64]int{0: 10, 0.5: 10, 0.49: 2} {
		virtual(t, func(t *testing.T, g *WithT) {
			live := &load.Live{}
			r := run(t, t.Context(), load.Plan{Workers: 1, Requests: 10, AbortErrorRate: rate, AbortAfter: 2, Live: live},
				func(_ context.Context, i int, _ time.Time) load.Outcome {
					live.Judged(0, i%2 == 1)
					return load.Outcome{}
				})
			g.Expect(r.Sent).To(Equal(wantSent), "rate %v", rate)
		})
	}
}

func TestAnInterruptEndsDispatchAndIsSeenByRequestsUnderWay(t *testing.T) {
	errSignal := errors.New("interrupt signal received")
	long := map[string]load.Plan{
		"open, between two moments": {MaxInFlight: 9, Schedule: []time.Duration{0, time.Hour}},
		"open, at its bound":        {MaxInFlight: 2, Schedule: make([]time.Duration, 9)},
		"closed":                    {Workers: 2, Requests: 9},
	}
	for name, p := range long {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, g *WithT) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Minute, func() { cancel(errSignal) })
				var l log
				r := run(t, ctx, p, l.record(each(2*time.Hour)))
				g.Expect(r.Stopped).To(Equal("canceled: interrupt signal received"))
				g.Expect(r.Wall).To(Equal(time.Minute))
				g.Expect(time.Since(l.start)).To(Equal(time.Minute))
				g.Expect(r.Sent).To(Equal(len(l.requests)))
				g.Expect(r.Sent).To(BeNumerically("<=", 2))
			})
		})
	}
}

func TestNothingIsSentOnceTheContextHasEnded(t *testing.T) {
	for name, p := range loops {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, g *WithT) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				r := run(t, ctx, p, nil)
				g.Expect([]any{r.Sent, r.Stopped, r.Wall}).To(Equal([]any{0, "canceled: context canceled", time.Duration(0)}))
			})
		})
	}
}

func TestAPanicEndsItsRequestOnly(t *testing.T) {
	for name, p := range loops {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, g *WithT) {
				var l log
				p.Live = &load.Live{}
				send := l.record(each(time.Second))
				r := run(t, t.Context(), p, func(ctx context.Context, i int, due time.Time) load.Outcome {
					out := send(ctx, i, due)
					if i == 3 || i == 0 {
						panic("row without a reply")
					}
					return out
				})
				g.Expect(r.Sent).To(Equal(10))
				g.Expect(l.requests).To(ConsistOf(upTo(10)))
				g.Expect(r.Wall).To(Equal(5 * time.Second))
				g.Expect(r.Faults).To(HaveLen(2))
				for n, i := range []int{0, 3} {
					g.Expect(r.Faults[n].Request).To(Equal(i))
					g.Expect(r.Faults[n].Message).To(HavePrefix("panic: row without a reply\n"))
					g.Expect(len(r.Faults[n].Message)).To(BeNumerically("<=", 2048))
				}
				s := p.Live.Snapshot()
				g.Expect([]int64{s.Failed, s.InFlight, s.Dispatched}).To(Equal([]int64{2, 0, 10}))
			})
		})
	}
}

func TestAPlanThatCannotBeRunIsRefused(t *testing.T) {
	some := []time.Duration{0, ms}
	for name, c := range map[string]struct {
		plan load.Plan
		says string
	}{
		"nothing":            {load.Plan{}, "want at least 1 worker, 0 requests and no time apart below 0 in a closed loop, got 0, 0 and 0s"},
		"fewer than none":    {load.Plan{Workers: 1, Requests: -1}, "got 1, -1 and"},
		"bound when closed":  {load.Plan{Workers: 1, Requests: 1, MaxInFlight: 3}, "want no bound on requests in flight in a closed loop, got 3"},
		"both":               {load.Plan{Workers: 1, Schedule: some, MaxInFlight: 1}, "want no workers, requests and time apart beside a schedule, got 1, 0 and 0s"},
		"no room":            {load.Plan{Schedule: some}, "want at least 1 request in flight in an open loop, got 0"},
		"backwards":          {load.Plan{Schedule: []time.Duration{ms, 0}, MaxInFlight: 1}, "want a schedule in ascending order from 0"},
		"before the start":   {load.Plan{Schedule: []time.Duration{-ms}, MaxInFlight: 1}, "want a schedule in ascending order from 0"},
		"rate over 1":        {load.Plan{Workers: 1, AbortErrorRate: 1}, "want an abort error rate of at least 0 and less than 1, got 1"},
		"rate not a number":  {load.Plan{Workers: 1, AbortErrorRate: math.NaN()}, "got NaN"},
		"sockets not be had": {load.Plan{Workers: 1, Sockets: func() (net.Conn, net.Conn, error) { return nil, nil, errors.New("no socket") }}, "start heartbeat: no socket"},
	} {
		t.Run(name, func(t *testing.T) {
			c.plan.Live = &load.Live{}
			_, err := load.Run(t.Context(), c.plan, nil)
			NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("run load: "), ContainSubstring(c.says))))
		})
	}
	_, err := load.Run(t.Context(), load.Plan{Workers: 1}, nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("want a Live")))
}

// slow is a connection whose reads come late from a moment on.
type slow struct {
	net.Conn
	start time.Time
	until time.Duration
}

func (s *slow) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if at := time.Since(s.start); at >= 50*ms && at < s.until {
		time.Sleep(s.until - at)
	}
	return n, err
}

func TestTheHeartbeatCountsEveryTickFromItsMoment(t *testing.T) {
	for name, c := range map[string]struct {
		stall time.Duration
		max   float64
		mean  float64
	}{
		"a client that keeps up": {0, 0, 0},
		// The ticks at 50, 55 … 145 ms wait until 150 ms, those not written meanwhile too.
		"a stall of 100 ms": {150 * ms, 100, (100 + 5) / 2.0 * 20 / 200},
		// It ends with the stage; the last ticks are read after it.
		"a stall to the end": {2 * time.Second, 1950, 0},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, g *WithT) {
				var l log
				r := run(t, t.Context(), load.Plan{Workers: 1, Requests: 1, Sockets: func() (net.Conn, net.Conn, error) {
					a, b := net.Pipe()
					return a, &slow{b, time.Now(), c.stall}, nil
				}}, l.record(each(1002*ms)))
				lag := r.Client.ReadLag
				g.Expect(lag.Samples).To(BeNumerically(">=", 200))
				g.Expect(*lag.Max).To(Equal(c.max))
				if c.stall < time.Second {
					g.Expect(lag.Samples).To(BeEquivalentTo(200))
					g.Expect(*lag.Mean).To(BeNumerically("~", c.mean, 1e-9))
				}
				g.Expect(r.Client.Overloaded).To(Equal(c.stall > 0))
			})
		})
	}
}

func TestTheHeartbeatRunsOverRealSocketsAndLeavesNothingBehind(t *testing.T) {
	g := NewWithT(t)
	before := gleak.Goroutines()
	var l log
	r, err := load.Run(t.Context(), load.Plan{Workers: 1, Requests: 1, Live: &load.Live{}}, l.record(each(23*ms)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Client.ReadLag.Samples).To(BeNumerically(">=", 4), "every tick that was due is counted at the end")
	g.Expect(r.Client.CPUShare).To(HaveValue(And(BeNumerically(">", 0), BeNumerically("<=", 1))))
	g.Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))
}

func TestALiveViewShowsWhereAStageStands(t *testing.T) {
	virtual(t, func(t *testing.T, g *WithT) {
		live := &load.Live{}
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var shown []load.Snapshot
		var at []time.Duration
		var display sync.WaitGroup
		display.Go(func() {
			live.Watch(ctx, func(s load.Snapshot) { shown, at = append(shown, s), append(at, time.Since(start)) })
		})
		time.Sleep(150 * ms)
		run(t, t.Context(), load.Plan{Workers: 2, Requests: 4, Live: live}, func(_ context.Context, i int, _ time.Time) load.Outcome {
			time.Sleep(200 * ms)
			live.Judged(200*ms, i == 1)
			return load.Outcome{}
		})
		time.Sleep(60 * ms)
		cancel()
		display.Wait()
		g.Expect(at).To(Equal([]time.Duration{300 * ms, 600 * ms, 610 * ms}))
		g.Expect(shown[0]).To(Equal(load.Snapshot{Dispatched: 2, InFlight: 2}))
		last := shown[len(shown)-1]
		g.Expect([]int64{last.Dispatched, last.InFlight, last.Done, last.Failed}).To(Equal([]int64{4, 0, 4, 1}))
		g.Expect(last.P50).To(HaveValue(BeNumerically("~", 200*ms, 2*ms)))
		g.Expect(last.P95).To(HaveValue(BeNumerically("~", 200*ms, 2*ms)))
	})
}

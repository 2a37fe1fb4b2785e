package mockserver

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestSlotsAreGivenFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := engine(t, Options{Pace: slow, Slots: 2})
		const requests = 6
		ends := make([]time.Duration, requests)
		began := time.Now()
		for i := range requests {
			go func() {
				post(t, s, newRecorder(), body("hello", `"max_tokens":35`))
				ends[i] = time.Since(began)
			}()
			synctest.Wait() // so that they stand in the queue in this order
			a := s.slots.activity()
			g.Expect(a.busy).To(Equal(min(i+1, 2)))
			g.Expect(a.queued).To(Equal(max(0, i-1)))
		}
		for range 5 {
			<-time.After(999 * time.Millisecond) // virtual
			synctest.Wait()
			g.Expect(s.slots.activity().busy).To(BeNumerically("<=", 2))
		}
		const one = time.Second // 300 ms of prefill and 35 tokens
		g.Expect(ends).To(Equal([]time.Duration{one, one, 2 * one, 2 * one, 3 * one, 3 * one}))
		g.Expect(s.slots.activity()).To(Equal(activity{tasks: []int64{0, 0}, started: requests}))
	})
}

func TestTimeInTheQueueIsInNoFigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := engine(t, Options{Pace: slow, Slots: 1})
		go post(t, s, newRecorder(), body("hello", `"max_tokens":35`))
		synctest.Wait()
		rec := newRecorder()
		post(t, s, rec, body("hello", `"stream":true,"max_tokens":35`))
		g.Expect(rec.writes[0].at).To(Equal(time.Second), "not even the head comes before the slot")
		g.Expect(hear(t, rec.answer()).timings).To(And(
			HaveKeyWithValue("prompt_ms", 300.0), HaveKeyWithValue("predicted_ms", 700.0)))
	})
}

func TestLeavingTheQueueFreesThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		q := newSlots(1, 2)
		held, _, err := q.acquire(t.Context())
		g.Expect(err).NotTo(HaveOccurred())

		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, _, err := q.acquire(ctx); left <- err }()
		synctest.Wait()
		got := make(chan int, 1)
		go func() { slot, _, _ := q.acquire(t.Context()); got <- slot }()
		synctest.Wait()
		_, _, err = q.acquire(t.Context())
		g.Expect(err).To(MatchError(errQueueFull))

		leave()
		g.Expect(<-left).To(MatchError(context.Canceled))
		g.Expect(q.activity().queued).To(Equal(1))
		q.release(held)
		g.Expect(<-got).To(Equal(held), "the slot went past the one that left")
		_, _, err = q.acquire(ctx)
		g.Expect(err).To(MatchError(context.Canceled), "one that has left gets nothing")
		q.release(held)
		g.Expect(q.activity().busy).To(BeZero())
	})
}

// TestSlotGivenToOneThatLeavesIsPassedOn holds the lock so that the slot comes after the departure and before it is noticed.
func TestSlotGivenToOneThatLeavesIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		q := newSlots(1, 10)
		held, _, err := q.acquire(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, _, err := q.acquire(ctx); left <- err }()
		synctest.Wait()
		q.mu.Lock()
		leave()
		q.free(held)
		q.mu.Unlock()
		g.Expect(<-left).To(MatchError(context.Canceled))
		g.Expect(q.activity()).To(Equal(activity{tasks: []int64{0}, started: 2}))
	})
}

func TestFullQueueSaysWhenToComeBack(t *testing.T) {
	g := NewWithT(t)
	s := engine(t, Options{Slots: 1})
	s.slots = newSlots(1, 0)
	_, _, err := s.slots.acquire(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	rec := newRecorder()
	post(t, s, rec, body("hello", `"stream":true`))
	g.Expect(rec.status).To(Equal(http.StatusServiceUnavailable))
	g.Expect(rec.header.Get("Retry-After")).To(Equal("1"))
	g.Expect(rec.answer().json(t)["error"]).To(HaveKeyWithValue("code", "queue_full"))
}

func TestClientThatLeavesFreesItsSlotAndItsPlace(t *testing.T) {
	never := Pace{Curve: []Point{{0, time.Millisecond}}, Decode: time.Hour}
	for _, more := range []string{`"stream":true`, `"stream":false`} {
		t.Run(more, func(t *testing.T) {
			g := NewWithT(t)
			s, c := start(t, Options{Pace: never, Slots: 1})
			ask := func() (leave context.CancelFunc, ended chan struct{}) {
				ctx, leave := context.WithCancel(t.Context())
				ended = make(chan struct{})
				go func() {
					defer close(ended)
					req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/chat/completions",
						strings.NewReader(body("hello", more)))
					if resp, err := c.Do(req); err == nil {
						bufio.NewReader(resp.Body).WriteTo(discard{})
						resp.Body.Close()
					}
				}()
				return leave, ended
			}
			state := func() [2]int { a := s.slots.activity(); return [2]int{a.busy, a.queued} }
			leaveFirst, firstEnded := ask()
			g.Eventually(state).WithTimeout(20 * time.Second).Should(Equal([2]int{1, 0}))
			leaveSecond, secondEnded := ask()
			g.Eventually(state).WithTimeout(20 * time.Second).Should(Equal([2]int{1, 1}))
			leaveThird, thirdEnded := ask()
			g.Eventually(state).WithTimeout(20 * time.Second).Should(Equal([2]int{1, 2}))
			leaveSecond()
			<-secondEnded
			g.Eventually(state).WithTimeout(20*time.Second).Should(Equal([2]int{1, 1}), "a place in the queue")
			leaveFirst()
			<-firstEnded
			g.Eventually(state).WithTimeout(20*time.Second).Should(Equal([2]int{1, 0}), "a slot, which the third gets")
			leaveThird()
			<-thirdEnded
			g.Eventually(state).WithTimeout(20 * time.Second).Should(Equal([2]int{0, 0}))
		})
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

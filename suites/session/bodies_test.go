package session

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
)

func TestBodiesAreMadeAheadAndNoFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var made atomic.Int64
		b := newBodies(3*bodiesAhead, func(i int) []byte {
			made.Add(1)
			return fmt.Appendf(nil, "body %d", i)
		})
		synctest.Wait()
		g.Expect(made.Load()).To(BeEquivalentTo(bodiesAhead))
		for i := range 10 {
			g.Expect(string(b.take(i))).To(Equal(fmt.Sprintf("body %d", i)))
		}
		synctest.Wait()
		g.Expect(made.Load()).To(BeEquivalentTo(bodiesAhead + 10))
		b.stop()
		g.Expect(b.take(2*bodiesAhead)).To(BeNil(), "nothing is made any more")
	})
}

func TestLargeBodiesAreBoundedByTheirBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var made atomic.Int64
		b := newBodies(10, func(int) []byte {
			made.Add(1)
			return make([]byte, bodiesAheadSize)
		})
		synctest.Wait()
		g.Expect(made.Load()).To(BeEquivalentTo(1))
		g.Expect(b.take(0)).To(HaveLen(bodiesAheadSize))
		synctest.Wait()
		g.Expect(made.Load()).To(BeEquivalentTo(2))
		b.stop()
	})
}

func TestABodyThatCannotBeMadeIsTheFaultOfItsOwnRequest(t *testing.T) {
	g := NewWithT(t)
	b := newBodies(3, func(i int) []byte {
		if i == 1 {
			panic("no such stage")
		}
		return []byte("x")
	})
	defer b.stop()
	g.Expect(string(b.take(0))).To(Equal("x"))
	g.Expect(func() { b.take(1) }).To(PanicWith(ContainSubstring("no such stage")))
	g.Expect(string(b.take(2))).To(Equal("x"))
}

package load

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"
)

// period is the time between two ticks: short beside the lags that matter, long beside what a tick costs (some µs).
const period = 5 * time.Millisecond

// heartbeat measures how long a byte that has arrived waits until a goroutine has read it, while the program is at work. It
// writes each tick's moment into a socket and reads it at the other end, since Go serves timers before sockets: a timer alone
// would be on time while replies wait. Each tick counts from its own moment, also one that could not be written in time.
type heartbeat struct {
	lag      histogram
	start    time.Time
	stopping chan struct{}
	ends     sync.WaitGroup
}

func startHeartbeat(sockets func() (net.Conn, net.Conn, error)) (*heartbeat, error) {
	from, to, err := sockets()
	if err != nil {
		return nil, err
	}
	h := &heartbeat{start: time.Now(), stopping: make(chan struct{})}
	h.ends.Go(func() { h.write(from) })
	h.ends.Go(func() { h.read(to) })
	return h, nil
}

// stop ends the heartbeat and waits until every tick whose moment has come is counted.
func (h *heartbeat) stop() {
	close(h.stopping)
	h.ends.Wait()
}

func (h *heartbeat) write(to net.Conn) {
	defer to.Close()
	var tick [8]byte
	for due := period; ; due += period {
		select {
		case <-time.After(due - time.Since(h.start)):
		case <-h.stopping:
		}
		if time.Since(h.start) < due { // stopped, and nothing is left to be written
			return
		}
		binary.NativeEndian.PutUint64(tick[:], uint64(due))
		if _, err := to.Write(tick[:]); err != nil {
			return
		}
	}
}

func (h *heartbeat) read(from net.Conn) {
	defer from.Close()
	var tick [8]byte
	for {
		if _, err := io.ReadFull(from, tick[:]); err != nil {
			return
		}
		h.lag.add(time.Since(h.start) - time.Duration(binary.NativeEndian.Uint64(tick[:])))
	}
}

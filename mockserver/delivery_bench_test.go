package mockserver

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkDelivery measures what one token of a stream costs: rendered alone, and in as many paced streams over sockets at
// once, the reading of them included. The paced ones also report how late tokens come, counted from the moment
// when the request was sent.
func BenchmarkDelivery(b *testing.B) {
	b.Run("rendered", func(b *testing.B) {
		s, err := newServer(Options{Slots: 1})
		if err != nil {
			b.Fatal(err)
		}
		j, refusal := s.readChat([]byte(body("Write the word amber exactly 100000 times, separated by single spaces, and nothing else.",
			`"stream":true`)))
		if refusal != nil {
			b.Fatal(refusal.message)
		}
		said := generate(j.speech, j.budget, j.stops)
		frames, shape := s.frames(j, &said)
		var batch bytes.Buffer
		b.ReportAllocs()
		var d delivery
		for rest := []frame(nil); b.Loop(); batch.Reset() {
			if len(rest) == 0 {
				d, rest = delivery{shape: shape}, frames
			}
			rest, _ = d.take(rest, rest[0].due, true, &batch)
		}
	})
	for _, load := range []struct{ streams, rate int }{{1, 100}, {500, 100}, {1000, 50}} {
		b.Run(fmt.Sprintf("%d streams of %d tokens a second", load.streams, load.rate), func(b *testing.B) {
			benchmarkPaced(b, load.streams, time.Second/time.Duration(load.rate))
		})
	}
}

// benchmarkPaced has b.N tokens streamed by so many streams at once.
func benchmarkPaced(b *testing.B, streams int, perToken time.Duration) {
	const ttft = 500 * time.Millisecond
	s, err := Start(b.Context(), Options{Slots: streams, Pace: Pace{Curve: []Point{{0, ttft}}, Decode: perToken}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	tokens := min(max(1, b.N/streams), 250)
	request := body("hello", fmt.Sprintf(`"stream":true,"max_tokens":%d`, tokens))
	request = fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(request), request)
	late := make([][]time.Duration, streams)
	before := cpuTime(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() { late[i] = readPaced(b, strings.TrimPrefix(s.URL(), "http://"), request, ttft, perToken) })
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Sorted(slices.Values(slices.Concat(late...)))
	if len(all) == 0 {
		b.Fatal("no token was read")
	}
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(len(all))/1000, "cpu-µs/token")
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "tokens/s")
	for name, at := range map[string]int{"late-p50-ms": len(all) / 2, "late-p99-ms": len(all) * 99 / 100, "late-max-ms": len(all) - 1} {
		b.ReportMetric(all[at].Seconds()*1000, name)
	}
}

// readPaced sends a request, reads the stream to its end and tells how late each token came.
func readPaced(b *testing.B, address, request string, ttft, perToken time.Duration) (late []time.Duration) {
	conn, err := new(net.Dialer).DialContext(b.Context(), "tcp", address)
	if err != nil {
		b.Error(err)
		return nil
	}
	defer conn.Close()
	sent := time.Now()
	if _, err := io.WriteString(conn, request); err != nil {
		b.Error(err)
		return nil
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := conn.Read(buf)
		now := time.Since(sent)
		for range bytes.Count(buf[:n], []byte(`"delta":{"reasoning_content":`)) + bytes.Count(buf[:n], []byte(`"delta":{"content":`)) {
			late = append(late, now-ttft-time.Duration(len(late))*perToken)
		}
		if err != nil {
			return late
		}
	}
}

// cpuTime is what this process has spent so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkReadChat measures what a request costs before its slot: a prompt of some 25,000 tokens.
func BenchmarkReadChat(b *testing.B) {
	s, err := newServer(Options{})
	if err != nil {
		b.Fatal(err)
	}
	prompt := strings.Repeat("The lighthouse keeper counted 17 ships, and wrote “none” beside each of them. ", 1300)
	request := []byte(body(prompt+"Begin with ANVIL_REQ_17_00002.", `"stream":true,"max_tokens":64`))
	b.SetBytes(int64(len(request)))
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := s.readChat(request); refusal != nil {
			b.Fatal(refusal.message)
		}
	}
}

// BenchmarkCountPieces measures the counting of a prompt of the same size alone.
func BenchmarkCountPieces(b *testing.B) {
	prompt := strings.Repeat("The lighthouse keeper counted 17 ships, and wrote “none” beside each of them. ", 1300)
	b.SetBytes(int64(len(prompt)))
	for b.Loop() {
		countPieces(prompt)
	}
}

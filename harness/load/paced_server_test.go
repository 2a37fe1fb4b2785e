package load_test

import (
	"bufio"
	"container/heap"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The paced server of the benchmark is a process of its own, which is this test binary started again: what the client does
// cannot delay it but by taking the processor. It says when it sent what, so that only the client's error is measured.

const (
	serverVariable = "PLUMBLINE_PACED_SERVER"

	prefill   = 50 * time.Millisecond
	perToken  = 10 * time.Millisecond
	perStream = 100 // tokens

	// A chunk as llama.cpp writes it, of 220 bytes, with three moments of the server's wall clock: the request read, this
	// stream's place in its plan, this chunk written.
	chunkFormat = `data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" ab"}}],"model":"paced","system_fingerprint":"b1-0000000",` +
		`"object":"chat.completion.chunk","read":%019d,"due":%019d,"sent":%019d}` + "\n\n"
	momentsFromEnd = len(`0000000000000000000,"due":0000000000000000000,"sent":0000000000000000000}` + "\n\n")
)

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		servePaced()
		return
	}
	os.Exit(m.Run())
}

// servePaced serves until standard input ends, which it does when the process at its other end is gone.
func servePaced() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("http://" + l.Addr().String())
	p := &pacer{added: make(chan *streaming, 4096)}
	go p.run()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	io.Copy(io.Discard, os.Stdin)
}

// serve hands each request on the connection to the pacer.
func (p *pacer) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		length := 0
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if n, ok := strings.CutPrefix(strings.ToLower(line), "content-length:"); ok {
				length, _ = strconv.Atoi(strings.TrimSpace(n))
			}
			if line == "\r\n" {
				break
			}
		}
		if _, err := in.Discard(length); err != nil {
			return
		}
		now := time.Now()
		p.added <- &streaming{conn: conn, read: now, due: now.Add(prefill)}
	}
}

// streaming is one reply under way.
type streaming struct {
	conn      net.Conn
	read, due time.Time
	sent      int
}

// pacer writes every stream's chunks at their moments, from one goroutine: it does little else than system calls.
type pacer struct {
	added   chan *streaming
	pending streams
	buf     []byte
}

func (p *pacer) run() {
	for {
		for len(p.pending) > 0 && !time.Now().Before(p.pending[0].due) {
			p.write(p.pending[0])
			select {
			case s := <-p.added:
				heap.Push(&p.pending, s)
			default:
			}
		}
		var next <-chan time.Time
		if len(p.pending) > 0 {
			next = time.After(time.Until(p.pending[0].due))
		}
		select {
		case s := <-p.added:
			heap.Push(&p.pending, s)
		case <-next:
		}
	}
}

func (p *pacer) write(s *streaming) {
	p.buf = p.buf[:0]
	if s.sent == 0 {
		p.buf = append(p.buf, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"...)
	}
	size := len(fmt.Sprintf(chunkFormat, 0, 0, 0))
	p.buf = fmt.Appendf(p.buf, "%x\r\n", size)
	p.buf = fmt.Appendf(p.buf, chunkFormat, s.read.UnixNano(), s.due.UnixNano(), time.Now().UnixNano())
	p.buf = append(p.buf, "\r\n"...)
	s.sent++
	if s.sent == perStream {
		p.buf = append(p.buf, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"...)
	}
	_, err := s.conn.Write(p.buf)
	s.due = s.due.Add(perToken)
	if err != nil || s.sent == perStream {
		heap.Pop(&p.pending)
		return
	}
	heap.Fix(&p.pending, 0)
}

// streams are a heap by the moment of the next chunk.
type streams []*streaming

func (s streams) Len() int           { return len(s) }
func (s streams) Less(i, j int) bool { return s[i].due.Before(s[j].due) }
func (s streams) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *streams) Push(x any)        { *s = append(*s, x.(*streaming)) }
func (s *streams) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

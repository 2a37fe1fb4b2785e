package engine

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
)

// LogName is the file in the run's folder with what a started engine wrote.
const LogName = "engine.log"

const (
	tailLines = 50
	maxLine   = 64 << 10 // a longer line is cut in two
	maxShown  = 2000     // of a line in a message
	maxLog    = 1 << 30  // of the file; an engine that writes more is broken, and must not fill the disk
)

// logFile takes what an engine writes, from its first line, and keeps the end at hand. Secrets are overwritten line by
// line. It is safe for concurrent use.
type logFile struct {
	mu      sync.Mutex
	file    *os.File
	secrets *strings.Replacer
	partial []byte
	last    []string
	written int64
	closed  bool
	err     error
}

func createLog(path string, secrets *strings.Replacer) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, fmt.Errorf("keep the engine's log: %w", err)
	}
	return &logFile{file: f, secrets: secrets}, nil
}

// Write implements io.Writer. It takes everything, so that an engine never stops for its log; Close tells of a failure.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		room := maxLine - len(l.partial)
		end := bytes.IndexByte(b[:min(len(b), room)], '\n') + 1
		if end == 0 {
			end = min(len(b), room)
		}
		l.partial = append(l.partial, b[:end]...)
		b = b[end:]
		if len(l.partial) == maxLine || l.partial[len(l.partial)-1] == '\n' {
			l.flush()
		}
	}
	return n, nil
}

// flush writes the line that has been gathered.
func (l *logFile) flush() {
	if len(l.partial) == 0 {
		return
	}
	line := l.secrets.Replace(string(l.partial))
	l.partial = l.partial[:0]
	shown := strings.TrimRight(line, "\r\n")
	l.last = append(l.last, strings.ToValidUTF8(shown[:min(len(shown), maxShown)], "\uFFFD"))
	if len(l.last) > tailLines {
		l.last = append(l.last[:0], l.last[1:]...)
	}
	if l.err != nil {
		return
	}
	if l.written+int64(len(line)) > maxLog {
		l.err = fmt.Errorf("keep the engine's log: it is longer than %d bytes, the rest is left out", maxLog)
		return
	}
	_, l.err = l.file.WriteString(line)
	l.written += int64(len(line))
}

// tail are the last lines.
func (l *logFile) tail() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	return append([]string(nil), l.last...)
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	l.flush()
	err := l.file.Close()
	if l.err != nil {
		return l.err
	}
	return err
}

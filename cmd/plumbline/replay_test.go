package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	oneCase  = "../../fixtures/cases/sse-13-missing-done.json"
	recorded = "../../fixtures/recorded/llamacpp-b10573.jsonl"
)

func TestReplayRefusesWhatItCannotServe(t *testing.T) {
	for says, args := range map[string][]string{
		"expected":      {"replay"},
		"no-such-file":  {"replay", "no-such-file"},
		"replay.go":     {"replay", "replay.go"},
		"a speed":       {"replay", oneCase, "--speed=-1"},
		"256.0.0.1":     {"replay", oneCase, "--listen", "256.0.0.1:0"},
		"can't be used": {"replay", oneCase, "--speed", "2", "--at-once"},
		"a float":       {"replay", oneCase, "--speed", "fast"},
	} {
		t.Run(says, func(t *testing.T) {
			g := NewWithT(t)
			code, out, errs := call(t, args...)
			g.Expect(code).To(Equal(exitTrouble))
			g.Expect(out + errs).To(ContainSubstring(says))
		})
	}
}

func TestReplayServesFilesUntilItIsStopped(t *testing.T) {
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	code := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		defer write.Close()
		code <- run(ctx, []string{"replay", oneCase, recorded, "--at-once", "--listen", "127.0.0.1:0"}, streams{write, &errs})
	}()
	said := make([]byte, 256)
	n, err := read.Read(said)
	if err != nil {
		t.Fatalf("the command ended: %d, %s", <-code, &errs)
	}
	g.Expect(string(said[:n])).To(And(HavePrefix("replaying 138 responses"), ContainSubstring("at once"), ContainSubstring("X-Plumbline-Case")))
	_, after, _ := strings.Cut(string(said[:n]), " at ")
	url, _, _ := strings.Cut(after, ",")

	response, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"stream":true}`))
	g.Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(string(body)).To(And(HavePrefix("data: {"), Not(ContainSubstring("[DONE]"))))

	stop()
	g.Expect(<-code).To(Equal(exitOK))
}

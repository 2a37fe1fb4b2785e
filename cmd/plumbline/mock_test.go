package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/mockserver"
)

func TestMockListsItsDefects(t *testing.T) {
	g := NewWithT(t)
	code, out, errs := call(t, "mock", "--defects")
	g.Expect(code).To(Equal(exitOK), errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	g.Expect(lines).To(HaveLen(len(mockserver.DefectNames())))
	for i, name := range mockserver.DefectNames() {
		g.Expect(lines[i]).To(And(HavePrefix(name+" "), HaveSuffix(mockserver.Explain(name))))
	}
	code, out, _ = call(t, "mock", "--help")
	g.Expect(code).To(Equal(exitOK))
	help := strings.Join(strings.Fields(out), " ")
	for _, word := range append(mockserver.DefectNames(), "5%", "tpot=TIME") {
		g.Expect(help).To(ContainSubstring(word))
	}
}

func TestMockHasTheDefectsAndThePaceThatItIsAskedFor(t *testing.T) {
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"mock", "--listen", "127.0.0.1:0", "--pace", "ttft=1ms,tpot=1ms,jitter=0.1",
			"--defect", "no-done", "--defect", "nan=5%"}, streams{write, io.Discard})
		write.Close()
	}()
	var said strings.Builder
	for line := make([]byte, 4096); !strings.Contains(said.String(), "Ctrl-C"); {
		n, err := read.Read(line)
		g.Expect(err).NotTo(HaveOccurred())
		said.Write(line[:n])
	}
	g.Expect(said.String()).To(And(ContainSubstring("defect no-done=100%: The stream ends"), ContainSubstring("defect nan=5%: "),
		ContainSubstring("pace ttft=1ms,tpot=1ms,jitter=0.1;")))
	_, after, _ := strings.Cut(said.String(), " at ")
	url, _, _ := strings.Cut(after, ",")
	response, err := http.Post(url+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"messages":[{"role":"user","content":"hello"}],"stream":true,"max_tokens":3}`))
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(body)).To(And(ContainSubstring(`"finish_reason":"length"`), Not(ContainSubstring("[DONE]"))))
	stop()
	g.Expect(<-code).To(Equal(exitOK))
}

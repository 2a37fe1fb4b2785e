package engine

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestAWrongKeyEndsTheWaitAtOnce(t *testing.T) {
	g := NewWithT(t)
	s := serve(t, map[string]string{"GET /health": "strata/health.json"})
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	waited, err := whenServing("/health", "", time.Hour).wait(t.Context(), newCaller(s.URL, nil, quick), nil)
	g.Expect(problem(err)).To(Equal(KeyRefused))
	g.Expect(waited).To(ContainSubstring("one token"))
}

func TestAWaitThatIsOverNamesWhatWasWrongLast(t *testing.T) {
	g := NewWithT(t)
	gone := always(t, 200, nil, "")
	gone.Close()
	waited, err := whenServing("/health", "", time.Millisecond).wait(t.Context(), newCaller(gone.URL, nil, quick), nil)
	g.Expect(waited).To(Equal("GET /health to answer 200"))
	g.Expect(err).To(MatchError(And(ContainSubstring("within 1ms"), Not(ContainSubstring("--url")))))
}

func TestALogKeepsAllAndItsEndAtHandWithoutSecrets(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), LogName)
	l, err := createLog(path, newScrubber(bearer("topsecret")))
	g.Expect(err).NotTo(HaveOccurred())
	long := strings.Repeat("x", maxLine+10)
	text := strings.Repeat("line\n", tailLines) + long + "\n\xff key topsecret\nno end"
	for i := range len(text) { // one byte at a time cuts the secret everywhere
		n, err := l.Write([]byte{text[i]})
		g.Expect(n, err).To(Equal(1))
	}
	last := l.tail()
	g.Expect(last).To(HaveLen(tailLines))
	g.Expect(last[tailLines-4:]).To(Equal([]string{long[:maxShown], long[:10], "\uFFFD key [redacted]", "no end"}))
	g.Expect(l.Close()).To(Succeed())
	kept, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(kept)).To(Equal(strings.ReplaceAll(text, "topsecret", redacted)))
}

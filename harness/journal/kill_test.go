package journal_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/harness/journal"
)

// child, when set, makes the test binary append to a record in the named directory until it is killed.
const child = "PLUMBLINE_TEST_JOURNAL"

func TestMain(m *testing.M) {
	if dir := os.Getenv(child); dir != "" {
		fmt.Fprintln(os.Stderr, appendForEver(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// appendForEver appends lines of very different lengths from two goroutines and prints the id of each whose Append has
// returned.
func appendForEver(dir string) error {
	j, err := journal.Create(dir, journal.FileName, header())
	if err != nil {
		return err
	}
	fmt.Println("created")
	failed := make(chan error)
	var out sync.Mutex
	for w := range 2 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d", w, i)
				if err := j.Append(exchange(id, strings.Repeat(id, 1+(i*i*7919)%40_000))); err != nil {
					failed <- err
					return
				}
				out.Lock()
				fmt.Println(id)
				out.Unlock()
			}
		}()
	}
	return <-failed
}

func TestARecordIsReadableAfterAKillAndHoldsAllThatWasAppended(t *testing.T) {
	for _, acks := range []int{1, 2, 3, 7, 20, 57} {
		t.Run(fmt.Sprint("after ", acks, " lines"), func(t *testing.T) {
			g := NewWithT(t)
			dir := filepath.Join(t.TempDir(), "run")
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), child+"="+dir)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cmd.Start()).To(Succeed())

			var acked []string
			lines := bufio.NewReader(out)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					break // what the child could still print before it died has been read
				}
				if acked = append(acked, strings.TrimSpace(line)); len(acked) == acks {
					g.Expect(cmd.Process.Kill()).To(Succeed())
				}
			}
			g.Expect(cmd.Wait()).To(MatchError("signal: killed"))
			g.Expect(len(acked)).To(BeNumerically(">=", acks))
			g.Expect(acked[0]).To(Equal("created"))

			run, err := journal.Read(dir)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(run.End).To(BeNil())
			ids := make(map[string]bool)
			for _, e := range run.Exchanges {
				ids[e.ID] = true
				g.Expect(string(e.Pieces[0].Bytes)).To(HavePrefix(e.ID))
			}
			for _, id := range acked[1:] {
				g.Expect(ids).To(HaveKey(id))
			}
		})
	}
}

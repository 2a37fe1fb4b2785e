package journal

import (
	"os"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

// limitFileSize makes writes past n bytes of a file fail, as they do on a full disk: a part is written, then an error.
func limitFileSize(t *testing.T, n uint64) {
	t.Helper()
	var before syscall.Rlimit
	NewWithT(t).Expect(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before)).To(Succeed())
	NewWithT(t).Expect(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: before.Max})).To(Succeed())
	t.Cleanup(func() { syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) })
}

func TestALineThatDoesNotFitIsAnErrorAndLeavesNoTrace(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	j, err := Create(dir, FileName, &fixtures.Header{Format: fixtures.RunFormat, RunID: "20261130T120000Z-00c0ffee"})
	g.Expect(err).NotTo(HaveOccurred())
	limitFileSize(t, 8<<10)
	g.Expect(j.Append(line("small", "a"))).To(Succeed())
	g.Expect(j.Append(line("large", strings.Repeat("b", 16<<10)))).To(MatchError(syscall.EFBIG))
	g.Expect(j.Append(line("large", "now it fits"))).To(Succeed())
	g.Expect(j.Append(fixtures.Line{End: &fixtures.RunEnd{}})).To(Succeed())
	g.Expect(j.Close()).To(Succeed())

	run, err := Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(run.Torn).To(BeFalse())
	g.Expect(run.Exchanges).To(HaveLen(2))
	g.Expect(string(run.Exchanges[1].Pieces[0].Bytes)).To(Equal("now it fits"))
	g.Expect(run.End).NotTo(BeNil())
}

func TestAHeaderThatDoesNotFitLeavesNoRecord(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	limitFileSize(t, 64)
	_, err := Create(dir, FileName, &fixtures.Header{Format: fixtures.RunFormat, RunID: "20261130T120000Z-00c0ffee"})
	g.Expect(err).To(MatchError(syscall.EFBIG))
	g.Expect(os.ReadDir(dir)).To(BeEmpty())
	_, err = WriteFile(dir, "config.json", make([]byte, 4096))
	g.Expect(err).To(MatchError(syscall.EFBIG))
	g.Expect(os.ReadDir(dir)).To(BeEmpty())
}

func TestAFullDeviceIsAnErrorEveryTime(t *testing.T) {
	g := NewWithT(t)
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	g.Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	j := &Journal{file: f, written: 1, ids: map[string]bool{}}
	for range 2 {
		g.Expect(j.Append(line("a", "b"))).To(MatchError(syscall.ENOSPC))
	}
}

func TestARecordThatCannotBeSyncedIsNotTrustedAgain(t *testing.T) {
	g := NewWithT(t)
	r, w, err := os.Pipe() // takes writes, but cannot be synced
	g.Expect(err).NotTo(HaveOccurred())
	defer r.Close()
	defer w.Close()
	j := &Journal{file: w, written: 1, ids: map[string]bool{}}
	g.Expect(j.Append(line("a", "b"))).To(MatchError(syscall.EINVAL))
	g.Expect(j.Append(line("c", "d"))).To(MatchError(ContainSubstring("not on disk")))
}

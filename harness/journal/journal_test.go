package journal_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/journal"
)

func header() *fixtures.Header {
	return &fixtures.Header{Format: fixtures.RunFormat, RunID: "20261130T120000Z-00c0ffee", Plan: []fixtures.Planned{{ID: "a"}}}
}

func exchange(id string, body string) fixtures.Line {
	return fixtures.Line{Exchange: &fixtures.Exchange{Format: fixtures.ExchangeFormat, ID: id,
		Pieces: []fixtures.Piece{{At: time.Second, Bytes: []byte(body)}}, End: fixtures.End{Kind: fixtures.EndClose, At: time.Second}}}
}

func TestARecordIsReadBackAsItWasAppended(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "out", "r1")
	j, err := journal.Create(dir, journal.FileName, header())
	g.Expect(err).NotTo(HaveOccurred())
	after := fixtures.After{ServedModels: []string{"m"}}
	cool := fixtures.GPUMoment{Phase: "warmup", When: fixtures.BeforePhase, SinceStart: 7, State: fixtures.GPUState{
		Readings: []fixtures.GPUReading{{DeviceIndex: 1, TemperatureC: new(41.5)}}, Reasons: map[string]string{"readings.0.power_w": "why"}}}
	for _, l := range []fixtures.Line{exchange("a", "one <b>"), {Skip: &fixtures.Skip{ID: "b", Reason: "why"}},
		{GPU: &cool}, exchange("c", "\xff"), {After: &after}, {End: &fixtures.RunEnd{At: 9}}} {
		g.Expect(j.Append(l)).To(Succeed())
	}
	g.Expect(j.Close()).To(Succeed())

	run, err := journal.Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(run.Header.RunID).To(Equal("20261130T120000Z-00c0ffee"))
	g.Expect(run.Header.Plan).To(HaveLen(1))
	g.Expect(run.Exchanges).To(HaveLen(2))
	g.Expect(string(run.Exchanges[1].Pieces[0].Bytes)).To(Equal("\xff"))
	g.Expect(run.Skips).To(Equal([]fixtures.Skip{{ID: "b", Reason: "why"}}))
	g.Expect(run.GPUs).To(Equal([]fixtures.GPUMoment{cool}))
	g.Expect(run.After).To(HaveValue(Equal(after)))
	g.Expect(run.End).To(HaveValue(Equal(fixtures.RunEnd{At: 9})))
	g.Expect(run.Torn).To(BeFalse())
}

func TestARecordThatExistsIsNotTouched(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	path := filepath.Join(dir, journal.FileName)
	g.Expect(os.WriteFile(path, []byte("before"), 0o644)).To(Succeed())
	_, err := journal.Create(dir, journal.FileName, header())
	g.Expect(err).To(MatchError(fs.ErrExist))
	g.Expect(os.ReadFile(path)).To(Equal([]byte("before")))
}

func TestWhatWouldMakeTheRecordUnreadableIsRefused(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	_, err := journal.Create(dir, journal.FileName, &fixtures.Header{Format: "other/1"})
	g.Expect(err).To(MatchError(ContainSubstring(`got "other/1"`)))
	g.Expect(filepath.Join(dir, journal.FileName)).NotTo(BeAnExistingFile())

	j, err := journal.Create(dir, journal.FileName, header())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(j.Append(exchange("a", ""))).To(Succeed())
	foreign := exchange("b", "")
	foreign.Exchange.Format = "other/1"
	for want, l := range map[string]fixtures.Line{
		"exactly one kind":            {},
		"has a header":                {Run: header()},
		`exchange "a" is in`:          exchange("a", ""),
		`want format "plumbline.exch`: foreign,
	} {
		g.Expect(j.Append(l)).To(MatchError(ContainSubstring(want)))
	}
	g.Expect(j.Append(fixtures.Line{End: &fixtures.RunEnd{}})).To(Succeed())
	g.Expect(j.Append(exchange("c", ""))).To(MatchError(ContainSubstring("has its last line")))
	g.Expect(j.Close()).To(Succeed())
	g.Expect(j.Append(exchange("d", ""))).To(MatchError(os.ErrClosed))
	run, err := journal.Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(run.Exchanges).To(HaveLen(1))
}

func TestManyAppendAtOnceAndEachLineStaysWhole(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	j, err := journal.Create(dir, journal.FileName, header())
	g.Expect(err).NotTo(HaveOccurred())
	const writers, each = 16, 8
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d-%d", w, i)
				if err := j.Append(exchange(id, id)); err != nil {
					t.Error(err)
				}
				// Append has returned, so the line must be in the file.
				if data, err := os.ReadFile(filepath.Join(dir, journal.FileName)); err != nil || !bytes.Contains(data, []byte(`"id":"`+id+`"`)) {
					t.Errorf("want exchange %q in the file, got none (%v)", id, err)
				}
			}
		})
	}
	all.Wait()
	g.Expect(j.Close()).To(Succeed())
	run, err := journal.Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(run.Exchanges).To(HaveLen(writers * each))
	for _, e := range run.Exchanges {
		g.Expect(string(e.Pieces[0].Bytes)).To(Equal(e.ID))
	}
}

func TestAReadOfNoRecordSaysSo(t *testing.T) {
	g := NewWithT(t)
	_, err := journal.Read(t.TempDir())
	g.Expect(err).To(MatchError(fs.ErrNotExist))
}

func TestAnArtifactIsWrittenWholeWithItsDigest(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // SHA-256 of "abc", FIPS 180-2
	for range 2 {                                                                  // also in place of what is there
		a, err := journal.WriteFile(dir, "provenance/deep/chat_template.jinja", []byte("abc"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a).To(Equal(fixtures.Artifact{Path: "provenance/deep/chat_template.jinja", SHA256: abc}))
	}
	path := filepath.Join(dir, "provenance", "deep", "chat_template.jinja")
	g.Expect(os.ReadFile(path)).To(Equal([]byte("abc")))
	g.Expect(journal.SHA256File(path)).To(Equal(abc))
	left, err := os.ReadDir(filepath.Dir(path))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(HaveLen(1), "no temporary file is left")
	_, err = journal.SHA256File(filepath.Join(dir, "none"))
	g.Expect(err).To(MatchError(fs.ErrNotExist))
}

func TestAnArtifactStaysInTheRunsDirectory(t *testing.T) {
	for _, name := range []string{"../x", "/etc/x", "a/../../x", "", "a//b"} {
		_, err := journal.WriteFile(t.TempDir(), name, nil)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("inside the run's directory")), name)
	}
}

package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/journal"
)

func loadHeader() *fixtures.Header {
	h := header()
	h.Capacity = &fixtures.CapacityRun{Requests: 3}
	return h
}

func row(stage string, index int) fixtures.Line {
	return fixtures.Line{Row: &fixtures.Row{Stage: stage, RequestIndex: index, E2EMS: float64(index) + 0.5}}
}

// load writes a record and reads it back.
func load(t *testing.T, lines ...fixtures.Line) (*journal.Load, error) {
	t.Helper()
	dir := t.TempDir()
	j, err := journal.Create(dir, journal.CapacityFile, loadHeader())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if err := j.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	l, err := journal.OpenLoad(dir)
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

func order(t *testing.T, l *journal.Load) []string {
	t.Helper()
	var ids []string
	for r, err := range l.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		if r.E2EMS != float64(r.RequestIndex)+0.5 {
			t.Errorf("row %d has the figures of another: %v", r.RequestIndex, r.E2EMS)
		}
		ids = append(ids, fixtures.LoadID(r.Stage, r.RequestIndex))
	}
	return ids
}

func TestRowsComeByStageAndIndexWhateverTheirOrderOnDisk(t *testing.T) {
	g := NewWithT(t)
	l, err := load(t, row("closed", 2), row("closed", 0), row("closed", 1),
		fixtures.Line{Stage: &fixtures.Stage{Name: "closed"}}, fixtures.Line{GPU: &fixtures.GPUMoment{Phase: "closed", When: fixtures.AfterPhase}}, row("open", 1), row("open", 0), fixtures.Line{End: &fixtures.RunEnd{At: 5}})
	g.Expect(err).NotTo(HaveOccurred())
	want := []string{"capacity-closed-00000", "capacity-closed-00001", "capacity-closed-00002", "capacity-open-00000", "capacity-open-00001"}
	g.Expect(order(t, l)).To(Equal(want))
	g.Expect(order(t, l)).To(Equal(want), "as often as one likes")
	g.Expect(l.Stages).To(HaveLen(1))
	g.Expect(l.GPUs).To(HaveLen(1))
	g.Expect(l.End).NotTo(BeNil())
}

func TestARowThatWasAddedStandsInItsPlace(t *testing.T) {
	g := NewWithT(t)
	l, err := load(t, row("closed", 2), row("closed", 0))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.Has()).To(HaveLen(2))
	l.Add(row("closed", 1).Row)
	g.Expect(order(t, l)).To(Equal([]string{"capacity-closed-00000", "capacity-closed-00001", "capacity-closed-00002"}))
}

func TestALoadsRecordMustBeOne(t *testing.T) {
	for claim, c := range map[string]struct {
		lines []fixtures.Line
		want  string
	}{
		"the same request twice": {[]fixtures.Line{row("closed", 1), row("closed", 1)}, "line 3: request 1 of stage \"closed\" has a row already"},
		"an exchange":            {[]fixtures.Line{{Exchange: &fixtures.Exchange{Format: fixtures.ExchangeFormat, ID: "x"}}}, "line 2: want a row"},
		"a state of no moment":   {[]fixtures.Line{{GPU: &fixtures.GPUMoment{Phase: "closed", When: "during"}}}, `line 2: state of accelerators: want one before or after a phase, got "during" "closed"`},
	} {
		t.Run(claim, func(t *testing.T) {
			_, err := load(t, c.lines...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestATornLoadKeepsItsWholeRows(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	j, err := journal.Create(dir, journal.CapacityFile, loadHeader())
	g.Expect(err).NotTo(HaveOccurred())
	for i := range 3 {
		g.Expect(j.Write(row("closed", i))).To(Succeed())
	}
	path := filepath.Join(dir, journal.CapacityFile)
	whole, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(path, whole[:len(whole)-9], 0o600)).To(Succeed())
	l, err := journal.OpenLoad(dir)
	g.Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	g.Expect(l.Torn).To(BeTrue())
	g.Expect(order(t, l)).To(HaveLen(2))
}

func TestRepliesThatNobodyHadReadAreFound(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	j, err := journal.Create(dir, journal.CapacityOutputs, loadHeader())
	g.Expect(err).NotTo(HaveOccurred())
	for i := range 3 {
		g.Expect(j.Write(fixtures.Line{Exchange: &fixtures.Exchange{Format: fixtures.ExchangeFormat, ID: fixtures.LoadID("closed", i)}})).To(Succeed())
	}
	var found []string
	g.Expect(journal.Unread(dir, map[string]bool{fixtures.LoadID("closed", 1): true}, func(e *fixtures.Exchange) error {
		found = append(found, e.ID)
		return nil
	})).To(Succeed())
	g.Expect(found).To(Equal([]string{"capacity-closed-00000", "capacity-closed-00002"}))
}

func TestALoadsIDsAreReadBack(t *testing.T) {
	g := NewWithT(t)
	for _, want := range []fixtures.LoadRequest{{Stage: "closed", Index: 7}, {Stage: "sweep-16", Index: 123456}} {
		stage, index, ok := fixtures.ParseLoadID(want.ID())
		g.Expect(ok).To(BeTrue())
		g.Expect([]any{stage, index}).To(Equal([]any{want.Stage, want.Index}))
	}
	for _, id := range []string{"", "capacity-", "performance-short-r1", "capacity-closed-7", "capacity-closed-x"} {
		_, _, ok := fixtures.ParseLoadID(id)
		g.Expect(ok).To(BeFalse(), id)
	}
}

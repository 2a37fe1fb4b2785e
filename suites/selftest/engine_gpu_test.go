package selftest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/journal"
	"plumbline/reports/strata"
)

// A tool of a vendor's that the suite finds on its PATH, and notes how often it is asked for a state.

const fakeNvidia = `#!/bin/sh
case "$1" in
--query-gpu=index,name*)
	echo "index, name, memory.total [MiB], power.limit [W], driver_version"
	echo "0, NVIDIA GeForce RTX 3090, 24576, 250.00, 595.71.05" ;;
--query-gpu=index,power*)
	echo asked >> "$0.asked"
	echo "index, power.draw [W], temperature.gpu, clocks.current.sm [MHz], clocks.current.memory [MHz]"
	echo "0, 31.49, 41, 210, [N/A]" ;;
*) echo "CUDA Version: 13.2" ;;
esac
`

// tool puts a program named nvidia-smi before all others, and gives the environment for it and the file that it notes in.
func tool(t *testing.T, text string) (env []string, asked string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "nvidia-smi")
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")}, path + ".asked"
}

func timesAsked(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "asked")
}

func TestAcceleratorsAreLookedAtBetweenPhasesAndStagesOnly(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	env, asked := tool(t, fakeNvidia)
	r := run(t, env, with(smallLoad, "--protocols=standard,capacity", "--server-capacity=8", "--capacity-sweep=2")...)
	g.Expect(r.red(t)).To(BeEmpty(), r.output)
	g.Expect(timesAsked(t, asked)).To(Equal(4+3), "before the first phase, between two, after the last; and so with stages")

	doc, record := r.document(t), r.record(t)
	states, _ := doc.Extensions.GPUStates.Get()
	var moments []string
	for _, s := range states {
		moments = append(moments, s.When+" "+s.Phase)
		readings, _ := s.Readings.Get()
		g.Expect(readings).To(HaveLen(1))
		power, _ := readings[0].PowerW.Get()
		g.Expect(power.String()).To(Equal("31.49"))
		g.Expect(readings[0].MemoryClockMHz.Reason()).To(ContainSubstring("nvidia-smi does not tell"))
	}
	g.Expect(moments).To(Equal([]string{"before warmup", "after warmup", "before performance", "after performance", "before sanity", "after sanity"}))

	load := r.capacityDocument(t)
	g.Expect(load.ours.Get("gpu_states.#.stage").Raw).To(MatchJSON(`["closed","closed","sweep-2","sweep-2"]`))
	g.Expect(load.ours.Get("gpu_states.#.when").Raw).To(MatchJSON(`["before","after","before","after"]`))
	g.Expect(load.ours.Get("gpu_states.3.readings.0.temperature_c").Float()).To(Equal(41.0))

	type span struct{ from, to time.Duration }
	var busy []span
	for _, e := range record.Exchanges {
		busy = append(busy, span{e.SinceStart, e.SinceStart + e.End.At})
	}
	for _, row := range rows(t, r.runDir()) {
		busy = append(busy, span{row.SinceStart, row.SinceStart + time.Duration(row.E2EMS*float64(time.Millisecond))})
	}
	g.Expect(len(busy)).To(Equal(22 + 60 + 20))
	kept, err := journal.OpenLoad(r.runDir())
	g.Expect(err).NotTo(HaveOccurred())
	defer kept.Close()
	for _, m := range slices.Concat(record.GPUs, kept.GPUs) {
		g.Expect(busy).NotTo(ContainElement(Satisfy(func(s span) bool { return s.from < m.SinceStart && m.SinceStart < s.to })), m.When+" "+m.Phase)
	}
}

func TestAFilteredRunHasTheStatesOfItsPhases(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	env, asked := tool(t, fakeNvidia)
	r := run(t, env, "--ginkgo.label-filter=phase:sanity")
	g.Expect(r.exit).To(BeZero(), r.output)
	g.Expect(timesAsked(t, asked)).To(Equal(2))
	states, _ := r.document(t).Extensions.GPUStates.Get()
	g.Expect(states).To(HaveLen(2))
	g.Expect(states[1].Phase).To(Equal("sanity"))
}

func TestAToolThatSeesNoCardIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	env, asked := tool(t, "#!/bin/sh\necho asked >> \"$0.asked\"\necho 'No devices were found'\nexit 6\n")
	r := run(t, env, with(smallLoad, "--protocols=standard,capacity", "--server-capacity=8")...)
	g.Expect(r.red(t)).To(BeEmpty(), r.output)
	g.Expect(timesAsked(t, asked)).To(Equal(1), "the first look decides")
	doc := r.document(t)
	g.Expect(doc.Run.Status).To(Equal(strata.Nonconforming))
	g.Expect(doc.Extensions.GPUStates.Reason()).To(ContainSubstring("nvidia-smi"))
	g.Expect(r.capacityDocument(t).ours.Get("gpu_states_reason").String()).To(ContainSubstring("nvidia-smi"))
}

func TestADigestIsKeptFromOneRunToTheNext(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	model, cache := filepath.Join(t.TempDir(), "m.gguf"), t.TempDir()
	g.Expect(os.WriteFile(model, []byte("weights"), 0o644)).To(Succeed())
	digest := func() fixtures.ModelFile {
		r := run(t, []string{"XDG_CACHE_HOME=" + cache}, "--model-file", model, "--ginkgo.label-filter=phase:warmup")
		g.Expect(r.exit).To(BeZero(), r.output)
		return r.record(t).Header.Host.ModelFiles[0]
	}
	first, second := digest(), digest()
	g.Expect(first.Cached).To(BeFalse())
	g.Expect(second.Cached).To(BeTrue())
	g.Expect(second.SHA256).To(Equal(first.SHA256))
	g.Expect(os.WriteFile(model, []byte("heavier"), 0o644)).To(Succeed())
	third := digest()
	g.Expect(third.Cached).To(BeFalse())
	g.Expect(third.SHA256).NotTo(Equal(first.SHA256))
}

package strata

import (
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func TestFactsOfAnotherMachineAreNotThoseOfTheEngine(t *testing.T) {
	g := NewWithT(t)
	run := referenceRun(t)
	run.Header.Host.EngineHere = false
	d, data := mustBuild(t, run, referenceReplies(t))
	for _, at := range []string{"/hardware/gpus", "/hardware/cpu", "/hardware/ram_bytes", "/hardware/storage", "/software/os", "/software/drivers", "/software/runtime"} {
		reason, _ := d.Missing.Get(at)
		g.Expect(reason).To(Equal(whyEngineElsewhere), at)
	}
	g.Expect(Validate(data, nil)).To(BeEmpty())
}

func TestAnEmptyListOfFactsIsKnownToBeEmptyUnlessAReasonSaysOtherwise(t *testing.T) {
	for _, c := range []struct {
		gpus   []fixtures.GPU
		reason string
		want   string // why it is null, "" when it is a list
	}{
		{[]fixtures.GPU{}, "", ""},
		{[]fixtures.GPU{}, "no tool is installed", "no tool is installed"},
		{nil, "", whyUnread},
	} {
		g := NewWithT(t)
		run := referenceRun(t)
		run.Header.Host.GPUs, run.Header.Host.Reasons = c.gpus, map[string]string{"gpus": c.reason}
		d, _ := mustBuild(t, run, referenceReplies(t))
		list, known := d.Hardware.GPUs.Get()
		g.Expect(known).To(Equal(c.want == ""))
		g.Expect(list).To(BeEmpty())
		g.Expect(d.Hardware.GPUs.Reason()).To(Equal(c.want))
	}
}

func TestAPartOfAGPUThatWasNotToldHasItsOwnReason(t *testing.T) {
	g := NewWithT(t)
	run := referenceRun(t)
	run.Header.Host.GPUs = []fixtures.GPU{{Name: "one"}, {MemoryBytes: 1 << 30}}
	run.Header.Host.Reasons = map[string]string{"gpus.0.memory_bytes": "it is shared", "gpus.1.power_limit_w": "no right to ask"}
	d, data := mustBuild(t, run, referenceReplies(t))
	for at, want := range map[string]string{
		"/hardware/gpus/0/memory_bytes": "it is shared", "/hardware/gpus/0/memory_kind": whyNoMemoryKind,
		"/hardware/gpus/0/power_limit_w": whyNoPowerLimit,
		"/hardware/gpus/1/name":          whyNoPartName, "/hardware/gpus/1/memory_kind": whyNoMemoryKind,
		"/hardware/gpus/1/power_limit_w": "no right to ask",
	} {
		reason, _ := d.Missing.Get(at)
		g.Expect(reason).To(Equal(want), at)
	}
	g.Expect(d.Hardware.GPUs.value[1].MemoryBytes).To(Equal(Some(int64(1 << 30))))
	g.Expect(Validate(data, nil)).To(BeEmpty())
}

func TestWhatOnlyTheOperatorKnowsNamesItsFlag(t *testing.T) {
	g := NewWithT(t)
	run := referenceRun(t)
	run.Header.Declared = fixtures.Declared{}
	run.Header.Engine.Capacity = nil
	d, _ := mustBuild(t, run, referenceReplies(t))
	for at, flag := range map[string]string{
		"/hardware/background_workloads": "--background", "/software/build_options": "--build-options",
		"/model/revision": "--model-revision", "/model/source_revision": "--source-revision", "/model/quantization": "--quantization",
		"/model/tokenizer_revision": "--tokenizer-revision", "/model/custom_pack": "--custom-pack", "/configuration/track": "--track",
		"/configuration/track_notes": "--track-notes", "/configuration/server_capacity": "--server-capacity",
	} {
		reason, _ := d.Missing.Get(at)
		g.Expect(reason).To(ContainSubstring(flag), at)
	}
}

func TestOptionsOfTheEngineFillTheConfiguration(t *testing.T) {
	g := NewWithT(t)
	d, _ := mustBuild(t, referenceRun(t), referenceReplies(t))
	kv, _ := d.Configuration.KVCache.Get()
	g.Expect(kv).To(Equal("q8_0"))
	g.Expect(d.Extensions.OtherEngineOptions).To(Equal(Ordered[string]{{"another", "1"}, {"spec", "on"}}))
}

func TestACommitIsStratasOnlyOnStrata(t *testing.T) {
	g := NewWithT(t)
	run := referenceRun(t)
	run.Header.Engine.Name = "llama.cpp"
	d, _ := mustBuild(t, run, referenceReplies(t))
	_, known := d.Software.StrataCommit.Get()
	g.Expect(known).To(BeFalse())
	g.Expect(d.Software.StrataCommit.Reason()).To(ContainSubstring("llama.cpp"))
	commit, _ := d.Extensions.EngineCommit.Get()
	g.Expect(commit).To(Equal(run.Header.Engine.Commit))
}

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

func TestStatesOfAcceleratorsStandWithTheirReasons(t *testing.T) {
	g := NewWithT(t)
	d, _ := mustBuild(t, referenceRun(t), referenceReplies(t))
	states, _ := d.Extensions.GPUStates.Get()
	g.Expect(states).To(HaveLen(2))
	readings, _ := states[0].Readings.Get()
	power, _ := readings[0].PowerW.Get()
	g.Expect(power.String()).To(Equal("31.49"), "as the tool told it")
	g.Expect(readings[1].PowerW.Reason()).To(Equal("an iGPU has no gauge"))
	g.Expect(readings[1].CoreClockMHz.Reason()).To(Equal(whyNoGauge))
	g.Expect(states[1].Readings.Reason()).To(Equal("nvidia-smi: no answer within 2s"))

	for want, change := range map[string]func(*fixtures.Run){
		"no vendor's tool": func(r *fixtures.Run) { r.Header.Host.Reasons["gpus"] = "no vendor's tool is installed here" },
		whyNoGPUState:      func(*fixtures.Run) {},
		whyEngineElsewhere: func(r *fixtures.Run) { r.Header.Host.EngineHere = false },
	} {
		run := referenceRun(t)
		run.GPUs = nil
		change(run)
		d, data := mustBuild(t, run, referenceReplies(t))
		g.Expect(d.Extensions.GPUStates.Reason()).To(HavePrefix(want))
		g.Expect(Validate(data, nil)).To(BeEmpty())
	}
}

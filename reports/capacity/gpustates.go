package capacity

import (
	"cmp"
	"fmt"

	"plumbline/fixtures"
)

// putGPUStates puts the states of the accelerators before and after each stage.
func (b *builder) putGPUStates(o object) {
	const name = "gpu_states"
	h := &b.in.Header.Host
	switch {
	case !h.EngineHere:
		o.null(name, "the engine does not run on this machine, and its interface tells nothing about its own")
	case len(b.in.GPUs) == 0:
		o.null(name, cmp.Or(h.Reasons["gpus"], "the accelerators were not looked at before and after the stages"))
	default:
		states := list{}
		for _, m := range b.in.GPUs {
			states = append(states, gpuState(m))
		}
		o[name] = states
	}
}

func gpuState(m fixtures.GPUMoment) object {
	o := object{"stage": m.Phase, "when": m.When}
	if len(m.State.Readings) == 0 {
		o.null("readings", cmp.Or(m.State.Reasons["readings"], whyNotTold))
		return o
	}
	readings := list{}
	for i, r := range m.State.Readings {
		reading := object{"device_index": r.DeviceIndex}
		for name, v := range map[string]*float64{"power_w": r.PowerW, "temperature_c": r.TemperatureC,
			"core_clock_mhz": r.CoreClockMHz, "memory_clock_mhz": r.MemoryClockMHz} {
			put(reading, name, v, cmp.Or(m.State.Reasons[fmt.Sprintf("readings.%d.%s", i, name)], "the vendor's tool does not tell it"))
		}
		readings = append(readings, reading)
	}
	o["readings"] = readings
	return o
}

// gpuStates checks that each stage has at most one state before it and one after it, in this order.
func (v *validation) gpuStates(p place) {
	seen := map[string]bool{}
	var stages []place
	for _, s := range p.items() {
		stage, _ := s.get("stage").text()
		stages = append(stages, s.get("stage"))
		when, ok := s.get("when").text()
		if !ok {
			continue
		}
		if moment := when + " " + stage; seen[moment] {
			v.contradiction(s.get("when"), stages, "expected one state %s the stage %q, received two", when, stage)
		} else {
			seen[moment] = true
		}
		if when == fixtures.AfterPhase && !seen[fixtures.BeforePhase+" "+stage] {
			v.contradiction(s.get("when"), stages,
				"expected a state before the stage %q in front of the one after it, received none", stage)
		}
	}
}

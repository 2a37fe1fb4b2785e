package strata

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"plumbline/fixtures"
)

// gpuStates are the states of the accelerators before and after each phase, in the order of the record.
func (b *builder) gpuStates() Null[[]GPUState] {
	h := &b.run.Header.Host
	switch {
	case !h.EngineHere:
		return None[[]GPUState](whyEngineElsewhere)
	case len(b.run.GPUs) == 0:
		return None[[]GPUState](cmp.Or(h.Reasons["gpus"], whyNoGPUState))
	}
	states := make([]GPUState, len(b.run.GPUs))
	for i, m := range b.run.GPUs {
		s := GPUState{Phase: m.Phase, When: m.When, Readings: None[[]GPUReading](cmp.Or(m.State.Reasons["readings"], whyUnread))}
		if len(m.State.Readings) > 0 {
			s.Readings = Some(b.gpuReadings(&m.State))
		}
		states[i] = s
	}
	return Some(states)
}

func (b *builder) gpuReadings(s *fixtures.GPUState) []GPUReading {
	readings := make([]GPUReading, len(s.Readings))
	for i, r := range s.Readings {
		gauge := func(name string, v *float64) Null[Number] {
			if v == nil {
				return None[Number](cmp.Or(s.Reasons[fmt.Sprintf("readings.%d.%s", i, name)], whyNoGauge))
			}
			return b.number(*v, asMeasured)
		}
		readings[i] = GPUReading{
			DeviceIndex: r.DeviceIndex, PowerW: gauge("power_w", r.PowerW), TemperatureC: gauge("temperature_c", r.TemperatureC),
			CoreClockMHz: gauge("core_clock_mhz", r.CoreClockMHz), MemoryClockMHz: gauge("memory_clock_mhz", r.MemoryClockMHz),
		}
	}
	return readings
}

// gpuStates checks that each state belongs to a phase of the plan, each phase having at most one before it and one after it,
// in this order.
func (v *validation) gpuStates(d *Document) {
	const at = jsontext.Pointer("/extensions/gpu_states")
	states, _ := d.Extensions.GPUStates.Get()
	type moment struct{ phase, when string }
	seen := map[moment]bool{}
	for i, s := range states {
		here := at.AppendToken(fmt.Sprint(i))
		m := moment{s.Phase, s.When}
		switch {
		case !slices.ContainsFunc(d.Requests, func(r Request) bool { return r.Phase == s.Phase }):
			v.faultAt(here.AppendToken("phase"), "no request is of the phase %q", s.Phase)
		case seen[m]:
			v.faultAt(here.AppendToken("when"), "the state %s the phase %q is there already", s.When, s.Phase)
		case s.When == fixtures.AfterPhase && !seen[moment{s.Phase, fixtures.BeforePhase}]:
			v.faultAt(here.AppendToken("when"), "the state after the phase %q is there, and none before it stands in front", s.Phase)
		}
		seen[m] = true
	}
}

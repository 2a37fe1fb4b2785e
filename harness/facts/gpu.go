package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"plumbline/fixtures"
)

// cards is what one vendor's tool tells.
type cards struct {
	gpus    []fixtures.GPU
	drivers []fixtures.NameVersion
	runtime []fixtures.NameVersion
}

// vendor is one way to see accelerators.
type vendor struct {
	tool string
	ask  func(m *machine, ctx context.Context) (cards, error)
	// instead names a tool whose answer makes this one needless.
	instead string
}

var vendors = []vendor{
	{tool: "nvidia-smi", ask: (*machine).nvidia},
	{tool: "amd-smi", ask: (*machine).amdSMI},
	{tool: "rocm-smi", ask: (*machine).rocmSMI, instead: "amd-smi"},
}

// accelerators asks each vendor's tool that is there.
func (m *machine) accelerators(ctx context.Context, f *fixtures.HostFacts, why reasons) {
	var answered, missing, failed []string
	for _, v := range vendors {
		if slices.Contains(answered, v.instead) {
			continue
		}
		c, err := v.ask(m, ctx)
		switch {
		case errors.Is(err, errMissing):
			missing = append(missing, v.tool)
			continue
		case err != nil:
			failed = append(failed, fmt.Sprintf("%s: %v", v.tool, err))
			continue
		}
		answered = append(answered, v.tool)
		f.GPUs = append(f.GPUs, c.gpus...)
		f.Drivers = append(f.Drivers, c.drivers...)
		f.Runtime = append(f.Runtime, c.runtime...)
	}
	for i, g := range f.GPUs {
		if g.MemoryBytes == 0 {
			why.add(fmt.Sprintf("gpus.%d.memory_bytes", i), "the vendor's tool tells none, as with memory that processor and accelerator share")
		}
		if g.PowerLimitW == nil {
			why.add(fmt.Sprintf("gpus.%d.power_limit_w", i), "the vendor's tool tells none")
		}
	}
	problem := noCards(answered, missing, failed)
	for name, empty := range map[string]bool{"gpus": len(f.GPUs) == 0, "drivers": len(f.Drivers) == 0, "runtime": len(f.Runtime) == 0} {
		if empty {
			why.add(name, problem)
		}
	}
}

// once is a list of one named version, or none where it is not known.
func once(name, version string) []fixtures.NameVersion {
	if version == "" {
		return nil
	}
	return []fixtures.NameVersion{{Name: name, Version: version}}
}

const (
	memoryDedicated = "dedicated"
	driverName      = "gpu-driver"
)

package facts

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func reading(index int, power, temperature, core, memory float64) fixtures.GPUReading {
	told := func(n float64) *float64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	return fixtures.GPUReading{DeviceIndex: index, PowerW: told(power), TemperatureC: told(temperature), CoreClockMHz: told(core), MemoryClockMHz: told(memory)}
}

func TestAcceleratorsTellHowTheyAreNow(t *testing.T) {
	const untold = -1
	for name, c := range map[string]struct {
		tools    tools
		readings []fixtures.GPUReading
		reasons  []string
	}{
		"NVIDIA": {tools{"nvidia-smi --query-gpu=index,power.draw": testdata(t, "nvidia_gauges.csv")},
			[]fixtures.GPUReading{reading(0, 33.41, 41, 210, 405), reading(1, untold, 63, 1695, untold)}, []string{"readings.1.power_w", "readings.1.memory_clock_mhz"}},
		"AMD": {tools{"amd-smi metric": testdata(t, "amd_smi_gauges_list.json"), "rocm-smi": testdata(t, "rocm_smi_gauges.json")},
			[]fixtures.GPUReading{reading(0, 36, 40, 29, 96)}, nil},
		"AMD, newer": {tools{"amd-smi metric": testdata(t, "amd_smi_gauges_wrapped.json")},
			[]fixtures.GPUReading{reading(3, 142, 43, 132, untold)}, []string{"readings.0.memory_clock_mhz"}},
		"AMD, older": {tools{"rocm-smi --showpower": testdata(t, "rocm_smi_gauges.json")},
			[]fixtures.GPUReading{reading(0, 128, 60, 173, untold), reading(1, 7.222, 31, 800, 400)}, []string{"readings.0.memory_clock_mhz"}},
		"no tool":                         {tools{}, []fixtures.GPUReading{}, []string{"readings"}},
		"a tool that fails":               {tools{"nvidia-smi": errors.New("exit status 9")}, []fixtures.GPUReading{}, []string{"readings"}},
		"a tool that says something else": {tools{"nvidia-smi": []byte("No devices were found\n")}, []fixtures.GPUReading{}, []string{"readings"}},
		"a sensor that tells the impossible": {tools{"nvidia-smi": []byte("index, power.draw [W], temperature.gpu\n0, nan, 4000\n")},
			[]fixtures.GPUReading{reading(0, untold, untold, untold, untold)},
			[]string{"readings.0.power_w", "readings.0.temperature_c", "readings.0.core_clock_mhz", "readings.0.memory_clock_mhz"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			state := newMachine(t.TempDir(), c.tools.run).gpuState(t.Context())
			g.Expect(state.Readings).To(Equal(c.readings))
			g.Expect(state.Reasons).To(HaveLen(len(c.reasons)))
			for _, field := range c.reasons {
				g.Expect(state.Reasons).To(HaveKeyWithValue(field, Not(BeEmpty())))
			}
		})
	}
}

func FuzzGauges(f *testing.F) {
	for _, name := range []string{"nvidia_gauges.csv", "amd_smi_gauges_list.json", "amd_smi_gauges_wrapped.json", "rocm_smi_gauges.json"} {
		f.Add(testdata(f, name))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, g := range gauges {
			readings, _ := g.read(out)
			for _, r := range readings {
				for _, v := range []*float64{r.PowerW, r.TemperatureC, r.CoreClockMHz, r.MemoryClockMHz} {
					if v != nil && !(*v >= -50 && *v < 1e308) {
						t.Errorf("%s: %q gives %v", g.tool, out, *v)
					}
				}
			}
		}
	})
}

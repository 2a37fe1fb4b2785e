package facts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"plumbline/fixtures"
)

// GPUState reads power, temperature and clocks of this machine's accelerators as they are now. Call it between requests
// only: the vendors' tools take a moment of the machine. The tools give all that is asked for here, so that no vendor's
// library is needed. It returns early, with reasons, when ctx ends.
func GPUState(ctx context.Context) fixtures.GPUState {
	return newMachine("/", runCommand).gpuState(ctx)
}

// gauges are the vendors' tools that tell how a card is, in the order of vendors.
var gauges = []struct {
	tool string
	args []string
	read func(out []byte) ([]fixtures.GPUReading, error)
	// instead names a tool whose answer makes this one needless.
	instead string
}{
	{"nvidia-smi", []string{"--query-gpu=" + nvidiaGauges, "--format=csv,nounits"}, readNvidiaGauges, ""},
	{"amd-smi", []string{"metric", "--power", "--clock", "--temperature", "--json"}, readAMDGauges, ""},
	{"rocm-smi", []string{"--showpower", "--showtemp", "--showclocks", "--json"}, readROCmGauges, "amd-smi"},
}

func (m *machine) gpuState(ctx context.Context) fixtures.GPUState {
	state := fixtures.GPUState{Readings: []fixtures.GPUReading{}, Reasons: map[string]string{}}
	var answered, missing, failed []string
	for _, g := range gauges {
		if slices.Contains(answered, g.instead) {
			continue
		}
		out, err := m.run(ctx, g.tool, g.args...)
		if errors.Is(err, errMissing) {
			missing = append(missing, g.tool)
			continue
		}
		var readings []fixtures.GPUReading
		if err == nil {
			readings, err = g.read(out)
		}
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", g.tool, err))
			continue
		}
		answered = append(answered, g.tool)
		for _, r := range readings {
			n := len(state.Readings)
			for _, part := range []struct {
				name  string
				value *float64
			}{{"power_w", r.PowerW}, {"temperature_c", r.TemperatureC}, {"core_clock_mhz", r.CoreClockMHz}, {"memory_clock_mhz", r.MemoryClockMHz}} {
				if part.value == nil {
					state.Reasons[fmt.Sprintf("readings.%d.%s", n, part.name)] = g.tool + " does not tell it of this card"
				}
			}
			state.Readings = append(state.Readings, r)
		}
	}
	if len(state.Readings) == 0 {
		state.Reasons["readings"] = noCards(answered, missing, failed)
	}
	return state
}

// noCards says why no card is known, by what became of the tools.
func noCards(answered, missing, failed []string) string {
	switch {
	case len(failed) > 0:
		return strings.Join(failed, "; ")
	case len(answered) > 0:
		return "none seen by " + strings.Join(answered, ", ")
	}
	return "no vendor's tool is installed here (" + strings.Join(missing, ", ") + ")"
}

// nvidiaGauges is asked of nvidia-smi by the names that it writes in its header (nvidia-smi --help-query-gpu).
const nvidiaGauges = "index,power.draw,temperature.gpu,clocks.current.sm,clocks.current.memory"

func readNvidiaGauges(out []byte) ([]fixtures.GPUReading, error) {
	rows, err := readTable(out, nvidiaGauges)
	if err != nil {
		return nil, err
	}
	readings := make([]fixtures.GPUReading, len(rows))
	for i, row := range rows {
		readings[i] = fixtures.GPUReading{
			DeviceIndex: row.index(i), PowerW: watts(row["power.draw"]), TemperatureC: degrees(row["temperature.gpu"]),
			CoreClockMHz: megahertz(row["clocks.current.sm"]), MemoryClockMHz: megahertz(row["clocks.current.memory"]),
		}
	}
	return readings, nil
}

// readAMDGauges reads amd-smi's "metric" (rocm.docs.amd.com, AMD SMI CLI): a list of cards, since ROCm 7 inside
// "gpu_data", with quantities as in its "static". Cards without a sensor at the edge tell that of the hot spot.
func readAMDGauges(out []byte) ([]fixtures.GPUReading, error) {
	list, err := amdCards(out)
	if err != nil {
		return nil, err
	}
	var readings []fixtures.GPUReading
	for i, card := range list {
		gauge := func(unit string, read func(string) *float64, paths ...string) *float64 {
			for _, path := range paths {
				if value, of := quantity(card.Get(path)); of == unit {
					if n := read(strconv.FormatFloat(value, 'f', -1, 64)); n != nil {
						return n
					}
				}
			}
			return nil
		}
		readings = append(readings, fixtures.GPUReading{
			DeviceIndex: amdIndex(card, i), PowerW: gauge("W", watts, "power.socket_power", "power.current_socket_power", "power.average_socket_power"),
			TemperatureC: gauge("C", degrees, "temperature.edge", "temperature.hotspot"),
			CoreClockMHz: gauge("MHz", megahertz, "clock.gfx_0.clk"), MemoryClockMHz: gauge("MHz", megahertz, "clock.mem_0.clk"),
		})
	}
	return readings, nil
}

// readROCmGauges reads rocm-smi's answer: a clock is written "(500Mhz)", and keys differ between releases.
func readROCmGauges(out []byte) ([]fixtures.GPUReading, error) {
	byIndex, _, err := rocmCards(out)
	if err != nil {
		return nil, err
	}
	var readings []fixtures.GPUReading
	for _, index := range slices.Sorted(maps.Keys(byIndex)) {
		values := byIndex[index]
		gauge := func(read func(string) *float64, keys ...string) *float64 {
			for _, key := range keys {
				text := strings.TrimSuffix(strings.ToLower(strings.Trim(values[key], "()")), "mhz")
				if n := read(text); n != nil {
					return n
				}
			}
			return nil
		}
		readings = append(readings, fixtures.GPUReading{
			DeviceIndex:  index,
			PowerW:       gauge(watts, "current socket graphics package power (w)", "average graphics package power (w)"),
			TemperatureC: gauge(degrees, "temperature (sensor edge) (c)", "temperature (sensor junction) (c)"),
			CoreClockMHz: gauge(megahertz, "sclk clock speed:"), MemoryClockMHz: gauge(megahertz, "mclk clock speed:"),
		})
	}
	return readings, nil
}

// between is a number within bounds that no sensor leaves, or nil.
func between(text string, least, most float64) *float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < least || n > most {
		return nil
	}
	return &n
}

func degrees(text string) *float64 { return between(text, -50, 200) }

// megahertz is a clock; 0 is one that stands still, as idle cards tell.
func megahertz(text string) *float64 { return between(text, 0, 100_000) }

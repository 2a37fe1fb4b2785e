package facts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"plumbline/fixtures"
)

// amdSMI asks AMD's current tool (rocm.docs.amd.com, AMD SMI CLI, "static"). Its JSON is a list with one object a
// card, since ROCm 7 inside "gpu_data"; quantities are {"value", "unit"}, before ROCm 6 a text with its unit.
func (m *machine) amdSMI(ctx context.Context) (cards, error) {
	out, err := m.run(ctx, "amd-smi", "static", "--asic", "--vram", "--limit", "--driver", "--json")
	if err != nil {
		return cards{}, err
	}
	c, err := parseAMDSMI(out)
	c.runtime = m.rocm()
	return c, err
}

func parseAMDSMI(out []byte) (cards, error) {
	list, err := amdCards(out)
	if err != nil {
		return cards{}, err
	}
	var c cards
	for i, card := range list {
		name := card.Get("asic.market_name").String()
		if name == "" || name == "N/A" {
			continue
		}
		g := fixtures.GPU{DeviceIndex: amdIndex(card, i), Name: name}
		if size, unit := quantity(card.Get("vram.size")); size > 0 && size < 1<<40 && (unit == "MB" || unit == "MiB") {
			g.MemoryBytes, g.MemoryKind = int64(size)<<20, memoryDedicated // the tool writes MB and means MiB
		}
		for _, path := range []string{"limit.socket_power_limit", "limit.power_limit", "limit.ppt0.socket_power_limit", "limit.max_power"} {
			if w, unit := quantity(card.Get(path)); g.PowerLimitW == nil && unit == "W" {
				g.PowerLimitW = watts(strconv.FormatFloat(w, 'f', -1, 64))
			}
		}
		c.gpus = append(c.gpus, g)
		if v := card.Get("driver.version").String(); c.drivers == nil && v != "N/A" {
			c.drivers = once(driverName, v)
		}
	}
	return c, nil
}

// amdCards is the list with one object a card.
func amdCards(out []byte) ([]gjson.Result, error) {
	if !gjson.ValidBytes(out) {
		return nil, fmt.Errorf("read its answer: want JSON")
	}
	list := gjson.ParseBytes(out)
	if inner := list.Get("gpu_data"); inner.Exists() {
		list = inner
	}
	if !list.IsArray() {
		return nil, fmt.Errorf("read its answer: want a list of cards")
	}
	return list.Array(), nil
}

// amdIndex is a card's own index, or its place in the list.
func amdIndex(card gjson.Result, place int) int {
	if n := card.Get("gpu"); n.Type == gjson.Number {
		return int(n.Int())
	}
	return place
}

// quantity reads {"value": 24560, "unit": "MB"} or "24560 MB"; "N/A" is zero.
func quantity(v gjson.Result) (float64, string) {
	if v.IsObject() {
		return v.Get("value").Float(), v.Get("unit").String()
	}
	number, unit, _ := strings.Cut(v.String(), " ")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, ""
	}
	return n, unit
}

var cardKey = regexp.MustCompile(`^card(\d+)$`)

// rocmSMI asks AMD's older tool (rocm.docs.amd.com, ROCm SMI CLI). Its JSON has an object "card0", … a card, values
// as text; releases differ in the case of the keys.
func (m *machine) rocmSMI(ctx context.Context) (cards, error) {
	out, err := m.run(ctx, "rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showmaxpower", "--showdriverversion", "--json")
	if err != nil {
		return cards{}, err
	}
	c, err := parseROCmSMI(out)
	c.runtime = m.rocm()
	return c, err
}

func parseROCmSMI(out []byte) (cards, error) {
	byIndex, driver, err := rocmCards(out)
	if err != nil {
		return cards{}, err
	}
	c := cards{drivers: once(driverName, driver)}
	for _, index := range slices.Sorted(maps.Keys(byIndex)) {
		values := byIndex[index]
		g := fixtures.GPU{DeviceIndex: index, Name: values["card series"], PowerLimitW: watts(values["max graphics package power (w)"])}
		if n, err := strconv.ParseInt(values["vram total memory (b)"], 10, 64); err == nil && n > 0 {
			g.MemoryBytes, g.MemoryKind = n, memoryDedicated
		}
		c.gpus = append(c.gpus, g)
	}
	return c, nil
}

// rocmCards are the values of each card by its index, keys in lower case, and the first version of a driver told.
func rocmCards(out []byte) (byIndex map[int]map[string]string, driver string, err error) {
	if !gjson.ValidBytes(out) || !gjson.ParseBytes(out).IsObject() {
		return nil, "", fmt.Errorf("read its answer: want a JSON object")
	}
	byIndex = map[int]map[string]string{}
	gjson.ParseBytes(out).ForEach(func(key, card gjson.Result) bool {
		values := map[string]string{}
		card.ForEach(func(k, v gjson.Result) bool {
			values[strings.ToLower(k.String())] = v.String()
			return true
		})
		driver = cmp.Or(driver, values["driver version"])
		if found := cardKey.FindStringSubmatch(key.String()); found != nil {
			if index, err := strconv.Atoi(found[1]); err == nil {
				byIndex[index] = values
			}
		}
		return true
	})
	return byIndex, driver, nil
}

// rocm is the version of the installed ROCm, which it keeps in a file, with the build after a dash.
func (m *machine) rocm() []fixtures.NameVersion {
	text, err := m.read("opt/rocm/.info/version")
	if err != nil {
		return nil
	}
	version, _, _ := strings.Cut(text, "-")
	return once("rocm", version)
}

package facts

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"plumbline/fixtures"
)

// nvidiaQuery is asked of nvidia-smi (its man page: --query-gpu, --format=csv,nounits; units stay in the header).
const nvidiaQuery = "index,name,memory.total,power.limit,driver_version"

// cudaVersion is the newest CUDA that the driver can run, in the head of nvidia-smi's table.
var cudaVersion = regexp.MustCompile(`CUDA (?:UMD )?Version\s*:\s*([0-9]+(?:\.[0-9]+)*)`)

func (m *machine) nvidia(ctx context.Context) (cards, error) {
	out, err := m.run(ctx, "nvidia-smi", "--query-gpu="+nvidiaQuery, "--format=csv,nounits")
	if err != nil {
		return cards{}, err
	}
	c, err := parseNvidia(out)
	if err != nil {
		return cards{}, err
	}
	if table, err := m.run(ctx, "nvidia-smi"); err == nil {
		if found := cudaVersion.FindSubmatch(table); found != nil {
			c.runtime = once("cuda", string(found[1]))
		}
	}
	return c, nil
}

// parseNvidia reads the query's table by its header, so that neither order nor further columns matter. A value that a
// card does not have is written [N/A], or [Not Supported] by older drivers.
func parseNvidia(out []byte) (cards, error) {
	r := csv.NewReader(bytes.NewReader(out))
	r.TrimLeadingSpace = true
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	rows, err := r.ReadAll()
	if err != nil {
		return cards{}, fmt.Errorf("read its table: %w", err)
	}
	if len(rows) == 0 {
		return cards{}, fmt.Errorf("read its table: want a header, received nothing")
	}
	column := map[string]int{}
	for i, title := range rows[0] {
		name, _, _ := strings.Cut(title, " [")
		column[strings.TrimSpace(name)] = i
	}
	if _, ok := column["name"]; !ok {
		return cards{}, fmt.Errorf("read its table: want the columns %s, received %q", nvidiaQuery, strings.Join(rows[0], ","))
	}
	var c cards
	for i, row := range rows[1:] {
		cell := func(name string) string {
			at, ok := column[name]
			if !ok || at >= len(row) || strings.HasPrefix(row[at], "[") {
				return ""
			}
			return strings.TrimSpace(row[at])
		}
		g := fixtures.GPU{DeviceIndex: i, Name: cell("name")}
		if n, err := strconv.Atoi(cell("index")); err == nil {
			g.DeviceIndex = n
		}
		if mib, err := strconv.ParseInt(cell("memory.total"), 10, 64); err == nil && mib > 0 && mib < 1<<40 {
			g.MemoryBytes, g.MemoryKind = mib<<20, memoryDedicated
		}
		g.PowerLimitW = watts(cell("power.limit"))
		c.gpus = append(c.gpus, g)
		if c.drivers == nil {
			c.drivers = once(driverName, cell("driver_version"))
		}
	}
	return c, nil
}

// watts is a power above zero, or nil.
func watts(text string) *float64 {
	w, err := strconv.ParseFloat(text, 64)
	if err != nil || !(w > 0) || math.IsInf(w, 0) {
		return nil
	}
	return &w
}

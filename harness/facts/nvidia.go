package facts

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"regexp"
	"slices"
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

func parseNvidia(out []byte) (cards, error) {
	rows, err := readTable(out, nvidiaQuery)
	if err != nil {
		return cards{}, err
	}
	var c cards
	for i, row := range rows {
		g := fixtures.GPU{DeviceIndex: row.index(i), Name: row["name"]}
		if mib, err := strconv.ParseInt(row["memory.total"], 10, 64); err == nil && mib > 0 && mib < 1<<40 {
			g.MemoryBytes, g.MemoryKind = mib<<20, memoryDedicated
		}
		g.PowerLimitW = watts(row["power.limit"])
		c.gpus = append(c.gpus, g)
		if c.drivers == nil {
			c.drivers = once(driverName, row["driver_version"])
		}
	}
	return c, nil
}

// tableRow is one card's values by the name of their column; a value that the card does not have is absent.
type tableRow map[string]string

// index is the card's own index, or its place in the table.
func (r tableRow) index(place int) int {
	if n, err := strconv.Atoi(r["index"]); err == nil {
		return n
	}
	return place
}

// readTable reads a query's table by its header, so that neither order nor further columns matter. A value that a card
// does not have is written [N/A], or [Not Supported] by older drivers.
func readTable(out []byte, query string) ([]tableRow, error) {
	r := csv.NewReader(bytes.NewReader(out))
	r.TrimLeadingSpace = true
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read its table: %w", err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("read its table: want a header, received nothing")
	}
	titles := make([]string, len(rows[0]))
	for i, title := range rows[0] {
		name, _, _ := strings.Cut(title, " [")
		titles[i] = strings.TrimSpace(name)
	}
	// The second column: the first, an index, would do as well, but another tool's table may have one too.
	if wanted := strings.Split(query, ",")[1]; !slices.Contains(titles, wanted) {
		return nil, fmt.Errorf("read its table: want the columns %s, received %q", query, strings.Join(rows[0], ","))
	}
	table := make([]tableRow, 0, len(rows)-1)
	for _, cells := range rows[1:] {
		row := tableRow{}
		for i, cell := range cells[:min(len(cells), len(titles))] {
			if cell = strings.TrimSpace(cell); cell != "" && !strings.HasPrefix(cell, "[") {
				row[titles[i]] = cell
			}
		}
		table = append(table, row)
	}
	return table, nil
}

// watts is a power above zero, or nil.
func watts(text string) *float64 {
	w, err := strconv.ParseFloat(text, 64)
	if err != nil || !(w > 0) || math.IsInf(w, 0) {
		return nil
	}
	return &w
}

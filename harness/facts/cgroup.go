package facts

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// groups calls visit with the folder of each control group that this process is in and of all above them, for one
// controller: version says of which hierarchy. (Linux man 7 cgroups: /proc/pid/cgroup; a container sees its own group
// as the root.)
func (m *machine) groups(controller string, visit func(version int, dir string)) {
	text, err := m.read("proc/self/cgroup")
	if err != nil {
		return
	}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		version, base := 2, "sys/fs/cgroup"
		if parts[0] != "0" {
			if !slices.Contains(strings.Split(parts[1], ","), controller) {
				continue
			}
			version, base = 1, filepath.Join("sys/fs/cgroup", controller)
		}
		for dir := filepath.Clean("/" + parts[2]); ; dir = filepath.Dir(dir) {
			visit(version, filepath.Join(base, dir))
			if dir == "/" {
				break
			}
		}
	}
}

// memoryLimit is the smallest memory limit of the control groups that this process is in, 0 for none. (Linux
// Documentation/admin-guide/cgroup-v2.rst, memory.max; cgroup-v1/memory.rst, memory.limit_in_bytes.)
func (m *machine) memoryLimit() int64 {
	smallest := int64(0)
	m.groups("memory", func(version int, dir string) {
		file := "memory.max"
		if version == 1 {
			file = "memory.limit_in_bytes"
		}
		text, err := m.read(filepath.Join(dir, file))
		if err != nil {
			return
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && (smallest == 0 || n < smallest) {
			smallest = n
		}
	})
	return smallest
}

// cpuQuota is how many processors' time the control groups leave this process, nil for no limit: quota over period, in
// cpu.max or cpu.cfs_quota_us and cpu.cfs_period_us. (Linux Documentation/admin-guide/cgroup-v2.rst, cpu.max;
// Documentation/scheduler/sched-bwc.rst.)
func (m *machine) cpuQuota() *float64 {
	var smallest *float64
	m.groups("cpu", func(version int, dir string) {
		var quota, period string
		if version == 2 {
			text, err := m.read(filepath.Join(dir, "cpu.max"))
			if err != nil {
				return
			}
			quota, period, _ = strings.Cut(text, " ")
		} else {
			quota, _ = m.read(filepath.Join(dir, "cpu.cfs_quota_us"))
			period, _ = m.read(filepath.Join(dir, "cpu.cfs_period_us"))
		}
		q, err1 := strconv.ParseInt(quota, 10, 64) // "max" in version 2, -1 in version 1: no limit
		p, err2 := strconv.ParseInt(period, 10, 64)
		if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
			return
		}
		if n := math.Round(float64(q)/float64(p)*1000) / 1000; n > 0 && (smallest == nil || n < *smallest) {
			smallest = &n
		}
	})
	return smallest
}

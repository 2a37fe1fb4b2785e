package load

import (
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// processors is how many processors this program may use: GOMAXPROCS, or the quota of its control group where that is less.
// The Go runtime heeds such a quota, but rounds it up, and to no less than 2.
func processors() float64 {
	n := float64(runtime.GOMAXPROCS(0))
	own, _ := os.ReadFile("/proc/self/cgroup") // Linux only; elsewhere, and in version 1, no group is found
	for line := range strings.Lines(string(own)) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return min(n, quota(os.ReadFile, group, n))
		}
	}
	return n
}

// quota is the smallest quota, in processors, of a group and those above it (docs.kernel.org, "Control Group v2", cpu.max); n
// where none is set.
func quota(read func(string) ([]byte, error), group string, n float64) float64 {
	for dir := path.Join("/", group); ; dir = path.Dir(dir) {
		text, _ := read(path.Join("/sys/fs/cgroup", dir, "cpu.max"))
		if f := strings.Fields(string(text)); len(f) == 2 {
			limit, err1 := strconv.ParseFloat(f[0], 64) // "max" is none
			each, err2 := strconv.ParseFloat(f[1], 64)
			if err1 == nil && err2 == nil && limit > 0 && each > 0 {
				n = min(n, limit/each)
			}
		}
		if dir == "/" {
			return n
		}
	}
}

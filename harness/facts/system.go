package facts

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const linuxOnly = "read from Linux's /proc alone, and there is none here"

// read gives a file below the machine's root without the white space around it.
func (m *machine) read(path string) (string, error) {
	data, err := os.ReadFile(filepath.Join(m.root, path))
	return strings.TrimSpace(string(data)), err
}

// cpu is the processor's model. x86 names it "model name"; ARM kernels often name the board alone, under "Model".
func (m *machine) cpu(why reasons) string {
	text, err := m.read("proc/cpuinfo")
	if err != nil {
		why.add("cpu", linuxOnly)
		return ""
	}
	for _, key := range []string{"model name", "cpu model", "cpu", "Model", "Hardware"} {
		if v := field(text, key); v != "" {
			return v
		}
	}
	why.add("cpu", "/proc/cpuinfo does not name the processor")
	return ""
}

// field is the first value of "key : value" lines under a key.
func field(text, key string) string {
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		k, v, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(k) == key && strings.TrimSpace(v) != "" {
			return strings.Join(strings.Fields(v), " ")
		}
	}
	return ""
}

// ram is the machine's memory in bytes. A control group's limit on this program is noted beside it: it holds for an
// engine in the same container, and not for one outside.
func (m *machine) ram(why reasons) int64 {
	text, err := m.read("proc/meminfo")
	if err != nil {
		why.add("ram_bytes", linuxOnly)
		return 0
	}
	number, _ := strings.CutSuffix(field(text, "MemTotal"), " kB")
	kib, err := strconv.ParseInt(number, 10, 64)
	if err != nil || kib <= 0 || kib > 1<<50 {
		why.add("ram_bytes", "/proc/meminfo does not tell MemTotal in kB")
		return 0
	}
	total := kib << 10
	if limit := m.cgroupLimit(); limit > 0 && limit < total {
		why.add("ram_bytes", fmt.Sprintf("this is the whole machine's memory; a control group limits this program to %d bytes", limit))
	}
	return total
}

// cgroupLimit is the smallest memory limit of the control groups that this process is in, 0 for none. Each group up
// to the root counts. (Linux Documentation/admin-guide/cgroup-v2.rst, memory.max; cgroup-v1/memory.rst,
// memory.limit_in_bytes.)
func (m *machine) cgroupLimit() int64 {
	text, err := m.read("proc/self/cgroup")
	if err != nil {
		return 0
	}
	smallest := int64(0)
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		if parts[0] != "0" {
			if parts[1] != "memory" {
				continue
			}
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for dir := filepath.Clean("/" + parts[2]); ; dir = filepath.Dir(dir) {
			if text, err := m.read(filepath.Join(base, dir, file)); err == nil {
				if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && (smallest == 0 || n < smallest) {
					smallest = n
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return smallest
}

// system is the operating system's name with its version, and the kernel's version.
func (m *machine) system(why reasons) (name, kernel string) {
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} { // man 5 os-release: the first that is there
		if text, err := m.read(path); err == nil {
			name = prettyName([]byte(text))
			break
		}
	}
	if name == "" {
		why.add("os_name", "no os-release file with a PRETTY_NAME")
	}
	kernel, err := m.read("proc/sys/kernel/osrelease")
	if err != nil || kernel == "" {
		why.add("os_version", linuxOnly)
	}
	return name, kernel
}

// prettyName reads PRETTY_NAME from an os-release file: assignments as of a shell, quoted or not.
func prettyName(file []byte) string {
	for line := range bytes.Lines(file) {
		value, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "PRETTY_NAME=")
		if !ok {
			continue
		}
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			quote := value[0]
			value = value[1 : len(value)-1]
			if quote == '"' {
				value = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`").Replace(value)
			}
		}
		return value
	}
	return ""
}

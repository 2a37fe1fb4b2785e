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

// cpu is the processor's model, and how many logical processors there are. x86 names the model "model name"; ARM
// kernels often name the board alone, under "Model". All but s390 begin each logical processor's lines with "processor".
func (m *machine) cpu(why reasons) (model string, logical int) {
	text, err := m.read("proc/cpuinfo")
	if err != nil {
		why.add("cpu", linuxOnly)
		why.add("logical_cpus", linuxOnly)
		return "", 0
	}
	for line := range strings.Lines(text) {
		if key, _, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "processor" {
			logical++
		}
	}
	if logical == 0 {
		why.add("logical_cpus", "/proc/cpuinfo does not list the processors")
	}
	for _, key := range []string{"model name", "cpu model", "cpu", "Model", "Hardware"} {
		if v := field(text, key); v != "" {
			return v, logical
		}
	}
	why.add("cpu", "/proc/cpuinfo does not name the processor")
	return "", logical
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

// ram is the machine's memory in bytes, and the limit that a control group sets this program where that is less. The
// limit is noted beside the memory too: it holds for an engine in the same container, and not for one outside.
func (m *machine) ram(why reasons) (total, limit int64) {
	text, err := m.read("proc/meminfo")
	if err != nil {
		why.add("ram_bytes", linuxOnly)
		return 0, 0
	}
	number, _ := strings.CutSuffix(field(text, "MemTotal"), " kB")
	kib, err := strconv.ParseInt(number, 10, 64)
	if err != nil || kib <= 0 || kib > 1<<50 {
		why.add("ram_bytes", "/proc/meminfo does not tell MemTotal in kB")
		return 0, 0
	}
	total = kib << 10
	if limit = m.memoryLimit(); limit == 0 || limit >= total {
		return total, 0
	}
	why.add("ram_bytes", fmt.Sprintf("this is the whole machine's memory; a control group limits this program to %d bytes", limit))
	return total, limit
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

// kernel is the kernel's name, release and build, such as "Linux 6.18.55 #1 SMP PREEMPT_DYNAMIC Mon …": the same
// release comes in builds that schedule differently. (Linux Documentation/admin-guide/sysctl/kernel.rst.)
func (m *machine) kernel(why reasons) string {
	var parts []string
	for _, name := range []string{"ostype", "osrelease", "version"} {
		if text, err := m.read(filepath.Join("proc/sys/kernel", name)); err == nil && text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		why.add("kernel", linuxOnly)
	}
	return strings.Join(parts, " ")
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

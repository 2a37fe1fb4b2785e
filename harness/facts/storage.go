package facts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mount is one line of /proc/self/mountinfo (Linux Documentation/filesystems/proc.rst, section 3.5).
type mount struct{ point, fstype, source, device string }

// parseMounts reads mountinfo: id, parent, major:minor, root, mount point, options, optional fields, "-", type,
// source, options. Blanks in names are written as octal escapes.
func parseMounts(text string) []mount {
	var out []mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 6 || len(right) < 2 {
			continue
		}
		out = append(out, mount{point: unescape(left[4]), fstype: right[0], source: unescape(right[1]), device: left[2]})
	}
	return out
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// mountOf is the mount that holds a path: the longest mount point above it, the last of equals.
func mountOf(mounts []mount, path string) (mount, bool) {
	best, found := mount{}, false
	for _, m := range mounts {
		inside := m.point == "/" || path == m.point || strings.HasPrefix(path, m.point+"/")
		if inside && (!found || len(m.point) >= len(best.point)) {
			best, found = m, true
		}
	}
	return best, found
}

// storage describes the drives behind the model files, each once.
func (m *machine) storage(files []string, why reasons) string {
	if len(files) == 0 {
		why.add("storage", "no model file on this machine is known: name one with --model-file")
		return ""
	}
	text, err := m.read("proc/self/mountinfo")
	if err != nil {
		why.add("storage", linuxOnly)
		return ""
	}
	mounts := parseMounts(text)
	var drives []string
	for _, file := range files {
		drive, err := m.drive(mounts, file)
		if err != nil {
			why.add("storage", err.Error())
		} else if !strings.Contains(strings.Join(drives, "; "), drive) {
			drives = append(drives, drive)
		}
	}
	return strings.Join(drives, "; ")
}

func (m *machine) drive(mounts []mount, file string) (string, error) {
	at, ok := mountOf(mounts, file)
	if !ok {
		return "", fmt.Errorf("no mount holds %q", file)
	}
	block, err := m.block(at)
	if err != nil {
		return "", fmt.Errorf("the file system %s on %q is on no drive of this machine", at.fstype, at.point)
	}
	return m.describeDrive(m.physical(block)) + ", " + at.fstype, nil
}

// block is the sysfs folder of a mount's device. A file system with volumes of its own, such as btrfs, has a device
// number that no drive has; then the source names it.
func (m *machine) block(at mount) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Join(m.root, "sys/dev/block", at.device))
	if err == nil {
		return dir, nil
	}
	name, ok := strings.CutPrefix(at.source, "/dev/")
	if !ok {
		return "", err
	}
	if target, err := os.Readlink(filepath.Join(m.root, at.source)); err == nil { // /dev/mapper/x → ../dm-0
		name = filepath.Base(target)
	}
	return filepath.EvalSymlinks(filepath.Join(m.root, "sys/class/block", name))
}

// physical goes from a partition to its drive, and from a mapped device to the first one beneath it.
func (m *machine) physical(dir string) string {
	for range 8 { // layers of encryption, volumes and arrays; a deeper stack is described by what it looks like there
		if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
			dir = filepath.Dir(dir)
		}
		slaves, err := filepath.Glob(filepath.Join(dir, "slaves", "*"))
		if err != nil || len(slaves) == 0 {
			return dir
		}
		below, err := filepath.EvalSymlinks(slaves[0])
		if err != nil {
			return dir
		}
		dir = below
	}
	return dir
}

// describeDrive is the drive's model and kind, such as "Samsung SSD 990 PRO 2TB (NVMe)".
func (m *machine) describeDrive(dir string) string {
	name := filepath.Base(dir)
	text := func(path string) string {
		data, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return ""
		}
		return strings.Join(strings.Fields(string(data)), " ")
	}
	kind := "solid state"
	switch {
	case strings.HasPrefix(name, "nvme"):
		kind = "NVMe"
	case strings.HasPrefix(name, "vd"), strings.HasPrefix(name, "xvd"):
		kind = "virtual"
	case text("queue/rotational") == "1":
		kind = "rotating"
	case text("queue/rotational") == "":
		kind = "unknown kind"
	}
	model := text("device/model")
	if model == "" {
		model = name
	}
	return fmt.Sprintf("%s (%s)", model, kind)
}

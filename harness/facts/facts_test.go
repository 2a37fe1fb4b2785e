package facts

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"plumbline/fixtures"
)

func TestAMachineIsReadWhole(t *testing.T) {
	g := NewWithT(t)
	root := tree(t, map[string]string{
		"proc/cpuinfo": string(testdata(t, "cpuinfo_x86.txt")), "proc/meminfo": "MemFree: 1 kB\nMemTotal:       115322116 kB\n",
		"etc/os-release": string(testdata(t, "os-release")), "proc/sys/kernel/osrelease": "6.18.55\n", "proc/sys/kernel/ostype": "Linux\n",
		"proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Thu Jan  1 00:00:00 UTC 2026\n", "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "250000 100000\n",
	})
	m := newMachine(root, tools{"nvidia-smi --query-gpu": testdata(t, "nvidia_query.csv"), "nvidia-smi": testdata(t, "nvidia_table.txt")}.run)
	f := m.host(t.Context(), Options{EngineURL: "http://127.0.0.1:8080"})
	limit := 250.0
	g.Expect(f.GPUs).To(Equal([]fixtures.GPU{
		{DeviceIndex: 0, Name: "NVIDIA GeForce RTX 3090", MemoryBytes: 25769803776, MemoryKind: "dedicated", PowerLimitW: &limit},
		{DeviceIndex: 1, Name: "NVIDIA RTX A4000", MemoryBytes: 16376 << 20, MemoryKind: "dedicated"},
	}))
	g.Expect(f.Drivers).To(Equal([]fixtures.NameVersion{{Name: "gpu-driver", Version: "595.71.05"}}))
	g.Expect(f.Runtime).To(Equal([]fixtures.NameVersion{{Name: "cuda", Version: "13.2"}}))
	g.Expect(f.CPU).To(Equal("Intel(R) Core(TM) i9-14900KS"))
	g.Expect(f.RAMBytes).To(Equal(int64(115322116 * 1024)))
	g.Expect(f.OSName).To(Equal(`NixOS 26.05 ("Yarara")`))
	g.Expect(f.OSVersion).To(Equal("6.18.55"))
	g.Expect(f.Kernel).To(Equal("Linux 6.18.55 #1 SMP PREEMPT_DYNAMIC Thu Jan  1 00:00:00 UTC 2026"))
	g.Expect(f.LogicalCPUs).To(Equal(1))
	g.Expect(f.CPUQuota).To(HaveValue(Equal(2.5)))
	g.Expect(f.RAMLimitBytes).To(BeZero())
	g.Expect(f.EngineHere).To(BeTrue())
	g.Expect(f.ModelFiles).To(BeEmpty())
	g.Expect(f.Reasons).To(And(HaveLen(3), HaveKey("storage"), HaveKey("model_files"), HaveKey("gpus.1.power_limit_w")))
}

func TestABareMachineGivesReasonsAndNoInventions(t *testing.T) {
	g := NewWithT(t)
	f := newMachine(t.TempDir(), tools{}.run).host(t.Context(), Options{})
	why := f.Reasons
	f.Reasons = nil
	g.Expect(f).To(Equal(fixtures.HostFacts{GPUs: []fixtures.GPU{}, Drivers: []fixtures.NameVersion{}, Runtime: []fixtures.NameVersion{},
		ModelFiles: []fixtures.ModelFile{}}))
	for _, field := range []string{"gpus", "cpu", "ram_bytes", "storage", "os_name", "os_version", "kernel", "logical_cpus", "drivers", "runtime", "model_files"} {
		g.Expect(why).To(HaveKey(field))
	}
	g.Expect(why["gpus"]).To(ContainSubstring("nvidia-smi, amd-smi, rocm-smi"))
}

func TestToolsThatFailAreNamed(t *testing.T) {
	g := NewWithT(t)
	f := newMachine(t.TempDir(), tools{"nvidia-smi": errDriver, "amd-smi": []byte("not JSON")}.run).host(t.Context(), Options{})
	g.Expect(f.GPUs).To(BeEmpty())
	g.Expect(f.Reasons["gpus"]).To(And(ContainSubstring("nvidia-smi: exit status 9"), ContainSubstring("amd-smi: read its answer"), Not(ContainSubstring("rocm-smi"))))
	f = newMachine(t.TempDir(), tools{"amd-smi": []byte("[]")}.run).host(t.Context(), Options{})
	g.Expect(f.Reasons["gpus"]).To(Equal("none seen by amd-smi"))
}

func TestAMDCardsAreReadFromBothToolsAndOnceOnly(t *testing.T) {
	g := NewWithT(t)
	root := tree(t, map[string]string{"opt/rocm/.info/version": "7.1.0-54\n"})
	w339, w700, w264 := 339.0, 700.0, 264.0
	both := tools{"amd-smi": testdata(t, "amd_smi_list.json"), "rocm-smi": testdata(t, "rocm_smi.json")}
	f := newMachine(root, both.run).host(t.Context(), Options{})
	g.Expect(f.GPUs).To(Equal([]fixtures.GPU{{DeviceIndex: 0, Name: "AMD Radeon RX 7900 XTX", MemoryBytes: 24560 << 20, MemoryKind: "dedicated", PowerLimitW: &w339}}))
	g.Expect(f.Drivers).To(Equal([]fixtures.NameVersion{{Name: "gpu-driver", Version: "6.12.12"}}))
	g.Expect(f.Runtime).To(Equal([]fixtures.NameVersion{{Name: "rocm", Version: "7.1.0"}}))

	c, err := parseAMDSMI(testdata(t, "amd_smi_wrapped.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.gpus).To(Equal([]fixtures.GPU{{DeviceIndex: 3, Name: "AMD Instinct MI300X", MemoryBytes: 196592 << 20, MemoryKind: "dedicated", PowerLimitW: &w700}}))

	f = newMachine(root, tools{"rocm-smi": testdata(t, "rocm_smi.json")}.run).host(t.Context(), Options{})
	g.Expect(f.GPUs).To(Equal([]fixtures.GPU{
		{DeviceIndex: 2, Name: "Radeon RX 7900 XT", MemoryBytes: 21458059264, MemoryKind: "dedicated"},
		{DeviceIndex: 10, Name: "Radeon RX 6900 XT", MemoryBytes: 17163091968, MemoryKind: "dedicated", PowerLimitW: &w264},
	}))
	g.Expect(f.Drivers).To(Equal([]fixtures.NameVersion{{Name: "gpu-driver", Version: "6.3.6"}}))
}

func TestMemoryThatTheToolDoesNotTellIsNoZeroWithoutAReason(t *testing.T) {
	g := NewWithT(t)
	f := newMachine(t.TempDir(), tools{"nvidia-smi --query-gpu": testdata(t, "nvidia_shared_memory.csv")}.run).host(t.Context(), Options{})
	g.Expect(f.GPUs).To(Equal([]fixtures.GPU{{Name: "NVIDIA GB10"}}))
	g.Expect(f.Reasons).To(And(HaveKey("gpus.0.memory_bytes"), HaveKey("gpus.0.power_limit_w"), HaveKey("runtime"), Not(HaveKey("drivers"))))
}

func TestATableWithoutNamesIsRefused(t *testing.T) {
	for _, text := range []string{"", "No devices were found\n", "a, b\n1, 2\n", "\"\n"} {
		if c, err := parseNvidia([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, c)
		}
	}
}

func FuzzVendorTools(f *testing.F) {
	for _, seed := range []string{"index, name\n0, x\n", `[{"asic":{"market_name":"x"},"vram":{"size":{"value":1e300,"unit":"MB"}}}]`,
		`{"card0":{"VRAM Total Memory (B)":"-1","Max Graphics Package Power (W)":"NaN"}}`, `{"card99999999999999999999":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, parse := range []func([]byte) (cards, error){parseNvidia, parseAMDSMI, parseROCmSMI} {
			c, _ := parse(out)
			for _, card := range c.gpus {
				if card.MemoryBytes < 0 || (card.MemoryBytes > 0) != (card.MemoryKind != "") || card.PowerLimitW != nil && !(*card.PowerLimitW > 0) {
					t.Errorf("%q gives %+v", out, card)
				}
			}
		}
	})
}

func TestTheCPUOfABoardIsNamedByItsModel(t *testing.T) {
	g := NewWithT(t)
	read := func(text string) (string, reasons) {
		why := reasons{}
		name, _ := newMachine(tree(t, map[string]string{"proc/cpuinfo": text}), nil).cpu(why)
		return name, why
	}
	name, _ := read(string(testdata(t, "cpuinfo_arm.txt")))
	g.Expect(name).To(Equal("Raspberry Pi 5 Model B Rev 1.0"))
	name, why := read("processor : 0\n")
	g.Expect(name).To(BeEmpty())
	g.Expect(why).To(HaveKey("cpu"))
}

func TestAControlGroupsLimitIsNotedBesideTheMemory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"version 2, a group above": {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "5000", "sys/fs/cgroup/a/b/memory.max": "max"}, 5000},
		"version 2, inside":        {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "6000"}, 6000},
		"version 1": {map[string]string{"proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/1\n0::/\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "7000", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, 7000},
		"none": {map[string]string{"proc/self/cgroup": "0::/a\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.files["proc/meminfo"] = "MemTotal: 100 kB\n"
			m := newMachine(tree(t, c.files), nil)
			g.Expect(m.memoryLimit()).To(Equal(c.want))
			why := reasons{}
			total, limit := m.ram(why)
			g.Expect(total).To(Equal(int64(102400)))
			g.Expect(limit).To(Equal(c.want))
			if c.want > 0 {
				g.Expect(why["ram_bytes"]).To(ContainSubstring("bytes"))
			} else {
				g.Expect(why).To(BeEmpty())
			}
		})
	}
}

func TestALimitAboveTheWholeMemoryIsNone(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(tree(t, map[string]string{"proc/meminfo": "MemTotal: 100 kB\n", "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "102400"}), nil)
	why := reasons{}
	total, limit := m.ram(why)
	g.Expect(total).To(Equal(int64(102400)))
	g.Expect(limit).To(BeZero())
	g.Expect(why).To(BeEmpty())
}

func TestTheTightestQuotaOfTheControlGroupsCounts(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  any
	}{
		"version 2": {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "150000 100000", "sys/fs/cgroup/a/b/cpu.max": "max 100000"}, HaveValue(Equal(1.5))},
		"version 1": {map[string]string{"proc/self/cgroup": "3:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "50000",
			"sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, HaveValue(Equal(0.5))},
		"no limit": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000"}, BeNil()},
		"nonsense": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "7 0"}, BeNil()},
		"no files": {map[string]string{}, BeNil()},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(newMachine(tree(t, c.files), nil).cpuQuota()).To(c.want.(types.GomegaMatcher))
		})
	}
}

func TestPrettyNames(t *testing.T) {
	for text, want := range map[string]string{"PRETTY_NAME=Arch\n": "Arch", "PRETTY_NAME='A \"B\"'": `A "B"`, "PRETTY_NAME=\"": `"`, "NAME=x": "",
		"PRETTY_NAME=\"a \\$b \\\\\"": `a $b \`} {
		if got := prettyName([]byte(text)); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func TestLoopbackAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://127.9.9.9": true, "http://[::1]:80/x": true, "https://LOCALHOST": true, "http://localhost.:1": true,
		"http://app.localhost": true, "http://[::ffff:127.0.0.1]": true,
		"http://10.0.0.1": false, "http://localhost.example.com": false, "http://127.0.0.1.example.com": false, "http://0.0.0.0": false,
		"": false, "localhost:80": false, "http://%zz": false,
	} {
		if got := Loopback(address); got != want {
			t.Errorf("Loopback(%q) = %v", address, got)
		}
	}
}

func TestTheDriveBehindAFileIsFoundThroughItsLayers(t *testing.T) {
	const pci = "sys/devices/pci0000:00/"
	root := tree(t, map[string]string{
		"proc/self/mountinfo":                      string(testdata(t, "mountinfo.txt")),
		pci + "nvme/nvme0n1/device/model":          "Samsung SSD 990 PRO 2TB                 \n",
		pci + "nvme/nvme0n1/queue/rotational":      "0\n",
		pci + "nvme/nvme0n1/nvme0n1p2/partition":   "2\n",
		pci + "nvme/nvme1n1/device/model":          "WD_BLACK SN850X\n",
		pci + "nvme/nvme1n1/nvme1n1p1/partition":   "1\n",
		pci + "ata/sdb/device/model":               "ST8000DM004-2CX1\n",
		pci + "ata/sdb/queue/rotational":           "1\n",
		pci + "ata/sdb/sdb1/partition":             "1\n",
		"sys/devices/virtual/block/dm-1/dm/name":   "vg-models",
		"sys/devices/virtual/block/dm-1/slaves/p2": "→ ../../../../pci0000:00/nvme/nvme0n1/nvme0n1p2",
		"sys/dev/block/259:2":                      "→ ../../devices/pci0000:00/nvme/nvme0n1/nvme0n1p2",
		"sys/dev/block/8:17":                       "→ ../../devices/pci0000:00/ata/sdb/sdb1",
		"sys/dev/block/253:1":                      "→ ../../devices/virtual/block/dm-1",
		"sys/class/block/nvme1n1p1":                "→ ../../devices/pci0000:00/nvme/nvme1n1/nvme1n1p1",
	})
	m := newMachine(root, nil)
	g := NewWithT(t)
	for file, want := range map[string]string{
		"/models/a.gguf":         "Samsung SSD 990 PRO 2TB (NVMe), ext4",
		"/srvother/a.gguf":       "Samsung SSD 990 PRO 2TB (NVMe), ext4",
		"/srv/a.gguf":            "ST8000DM004-2CX1 (rotating), xfs",
		"/home/u/a.gguf":         "WD_BLACK SN850X (NVMe), btrfs",
		"/srv/big models/a.gguf": "Samsung SSD 990 PRO 2TB (NVMe), ext4",
	} {
		why := reasons{}
		g.Expect(m.storage([]string{file}, why)).To(Equal(want), file)
		g.Expect(why).To(BeEmpty())
	}
	for _, file := range []string{"/mnt/share/a.gguf", "/tmp/a.gguf"} {
		why := reasons{}
		g.Expect(m.storage([]string{file}, why)).To(BeEmpty())
		g.Expect(why["storage"]).To(ContainSubstring("no drive"))
	}
	g.Expect(m.storage([]string{"/a", "/srv/b", "/c"}, reasons{})).To(Equal("Samsung SSD 990 PRO 2TB (NVMe), ext4; ST8000DM004-2CX1 (rotating), xfs"))
}

func TestAFileSystemThatRefersToItselfEnds(t *testing.T) {
	root := tree(t, map[string]string{"sys/b/dm-0/slaves/dm-0": "→ ../../dm-0"})
	dir := filepath.Join(root, "sys/b/dm-0")
	if got := newMachine(root, nil).physical(dir); got != dir {
		t.Error(got)
	}
}

func TestTheClocksSmallestStep(t *testing.T) {
	g := NewWithT(t)
	ticks := []time.Duration{0, 0, 100, 100, 130, 130, 200, 195, 300}
	i := -1
	read := func() time.Duration { i = min(i+1, len(ticks)-1); return ticks[i] }
	g.Expect(smallestStep(read, 20)).To(Equal(30 * time.Nanosecond))
	g.Expect(smallestStep(func() time.Duration { return 5 }, 20)).To(BeZero())
	g.Expect(ClockResolution()).To(BeNumerically(">", 0))
}

func TestACommandsOutputIsBoundedAndItsAbsenceTold(t *testing.T) {
	g := NewWithT(t)
	_, err := runCommand(t.Context(), "plumbline-no-such-tool")
	g.Expect(errors.Is(err, errMissing)).To(BeTrue())
	out, err := runCommand(t.Context(), "head", "-c", "3000000", "/dev/zero")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(out)).To(Equal(maxOutput))
	_, err = runCommand(t.Context(), "false")
	g.Expect(err).To(HaveOccurred())
}

package load

import (
	"io/fs"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestTheClientIsOverloadedPastEachBound(t *testing.T) {
	const ms = time.Millisecond
	type few struct{ usual, tail time.Duration }
	for name, c := range map[string]struct {
		late, lag few
		reasons   []string
	}{
		"idle":       {few{0, ms}, few{ms, ms}, []string{}},
		"short of":   {few{0, 195 * ms}, few{ms, 145 * ms}, []string{}},
		"mean lag":   {few{0, ms}, few{5 * ms, 5 * ms}, []string{"what had arrived waited 5.0 ms on average to be read, more than 4.5 ms"}},
		"rare lag":   {few{0, ms}, few{0, 200 * ms}, []string{"1 % of what had arrived waited 200.0 ms or longer to be read, more than 150 ms"}},
		"dispatch":   {few{0, 300 * ms}, few{0, ms}, []string{"1 % of the requests were dispatched 299.9 ms late or later, more than 200 ms"}},
		"everything": {few{ms, time.Second}, few{9 * ms, time.Second}, []string{"what had", "1 % of what", "1 % of the requests"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			late, lag := &histogram{}, &histogram{}
			for range 98 {
				late.add(c.late.usual)
				lag.add(c.lag.usual)
			}
			for range 2 {
				late.add(c.late.tail)
				lag.add(c.lag.tail)
			}
			got := check(late, lag)
			g.Expect(got.Overloaded).To(Equal(len(c.reasons) > 0))
			g.Expect(got.Reasons).To(HaveLen(len(c.reasons)))
			for i, r := range got.Reasons {
				g.Expect(r).To(HavePrefix(c.reasons[i]))
			}
			g.Expect(got.Bounds).To(Equal(map[string]float64{"read_lag_ms.mean": 4.5, "read_lag_ms.p99": 150, "dispatch_late_ms.p99": 200}))
		})
	}
}

func TestWithoutSamplesNoBoundIsPassed(t *testing.T) {
	g := NewWithT(t)
	c := check(&histogram{}, &histogram{})
	g.Expect(c.Overloaded).To(BeFalse())
	g.Expect(c.Reasons).NotTo(BeNil())
	g.Expect(c.ReadLag.Mean).To(BeNil())
}

func TestAQuotaOfAGroupOrOneAboveItIsHeeded(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"none":             {nil, 8},
		"no limit":         {map[string]string{"/sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, 8},
		"own":              {map[string]string{"/sys/fs/cgroup/a/b/cpu.max": "50000 100000\n"}, 0.5},
		"above":            {map[string]string{"/sys/fs/cgroup/a/cpu.max": "150000 100000\n", "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, 1.5},
		"of the container": {map[string]string{"/sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2},
		"the smallest":     {map[string]string{"/sys/fs/cgroup/a/cpu.max": "100000 100000\n", "/sys/fs/cgroup/a/b/cpu.max": "300000 100000\n"}, 1},
		"more than all":    {map[string]string{"/sys/fs/cgroup/a/cpu.max": "6400000 100000\n"}, 8},
		"nonsense":         {map[string]string{"/sys/fs/cgroup/a/cpu.max": "a b\n", "/sys/fs/cgroup/cpu.max": "-1 0\n"}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(name string) ([]byte, error) {
				if text, ok := c.files[name]; ok {
					return []byte(text), nil
				}
				return nil, fs.ErrNotExist
			}
			NewWithT(t).Expect(quota(read, "/a/b", 8)).To(Equal(c.want))
		})
	}
	NewWithT(t).Expect(processors()).To(BeNumerically(">", 0))
}

package capacity

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheKneeIsTheSmallestLevelNearTheGreatestThroughput(t *testing.T) {
	type level struct {
		concurrency int
		rate        float64 // below 0: not known
	}
	for name, c := range map[string]struct {
		levels []level
		knee   int // 0 for none
		reason string
	}{
		"a plateau":              {[]level{{1, 50}, {2, 95}, {4, 100}, {8, 101}}, 2, "95.0 tokens/s at 2; the greatest was 101.0 at 8"},
		"a peak":                 {[]level{{1, 50}, {2, 100}, {4, 80}}, 2, "100.0 tokens/s at 2"},
		"any order":              {[]level{{8, 101}, {1, 50}, {4, 100}, {2, 95}}, 2, "95.0"},
		"still rising":           {[]level{{1, 50}, {2, 100}, {4, 150}}, 0, "still rising at the highest level: 150.0 tokens/s at 4, 100.0"},
		"rising by a tenth":      {[]level{{1, 50}, {2, 100}, {4, 110}}, 2, "100.0 tokens/s at 2"},
		"flat from the start":    {[]level{{1, 50}, {2, 50}, {4, 50}}, 1, "50.0 tokens/s at 1"},
		"two levels":             {[]level{{1, 50}, {2, 50}}, 0, "2 levels have a known throughput; three are needed"},
		"too few that are known": {[]level{{1, 50}, {2, 50}, {4, -1}}, 0, "2 levels"},
		"one unknown of four":    {[]level{{1, 50}, {2, -1}, {4, 90}, {8, 91}}, 4, "90.0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var levels []Level
			for _, l := range c.levels {
				x := Level{Concurrency: l.concurrency}
				if l.rate >= 0 {
					x.Throughput = &l.rate
				}
				levels = append(levels, x)
			}
			knee, reason := findKnee(levels)
			g.Expect(reason).To(ContainSubstring(c.reason))
			if c.knee == 0 {
				g.Expect(knee).To(BeNil())
			} else {
				g.Expect(knee).To(HaveValue(Equal(c.knee)))
			}
		})
	}
}

func TestAClientThatDidNotKeepUpIsNamedBesideTheKnee(t *testing.T) {
	g := NewWithT(t)
	_, reason := findKnee([]Level{{Concurrency: 1, Throughput: new(5.0)},
		{Concurrency: 2, Throughput: new(5.0), Overloaded: true}, {Concurrency: 4, Throughput: new(5.0)}})
	g.Expect(reason).To(HaveSuffix("; the client did not keep up at 2"))
}

func TestTheFingerprintTellsConfigurationsApartAndRepetitionsNot(t *testing.T) {
	g := NewWithT(t)
	of := func(change func(in Input)) string {
		in := madeUp()
		change(in)
		return Fingerprint(in.Header)
	}
	same := of(func(Input) {})
	g.Expect(same).To(MatchRegexp(`^sha256:[0-9a-f]{64}$`))
	for name, change := range map[string]func(Input){
		"seed": func(in Input) { in.Header.Capacity.Seed++ }, "requests": func(in Input) { in.Header.Capacity.Requests++ },
		"address": func(in Input) { in.Header.Engine.URL = "http://elsewhere" }, "run": func(in Input) { in.Header.RunID = "x" },
	} {
		g.Expect(of(change)).To(Equal(same), name)
	}
	for name, change := range map[string]func(Input){
		"model": func(in Input) { in.Header.Model = "x" }, "version": func(in Input) { in.Header.Engine.Version = "2" },
		"option":      func(in Input) { in.Header.Engine.Options["kv"] = "f16" },
		"GPU":         func(in Input) { in.Header.Host.GPUs[0].Name = "x" },
		"concurrency": func(in Input) { in.Header.Capacity.Concurrency++ },
		"temperature": func(in Input) { in.Header.Capacity.Temperature = nil },
	} {
		g.Expect(of(change)).NotTo(Equal(same), name)
	}
	in := madeUp()
	in.Header.Capacity.ConfigurationFingerprint = "sha256:" + same[len("sha256:"):]
	_, s := mustWrite(t, in)
	g.Expect(s.FingerprintDeclared).To(BeTrue())
}

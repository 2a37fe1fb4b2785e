package load

import (
	"fmt"

	"plumbline/fixtures"
)

// The bounds past which a stage's figures are not the server's alone. They were set beside a server that told its own times,
// with 50 to 1200 streams on two processors, alone and beside other work (BenchmarkStreams). Every stage whose mean TTFT was
// more than 25 ms too long had a mean lag above 4.7 ms. Stages whose mean TTFT was less than 10 ms too long stayed below
// 4.4 ms, but for those that other work on the machine held up between first tokens: they are marked as well.
const (
	meanReadLag = 4.5
	// p99ReadLag is for rare long stalls, which spoil the slowest figures and hardly the mean ones.
	p99ReadLag = 150
	// p99DispatchLate is for requests that came too late to be the load that was planned. Lateness is in no figure of the
	// request itself. 1000 replies that end at the same moment are answered within 100 to 150 ms.
	p99DispatchLate = 200
)

// bounded are the figures that are held to a bound, all in milliseconds.
var bounded = []struct {
	name   string
	limit  float64
	figure func(fixtures.ClientCheck) *float64
	says   string
}{
	{"read_lag_ms.mean", meanReadLag, func(c fixtures.ClientCheck) *float64 { return c.ReadLag.Mean },
		"what had arrived waited %.1f ms on average to be read, more than %v ms"},
	{"read_lag_ms.p99", p99ReadLag, func(c fixtures.ClientCheck) *float64 { return c.ReadLag.P99 },
		"1 %% of what had arrived waited %.1f ms or longer to be read, more than %v ms"},
	{"dispatch_late_ms.p99", p99DispatchLate, func(c fixtures.ClientCheck) *float64 { return c.DispatchLate.P99 },
		"1 %% of the requests were dispatched %.1f ms late or later, more than %v ms"},
}

// check says whether the client kept up.
func check(late, lag *histogram) fixtures.ClientCheck {
	c := fixtures.ClientCheck{DispatchLate: late.spread(), ReadLag: lag.spread(), Bounds: map[string]float64{}, Reasons: []string{}}
	for _, b := range bounded {
		c.Bounds[b.name] = b.limit
		if v := b.figure(c); v != nil && *v > b.limit {
			c.Overloaded = true
			c.Reasons = append(c.Reasons, fmt.Sprintf(b.says, *v, b.limit))
		}
	}
	return c
}

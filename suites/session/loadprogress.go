package session

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"plumbline/harness/load"
	"plumbline/harness/plan"
)

// watchLoad shows a stage while it runs, on a terminal only: elsewhere thousands of lines would be of no use. It returns
// what ends the display and writes the stage's line.
func (p *Progress) watchLoad(stage plan.LoadStage, live *load.Live) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	began := time.Now()
	var shown sync.WaitGroup
	if p.draw {
		shown.Go(func() {
			live.Watch(ctx, func(s load.Snapshot) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.clear()
				fmt.Fprint(p.out, loadLine(stage, s, time.Since(began)))
				p.drawn = true
			})
		})
	}
	return func() {
		cancel()
		shown.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.freshLine()
		p.printf("%s\n", loadLine(stage, live.Snapshot(), time.Since(began)))
	}
}

// loadLine is a stage in a line.
func loadLine(stage plan.LoadStage, s load.Snapshot, elapsed time.Duration) string {
	rate := float64(s.Done) / elapsed.Seconds()
	parts := []string{fmt.Sprintf("%-9s %d/%d done", stage.Name, s.Done, stage.Requests), fmt.Sprintf("%d failed", s.Failed),
		fmt.Sprintf("%d in flight", s.InFlight), fmt.Sprintf("%.1f requests/s", rate)}
	if s.P50 != nil && s.P95 != nil {
		parts = append(parts, fmt.Sprintf("latency p50 %s p95 %s", roundLatency(*s.P50), roundLatency(*s.P95)))
	}
	if left := int64(stage.Requests) - s.Done; s.Done > 0 && left > 0 {
		parts = append(parts, fmt.Sprintf("%s left", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second)))
	}
	return strings.Join(parts, "  ")
}

// roundLatency leaves a latency three or four digits.
func roundLatency(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(10 * time.Millisecond)
}

package session

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"plumbline/fixtures"
	"plumbline/harness/engine"
	"plumbline/harness/judge"
	"plumbline/harness/transcript"
)

// Progress says what a run does while it does it: a line per finished request, and while one runs a line that is
// redrawn on a terminal, or written anew every now and then elsewhere. It runs on its own goroutine and reads the
// watcher's counters; nothing in the reading of a stream waits for it. While a reply streams it takes an event for a
// token, which is good enough to watch and is in no figure.
type Progress struct {
	out   io.Writer
	every time.Duration // between two live lines
	draw  bool          // redraw the live line in place
	quiet bool

	mu    sync.Mutex
	total int
	done  int
	left  estimate
	live  []liveRequest
	since time.Time // when the first of the live requests was sent
	seen  struct {  // when output of the live requests was first seen, and how much of it there was then
		at     time.Time
		pieces int64
	}
	hashed  time.Time // when the reading of a model file was last shown
	drawn   bool
	stopped chan struct{}
	ticking sync.WaitGroup
}

type liveRequest struct {
	planned fixtures.Planned
	watcher *transcript.Watcher
}

// Live lines are drawn at most this often on a terminal, and written this often elsewhere.
const (
	drawEvery  = 250 * time.Millisecond
	writeEvery = 10 * time.Second
)

// NewProgress makes a progress of a mode: "auto" redraws when out is a terminal, "plain" never does, "none" is silent.
func NewProgress(out io.Writer, mode string) *Progress {
	p := &Progress{out: out, every: writeEvery, quiet: mode == "none"}
	if f, ok := out.(*os.File); ok && mode == "auto" && term.IsTerminal(int(f.Fd())) {
		p.draw, p.every = true, drawEvery
	}
	return p
}

func (p *Progress) printf(format string, args ...any) {
	if p.quiet {
		return
	}
	p.clear()
	fmt.Fprintf(p.out, format, args...)
}

// clear removes the live line.
func (p *Progress) clear() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

func (p *Progress) begin(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = len(s.requests)
	p.left = newEstimate(s.header.Plan)
	e := s.header.Engine
	if s.runs(standardProtocol) {
		p.printf("\nrun %s: protocol %s, profile %s\n", s.header.RunID, s.header.Protocol.ID, s.header.Protocol.Profile)
	} else {
		p.printf("\nrun %s: the capacity protocol\n", s.header.RunID)
	}
	if notice := notice(e); notice != "" {
		p.printf("%s\n", notice)
	}
	p.printf("engine %s at %s, model %s\n", strings.TrimSpace(cmp.Or(e.Name, "unknown")+" "+e.Version), e.URL, cmp.Or(s.header.Model, "unknown"))
	for _, chosen := range s.settings.Chosen() {
		p.printf("  %s\n", chosen)
	}
	if p.total > 0 {
		p.printf("%d requests, ", p.total)
	}
	p.printf("kept in %s\n", s.dir)
	if s.header.Refusal != "" {
		p.printf("no request can be sent: %s\n", s.header.Refusal)
		return
	}
	if n, need := tooLong(s.header.Plan, e.ContextTokens); n > 0 {
		p.printf("the engine's context holds %d tokens and the plan needs %d: %d requests will not fit\n", *e.ContextTokens, need, n)
	}
	p.start()
}

func (p *Progress) start() {
	stopped := make(chan struct{})
	p.stopped = stopped
	p.ticking.Go(func() { p.tick(stopped) })
}

// tooLong counts the requests of a plan that do not fit into a context, budget included, and what the longest needs. The
// template's own tokens are not known yet, and left out.
func tooLong(plan []fixtures.Planned, context *int) (n, need int) {
	if context == nil {
		return 0, 0
	}
	for _, p := range plan {
		content := cmp.Or(p.EngineContentTokens, p.ContentTokens)
		if content == nil {
			continue
		}
		if all := *content + p.MaxOutputTokens; all > *context {
			n, need = n+1, max(need, all)
		}
	}
	return n, need
}

// Said before and after every run that is about no engine.
const (
	mockNotice   = "THIS IS THE BUILT-IN MOCK ENGINE: a rehearsal of the suite, not a result about any engine"
	replayNotice = "THIS IS A REPLAY of what was recorded: nothing is measured anew"
)

// notice is what must be said of an engine: the mock, this run's own or one served at an address, or a replay; "" of others.
func notice(e fixtures.EngineFacts) string {
	switch {
	case e.Kind == engine.KindMock || e.Name == fixtures.MockEngine:
		return mockNotice
	case e.Kind == engine.KindReplay:
		return replayNotice
	}
	return ""
}

func (p *Progress) tick(stopped <-chan struct{}) {
	t := time.NewTicker(p.every)
	defer t.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-t.C:
			p.mu.Lock()
			p.showLive()
			p.mu.Unlock()
		}
	}
}

func (p *Progress) showLive() {
	if p.quiet || len(p.live) == 0 {
		return
	}
	line := p.liveLine()
	p.freshLine()
	fmt.Fprint(p.out, line)
	p.drawn = p.draw
}

// freshLine moves to an empty line: the live line's own, once cleared, or the next.
func (p *Progress) freshLine() {
	if p.drawn {
		p.clear()
	} else if !p.quiet {
		fmt.Fprintln(p.out)
	}
}

func (p *Progress) liveLine() string {
	now := time.Now()
	var pieces int64
	for _, l := range p.live {
		pieces += l.watcher.Events()
	}
	r := p.live[0]
	head := fmt.Sprintf("[%2d/%d] %-11s %s", p.done+1, p.total, r.planned.Phase, r.planned.ID)
	if len(p.live) > 1 {
		head = fmt.Sprintf("[%2d/%d] %-11s %d together", p.done+1, p.total, r.planned.Phase, len(p.live))
	}
	elapsed := now.Sub(p.since)
	if pieces <= int64(len(p.live)) { // a first event may hold no more than the role
		return fmt.Sprintf("%s: reading the prompt for %.1f s%s", head, elapsed.Seconds(), p.timeLeft(elapsed, 0, 0))
	}
	var rate float64
	if p.seen.at.IsZero() {
		p.seen.at, p.seen.pieces = now, pieces
	} else if d := now.Sub(p.seen.at); d > 0 {
		rate = float64(pieces-p.seen.pieces) / d.Seconds()
		head += fmt.Sprintf(": about %.0f tokens/s", rate)
	}
	return fmt.Sprintf("%s, %d tokens so far%s", head, pieces, p.timeLeft(elapsed, pieces, rate))
}

// timeLeft is the time left for the whole run, while requests are under way.
func (p *Progress) timeLeft(elapsed time.Duration, pieces int64, rate float64) string {
	left, ok := p.left.others(len(p.live))
	live, seen := p.left.of(p.live[0].planned)
	if !ok || !seen {
		return ""
	}
	live -= elapsed
	if live < 0 && rate > 0 { // it takes longer than its like did: at worst as long as its budget lasts
		budget := float64(len(p.live) * p.live[0].planned.MaxOutputTokens)
		live = time.Duration((budget - float64(pieces)) / rate * float64(time.Second))
	}
	return fmt.Sprintf(", %s left", (left + max(live, 0)).Round(time.Second))
}

// sending notes a request that is about to be sent.
func (p *Progress) sending(r fixtures.Planned, w *transcript.Watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.live) == 0 {
		p.since, p.seen.at = time.Now(), time.Time{}
	}
	p.live = append(p.live, liveRequest{r, w})
}

// sent writes the line of every reply. The line is left open: Ginkgo closes it with its mark of the spec.
func (p *Progress) sent(replies []judge.Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live = nil
	for i := range replies {
		p.done++
		p.left.add(&replies[i])
		left := ""
		if d, ok := p.left.others(0); ok && i == len(replies)-1 {
			left = fmt.Sprintf("  %s left", d.Round(time.Second))
		}
		p.freshLine()
		p.printf("[%2d/%d] %-11s %-25s %s%s ", p.done, p.total, replies[i].Planned.Phase, replies[i].Planned.ID,
			describe(&replies[i]), left)
	}
}

// describe is one reply in a line.
func describe(r *judge.Reply) string {
	f := r.Figures
	parts := []string{fmt.Sprintf("%-9s", f.Status)}
	if f.Error.Known {
		return strings.Join(append(parts, f.Error.Value), " ")
	}
	if f.InputTokens.Known && f.OutputTokens.Known {
		parts = append(parts, fmt.Sprintf("%6d in %4d out", f.InputTokens.Value, f.OutputTokens.Value))
	}
	if f.TTFT.Known {
		parts = append(parts, fmt.Sprintf("TTFT %.3f s", f.TTFT.Value))
	}
	if f.PromptTPS.Known {
		parts = append(parts, fmt.Sprintf("prefill %.0f", f.PromptTPS.Value))
	}
	if f.DecodeTPS.Known {
		parts = append(parts, fmt.Sprintf("decode %.1f tokens/s", f.DecodeTPS.Value))
	}
	if v := r.Evaluation; v != nil && v.Passed {
		parts = append(parts, "right")
	} else if v != nil {
		parts = append(parts, "WRONG: "+v.Reason)
	}
	return strings.Join(parts, "  ")
}

// hashing notes how far the digest of a model file is.
func (p *Progress) hashing(path string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet || time.Since(p.hashed) < p.every {
		return
	}
	p.hashed = time.Now()
	p.freshLine()
	fmt.Fprintf(p.out, "reading %s for its digest: %d of %d MB", path, done>>20, total>>20)
	p.drawn = p.draw
}

// end writes the summary of a document.
func (p *Progress) end(s *Session, summary, file string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet = false // whoever wants no progress still wants the result
	p.printf("\n\n%s", summary)
	if notice := notice(s.header.Engine); notice != "" {
		p.printf("%s\n", notice)
	}
	p.printf("result: %s/%s\n", s.dir, file)
}

// stop ends the live line. It may be called more than once.
func (p *Progress) stop() {
	p.mu.Lock()
	running := p.stopped
	p.stopped = nil
	p.clear()
	p.mu.Unlock()
	if running != nil {
		close(running)
		p.ticking.Wait()
	}
}

package mockserver

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Defect is a fault that the engine is asked to have: one of Defects by its name, in a share of its streams.
//
// Streams are counted as their requests arrive, and of the first n the nearest whole number to n × Share has the fault: of
// 5 % every twentieth, the tenth being the first. The second defect asked for comes one stream later than it would alone,
// the third two, so that small shares seldom meet in one stream; where they do it has all of them. Replies in one piece
// are neither counted nor touched, nor are requests that are wrong themselves.
type Defect struct {
	Name string
	// Share is above 0 and at most 1, in steps of a millionth.
	Share float64
}

func (d Defect) String() string {
	return fmt.Sprintf("%s=%v%%", d.Name, math.Round(d.Share*shareSteps)/(shareSteps/100))
}

// shareSteps is what a share is counted in, so that no rounding shifts a stream.
const shareSteps = 1_000_000

// ParseDefect reads NAME or NAME=SHARE, the share as 0.05 or 5%. Without one it is the whole.
func ParseDefect(text string) (Defect, error) {
	name, share, shared := strings.Cut(text, "=")
	d := Defect{Name: name, Share: 1}
	if shared {
		number, percent := strings.CutSuffix(share, "%")
		var err error
		if d.Share, err = strconv.ParseFloat(number, 64); err != nil {
			return Defect{}, fmt.Errorf("read defect %q: expected a share such as 5%% or 0.05, received %q", text, share)
		}
		if percent {
			d.Share /= 100
		}
	}
	return d, d.check()
}

func (d Defect) check() error {
	if find(d.Name) == nil {
		return fmt.Errorf("find defect %q: expected one of %s", d.Name, strings.Join(DefectNames(), ", "))
	}
	if steps := d.Share * shareSteps; !(steps >= 1 && steps <= shareSteps) { // NaN too
		return fmt.Errorf("defect %q: expected a share above 0 and at most 1, in steps of %v, received %v",
			d.Name, 1.0/shareSteps, d.Share)
	}
	return nil
}

// DefectNames lists the names of all defects.
func DefectNames() []string {
	names := make([]string, len(defects))
	for i := range defects {
		names[i] = defects[i].name
	}
	return names
}

// Explain says what the named defect does, in a sentence; "" for a name that is none.
func Explain(defect string) string {
	if d := find(defect); d != nil {
		return d.says
	}
	return ""
}

func find(name string) *defect {
	if i := slices.IndexFunc(defects, func(d defect) bool { return d.name == name }); i >= 0 {
		return &defects[i]
	}
	return nil
}

// drawer decides which streams have which defects. A nil one draws none.
type drawer struct {
	mu      sync.Mutex
	asked   []asked
	streams int64 // so far
	past    recent
}

type asked struct {
	*defect
	steps int64 // the share
}

func newDrawer(wanted []Defect) (*drawer, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	d := &drawer{}
	for i, w := range wanted {
		if err := w.check(); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(wanted[:i], func(o Defect) bool { return o.Name == w.Name }) {
			return nil, fmt.Errorf("defect %q: expected it once, received it twice", w.Name)
		}
		d.asked = append(d.asked, asked{find(w.Name), int64(math.Round(w.Share * shareSteps))})
	}
	return d, nil
}

// draw gives an arriving job its defects, those of its words at once. The error is what to answer instead of a reply.
func (d *drawer) draw(j *job) *apiError {
	if d == nil || !j.stream {
		return nil
	}
	d.mu.Lock()
	d.streams++
	n := d.streams
	j.other = d.past.meet(j)
	d.mu.Unlock()
	for i, a := range d.asked {
		if a.hits(n - int64(i)) {
			j.defects = append(j.defects, a.defect)
		}
	}
	for _, spoiled := range j.defects {
		if spoiled.refusal != nil {
			return spoiled.refusal
		}
		if spoiled.say != nil {
			spoiled.say(&j.speech, j.other)
		}
	}
	return nil
}

// hits says whether the nth stream is one of the share. A defect that comes later is asked for streams from below 1 on.
func (a *asked) hits(n int64) bool {
	run := floor(n-1, max(1, a.run)) + 1 // the run of streams that the nth is in
	upTo := func(n int64) int64 { return floor(n*a.steps+shareSteps/2, shareSteps) }
	return upTo(run) > upTo(run-1)
}

// floor divides by a number above 0 and rounds down, below 0 too.
func floor(n, by int64) int64 {
	if n < 0 {
		return -((by - 1 - n) / by)
	}
	return n / by
}

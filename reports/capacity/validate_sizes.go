package capacity

import (
	"fmt"
	"slices"
	"strconv"
)

// The bounds of planned sizes, in tokens.
const (
	leastPrompt = 32
	mostPlanned = 67_108_864 // of all prompts together
	// mostMargin is the largest margin that is believed where a document does not tell it: four times the protocol's own.
	mostMargin = 4096
)

// drawnSizes are the sizes that prompts without a fixed one are drawn from.
var drawnSizes = []int64{16000, 32768, 65536, 131072, 262144}

// sizes holds the planned sizes against the requests, the window and the way they were planned: a fixed size, or sizes
// that were drawn, and in either case none above what the window leaves for a prompt.
func (v *validation) sizes() {
	d := v.root.get("context_distribution")
	requestsAt := v.root.get("requests")
	if !d.object() {
		return
	}
	var sum, tokens int64
	var keys []place
	known := map[int64]place{}
	for name, p := range d.fields() {
		size, err := strconv.ParseInt(name, 10, 64)
		n, ok := p.whole()
		switch {
		case err != nil || size < leastPrompt || size > mostPlanned:
			v.problem(p, "expected a size from %d to %d tokens, received %.80q", leastPrompt, mostPlanned, name)
		case ok && n > mostPlanned/size || tokens+n*size > mostPlanned:
			v.contradiction(p, []place{requestsAt},
				"expected at most %d tokens in all prompts together, received more", mostPlanned)
		case ok:
			tokens += n * size
		}
		if err == nil {
			known[size] = p
		}
		keys, sum = append(keys, p), sum+n
	}
	if requests, ok := requestsAt.whole(); ok && sum != requests {
		v.contradiction(d, append([]place{requestsAt}, keys...),
			"expected %d prompts together, one for each request, received %d", requests, sum)
	}
	v.planned(known)
}

// planned holds the sizes against the setting and the window.
func (v *validation) planned(sizes map[int64]place) {
	setting := v.root.get("context_tokens")
	fixed, ok := setting.whole()
	if !ok && !setting.null() {
		return
	}
	if fixed > 0 && fixed < leastPrompt {
		v.problem(setting, "expected null, or at least %d tokens, received %d", leastPrompt, fixed)
	}
	window := v.window()
	all := make([]int64, 0, len(sizes))
	for size := range sizes {
		all = append(all, size)
	}
	slices.Sort(all)
	for i, size := range all {
		p := sizes[size]
		if window.known && size > window.most {
			v.contradiction(p, window.from,
				"expected at most the %d tokens that the window leaves for a prompt, received %d", max(0, window.most), size)
			continue
		}
		largest := i == len(all)-1
		switch capped := window.known && largest && size >= window.least; {
		case fixed > 0 && size == fixed:
		case fixed > 0 && !(size < fixed && capped && len(all) == 1):
			v.contradiction(p, append([]place{setting}, window.from...),
				"expected prompts of context_tokens (%d), or of what the window leaves where that is less, received %d", fixed, size)
		case fixed == 0 && !capped && !slices.Contains(drawnSizes, size):
			v.contradiction(p, append([]place{setting}, window.from...),
				"expected a size of %v, or what the window leaves as the largest, received %d", drawnSizes, size)
		}
	}
}

// window is what the context window leaves for a prompt: least to most tokens, for a document need not tell the margin.
type window struct {
	least, most int64
	known       bool
	from        []place
}

func (v *validation) window() window {
	whole, replies := v.root.get("max_context_tokens"), v.root.get("max_tokens")
	size, ok1 := whole.whole()
	reply, ok2 := replies.whole()
	w := window{least: size - reply - mostMargin, most: size - reply, known: ok1 && ok2, from: []place{whole, replies}}
	if p := v.ours.get("margin"); p.some() {
		margin, _ := p.whole()
		w.most -= margin
		w.least, w.from = w.most, append(w.from, p)
	}
	return w
}

// plannedRows holds the size of every request that has a result against the planned ones.
func (v *validation) plannedRows() {
	d := v.root.get("context_distribution")
	if !d.object() {
		return
	}
	used := map[int64]int64{}
	for _, row := range v.results() {
		p := row.get("planned_context_tokens")
		size, ok := p.whole()
		if !ok {
			continue
		}
		planned := d.get(fmt.Sprint(size))
		n, _ := planned.whole()
		if used[size]++; used[size] > n {
			v.contradiction(p, []place{planned},
				"expected at most %d prompts of %d tokens by context_distribution, received one more", n, size)
		}
	}
}

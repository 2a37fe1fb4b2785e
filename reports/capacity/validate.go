package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Problem is one thing that is wrong with a document: where, as a JSON pointer (RFC 6901), and what. The pointer of a
// member that ought to be there names the place where it ought to be.
type Problem struct {
	Pointer string
	Message string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s: %s", cmp.Or(p.Pointer, "(the document)"), p.Message)
}

// Validate says everything that is wrong with a result document, by pointer; nothing when it is right. It checks that the
// text is strict JSON, that it has the format's shape, and that its values agree with one another: every metric is
// computed anew from the rows. Members that the format does not know are left alone. What only documents of this program
// hold (extensions.plumbline) is checked where it is there.
//
// Text that is not strict JSON, larger than MaxDocument or nested too deep has only that problem. Pointers and messages
// are cut to a length that can be read, and so is the list.
func Validate(data []byte) []Problem {
	root, problem := readPlaces(data)
	if problem != nil {
		return shortened([]Problem{*problem})
	}
	v := validation{root: root, ours: root.get("extensions", extensionKey), named: map[jsontext.Pointer]int{}}
	v.schema()
	for _, check := range meaning {
		check(&v)
	}
	return shortened(v.sorted())
}

// keptProblems is how many problems are kept of a document, in the order in which they are found.
const keptProblems = 10_000

// Lengths to which what is said is cut.
const (
	shownPointer  = 256  // bytes
	shownMessage  = 1024 // bytes
	shownProblems = 1000
)

// shortened cuts what is long. It comes last: problems are sorted by their whole pointers.
func shortened(problems []Problem) []Problem {
	if n := len(problems); n > shownProblems {
		problems = append(problems[:shownProblems:shownProblems],
			Problem{"", fmt.Sprintf("and at least %d problems more", n-shownProblems)})
	}
	for i := range problems {
		p := &problems[i]
		p.Pointer, p.Message = cut(p.Pointer, shownPointer), cut(p.Message, shownMessage)
	}
	return problems
}

func cut(s string, length int) string {
	if len(s) <= length {
		return s
	}
	for length > 0 && !utf8.RuneStart(s[length]) {
		length--
	}
	return strings.Clone(s[:length]) + "…"
}

// meaning lists what is checked besides the shape, in the order in which later checks need earlier ones. Each passes over
// values that are absent or of another type: the schema has told of those already.
var meaning = []func(*validation){
	(*validation).readRows,
	(*validation).settings,
	(*validation).address,
	(*validation).sampling,
	(*validation).times,
	(*validation).wall,
	(*validation).order,
	(*validation).rowFigures,
	(*validation).canaries,
	(*validation).words,
	(*validation).failures,
	(*validation).runCounts,
	(*validation).sizes,
	(*validation).plannedRows,
	(*validation).metrics,
	(*validation).forms,
	(*validation).protocol,
	(*validation).reasons,
	(*validation).extension,
}

// validation is a document under examination.
type validation struct {
	root     place
	ours     place // extensions.plumbline
	rows     []place
	failed   []place
	problems []Problem
	named    map[jsontext.Pointer]int // contradictions that name a place from the other side
}

// problem records what is wrong with a place.
func (v *validation) problem(p place, format string, args ...any) {
	v.problemAt(p.at, format, args...)
}

func (v *validation) problemAt(at jsontext.Pointer, format string, args ...any) {
	if len(v.problems) < keptProblems {
		v.problems = append(v.problems, Problem{string(at), fmt.Sprintf(format, args...)})
	}
}

// sorted returns the problems by pointer, each once. Indices count as numbers.
func (v *validation) sorted() []Problem {
	slices.SortStableFunc(v.problems, func(a, b Problem) int {
		x, y := strings.Split(a.Pointer, "/"), strings.Split(b.Pointer, "/")
		return cmp.Or(slices.CompareFunc(x, y, compareTokens), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(v.problems)
}

func compareTokens(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// namedRows is how many rows are named where what is summed over all rows contradicts them, namedTimes how often one place
// is named that every row contradicts.
const (
	namedRows  = 20
	namedTimes = 3
)

// contradiction records what is wrong with a place, and at each of the others that it stands against that they contradict
// it: which of them is right cannot be known.
func (v *validation) contradiction(p place, others []place, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	v.problem(p, "%s", message)
	for _, other := range others[:min(len(others), namedRows)] {
		if v.named[other.at]++; v.named[other.at] > namedTimes {
			continue
		}
		v.problem(other, "contradicts %s: %s", p.at, message)
	}
}

// members are a member of each of the first rows.
func members(rows []place, path ...string) []place {
	var all []place
	for _, row := range rows[:min(len(rows), namedRows)] {
		all = append(all, row.get(path...))
	}
	return all
}

// wantWhole faults a whole number that is not the one expected, and the others that it was expected by.
func (v *validation) wantWhole(p place, want int64, what string, others ...place) {
	if got, ok := p.whole(); ok && got != want {
		v.contradiction(p, others, "expected %d %s, received %d", want, what, got)
	}
}

// wantTruth is wantWhole for a boolean.
func (v *validation) wantTruth(p place, want bool, what string, others ...place) {
	if got, ok := p.truth(); ok && got != want {
		v.contradiction(p, others, "expected %t %s, received %t", want, what, got)
	}
}

// wantNumber faults a number that is further from the expected one than may be, or that is null.
func (v *validation) wantNumber(p place, want, tolerance float64, what string, others ...place) {
	got, ok := p.number()
	if p.null() || ok && !(math.Abs(got-want) <= tolerance) {
		v.contradiction(p, others, "expected %v %s, received %s", want, what, p)
	}
}

// wantMaybe is wantNumber for what may have no value, and then must be null.
func (v *validation) wantMaybe(p place, want *float64, tolerance float64, what string, others ...place) {
	if want != nil {
		v.wantNumber(p, *want, tolerance, what, others...)
	} else {
		v.wantNull(p, what, others...)
	}
}

// wantNull faults a value that is not null.
func (v *validation) wantNull(p place, what string, others ...place) {
	if p.some() {
		v.contradiction(p, others, "expected null %s, received %s", what, p)
	}
}

// ulps is the distance of so many neighbouring float64 at a size.
func ulps(n int, size float64) float64 {
	size = math.Abs(size)
	return float64(n) * (math.Nextafter(size, math.Inf(1)) - size)
}

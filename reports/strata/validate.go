package strata

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Fault is one thing that is wrong with a document: where, as a JSON pointer (RFC 6901), and what. The pointer of a
// member that ought to be there names the place where it ought to be.
type Fault struct {
	Pointer string
	Message string
}

func (f Fault) String() string {
	return fmt.Sprintf("%s: %s", cmp.Or(f.Pointer, "(the document)"), f.Message)
}

// MaxDocument is the size in bytes of the largest text that is looked into; the largest run's document stays far below.
const MaxDocument = 64 << 20

// Validate says everything that is wrong with a result document, in document order; nothing when it is right. It checks
// that the text is strict JSON, that it has the format's shape, that its numbers are written as the format says, and that
// its values agree with one another. With files, the directory of the document, the artifacts that are there must have
// their digests; nil leaves the artifacts' contents alone.
//
// Text that is not JSON at all, larger than MaxDocument or nested too deep has only that fault. Pointers and messages
// are cut to a length that can be read.
func Validate(data []byte, files fs.FS) []Fault {
	if len(data) > MaxDocument {
		return []Fault{{"", fmt.Sprintf("expected at most %d bytes, received %d", MaxDocument, len(data))}}
	}
	root, faults := readTree(data)
	if root == nil {
		return shortened(faults)
	}
	v := validation{root: root, files: files, faults: faults}
	v.schema(data)
	v.rows = readRows(root)
	for _, check := range meaning {
		check(&v)
	}
	v.ours(data)
	return shortened(v.sorted())
}

// Lengths in bytes to which the two parts of a fault are cut.
const (
	shownPointer = 256
	shownMessage = 1024
)

// shortened cuts what is long in faults, at a character. It comes last: faults are sorted by their whole pointers.
func shortened(faults []Fault) []Fault {
	for i := range faults {
		f := &faults[i]
		f.Pointer, f.Message = cut(f.Pointer, shownPointer), cut(f.Message, shownMessage)
	}
	return faults
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

// meaning lists what is checked besides the shape. Each check passes over values that are absent or of another type:
// the schema has told of those already.
var meaning = []func(*validation){
	(*validation).numbers,
	(*validation).missing,
	(*validation).runFacts,
	(*validation).status,
	(*validation).counts,
	(*validation).requestOrder,
	(*validation).requests,
	(*validation).summaries,
	(*validation).rounds,
	(*validation).quality,
	(*validation).artifacts,
	(*validation).reasonCodes,
	(*validation).requestChecks,
	(*validation).drift,
}

// validation is a document under examination.
type validation struct {
	root   *node
	rows   []row
	files  fs.FS
	faults []Fault
}

// fault records what is wrong with a node.
func (v *validation) fault(n *node, format string, args ...any) {
	v.faultAt(n.at, format, args...)
}

func (v *validation) faultAt(at jsontext.Pointer, format string, args ...any) {
	v.faults = append(v.faults, Fault{string(at), fmt.Sprintf(format, args...)})
}

// sorted returns the faults in document order, each once.
func (v *validation) sorted() []Fault {
	slices.SortStableFunc(v.faults, func(a, b Fault) int {
		x, _ := v.root.find(jsontext.Pointer(a.Pointer))
		y, _ := v.root.find(jsontext.Pointer(b.Pointer))
		return cmp.Or(cmp.Compare(x.order, y.order), cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(v.faults)
}

// wantWhole faults a node that is there as an integer and is not the one expected.
func (v *validation) wantWhole(n *node, want int64, what string) {
	if got, ok := n.whole(); ok && got != want {
		v.fault(n, "expected %d %s, received %d", want, what, got)
	}
}

// wantNumber faults a number that is not the expected one, rounded to its decimals.
func (v *validation) wantNumber(n *node, want float64, decimals int, what string) {
	got, ok := n.num()
	if !ok || near(got, want, decimals) {
		return
	}
	text := fmt.Sprint(want)
	if number, err := NewNumber(want, decimals); err == nil {
		text = number.String()
	}
	v.fault(n, "expected %s %s, received %s", text, what, n.raw)
}

// near reports whether got is want rounded to a number of decimals. A value half-way between two may go either way.
func near(got, want float64, decimals int) bool {
	half := 0.5 * math.Pow10(-decimals)
	return math.Abs(got-want) <= half*(1+1e-6)+math.Abs(want)*1e-12
}

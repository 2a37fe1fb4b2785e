package strata

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// node is one value of a JSON document that is being checked. A nil node stands for a value that is not there: every
// method works on it, so that a check reads as a claim about a path and says nothing about a document without it.
type node struct {
	kind    jsontext.Kind // n t f " 0 [ {
	at      jsontext.Pointer
	raw     string // as written; scalars only
	text    string // a string's value
	order   int    // position in document order
	parent  *node
	names   []string
	members map[string]*node
	items   []*node
}

// Bounds of what is read, far above what a run can fill: they keep a text that is made to be large from filling memory.
const (
	maxDepth   = 64        // objects and lists in one another
	maxValues  = 1_000_000 // of any kind
	maxPointer = 1024      // bytes: a pointer is kept with every value
)

// readTree reads a JSON document. Duplicate names and strings that are not UTF-8 are faults beside the tree; after bytes
// that are not JSON, and beyond the bounds, there is no tree.
func readTree(data []byte) (*node, []Fault) {
	r := treeReader{data: data, dec: jsontext.NewDecoder(bytes.NewReader(data),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	root, err := r.value("", nil)
	if err == nil {
		_, err = r.dec.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return root, r.faults
		case err == nil:
			err = fmt.Errorf("more than one JSON value: the second ends at byte %d", r.dec.InputOffset())
		}
	}
	return nil, append(r.faults, r.broken(err))
}

type treeReader struct {
	data   []byte
	dec    *jsontext.Decoder
	count  int
	faults []Fault
}

func (r *treeReader) broken(err error) Fault {
	f := Fault{Pointer: string(r.dec.StackPointer())}
	var syntax *jsontext.SyntacticError
	var beyond *boundError
	switch {
	case errors.As(err, &beyond):
		f.Pointer, f.Message = string(beyond.at), beyond.message
	case errors.As(err, &syntax):
		f.Pointer = string(syntax.JSONPointer)
		f.Message = fmt.Sprintf("not JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)
	case errors.Is(err, io.EOF):
		f.Message = "no JSON value at all"
	default:
		f.Message = err.Error()
	}
	return f
}

// boundError says which bound a document passes, and where.
type boundError struct {
	at      jsontext.Pointer
	message string
}

func (e *boundError) Error() string { return e.message }

// bound refuses a value beyond the bounds.
func (r *treeReader) bound(at jsontext.Pointer) error {
	switch {
	case r.dec.StackDepth() > maxDepth:
		return &boundError{at, fmt.Sprintf("expected at most %d levels of objects and lists, received more", maxDepth)}
	case r.count > maxValues:
		return &boundError{at, fmt.Sprintf("expected at most %d values in all, received more", maxValues)}
	case len(at) > maxPointer:
		return &boundError{at, fmt.Sprintf("expected a pointer of at most %d bytes, received %d", maxPointer, len(at))}
	}
	return nil
}

// token reads a token and returns it with its bytes as written.
func (r *treeReader) token(at jsontext.Pointer) (jsontext.Token, string, error) {
	before := r.dec.InputOffset()
	tok, err := r.dec.ReadToken()
	if err != nil {
		return tok, "", err
	}
	raw := strings.TrimLeft(string(r.data[before:r.dec.InputOffset()]), " \t\r\n,:")
	if tok.Kind() == '"' && !jsontext.Value(raw).IsValid() {
		r.faults = append(r.faults, Fault{string(at), "a string that is not valid UTF-8"})
	}
	return tok, raw, nil
}

func (r *treeReader) value(at jsontext.Pointer, parent *node) (*node, error) {
	n := &node{at: at, order: r.count, parent: parent}
	r.count++
	tok, raw, err := r.token(at)
	if err != nil {
		return nil, err
	}
	if err := r.bound(at); err != nil {
		return nil, err
	}
	n.kind, n.raw = tok.Kind(), raw
	switch n.kind {
	case '"':
		n.text = tok.String()
	case '[':
		err = r.list(n)
	case '{':
		err = r.object(n)
	}
	return n, err
}

func (r *treeReader) list(n *node) error {
	for r.dec.PeekKind() != ']' {
		item, err := r.value(n.at.AppendToken(strconv.Itoa(len(n.items))), n)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := r.dec.ReadToken()
	return err
}

func (r *treeReader) object(n *node) error {
	n.members = map[string]*node{}
	for r.dec.PeekKind() != '}' {
		name, _, err := r.token(n.at)
		if err != nil {
			return err
		}
		key := name.String()
		at := n.at.AppendToken(key)
		value, err := r.value(at, n)
		if err != nil {
			return err
		}
		if _, twice := n.members[key]; twice {
			r.faults = append(r.faults, Fault{string(at), "this name stands twice in its object"})
			continue
		}
		n.names = append(n.names, key)
		n.members[key] = value
	}
	_, err := r.dec.ReadToken()
	return err
}

// get follows member names; a step that is not there gives nil.
func (n *node) get(names ...string) *node {
	for _, name := range names {
		if n == nil {
			return nil
		}
		n = n.members[name]
	}
	return n
}

// list returns the items of a list, nil for anything else.
func (n *node) list() []*node {
	if n == nil {
		return nil
	}
	return n.items
}

// fields returns the members of an object in order.
func (n *node) fields() iter.Seq2[string, *node] {
	return func(yield func(string, *node) bool) {
		if n == nil {
			return
		}
		for _, name := range n.names {
			if !yield(name, n.members[name]) {
				return
			}
		}
	}
}

// all returns the node and everything below it, in document order.
func (n *node) all() iter.Seq[*node] {
	return func(yield func(*node) bool) { n.each(yield) }
}

func (n *node) each(yield func(*node) bool) bool {
	if n == nil {
		return true
	}
	if !yield(n) {
		return false
	}
	for _, item := range n.items {
		if !item.each(yield) {
			return false
		}
	}
	for _, name := range n.names {
		if !n.members[name].each(yield) {
			return false
		}
	}
	return true
}

// find returns the node at a pointer, or its nearest ancestor that is there.
func (n *node) find(at jsontext.Pointer) (found *node, exact bool) {
	for token := range at.Tokens() {
		next := n.members[token]
		if i, err := strconv.Atoi(token); err == nil && n.kind == '[' && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			return n, false
		}
		n = next
	}
	return n, true
}

func (n *node) is(kind jsontext.Kind) bool { return n != nil && n.kind == kind }
func (n *node) null() bool                 { return n.is('n') }

// str returns a string's value.
func (n *node) str() (string, bool) {
	if !n.is('"') {
		return "", false
	}
	return n.text, true
}

// word is str for comparisons: "" when there is no string.
func (n *node) word() string {
	s, _ := n.str()
	return s
}

// num returns a number's value.
func (n *node) num() (float64, bool) {
	if !n.is('0') {
		return 0, false
	}
	v, err := json.Number(n.raw).Float64()
	return v, err == nil
}

// whole returns a number's value when it is written as an integer.
func (n *node) whole() (int64, bool) {
	if !n.is('0') {
		return 0, false
	}
	v, err := strconv.ParseInt(n.raw, 10, 64)
	return v, err == nil
}

// truth returns a boolean's value.
func (n *node) truth() (value, ok bool) {
	return n.is('t'), n.is('t') || n.is('f')
}

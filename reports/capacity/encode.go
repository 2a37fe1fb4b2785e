package capacity

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object to be written. Its values are objects, lists, streams, strings, booleans, whole numbers,
// float64, pointers to them (nil is null), and nil.
type object map[string]any

// list is a JSON list to be written.
type list []any

// stream is a JSON list whose items are made while it is written.
type stream func(emit func(any) error) error

// encoder writes the format's text: names sorted, two spaces of indent, ASCII only.
type encoder struct {
	w     *bufio.Writer
	depth int
}

// encode writes a value and a final newline.
func encode(w io.Writer, value any) error {
	e := encoder{w: bufio.NewWriterSize(w, 1<<16)}
	if err := e.value(value); err != nil {
		return err
	}
	e.w.WriteByte('\n')
	return e.w.Flush()
}

// unwritable is a value that cannot be written, with its place below the object or list that is returned from.
type unwritable struct {
	tokens []string // innermost first
	err    error
}

func (u *unwritable) Error() string {
	var at jsontext.Pointer
	for _, token := range slices.Backward(u.tokens) {
		at = at.AppendToken(token)
	}
	return fmt.Sprintf("at %q: %v", at, u.err)
}

// within says under which name or index an unwritable value was met.
func within(token string, err error) error {
	var u *unwritable
	if errors.As(err, &u) {
		u.tokens = append(u.tokens, token)
	}
	return err
}

func (e *encoder) value(value any) error {
	switch v := value.(type) {
	case nil:
		return e.text("null")
	case object:
		return e.object(v)
	case list:
		return e.items(func(emit func(any) error) error {
			for _, item := range v {
				if err := emit(item); err != nil {
					return err
				}
			}
			return nil
		})
	case stream:
		return e.items(v)
	case string:
		return e.text(quoted(v))
	case *string:
		return pointed(e, v)
	case bool:
		return e.text(strconv.FormatBool(v))
	case *bool:
		return pointed(e, v)
	case int:
		return e.text(strconv.Itoa(v))
	case int64:
		return e.text(strconv.FormatInt(v, 10))
	case *int:
		return pointed(e, v)
	case *int64:
		return pointed(e, v)
	case float64:
		text, err := floatText(v)
		if err != nil {
			return &unwritable{err: err}
		}
		return e.text(text)
	case *float64:
		return pointed(e, v)
	}
	return &unwritable{err: fmt.Errorf("expected a value that the format has, received a %T", value)}
}

// pointed writes what a pointer points to, null for none.
func pointed[T any](e *encoder, p *T) error {
	if p == nil {
		return e.text("null")
	}
	return e.value(*p)
}

func (e *encoder) text(s string) error {
	_, err := e.w.WriteString(s)
	return err
}

func (e *encoder) object(o object) error {
	if len(o) == 0 {
		return e.text("{}")
	}
	e.w.WriteByte('{')
	e.depth++
	for i, name := range slices.Sorted(maps.Keys(o)) {
		e.next(i)
		e.text(quoted(name))
		e.text(": ")
		if err := e.value(o[name]); err != nil {
			return within(name, err)
		}
	}
	return e.end("}")
}

func (e *encoder) items(each stream) error {
	e.w.WriteByte('[')
	e.depth++
	n := 0
	err := each(func(item any) error {
		e.next(n)
		n++
		return within(strconv.Itoa(n-1), e.value(item))
	})
	if err != nil {
		return err
	}
	if n == 0 {
		e.depth--
		return e.text("]")
	}
	return e.end("]")
}

// next starts the line of an item or a member.
func (e *encoder) next(index int) {
	if index > 0 {
		e.w.WriteByte(',')
	}
	e.line()
}

func (e *encoder) end(closing string) error {
	e.depth--
	e.line()
	return e.text(closing)
}

func (e *encoder) line() {
	e.w.WriteByte('\n')
	for range e.depth {
		e.w.WriteString("  ")
	}
}

// named are the escapes that have a letter of their own.
var named = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

// quoted writes a string in ASCII: all else is escaped, above U+FFFF as a pair of surrogates.
func quoted(s string) string {
	plain := func(r rune) bool { return r >= ' ' && r <= '~' && r != '"' && r != '\\' }
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return `"` + s + `"`
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch high, low := utf16.EncodeRune(r); {
		case plain(r):
			b.WriteRune(r)
		case named[r] != "":
			b.WriteString(named[r])
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

package transcript

import (
	"fmt"
	"strconv"
	"strings"
)

// assembler joins the pieces of tool calls. Pieces belong together by index; where a server leaves the index out or
// gives one index to two calls, the id and the completeness of the arguments tell calls apart, and that repair is
// reported. It never makes up an id, an index or a name.
type assembler struct {
	calls   []*callParts
	byIndex map[int64]*callParts // the latest call of an index
	byID    map[string]*callParts
	longest int // length of the longest name offered
}

type callParts struct {
	index int64
	id    string
	kind  string
	name  []byte
	args  []byte
	value bool // a piece of args was no string
	join  joiner
	scan  jsonEnd
}

// jsonEnd follows JSON text as it comes and tells when the braces and brackets that it opened are closed.
type jsonEnd struct {
	depth    int
	inString bool
	escape   bool
	seen     bool
}

func (j *jsonEnd) write(s string) {
	for i := range len(s) {
		c := s[i]
		switch {
		case j.escape:
			j.escape = false
		case j.inString:
			j.escape = c == '\\'
			j.inString = c != '"'
		case c == '"':
			j.inString = true
		case c == '{' || c == '[':
			j.depth++
			j.seen = true
		case c == '}' || c == ']':
			j.depth--
		}
	}
}

func (j *jsonEnd) complete() bool { return j.seen && j.depth <= 0 && !j.inString }

// piece is one element of a tool_calls list.
type piece struct {
	index    *int64
	id, kind string
	name     string
	args     string
	lone     bool // args holds half a surrogate pair
	value    bool // args was sent as another value than a string
}

// calls reads the tool_calls of a delta, or of a whole message.
func (r *reader) calls(v []byte, index int, ev Event, path string) {
	if isNull(v) {
		return
	}
	whole := index < 0
	each := func(n int, element []byte) {
		path := fmt.Sprintf("%s[%d]", path, n)
		p := r.piece(element, index, path)
		if whole && p.index == nil {
			i := int64(n)
			p.index = &i
		} else if p.index == nil {
			r.add(ToolIndexMissing, index, path+".index", "")
		}
		c := r.callFor(p, whole, index, path)
		args := c.join.add(p.args, p.lone)
		c.args = append(c.args, args...)
		c.value = c.value || p.value
		c.scan.write(args)
		if !whole {
			r.output(Delta{Kind: Call, At: ev.At, Event: index, Text: p.name + args})
		}
	}
	switch {
	case isList(v):
		eachElement(v, each)
	case isObject(v):
		r.add(ContentNotString, index, path, "it is an object, not a list")
		each(0, v)
	default:
		r.add(ContentNotString, index, path, "it is no list")
	}
}

func (r *reader) piece(v []byte, index int, path string) piece {
	var p piece
	eachMember(v, func(name, v []byte) {
		switch string(name) {
		case "index":
			p.index = integer(v)
		case "id":
			p.id, _ = text(v)
		case "type":
			p.kind, _ = text(v)
		case "function":
			eachMember(v, func(name, v []byte) {
				switch string(name) {
				case "name":
					p.name, _ = text(v)
				case "arguments":
					switch {
					case isNull(v):
					case isString(v):
						p.args, p.lone = unquote(v)
						r.characters(p.args, p.lone, index, path+".function.arguments")
					default:
						r.add(ToolArgumentsNotString, index, path+".function.arguments", "")
						p.args, p.value = compact(v), true
					}
				}
			})
		}
	})
	return p
}

// callFor finds the call that a piece belongs to, or begins one, and gives it the piece's id, type and name.
func (r *reader) callFor(p piece, whole bool, index int, path string) *callParts {
	a := &r.assembly
	c := a.find(p)
	if whole {
		c = nil
	}
	if c != nil && p.id != "" && c.id != "" && p.id != c.id {
		if p.name != "" && (c.scan.complete() || len(c.args) == 0) {
			if p.index != nil {
				r.add(ToolIndexCollision, index, path+".index", "index "+strconv.FormatInt(*p.index, 10))
			}
			c = nil
		} else {
			r.add(ToolIDUnstable, index, path+".id", "")
		}
	}
	if c == nil {
		c = a.begin(p)
	}
	if c.id == "" && p.id != "" {
		c.id = p.id
		if _, taken := a.byID[p.id]; !taken {
			a.byID[p.id] = c
		}
	}
	if c.kind == "" {
		c.kind = p.kind
	}
	r.name(c, p.name, index, path+".function.name")
	return c
}

// find is the call under way that a piece continues, nil when it begins one.
func (a *assembler) find(p piece) *callParts {
	if p.index != nil {
		return a.byIndex[*p.index]
	}
	if len(a.calls) == 0 {
		return nil
	}
	last := a.calls[len(a.calls)-1]
	switch {
	case p.id != "":
		return a.byID[p.id]
	case p.name != "" && last.scan.complete():
		return nil
	}
	return last
}

func (a *assembler) begin(p piece) *callParts {
	c := &callParts{index: int64(len(a.calls))}
	if p.index != nil {
		c.index = *p.index
	}
	if a.byIndex == nil {
		a.byIndex, a.byID = map[int64]*callParts{}, map[string]*callParts{}
	}
	a.byIndex[c.index] = c
	a.calls = append(a.calls, c)
	return c
}

// name joins the pieces of a function's name. A piece that repeats the name is told from one that continues it by the
// names that were offered, and where they do not tell, by being the same.
func (r *reader) name(c *callParts, s string, index int, path string) {
	if s == "" {
		return
	}
	if len(c.name) == 0 {
		c.name = append(c.name, s...)
		return
	}
	switch {
	case r.continues(c.name, s):
		r.add(ToolNameSplit, index, path, "")
		c.name = append(c.name, s...)
	case string(c.name) == s:
		r.add(ToolNameRepeated, index, path, "")
	case len(s) > len(c.name) && strings.HasPrefix(s, string(c.name)):
		r.add(ToolNameRepeated, index, path, "each piece repeats the one before and adds to it")
		c.name = append(c.name[:0], s...)
	default:
		r.add(ToolNameSplit, index, path, "")
		c.name = append(c.name, s...)
	}
}

// continues reports whether name and s together begin or make the name of an offered function.
func (r *reader) continues(name []byte, s string) bool {
	if r.assembly.longest == 0 {
		for offered := range r.asked.tools {
			r.assembly.longest = max(r.assembly.longest, len(offered))
		}
	}
	if len(name)+len(s) > r.assembly.longest {
		return false
	}
	joined := string(name) + s
	for offered := range r.asked.tools {
		if strings.HasPrefix(offered, joined) {
			return true
		}
	}
	return false
}

// result closes the assembly.
func (a *assembler) result() []ToolCall {
	var out []ToolCall
	for _, c := range a.calls {
		c.args = append(c.args, c.join.rest()...)
		out = append(out, ToolCall{Index: int(c.index), ID: c.id, Type: c.kind, Name: string(c.name),
			Arguments: string(c.args), NotString: c.value})
	}
	return out
}

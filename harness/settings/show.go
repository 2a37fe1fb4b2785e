package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Redacted is every setting in the order of the struct as a JSON object, indented: {"url": {"value": …, "source":
// "flag"}, …}. A setting without a value is null. Paths are shown as they were given. It holds no secret.
func (s *Settings) Redacted() json.RawMessage {
	var b bytes.Buffer
	b.WriteString("{")
	v := reflect.ValueOf(s).Elem()
	for i, f := range fields {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n  %s: {\"value\": %s, \"source\": %s}", encode(f.flag),
			encode(s.display(f, v.FieldByIndex(f.index))), encode(s.From(f.flag)))
	}
	b.WriteString("\n}")
	return b.Bytes()
}

// Chosen is a line for every setting that somebody chose, as Redacted shows it: "url: http://… (flag)".
func (s *Settings) Chosen() []string {
	var lines []string
	v := reflect.ValueOf(s).Elem()
	for _, f := range fields {
		if from := s.From(f.flag); from != FromDefault {
			lines = append(lines, fmt.Sprintf("%s: %v (%s)", f.flag, s.display(f, v.FieldByIndex(f.index)), from))
		}
	}
	return lines
}

func (s *Settings) display(f field, v reflect.Value) any {
	o := s.origins[f.flag]
	if (f.kind == kindPath || f.kind == kindProgram || f.kind == kindNameOrFile) && o.texts != nil {
		if f.list {
			return o.texts
		}
		return o.last()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		if x == 0 {
			return nil
		}
		return x.String()
	case string:
		if x == "" {
			return nil
		}
		return maskURL(x)
	case []string:
		if x == nil {
			return nil
		}
		return x
	case int:
		if x == 0 && f.def == "" {
			return nil
		}
		return x
	default:
		return x
	}
}

// encode is json.Marshal without HTML escapes; the values here always marshal.
func encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Command is a line for a POSIX shell that runs the program again with these settings: those from the environment as
// assignments in front, then the program and its arguments, each quoted where it must be. Values that could be secret
// are left out.
func (s *Settings) Command(program string, args []string) string {
	var words []string
	for _, f := range fields {
		if o := s.origins[f.flag]; o.source == FromEnvironment {
			words = append(words, f.env+"="+quote(maskURL(strings.Join(o.texts, ","))))
		}
	}
	words = append(words, quote(program))
	hide := false
	for _, arg := range args {
		switch name, _, hasValue := strings.Cut(arg, "="); {
		case hide:
			arg, hide = hidden, false
		case strings.HasPrefix(arg, "-") && holdsCredential(name):
			if hasValue {
				arg = name + "=" + hidden
			}
			hide = !hasValue
		default:
			arg = maskURL(arg)
		}
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ")
}

// quote writes a word for a POSIX shell.
func quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Usage is a Markdown table of all settings: flag, environment variable, default, help.
func Usage() string {
	var b strings.Builder
	b.WriteString("| flag | environment | default | what it does |\n| --- | --- | --- | --- |\n")
	for _, f := range fields {
		def := "`" + f.def + "`"
		if f.def == "" {
			def = f.unset
		}
		help := f.help
		if len(f.enum) > 0 {
			help += " (valid: `" + strings.Join(f.enum, "`, `") + "`)"
		}
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", f.flag, f.env, def, strings.ReplaceAll(help, "|", `\|`))
	}
	return b.String()
}

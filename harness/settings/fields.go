package settings

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is how a setting's text is read.
type kind int

const (
	kindText kind = iota
	kindPath
	kindNameOrFile
	kindVariable
	kindProgram
	kindWord
	kindBool
	kindInt
	kindBytes
	kindDuration
	kindNumber
)

// field is a setting as its tags describe it.
type field struct {
	flag, env        string
	help, def, unset string
	enum             []string
	kind             kind
	list             bool
	min, max         int64
	index            []int // of the struct field, from Settings down
	withoutFile      bool  // may not be set in the file
}

// fields describes every setting, in the order of the struct.
var fields = describe(reflect.TypeFor[Settings](), nil)

// describe describes the settings of a struct and of the structs in it; path leads to it.
func describe(t reflect.Type, path []int) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(slices.Clone(path), i)
		name := sf.Tag.Get("flag")
		if name == "" {
			if sf.IsExported() && sf.Type.Kind() == reflect.Struct {
				out = append(out, describe(sf.Type, index)...)
			}
			continue
		}
		f := field{flag: name, env: EnvName(name), help: sf.Tag.Get("help"), def: sf.Tag.Get("default"),
			unset: sf.Tag.Get("unset"), index: index}
		if e := sf.Tag.Get("enum"); e != "" {
			f.enum = strings.Split(e, ",")
		}
		f.min, _ = strconv.ParseInt(sf.Tag.Get("min"), 10, 64)
		f.max, _ = strconv.ParseInt(sf.Tag.Get("max"), 10, 64)
		elem := sf.Type
		switch elem.Kind() {
		case reflect.Slice:
			f.list, elem = true, elem.Elem()
		case reflect.Pointer:
			elem = elem.Elem()
		}
		f.kind = kindOf(elem, sf.Tag.Get("kind"))
		f.withoutFile = name == "config" // a file that names another file would make the order of precedence a puzzle
		out = append(out, f)
	}
	return out
}

func kindOf(t reflect.Type, tag string) kind {
	switch {
	case tag == "path":
		return kindPath
	case tag == "name-or-file":
		return kindNameOrFile
	case tag == "variable":
		return kindVariable
	case tag == "program":
		return kindProgram
	case tag == "word":
		return kindWord
	case tag == "bytes":
		return kindBytes
	case t == reflect.TypeFor[time.Duration]():
		return kindDuration
	case t.Kind() == reflect.Bool:
		return kindBool
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return kindInt
	case t.Kind() == reflect.Float64:
		return kindNumber
	}
	return kindText
}

// EnvName is the environment variable of the setting with this flag name.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func byFlag(name string) (field, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.flag == name })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

// names lists what each setting is called in one source.
func names(of func(field) string) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = of(f)
	}
	return out
}

func asFlag(f field) string { return "--" + f.flag }
func asEnv(f field) string  { return f.env }
func asKey(f field) string  { return f.flag }

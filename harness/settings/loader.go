package settings

import (
	"errors"
	"flag"
	"reflect"
	"strings"
)

// Loader takes the flags of a flag set and resolves them, the environment and the file into Settings.
type Loader struct {
	fs     *flag.FlagSet
	values map[string]*rawFlag
}

// rawFlag keeps a flag's text unread, so that a bad value is reported by Resolve, with all other faults and without
// the usage dump of package flag.
type rawFlag struct {
	f     field
	texts []string
}

// Set implements flag.Value.
func (r *rawFlag) Set(text string) error {
	switch {
	case r.f.kind == kindWord:
		r.texts = append(r.texts, text)
	case r.f.list:
		r.texts = append(r.texts, splitList(r.f, text)...)
	default:
		r.texts = []string{text}
	}
	return nil
}

// String implements flag.Value.
func (r *rawFlag) String() string {
	if r == nil {
		return ""
	}
	return strings.Join(r.texts, ",")
}

// IsBoolFlag lets a bare --flag mean true, where the setting is a truth value.
func (r *rawFlag) IsBoolFlag() bool { return r.f.kind == kindBool }

// Register adds a flag for every setting to the flag set. Call Resolve on the result after the set was parsed.
func Register(fs *flag.FlagSet) *Loader {
	l := &Loader{fs: fs, values: map[string]*rawFlag{}}
	for _, f := range fields {
		r := &rawFlag{f: f}
		l.values[f.flag] = r
		fs.Var(r, f.flag, f.describe())
	}
	return l
}

// describe is the help with what applies when the setting is left out.
func (f field) describe() string {
	text := f.help
	if len(f.enum) > 0 {
		text += " (valid: " + strings.Join(f.enum, ", ") + ")"
	}
	if f.def != "" {
		return text + " (default " + f.def + ")"
	}
	return text + " (without it: " + f.unset + ")"
}

// Resolve reads the settings: flags that were set, then the environment (entries as of os.Environ), then the file,
// then defaults. Relative paths are taken from baseDir. The error joins every Fault found.
func (l *Loader) Resolve(environ []string, baseDir string) (*Settings, error) {
	s := &Settings{base: baseDir, origins: map[string]origin{}}
	var faults []error
	env := parseEnviron(environ)
	found := l.flags()
	merge(found, env.settings())
	if path := found["config"].last(); path != "" {
		fromFile, fileFaults := readFile(resolvePath(path, baseDir), path)
		faults = append(faults, fileFaults...)
		merge(found, fromFile)
	}
	faults = append(faults, env.strangers(found["credential-env"].last())...)

	v := reflect.ValueOf(s).Elem()
	for _, f := range fields {
		o, given := found[f.flag]
		if !given {
			if f.def == "" {
				continue
			}
			o = origin{source: FromDefault, where: string(FromDefault), texts: []string{f.def}}
		}
		s.origins[f.flag] = o
		if err := assign(v.FieldByIndex(f.index), f, o.texts, baseDir); err != nil {
			faults = append(faults, s.fault(f, err.Error()))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if faults := s.check(env); len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return s, nil
}

// flags are the settings that the command line set.
func (l *Loader) flags() map[string]origin {
	found := map[string]origin{}
	l.fs.Visit(func(f *flag.Flag) {
		if r, ok := l.values[f.Name]; ok {
			found[f.Name] = origin{source: FromFlag, where: string(FromFlag), texts: r.texts}
		}
	})
	return found
}

// merge adds what a weaker source set and no stronger one did.
func merge(found, weaker map[string]origin) {
	for name, o := range weaker {
		if _, ok := found[name]; !ok {
			found[name] = o
		}
	}
}

// fault names a setting as its source calls it.
func (s *Settings) fault(f field, problem string) *Fault {
	o := s.origins[f.flag]
	value := strings.Join(o.texts, ",")
	if f.kind == kindVariable && !plainVariable.MatchString(value) {
		value = hidden // it may be the key itself, given in the wrong place
	}
	return &Fault{Name: o.name(f), Value: maskURL(value), Where: o.where, Problem: problem}
}

// last is the text that counts where several were given and one is wanted.
func (o origin) last() string {
	if len(o.texts) == 0 {
		return ""
	}
	return o.texts[len(o.texts)-1]
}

// name is what the source of a value calls its setting.
func (o origin) name(f field) string {
	switch o.source {
	case FromEnvironment:
		return f.env
	case FromFile:
		return f.flag
	}
	return "--" + f.flag
}

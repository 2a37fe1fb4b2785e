package settings

import (
	"errors"
	"flag"
	"slices"
	"strings"
)

// CheckArgs finds what package flag would answer with a usage dump or not notice at all: unknown flags, flags without
// their value, and arguments that are no flags, after which package flag ignores every further flag. args are the
// command line without the program's name; fs holds every flag that is valid there, those of Ginkgo and of package
// testing included. Call it before the flag set is parsed. The error joins every Fault found.
func CheckArgs(args []string, fs *flag.FlagSet) error {
	var faults []error
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" && i == len(args)-1 {
			break
		}
		if len(arg) < 2 || arg[0] != '-' || arg == "--" {
			faults = append(faults, stray(args, i))
			break
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		if name == "h" || name == "help" {
			continue
		}
		f := fs.Lookup(name)
		if f == nil {
			if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				value = args[i]
			}
			faults = append(faults, unknown("--"+name, value, string(FromFlag), flagNames(fs)))
			continue
		}
		if hasValue || isBool(f) {
			continue
		}
		i++
		if i == len(args) {
			faults = append(faults, &Fault{Name: "--" + name, Where: string(FromFlag), Problem: "there is no value after it"})
		}
	}
	return errors.Join(faults...)
}

// stray is the fault for an argument that is no flag. The usual cause is a truth value written apart from its flag.
func stray(args []string, i int) error {
	problem := "this is no flag, and flags after it would be ignored"
	before := ""
	if i > 0 {
		before = strings.TrimLeft(args[i-1], "-")
	}
	if f, ok := byFlag(before); ok && f.kind == kindBool {
		problem += "; write --" + before + "=" + args[i]
	}
	return &Fault{Name: "argument", Value: maskURL(args[i]), Where: string(FromFlag), Problem: problem}
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// flagNames lists the flags of a set that are settings, or all of them where none is.
func flagNames(fs *flag.FlagSet) []string {
	var ours, all []string
	fs.VisitAll(func(f *flag.Flag) {
		all = append(all, "--"+f.Name)
		if _, ok := byFlag(f.Name); ok {
			ours = append(ours, "--"+f.Name)
		}
	})
	if len(ours) == 0 {
		ours = all
	}
	slices.Sort(ours)
	return ours
}

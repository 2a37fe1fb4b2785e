package session

import (
	"slices"
	"strings"
)

// Invocation is how a process of the suite with these arguments, its own name first, can be started again: through
// Ginkgo's command when that started it, with the filters that chose its specs; else as it was. Ginkgo passes what stands
// after "--" on as it is.
func Invocation(args []string) (program string, again []string) {
	if !throughGinkgo(args) {
		return args[0], args[1:]
	}
	var filters, own []string
	for _, arg := range args[1:] {
		name, isGinkgo := strings.CutPrefix(arg, "--ginkgo.")
		switch {
		case isGinkgo && choosesSpecs(name):
			filters = append(filters, "--"+name)
		case isGinkgo, strings.HasPrefix(arg, "--test."):
		default:
			own = append(own, arg)
		}
	}
	return "go", slices.Concat([]string{"tool", "ginkgo"}, filters, []string{"./suites", "--"}, own)
}

// throughGinkgo tells the arguments of Ginkgo's command: it numbers the processes that it starts, even when there is one.
func throughGinkgo(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--ginkgo.parallel.total=") })
}

// choosesSpecs reports whether a flag of Ginkgo's changes which specs run. Ginkgo writes its values behind "=".
func choosesSpecs(flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	return slices.Contains([]string{"label-filter", "focus", "skip", "focus-file", "skip-file"}, name)
}

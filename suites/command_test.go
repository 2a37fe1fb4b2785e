package suites_test

import (
	"os"
	"path/filepath"
	"strings"
)

// invocation is how this process can be started again: through Ginkgo's command when that started it, with the filters
// that chose its specs; else by its own name. Ginkgo passes what stands after "--" on as it is.
func invocation(args []string) (program string, again []string) {
	var ginkgo, own []string
	through := false
	for _, arg := range args {
		name, isGinkgo := strings.CutPrefix(strings.TrimLeft(arg, "-"), "ginkgo.")
		switch {
		case isGinkgo && strings.HasPrefix(name, "parallel."):
			// chosen by Ginkgo for each process
		case isGinkgo:
			through = true
			if keepsMeaning(name) {
				ginkgo = append(ginkgo, "--"+name)
			}
		case strings.HasPrefix(strings.TrimLeft(arg, "-"), "test."):
		default:
			own = append(own, arg)
		}
	}
	if through {
		words := append([]string{"tool", "ginkgo"}, ginkgo...)
		return "go", append(append(words, "./suites", "--"), own...)
	}
	return filepath.Base(os.Args[0]), own
}

// keepsMeaning reports whether a flag of Ginkgo's changes which specs run.
func keepsMeaning(flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	switch name {
	case "label-filter", "focus", "skip", "focus-file", "skip-file":
		return true
	}
	return false
}

package session

import (
	"context"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"plumbline/harness/settings"
)

// commit is set by the linker where a build names its source; see the Makefile.
var commit string

// Version is this program's version, "devel" for a build without one.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// gitTimeout bounds the question to git, which reads a few files.
const gitTimeout = 5 * time.Second

// Commit is the source commit that this program was built from, "" when that is not known. Go records none in a test
// binary, so a suite that runs in its own source tree asks git, and takes the answer only while nothing differs from it.
func Commit(ctx context.Context) string {
	if commit != "" {
		return commit
	}
	tree, ok := settings.SourceTree()
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	if changed, err := exec.CommandContext(ctx, "git", "-C", tree, "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(changed) > 0 {
		return ""
	}
	head, err := exec.CommandContext(ctx, "git", "-C", tree, "rev-parse", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(head))
}

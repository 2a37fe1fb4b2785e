package facts

import (
	"os"
	"syscall"
)

// identify is what tells this file from any other and from itself after a change.
func identify(info os.FileInfo) (fileIdentity, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileIdentity{}, false
	}
	return fileIdentity{Device: uint64(s.Dev), Inode: s.Ino, Bytes: s.Size, Modified: s.Mtim.Nano(), Changed: s.Ctim.Nano()}, true
}

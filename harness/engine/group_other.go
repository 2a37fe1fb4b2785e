//go:build unix && !linux

package engine

import "syscall"

// ownGroup puts a child into a process group of its own. Only Linux tells a child of its parent's death: elsewhere the
// watchdog alone ends it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

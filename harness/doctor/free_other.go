//go:build !linux

package doctor

// freeBytes is not asked for on other systems: that the folder can be written in has been tried.
func freeBytes(string) (int64, bool) { return 0, false }

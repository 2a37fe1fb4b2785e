package settings

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// modulePath is the module whose test binaries Ginkgo runs in their package's folder.
const modulePath = "plumbline"

// BaseDir is the directory that relative paths are taken from: the working directory, except when that lies below the
// root of this module's source tree. There Ginkgo has changed into the folder of the suite, while the operator stood,
// and meant, the root.
func BaseDir() (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find base directory: %w", err)
	}
	return baseDir(cwd), nil
}

// baseDir stops at the first go.mod upwards: a folder of another module belongs to that one.
func baseDir(cwd string) string {
	for dir := cwd; ; {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			if modfile.ModulePath(data) == modulePath {
				return dir
			}
			return cwd
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return cwd
		}
		dir = parent
	}
}

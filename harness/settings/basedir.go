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
	dir, _ := baseDir(cwd)
	return dir, nil
}

// SourceTree is the root of this module's source tree, when the process runs inside it.
func SourceTree() (string, bool) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", false
	}
	return baseDir(cwd)
}

// baseDir stops at the first go.mod upwards: a folder of another module belongs to that one. inside says whether the
// directory is the root of this module's source tree.
func baseDir(cwd string) (dir string, inside bool) {
	for dir := cwd; ; {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			if modfile.ModulePath(data) == modulePath {
				return dir, true
			}
			return cwd, false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return cwd, false
		}
		dir = parent
	}
}

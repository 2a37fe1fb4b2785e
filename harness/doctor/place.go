package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"plumbline/fixtures/engines"
	"plumbline/harness/settings"
)

// place is where a run would leave its files.
type place struct {
	dir string // the nearest folder that is there
	// free is how many bytes can be written there; false when this system does not tell.
	free      int64
	freeKnown bool
	err       error
}

// recordName is the file whose presence says that a folder is another run's.
const recordName = "outputs.jsonl"

// lookAtPlace goes up from the run's folder to the first that is there, and tries to write in it: rights, full drives and
// read-only ones all show so.
func lookAtPlace(s *settings.Settings) place {
	dir := s.OutDir("RUN-ID")
	if _, err := os.Stat(filepath.Join(dir, recordName)); err == nil {
		return place{dir: dir, err: fmt.Errorf("%q holds the record of another run already", dir)}
	}
	for {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return place{dir: dir, err: fmt.Errorf("%q is no folder", dir)}
		}
		if err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, os.ErrNotExist) || parent == dir {
			return place{dir: dir, err: fmt.Errorf("look at %q: %w", dir, cause(err))}
		}
		dir = parent
	}
	p := place{dir: dir}
	f, err := os.CreateTemp(dir, ".plumbline-doctor-")
	if err != nil {
		p.err = fmt.Errorf("write in %q: %w", dir, cause(err))
		return p
	}
	_, err = f.Write([]byte("x"))
	if err = errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		p.err = fmt.Errorf("write in %q: %w", dir, cause(err))
		return p
	}
	p.free, p.freeKnown = freeBytes(dir)
	return p
}

func cause(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// findProgram is the program that a recipe's process form would start.
func findProgram(s *settings.Settings, r *engines.Recipe) (string, error) {
	name := s.EngineCommand
	if name == "" {
		name = r.Process.Command.Value
	}
	if name == "" && r.Process.Build != nil {
		if _, inside := settings.SourceTree(); inside {
			return "go build " + r.Process.Build.Package, nil
		}
		name = r.Process.Build.Binary
	}
	if name == "" {
		return "", fmt.Errorf("the recipe %q names no program: name it with --command", r.Name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		if strings.ContainsRune(name, filepath.Separator) {
			return "", fmt.Errorf("%q cannot be started: no program is there", name)
		}
		return "", fmt.Errorf("no program %q is in PATH: install it, or name it with --command", name)
	}
	return path, nil
}

package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// ManifestFile lists every other file of a pack in the format of sha256sum, sorted by path.
const ManifestFile = "manifest.sha256"

// Bounds on what is read: the embedded pack has some 40 files, the largest below 100 KB.
const (
	maxFileBytes = 8 << 20
	maxFiles     = 1000
)

// Manifest returns the content of manifest.sha256 for the files of a pack, by path.
func Manifest(files map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != ManifestFile {
			fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(files[name]), name)
		}
	}
	return b.Bytes()
}

// verify reads every file of a pack and compares them with the manifest. All differences are reported, not only the
// first.
func verify(dir fs.FS, manifest []byte) (map[string][]byte, error) {
	want, err := parseManifest(manifest)
	if err != nil {
		return nil, err
	}
	present, err := list(dir)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte, len(want))
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !present[name] {
			faults = append(faults, fmt.Errorf("file %q is in the manifest but not in the pack", name))
			continue
		}
		data, err := readFile(dir, name)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != want[name] {
			faults = append(faults, fmt.Errorf("file %q was changed: sha256 expected %s, received %s", name, want[name], got))
		}
		files[name] = data
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if _, ok := want[name]; !ok {
			faults = append(faults, fmt.Errorf("file %q is in the pack but not in the manifest", name))
		}
	}
	return files, errors.Join(faults...)
}

// parseManifest returns the digests by path.
func parseManifest(manifest []byte) (map[string]string, error) {
	if len(manifest) == 0 || manifest[len(manifest)-1] != '\n' {
		return nil, fmt.Errorf("read %q: expected lines that end in a newline", ManifestFile)
	}
	digests := map[string]string{}
	last := ""
	for n, line := range strings.Split(strings.TrimSuffix(string(manifest), "\n"), "\n") {
		digest, name, ok := strings.Cut(line, "  ")
		if raw, err := hex.DecodeString(digest); !ok || err != nil || len(raw) != sha256.Size || digest != strings.ToLower(digest) {
			return nil, fmt.Errorf("read %q: line %d: expected a SHA-256, two spaces and a path, received %q", ManifestFile, n+1, line)
		}
		if !fs.ValidPath(name) || name == ManifestFile {
			return nil, fmt.Errorf("read %q: line %d: %q is not the path of a file of the pack", ManifestFile, n+1, name)
		}
		if name <= last {
			return nil, fmt.Errorf("read %q: line %d: %q is out of order after %q: expected paths sorted by byte, each once", ManifestFile, n+1, name, last)
		}
		digests[name], last = digest, name
	}
	return digests, nil
}

// list returns the paths of all files but the manifest.
func list(dir fs.FS) (map[string]bool, error) {
	present := map[string]bool{}
	err := fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() || name == ManifestFile:
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%q is not a regular file", name)
		case len(present) == maxFiles:
			return fmt.Errorf("more than %d files", maxFiles)
		}
		present[name] = true
		return nil
	})
	return present, err
}

func readFile(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read file %q: %w", name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read file %q: %w", name, err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("read file %q: larger than %d bytes", name, maxFileBytes)
	}
	return data, nil
}

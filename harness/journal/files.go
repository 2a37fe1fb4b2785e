package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"plumbline/fixtures"
)

// WriteFile writes a file beside the record, name being its path in dir with slashes. The file appears whole or not at
// all. It returns the artifact with its path and digest; its kind is the caller's to say.
func WriteFile(dir, name string, data []byte) (fixtures.Artifact, error) {
	local, err := filepath.Localize(name)
	if err != nil {
		return fixtures.Artifact{}, fmt.Errorf("write artifact %q: want a path inside the run's directory", name)
	}
	path := filepath.Join(dir, local)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return fixtures.Artifact{}, fmt.Errorf("write artifact: %w", err)
	}
	if err := renameio.WriteFile(path, data, 0o644); err != nil {
		return fixtures.Artifact{}, fmt.Errorf("write artifact %q: %w", name, err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fixtures.Artifact{}, fmt.Errorf("write artifact %q: %w", name, err)
	}
	sum := sha256.Sum256(data)
	return fixtures.Artifact{Path: name, SHA256: hex.EncodeToString(sum[:])}, nil
}

// SHA256File returns the SHA-256 of a file's content in lower-case hex.
func SHA256File(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hash file: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("hash file %q: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// makeDir makes a directory with its parents. Those it makes are synced into theirs, so that a file in it outlives a
// power cut.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory %q: %w", dir, err)
	}
	return nil
}

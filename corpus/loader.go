package corpus

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// DefaultID is the protocol id of the embedded pack.
const DefaultID = "strata-open-thinking-v1-draft.1"

//go:embed packs
var packs embed.FS

var defaultPack = sync.OnceValues(func() (*Pack, error) {
	dir, err := fs.Sub(packs, "packs/"+DefaultID)
	if err != nil {
		return nil, fmt.Errorf("open the embedded pack %q: %w", DefaultID, err)
	}
	p, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the embedded pack %q: %w", DefaultID, err)
	}
	p.BuiltIn = true
	return p, nil
})

// Default returns the embedded pack, checked like any other. It is read once; callers share it and must not change it.
func Default() (*Pack, error) { return defaultPack() }

// Open reads the pack in a directory and refuses one whose files are not exactly those of its manifest.sha256, or whose
// content is not whole (docs/formats.md tells what a pack holds). A new pack's manifest is written, inside its
// directory, by
//
//	find . -type f ! -name manifest.sha256 -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum > manifest.sha256
func Open(dir string) (*Pack, error) {
	root, err := os.OpenRoot(dir) // a link that leads out of the directory is not followed
	if err != nil {
		return nil, fmt.Errorf("open pack %q: %w", dir, err)
	}
	defer root.Close()
	p, err := open(root.FS())
	if err != nil {
		return nil, fmt.Errorf("open pack %q: %w", dir, err)
	}
	return p, nil
}

func open(dir fs.FS) (*Pack, error) {
	manifest, err := readFile(dir, ManifestFile)
	if err != nil {
		return nil, err
	}
	files, err := verify(dir, manifest)
	if err != nil {
		return nil, err
	}
	p, err := parse(files)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(manifest)
	p.ManifestSHA256 = hex.EncodeToString(sum[:])
	p.Manifest = manifest
	return p, nil
}

package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
)

// digestFormat names the version of the cache file.
const digestFormat = "plumbline.digests/1"

// The bounds of the cache file.
const (
	maxDigestFile = 1 << 20 // bytes
	maxDigests    = 1000
)

// DigestCachePath is where a user's digests are kept between runs: in the user's cache directory.
func DigestCachePath() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache of digests: %w", err)
	}
	return filepath.Join(dir, "plumbline", "model-digests.json"), nil
}

// fileIdentity is what tells a file that has changed from one that has not, without reading it. The time of change is
// set by the kernel at every write and cannot be set back, as the time of modification can.
type fileIdentity struct {
	Device   uint64 `json:"device"`
	Inode    uint64 `json:"inode"`
	Bytes    int64  `json:"bytes"`
	Modified int64  `json:"modified_ns"`
	Changed  int64  `json:"changed_ns"`
}

// digestEntry is one digest and the file that had it. Check is over all the rest, so that no damage of the cache becomes
// a digest of a file.
type digestEntry struct {
	Path string `json:"path"`
	fileIdentity
	SHA256 string `json:"sha256"`
	Check  string `json:"check"`
}

func (e digestEntry) check() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %d %d %d %d %d %s", digestFormat, e.Path, e.Device, e.Inode, e.Bytes, e.Modified, e.Changed, e.SHA256))
	return hex.EncodeToString(sum[:])
}

func (e digestEntry) sound() bool {
	raw, err := hex.DecodeString(e.SHA256)
	return err == nil && len(raw) == sha256.Size && e.Check == e.check()
}

// digestCache is the cache file's content, the latest entry last. A file that is missing, damaged or of another version
// is an empty cache: everything in it can be had again by reading.
type digestCache struct {
	path    string
	entries []digestEntry
}

type digestDocument struct {
	Format  string        `json:"format"`
	Entries []digestEntry `json:"entries"`
}

// openDigests reads a cache; path "" is one that holds and keeps nothing.
func openDigests(path string) *digestCache {
	c := &digestCache{path: path}
	if path == "" {
		return c
	}
	f, err := os.Open(path)
	if err != nil {
		return c
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDigestFile+1))
	if err != nil || len(data) > maxDigestFile {
		return c
	}
	var d digestDocument
	if json.Unmarshal(data, &d) != nil || d.Format != digestFormat {
		return c
	}
	c.entries = slices.DeleteFunc(d.Entries, func(e digestEntry) bool { return !e.sound() })
	return c
}

// find is the digest of a file that is as it was when it was read.
func (c *digestCache) find(path string, id fileIdentity) (string, bool) {
	for _, e := range c.entries {
		if e.Path == path && e.fileIdentity == id {
			return e.SHA256, true
		}
	}
	return "", false
}

// keep adds a digest and writes the cache anew, whole or not at all. What other runs have written meanwhile is read
// first; of two that write at the same moment one loses its entry, and reads its file again another time.
func (c *digestCache) keep(path string, id fileIdentity, digest string) error {
	if c.path == "" {
		return nil
	}
	c.entries = openDigests(c.path).entries
	c.entries = slices.DeleteFunc(c.entries, func(e digestEntry) bool { return e.Path == path })
	e := digestEntry{Path: path, fileIdentity: id, SHA256: digest}
	e.Check = e.check()
	c.entries = append(c.entries, e)
	c.entries = c.entries[max(0, len(c.entries)-maxDigests):]
	data, err := json.MarshalIndent(digestDocument{digestFormat, c.entries}, "", " ")
	if err != nil {
		return fmt.Errorf("keep digest of %q: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("keep digest of %q: %w", path, err)
	}
	if err := renameio.WriteFile(c.path, data, 0o600); err != nil {
		return fmt.Errorf("keep digest of %q: %w", path, err)
	}
	return nil
}

package facts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

// cachedMachine identifies one file with a cache and tells how often it was read to its end.
type cachedMachine struct {
	file, cache string
	reads       int
}

func (c *cachedMachine) identify(t *testing.T) fixtures.ModelFile {
	t.Helper()
	var last [2]int64
	f := newMachine(t.TempDir(), tools{}.run).host(t.Context(), Options{ModelFiles: []string{c.file}, DigestCache: c.cache,
		Progress: func(_ string, done, total int64) { last = [2]int64{done, total} }})
	if len(f.ModelFiles) != 1 || f.NamedFileUnread {
		t.Fatalf("got %+v", f)
	}
	if last[0] != last[1] {
		t.Errorf("progress ended at %v", last)
	}
	if !f.ModelFiles[0].Cached {
		c.reads++
	}
	return f.ModelFiles[0]
}

func newCachedMachine(t *testing.T) *cachedMachine {
	root := tree(t, map[string]string{"m.bin": "abc"})
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	return &cachedMachine{file: filepath.Join(real, "m.bin"), cache: filepath.Join(real, "deep", "digests.json")}
}

func TestAFileThatHasNotChangedIsReadOnce(t *testing.T) {
	g := NewWithT(t)
	c := newCachedMachine(t)
	g.Expect(c.identify(t)).To(Equal(fixtures.ModelFile{Path: c.file, Bytes: 3, SHA256: abc}))
	g.Expect(c.identify(t)).To(Equal(fixtures.ModelFile{Path: c.file, Bytes: 3, SHA256: abc, Cached: true}))
	g.Expect(c.reads).To(Equal(1))
	info, err := os.Stat(c.cache)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
}

func TestAFileThatChangedInAnyWayIsReadAgain(t *testing.T) {
	for name, change := range map[string]func(g Gomega, file string){
		"another size": func(g Gomega, file string) { g.Expect(os.WriteFile(file, []byte("abcd"), 0o600)).To(Succeed()) },
		"the same size and time": func(g Gomega, file string) {
			before, err := os.Stat(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.WriteFile(file, []byte("xyz"), 0o600)).To(Succeed())
			g.Expect(os.Chtimes(file, time.Time{}, before.ModTime())).To(Succeed())
		},
		"another file of the same name, size and time": func(g Gomega, file string) {
			before, err := os.Stat(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.WriteFile(file+".new", []byte("xyz"), 0o600)).To(Succeed())
			g.Expect(os.Chtimes(file+".new", before.ModTime(), before.ModTime())).To(Succeed())
			g.Expect(os.Rename(file+".new", file)).To(Succeed())
		},
		"another time": func(g Gomega, file string) { g.Expect(os.Chtimes(file, time.Time{}, time.Unix(1, 0))).To(Succeed()) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCachedMachine(t)
			c.identify(t)
			change(g, c.file)
			fresh, err := HashFile(t.Context(), c.file, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.identify(t)).To(Equal(fresh))
			g.Expect(c.reads).To(Equal(2))
			g.Expect(c.identify(t).Cached).To(BeTrue())
		})
	}
}

func TestNoPartOfTheIdentityIsLeftOut(t *testing.T) {
	g := NewWithT(t)
	id := fileIdentity{Device: 1, Inode: 2, Bytes: 3, Modified: 4, Changed: 5}
	c := &digestCache{path: filepath.Join(t.TempDir(), "c")}
	g.Expect(c.keep("/m", id, abc)).To(Succeed())
	for _, other := range []fileIdentity{{9, 2, 3, 4, 5}, {1, 9, 3, 4, 5}, {1, 2, 9, 4, 5}, {1, 2, 3, 9, 5}, {1, 2, 3, 4, 9}} {
		_, ok := c.find("/m", other)
		g.Expect(ok).To(BeFalse(), "%+v", other)
	}
	_, ok := c.find("/other", id)
	g.Expect(ok).To(BeFalse())
	sum, ok := openDigests(c.path).find("/m", id)
	g.Expect(ok).To(BeTrue())
	g.Expect(sum).To(Equal(abc))
}

func TestADamagedCacheIsNoCache(t *testing.T) {
	for name, damage := range map[string]func(data []byte) []byte{
		"empty":          func([]byte) []byte { return nil },
		"no JSON":        func([]byte) []byte { return []byte("\x00\xff{") },
		"cut":            func(data []byte) []byte { return data[:len(data)/2] },
		"other version":  func(data []byte) []byte { return bytes.Replace(data, []byte("digests/1"), []byte("digests/2"), 1) },
		"another digest": func(data []byte) []byte { return bytes.Replace(data, []byte(abc), []byte(millionA), 1) },
		"too long":       func(data []byte) []byte { return append(data, bytes.Repeat([]byte(" "), maxDigestFile)...) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCachedMachine(t)
			c.identify(t)
			data, err := os.ReadFile(c.cache)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.WriteFile(c.cache, damage(data), 0o600)).To(Succeed())
			g.Expect(c.identify(t)).To(Equal(fixtures.ModelFile{Path: c.file, Bytes: 3, SHA256: abc}))
			g.Expect(c.identify(t).Cached).To(BeTrue(), "the cache is whole again")
		})
	}
}

func TestACacheThatCannotBeWrittenCostsOnlyAReason(t *testing.T) {
	g := NewWithT(t)
	root := tree(t, map[string]string{"m.bin": "abc", "file": "no folder"})
	f := newMachine(t.TempDir(), tools{}.run).host(t.Context(), Options{ModelFiles: []string{filepath.Join(root, "m.bin")}, DigestCache: filepath.Join(root, "file", "c")})
	g.Expect(f.ModelFiles[0].SHA256).To(Equal(abc))
	g.Expect(f.Reasons["digest_cache"]).To(ContainSubstring("keep digest"))
}

func TestTheCacheIsBoundedAndForgetsTheOldest(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "c")
	full := digestDocument{Format: digestFormat}
	for i := range maxDigests {
		e := digestEntry{Path: fmt.Sprintf("/m%d", i), SHA256: abc}
		e.Check = e.check()
		full.Entries = append(full.Entries, e)
	}
	g.Expect(os.WriteFile(path, must(json.Marshal(full)), 0o600)).To(Succeed())
	g.Expect(openDigests(path).keep("/newest", fileIdentity{}, abc)).To(Succeed())
	kept := openDigests(path)
	g.Expect(kept.entries).To(HaveLen(maxDigests))
	g.Expect(kept.entries[0].Path).To(Equal("/m1"))
	g.Expect(kept.entries[maxDigests-1].Path).To(Equal("/newest"))
}

func TestAGlanceReadsNoFileAndKnowsWhatTheCacheHolds(t *testing.T) {
	g := NewWithT(t)
	c := newCachedMachine(t)
	look := func() fixtures.HostFacts {
		return newMachine(t.TempDir(), tools{}.run).host(t.Context(), Options{ModelFiles: []string{c.file}, DigestCache: c.cache, Glance: true})
	}
	g.Expect(look().ModelFiles).To(Equal([]fixtures.ModelFile{{Path: c.file, Bytes: 3, SHA256: NotReadYet}}))
	_, err := os.Stat(c.cache)
	g.Expect(err).To(HaveOccurred(), "a glance keeps nothing")
	c.identify(t)
	g.Expect(look().ModelFiles).To(Equal([]fixtures.ModelFile{{Path: c.file, Bytes: 3, SHA256: abc, Cached: true}}))
	c.file += ".gone"
	g.Expect(look().ModelFiles).To(BeEmpty())
	g.Expect(look().NamedFileUnread).To(BeTrue())
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func FuzzDigestCache(f *testing.F) {
	f.Add([]byte(`{"format":"plumbline.digests/1","entries":[{"path":"/m","device":1,"inode":2,"bytes":3,"modified_ns":4,"changed_ns":5,"sha256":"ab","check":"cd"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "c")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, e := range openDigests(path).entries {
			if !e.sound() {
				t.Errorf("%q gives %+v", data, e)
			}
		}
	})
}

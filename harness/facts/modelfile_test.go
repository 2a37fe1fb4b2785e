package facts

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

// The digests of FIPS 180-2's examples.
const (
	abc      = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	millionA = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
)

func TestAFileIsIdentifiedByItsDigest(t *testing.T) {
	g := NewWithT(t)
	root := tree(t, map[string]string{"a": "abc", "big": string(bytes.Repeat([]byte("a"), 1_000_000))})
	var told []int64
	f, err := HashFile(t.Context(), filepath.Join(root, "big"), func(path string, done, total int64) { told = append(told, done, total) })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f).To(Equal(fixtures.ModelFile{Path: filepath.Join(root, "big"), Bytes: 1_000_000, SHA256: millionA}))
	g.Expect(told).To(Equal([]int64{1_000_000, 1_000_000}))
	f, err = HashFile(t.Context(), filepath.Join(root, "a"), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.SHA256).To(Equal(abc))
}

func TestProgressIsToldWhileALargeFileIsRead(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "sparse")
	g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	g.Expect(os.Truncate(path, 2*progressEvery+5)).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []int64
	_, err := HashFile(ctx, path, func(_ string, done, total int64) {
		told = append(told, done)
		g.Expect(total).To(Equal(int64(2*progressEvery + 5)))
		cancel() // in the middle of the file
	})
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(told).To(Equal([]int64{progressEvery}))
}

func TestWhichModelFilesAreIdentified(t *testing.T) {
	root := tree(t, map[string]string{
		"m.gguf": "abc", "other.gguf": "x", "link.gguf": "→ m.gguf", "s-00001-of-00002.gguf": "1", "s-00002-of-00002.gguf": "2",
		"t-00001-of-00002.gguf": "1", "dir/x": "",
	})
	at := func(name string) string { return filepath.Join(root, name) }
	const here, there = "http://localhost:1", "http://example.invalid:1"
	for name, c := range map[string]struct {
		opts   Options
		want   []string
		reason string
	}{
		"the file that the server names":     {Options{EngineURL: here, ModelPath: at("m.gguf")}, []string{"m.gguf"}, ""},
		"a link is one file":                 {Options{ModelFiles: []string{at("link.gguf"), at("m.gguf")}}, []string{"m.gguf"}, ""},
		"the operator's word goes first":     {Options{EngineURL: here, ModelPath: at("m.gguf"), ModelFiles: []string{at("other.gguf")}}, []string{"other.gguf"}, ""},
		"all parts of a split file":          {Options{EngineURL: here, ModelPath: at("s-00001-of-00002.gguf")}, []string{"s-00001-of-00002.gguf", "s-00002-of-00002.gguf"}, ""},
		"a server elsewhere":                 {Options{EngineURL: there, ModelPath: at("m.gguf")}, nil, "not known to be on this machine"},
		"a local copy for a server far away": {Options{EngineURL: there, ModelPath: "/x", ModelFiles: []string{at("m.gguf")}}, []string{"m.gguf"}, ""},
		"a relative path":                    {Options{EngineURL: here, ModelPath: "models/m.gguf"}, nil, "relative"},
		"a server that does not say":         {Options{EngineURL: here}, nil, "does not say"},
		"a file that is not here":            {Options{EngineURL: here, ModelPath: at("gone.gguf")}, nil, "no such file"},
		"a folder":                           {Options{EngineURL: here, ModelPath: at("dir")}, nil, "no regular file"},
		"reading not wanted":                 {Options{EngineURL: here, ModelPath: at("m.gguf"), SkipModelHash: true}, nil, "--skip-model-hash"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newMachine(t.TempDir(), tools{}.run).host(t.Context(), c.opts)
			var got []string
			for _, m := range f.ModelFiles {
				got = append(got, filepath.Base(m.Path))
				g.Expect(m.SHA256).To(HaveLen(64))
			}
			g.Expect(got).To(Equal(c.want))
			if c.reason == "" {
				g.Expect(f.Reasons).NotTo(HaveKey("model_files"))
			} else {
				g.Expect(f.Reasons["model_files"]).To(ContainSubstring(c.reason))
			}
		})
	}
}

func TestANamedPartCountIsBounded(t *testing.T) {
	g := NewWithT(t)
	g.Expect(parts("/x/a-00001-of-99999.gguf")).To(HaveLen(1))
	g.Expect(parts("/x/a-00003-of-00003.gguf")).To(Equal([]string{"/x/a-00001-of-00003.gguf", "/x/a-00002-of-00003.gguf", "/x/a-00003-of-00003.gguf"}))
}

func TestAFileThatCannotBeReadIsListedWithoutADigestBesideThoseThatCan(t *testing.T) {
	root := tree(t, map[string]string{"m.gguf": "abc", "gone-00001-of-00003.gguf": "1", "gone-00003-of-00003.gguf": "3",
		"dir-00001-of-00002.gguf/x": "", "dir-00002-of-00002.gguf": "2"})
	at := func(name string) string { return filepath.Join(root, name) }
	for name, c := range map[string]struct {
		opts           Options
		want           []string
		field, because string
	}{
		"a missing part": {Options{EngineURL: "http://localhost:1", ModelPath: at("gone-00001-of-00003.gguf")},
			[]string{"gone-00001-of-00003.gguf", "-gone-00002-of-00003.gguf", "gone-00003-of-00003.gguf"}, "model_files.1.sha256", "no such file"},
		"a part that is a folder": {Options{ModelFiles: []string{at("dir-00002-of-00002.gguf")}},
			[]string{"-dir-00001-of-00002.gguf", "dir-00002-of-00002.gguf"}, "model_files.0.sha256", "no regular file"},
		"one of two that are named": {Options{ModelFiles: []string{at("m.gguf"), at("lost.gguf"), at("lost.gguf")}},
			[]string{"m.gguf", "-lost.gguf"}, "model_files.1.sha256", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newMachine(t.TempDir(), tools{}.run).host(t.Context(), c.opts)
			var got []string
			for _, m := range f.ModelFiles {
				mark := ""
				if m.SHA256 == "" {
					mark = "-"
				}
				got = append(got, mark+filepath.Base(m.Path))
			}
			g.Expect(got).To(Equal(c.want))
			g.Expect(f.Reasons[c.field]).To(ContainSubstring(c.because))
			g.Expect(f.Reasons).NotTo(HaveKey("model_files"))
		})
	}
}

func TestAFileThatCannotBeReadToItsEndKeepsItsSizeAndNoDigest(t *testing.T) {
	g := NewWithT(t)
	root := tree(t, map[string]string{"a.gguf": "abc", "b.gguf": string(make([]byte, 2*hashChunk))})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := newMachine(t.TempDir(), tools{}.run)
	f := m.host(ctx, Options{
		ModelFiles: []string{filepath.Join(root, "a.gguf"), filepath.Join(root, "b.gguf")},
		Progress:   func(string, int64, int64) { cancel() }, // after the first file
	})
	g.Expect(f.ModelFiles).To(HaveLen(2))
	g.Expect(f.ModelFiles[0].SHA256).To(Equal(abc))
	g.Expect(f.ModelFiles[1]).To(Equal(fixtures.ModelFile{Path: filepath.Join(root, "b.gguf"), Bytes: 2 * hashChunk}))
	g.Expect(f.Reasons["model_files.1.sha256"]).To(ContainSubstring("canceled"))
}

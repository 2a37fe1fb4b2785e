// Command build makes the embedded pack of prompts out of the passages and sources beside it, or says whether the
// committed pack is still what they give. It is deterministic: the same sources and tokenizer data give the same bytes.
// It is the only part of the project that counts tokens, and nothing else depends on it.
//
//	go run ./corpus/build -tokenizer DIR          writes the pack
//	go run ./corpus/build -tokenizer DIR -check   exits 1 when the committed pack differs
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"plumbline/corpus"
)

// tokenizerEnv names the directory of the tokenizer data when the flag does not.
const tokenizerEnv = "PLUMBLINE_TOKENIZER_DIR"

func main() {
	dir := flag.String("tokenizer", os.Getenv(tokenizerEnv), "directory with the tokenizer.json of Qwen3; default: $"+tokenizerEnv)
	out := flag.String("out", filepath.Join("corpus", "packs", corpus.DefaultID), "directory of the pack")
	check := flag.Bool("check", false, "write nothing; exit 1 when the pack there is not what the sources give")
	flag.Parse()
	if err := run(*dir, *out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "corpus/build:", err)
		os.Exit(1)
	}
}

func run(tokenizerDir, out string, check bool) error {
	if tokenizerDir == "" {
		return fmt.Errorf("no tokenizer data: give its directory by -tokenizer or $%s", tokenizerEnv)
	}
	src, err := loadSources()
	if err != nil {
		return err
	}
	tok, err := loadTokenizer(tokenizerDir)
	if err != nil {
		return err
	}
	files, err := build(src, tok)
	if err != nil {
		return err
	}
	if check {
		return compare(files, os.DirFS(out))
	}
	return write(files, out)
}

// compare reports every difference between the files made and those of a pack.
func compare(files map[string][]byte, pack fs.FS) error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data, err := fs.ReadFile(pack, name)
		if err != nil {
			faults = append(faults, fmt.Errorf("compare: %w", err))
		} else if !bytes.Equal(data, files[name]) {
			faults = append(faults, fmt.Errorf("compare %q: the pack has other content than the sources give", name))
		}
	}
	err := fs.WalkDir(pack, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && files[name] == nil {
			faults = append(faults, fmt.Errorf("compare %q: the sources give no such file", name))
		}
		return err
	})
	return errors.Join(append(faults, err)...)
}

// write replaces the pack in a directory. One that holds something else is left alone.
func write(files map[string][]byte, out string) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write pack: %w", err)
	}
	if _, err := os.Stat(filepath.Join(out, corpus.ManifestFile)); err != nil && len(entries) > 0 {
		return fmt.Errorf("write pack: %q is not empty and holds no pack", out)
	}
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
	}
	return nil
}

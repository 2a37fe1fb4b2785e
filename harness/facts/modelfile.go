package facts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"plumbline/fixtures"
)

// chooseFiles are the model files to identify, links resolved: those that the operator named, else the one that an
// engine on this machine names, and each with the other parts of a split file.
func (m *machine) chooseFiles(opts Options, engineHere bool, why reasons) []string {
	const field = "model_files"
	var files []string
	add := func(path string) {
		for _, part := range parts(path) {
			real, err := m.regular(part)
			if err != nil {
				why.add(field, err.Error())
			} else if !slices.Contains(files, real) {
				files = append(files, real)
			}
		}
	}
	for _, path := range opts.ModelFiles {
		add(path)
	}
	switch {
	case len(opts.ModelFiles) > 0:
	case opts.ModelPath == "":
		why.add(field, "the server does not say which file it loaded: name it with --model-file")
	case !engineHere:
		why.add(field, "the server is not known to be on this machine, so its model file is not looked for: name a local copy with --model-file")
	case !filepath.IsAbs(opts.ModelPath):
		why.add(field, fmt.Sprintf("the server names %q, which is relative to a folder that it does not tell: name the file with --model-file", opts.ModelPath))
	default:
		add(opts.ModelPath)
	}
	return files
}

var splitName = regexp.MustCompile(`^(.*-)(\d{5})-of-(\d{5})(\.gguf)$`)

// maxParts bounds how many parts a file name can ask for.
const maxParts = 1000

// parts lists all parts of a split GGUF file, named "…-00001-of-00003.gguf" (ggml-org/llama.cpp tools/gguf-split), and
// any other path alone.
func parts(path string) []string {
	found := splitName.FindStringSubmatch(path)
	if found == nil {
		return []string{path}
	}
	total, err := strconv.Atoi(found[3])
	if err != nil || total < 1 || total > maxParts {
		return []string{path}
	}
	out := make([]string, total)
	for i := range out {
		out[i] = fmt.Sprintf("%s%05d-of-%s%s", found[1], i+1, found[3], found[4])
	}
	return out
}

// regular resolves links and refuses what is no file.
func (m *machine) regular(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("model file %q cannot be read here: %w", path, cause(err))
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("model file %q cannot be read here: %w", path, cause(err))
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("model file %q is no regular file: name its files with --model-file", path)
	}
	return real, nil
}

func cause(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// hash identifies files, unless the operator wants none read.
func (m *machine) hash(ctx context.Context, files []string, opts Options, why reasons) []fixtures.ModelFile {
	if opts.SkipModelHash {
		delete(why, "model_files")
		why.add("model_files", "not read, as --skip-model-hash asks")
		return nil
	}
	var out []fixtures.ModelFile
	for _, path := range files {
		f, err := HashFile(ctx, path, opts.Progress)
		if err != nil {
			why.add("model_files", err.Error())
			continue
		}
		out = append(out, f)
	}
	return out
}

const (
	hashChunk     = 1 << 20  // bytes read at once; also how soon a cancellation is noticed
	progressEvery = 64 << 20 // bytes between two reports of progress
)

// HashFile reads a file once and returns its size and SHA-256. progress, when not nil, is told the bytes read so far
// and the size, at the end too. It stops within a chunk when ctx ends.
func HashFile(ctx context.Context, path string, progress func(path string, done, total int64)) (fixtures.ModelFile, error) {
	fail := func(err error) (fixtures.ModelFile, error) {
		return fixtures.ModelFile{}, fmt.Errorf("hash model file %q: %w", path, cause(err))
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	h := sha256.New()
	buf := make([]byte, hashChunk)
	var done, told int64
	for {
		if err := ctx.Err(); err != nil {
			return fail(context.Cause(ctx))
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		done += int64(n)
		if progress != nil && (done-told >= progressEvery || err == io.EOF) {
			told = done
			progress(path, done, info.Size())
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fail(err)
		}
	}
	if done != info.Size() {
		return fail(fmt.Errorf("it changed while it was read: expected %d bytes, received %d", info.Size(), done))
	}
	return fixtures.ModelFile{Path: path, Bytes: done, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

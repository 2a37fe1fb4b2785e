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

// chosenFile is a file to identify, links resolved; err says why it cannot be read.
type chosenFile struct {
	path string
	err  error
}

func readable(files []chosenFile) []string {
	var paths []string
	for _, f := range files {
		if f.err == nil {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// chooseFiles are the model files to identify: those that the operator named, else the one that an engine on this
// machine names, and each with the other parts of a split file.
func (m *machine) chooseFiles(opts Options, engineHere bool, why reasons) []chosenFile {
	const field = "model_files"
	var files []chosenFile
	add := func(path string) {
		for _, part := range parts(path) {
			real, err := m.regular(part)
			if err != nil {
				real = part
			}
			if !slices.ContainsFunc(files, func(f chosenFile) bool { return f.path == real }) {
				files = append(files, chosenFile{real, err})
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

// hash identifies files, unless the operator wants none read. A file that cannot be read stays among the others without
// a digest, so that the model does not seem known as a whole; where none can be read the list is empty.
func (m *machine) hash(ctx context.Context, files []chosenFile, opts Options, why reasons) []fixtures.ModelFile {
	const field = "model_files"
	if opts.SkipModelHash {
		delete(why, field)
		why.add(field, "not read, as --skip-model-hash asks")
		return nil
	}
	cache := openDigests(opts.DigestCache)
	out := make([]fixtures.ModelFile, len(files))
	faults := make([]error, len(files))
	for i, f := range files {
		out[i].Path, faults[i] = f.path, f.err
		if f.err == nil {
			out[i], faults[i] = digest(ctx, f.path, cache, opts, why)
		}
		if faults[i] == nil {
			var err error
			if out[i].GGUF, err = readGGUFFile(f.path); err != nil {
				why.add(fmt.Sprintf("%s.%d.gguf", field, i), err.Error())
			}
		}
	}
	none := !slices.Contains(faults, nil)
	for i, err := range faults {
		if err != nil && none {
			why.add(field, err.Error())
		} else if err != nil {
			why.add(fmt.Sprintf("%s.%d.sha256", field, i), err.Error())
		}
	}
	if none {
		return nil
	}
	return out
}

// digest takes a file's digest from the cache, or reads the file and keeps its digest there.
func digest(ctx context.Context, path string, cache *digestCache, opts Options, why reasons) (fixtures.ModelFile, error) {
	before, known := identity(path)
	if known {
		if sum, ok := cache.find(path, before); ok {
			if opts.Progress != nil {
				opts.Progress(path, before.Bytes, before.Bytes)
			}
			return fixtures.ModelFile{Path: path, Bytes: before.Bytes, SHA256: sum, Cached: true}, nil
		}
	}
	if opts.Glance {
		return glance(path)
	}
	file, err := HashFile(ctx, path, opts.Progress)
	if err != nil || !known {
		return file, err
	}
	if after, ok := identity(path); ok && after == before { // else it changed while it was read, and is no file to remember
		if err := cache.keep(path, before, file.SHA256); err != nil {
			why.add("digest_cache", err.Error())
		}
	}
	return file, nil
}

// identity is a file's as it is now.
func identity(path string) (fileIdentity, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return fileIdentity{}, false
	}
	return identify(info)
}

// glance opens a file and reads its first bytes, to see that it can be read.
func glance(path string) (fixtures.ModelFile, error) {
	out := fixtures.ModelFile{Path: path}
	f, err := os.Open(path)
	if err != nil {
		return out, fmt.Errorf("open model file %q: %w", path, cause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		out.Bytes = info.Size()
		_, err = f.Read(make([]byte, 1))
	}
	if err != nil && err != io.EOF {
		return out, fmt.Errorf("read model file %q: %w", path, cause(err))
	}
	out.SHA256 = NotReadYet
	return out, nil
}

const (
	hashChunk     = 1 << 20  // bytes read at once; also how soon a cancellation is noticed
	progressEvery = 64 << 20 // bytes between two reports of progress
)

// HashFile reads a file once and returns its size and SHA-256; with an error there is no digest, and the size where it
// is known. progress, when not nil, is told the bytes read so far and the size, at the end too. It stops within a chunk
// when ctx ends.
func HashFile(ctx context.Context, path string, progress func(path string, done, total int64)) (fixtures.ModelFile, error) {
	out := fixtures.ModelFile{Path: path}
	fail := func(err error) (fixtures.ModelFile, error) {
		return out, fmt.Errorf("hash model file %q: %w", path, cause(err))
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
	out.Bytes = info.Size()
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
	out.SHA256 = hex.EncodeToString(h.Sum(nil))
	return out, nil
}

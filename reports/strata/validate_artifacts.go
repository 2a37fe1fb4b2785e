package strata

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// manifestPath is where the corpus' manifest is kept among the artifacts (ref).
const manifestPath = "provenance/corpus-manifest.sha256"

// artifacts checks the list of artifacts, what the document says of them elsewhere, and the files that are there.
func (v *validation) artifacts() {
	list := v.root.get("artifacts")
	if !list.is('[') {
		return
	}
	outputs := 0
	seen := map[string]bool{}
	for _, a := range list.items {
		path := a.get("path")
		name, ok := path.str()
		if !ok {
			continue
		}
		if a.get("kind").word() == "outputs" {
			outputs++
		}
		if seen[name] {
			v.fault(path, "another artifact has this path")
		}
		seen[name] = true
		if !fs.ValidPath(name) || strings.ContainsAny(name, `\:`) {
			v.fault(path, "expected a path inside the document's directory, with slashes, received %q", name)
			continue
		}
		v.content(a, name)
		v.mention(a, name)
	}
	if template := v.root.get("configuration", "template", "path"); template.is('"') && !seen[template.text] {
		v.fault(template, "expected the path of an artifact, received %q", template.text)
	}
	if outputs != 1 {
		v.fault(list, "expected one artifact of the kind \"outputs\", received %d", outputs)
	}
}

// mention holds other digests of an artifact in the document against the list's.
func (v *validation) mention(a *node, name string) {
	digest, ok := a.get("sha256").str()
	if !ok {
		return
	}
	template := v.root.get("configuration", "template")
	mentions := map[string]*node{manifestPath: v.root.get("protocol", "corpus_sha256")}
	if path, ok := template.get("path").str(); ok {
		mentions[path] = template.get("sha256")
	}
	if n := mentions[name]; n.is('"') && n.text != digest {
		v.fault(n, "expected the digest of the artifact %q (%s), received %q", name, a.get("sha256").at, n.text)
	}
}

// content compares an artifact's digest with the file, if it is there.
func (v *validation) content(a *node, name string) {
	want, ok := a.get("sha256").str()
	if !ok || v.files == nil {
		return
	}
	got, err := digest(v.files, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		v.fault(a.get("path"), "%v", err)
	case got != want:
		v.fault(a.get("sha256"), "expected %s, the digest of the file, received %s", got, want)
	}
}

func digest(files fs.FS, name string) (string, error) {
	f, err := files.Open(name)
	if err != nil {
		return "", fmt.Errorf("open artifact %q: %w", name, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read artifact %q: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"plumbline/fixtures/engines"
	"plumbline/harness/settings"
)

// image has the image of the recipe, or the operator's, on the Docker Engine: it is there, it is built from this project's
// source tree, or it is pulled where that was asked for.
func (o *order) image(ctx context.Context, d *docker, recipe *engines.Container) (string, client.ImageInspectResult, error) {
	name := recipe.Image.Value
	if o.set.Image != "" {
		name = o.set.Image
	}
	none := client.ImageInspectResult{}
	if name == "" {
		return "", none, o.fail(nil, "its recipe names no image: %s; name it with --image", recipe.Image.Reason)
	}
	found, err := d.api.ImageInspect(ctx, name)
	if err == nil {
		return name, found, nil
	}
	if !errdefs.IsNotFound(err) {
		return "", none, o.fail(err, "image %q cannot be looked at: %v", name, err)
	}
	root, inTree := settings.SourceTree()
	own := recipe.Build != nil && o.set.Image == ""
	switch {
	case own && inTree:
		err = o.buildImage(ctx, d, root, name, recipe.Build)
	case o.set.EnginePull:
		err = d.provider.PullImage(ctx, name)
	case own:
		return "", none, o.fail(err, "image %q is not on the Docker Engine: build it in this project's source tree with `make image`",
			name)
	default:
		return "", none, o.fail(err, "image %q is not on the Docker Engine: get it with `docker pull %s`, name another with --image, "+
			"or let it be pulled with --engine-pull", name, name)
	}
	if err == nil {
		found, err = d.api.ImageInspect(ctx, name)
	}
	if err != nil {
		return "", none, o.fail(err, "image %q cannot be had: %v", name, err)
	}
	return name, found, nil
}

// buildImage builds an image of this project as `make image` does: a static program, and the Dockerfile around it.
func (o *order) buildImage(ctx context.Context, d *docker, root, name string, build *engines.Build) (err error) {
	dir, err := os.MkdirTemp("", "plumbline-image")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "program")
	static := []string{"CGO_ENABLED=0", "GOOS=linux"}
	if err := goBuild(ctx, root, build.Package, program, static, "-trimpath", "-ldflags=-s -w"); err != nil {
		return err
	}
	files := []contextFile{{build.Dockerfile, filepath.Join(root, build.Dockerfile), 0o644}, {build.Binary, program, 0o755}}
	for _, f := range build.Files {
		files = append(files, contextFile{f, filepath.Join(root, f), 0o644})
	}
	archive, err := buildContext(files)
	if err != nil {
		return err
	}
	repo, tag, _ := strings.Cut(name, ":")
	_, err = d.provider.BuildImage(ctx, &testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
		ContextArchive: bytes.NewReader(archive), Dockerfile: build.Dockerfile, Repo: repo, Tag: tag, KeepImage: true,
		// Without this the image would be labelled as one of the library's, which its reaper removes.
		BuildOptionsModifier: func(b *client.ImageBuildOptions) { b.Labels, b.Remove, b.ForceRemove = nil, true, true },
	}})
	return err
}

// contextFile is a file of a build's context: its name there, where it is, and its mode.
type contextFile struct {
	name, path string
	mode       int64
}

func buildContext(files []contextFile) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		data, err := os.ReadFile(f.path)
		if err != nil {
			return nil, fmt.Errorf("build image: %w", err)
		}
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(data)), Format: tar.FormatPAX}); err != nil {
			return nil, fmt.Errorf("build image: %w", err)
		}
		if _, err := w.Write(data); err != nil {
			return nil, fmt.Errorf("build image: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	return b.Bytes(), nil
}

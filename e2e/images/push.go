package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push copies an archive's image to a registry, as <registry>/<repository>:<tag>
// without the archive's own registry. Credentials are Docker's.
func Push(ctx context.Context, archive Archive, registry string) error {
	short := strings.TrimPrefix(strings.TrimPrefix(archive.Ref, "docker.io/"), "library/")
	target, err := name.NewTag(registry + "/" + short)
	if err != nil {
		return fmt.Errorf("name image %s in registry %s: %w", short, registry, err)
	}
	dir, err := os.MkdirTemp("", "tidb-groups-push-")
	if err != nil {
		return fmt.Errorf("push %s: %w", target, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	image, err := unpackArchive(archive.Path, dir)
	if err != nil {
		return fmt.Errorf("open image archive %s: %w", archive.Path, err)
	}
	if err := remote.Write(target, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", target, err)
	}
	return nil
}

// unpackArchive extracts an OCI layout archive and opens its one image.
func unpackArchive(archive, dir string) (v1.Image, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	for in := tar.NewReader(file); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := extractFile(root, header.Name, in); err != nil {
			return nil, err
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%d images where one was expected", len(manifest.Manifests))
	}
	return index.Image(manifest.Manifests[0].Digest)
}

// extractFile writes one file below root.
func extractFile(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	out, err := root.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, content); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nameAnnotation carries the full image name in an OCI index; containerd's
// importer names the image by it.
const nameAnnotation = "io.containerd.image.name"

// Archive is an image in a file, ready for `ctr images import`.
type Archive struct {
	// Ref is the image's full name, for example docker.io/pingcap/pd:v8.5.7.
	Ref string
	// Digest of the manifest (sha256:…). It is empty for archives in Docker's
	// own format, whose manifest is only made up by the importer.
	Digest string
	// Path of the file.
	Path string
}

// FullName completes a short image reference as container runtimes do:
// busybox:1 is docker.io/library/busybox:1.
func FullName(ref string) string {
	first, _, found := strings.Cut(ref, "/")
	switch {
	case !found:
		return "docker.io/library/" + ref
	case strings.ContainsAny(first, ".:") || first == "localhost":
		return ref
	default:
		return "docker.io/" + ref
	}
}

// writeArchive writes an OCI layout tar with one image to file, atomically.
func writeArchive(file, ref string, img v1.Image) (err error) {
	if err = os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("create archive directory: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".archive-*")
	if err != nil {
		return fmt.Errorf("create archive: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	if err = errors.Join(writeLayout(tmp, ref, img), tmp.Close()); err != nil {
		return fmt.Errorf("write archive of %s: %w", ref, err)
	}
	if err = os.Rename(tmp.Name(), file); err != nil {
		return fmt.Errorf("publish archive of %s: %w", ref, err)
	}
	return nil
}

func writeLayout(out io.Writer, ref string, img v1.Image) error {
	manifest, err := img.RawManifest()
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	index, err := json.Marshal(v1.IndexManifest{
		SchemaVersion: 2,
		MediaType:     types.OCIImageIndex,
		Manifests: []v1.Descriptor{{
			MediaType:   types.OCIManifestSchema1,
			Size:        int64(len(manifest)),
			Digest:      digest,
			Annotations: map[string]string{nameAnnotation: FullName(ref)},
		}},
	})
	if err != nil {
		return err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	configDigest, err := img.ConfigName()
	if err != nil {
		return err
	}

	w := tar.NewWriter(out)
	put := func(name string, content []byte) error {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: epoch, Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	// The index first: reading an archive's name and digest must not mean
	// reading through its layers.
	if err := put("index.json", index); err != nil {
		return err
	}
	if err := put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	if err := put(blobPath(digest), manifest); err != nil {
		return err
	}
	if err := put(blobPath(configDigest), config); err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for _, l := range layers {
		if err := putLayer(w, l); err != nil {
			return err
		}
	}
	return w.Close()
}

func putLayer(w *tar.Writer, l v1.Layer) error {
	digest, err := l.Digest()
	if err != nil {
		return err
	}
	size, err := l.Size()
	if err != nil {
		return err
	}
	content, err := l.Compressed()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // opened for reading only
	h := &tar.Header{Name: blobPath(digest), Mode: 0o644, Size: size, ModTime: epoch, Typeflag: tar.TypeReg}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(w, content)
	return err
}

func blobPath(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// ReadArchives reads which images an archive holds: an OCI layout, or the format of
// `docker save` (then without digests).
func ReadArchives(file string) ([]Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open image archive: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	var docker []byte
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read image archive %s: %w", file, err)
		}
		switch h.Name {
		case "index.json":
			content, err := io.ReadAll(r)
			if err != nil {
				return nil, fmt.Errorf("read index of %s: %w", file, err)
			}
			return fromIndex(file, content)
		case "manifest.json":
			if docker, err = io.ReadAll(r); err != nil {
				return nil, fmt.Errorf("read manifest of %s: %w", file, err)
			}
		}
	}
	if docker == nil {
		return nil, fmt.Errorf("read image archive %s: neither index.json nor manifest.json in it", file)
	}
	return fromDocker(file, docker)
}

func fromIndex(file string, content []byte) ([]Archive, error) {
	index, err := v1.ParseIndexManifest(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("parse index of %s: %w", file, err)
	}
	archives := make([]Archive, 0, len(index.Manifests))
	for _, m := range index.Manifests {
		archives = append(archives, Archive{Ref: m.Annotations[nameAnnotation], Digest: m.Digest.String(), Path: file})
	}
	return archives, nil
}

func fromDocker(file string, content []byte) ([]Archive, error) {
	var manifests []struct{ RepoTags []string }
	if err := json.Unmarshal(content, &manifests); err != nil {
		return nil, fmt.Errorf("parse manifest of %s: %w", file, err)
	}
	var archives []Archive
	for _, m := range manifests {
		for _, tag := range m.RepoTags {
			archives = append(archives, Archive{Ref: FullName(tag), Path: file})
		}
	}
	return archives, nil
}

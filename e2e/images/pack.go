package images

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"sort"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is one entry of an image's only layer.
type File struct {
	// Path inside the image, absolute.
	Path string
	// Source is the file on this machine whose content is taken; ignored for
	// links and directories.
	Source string
	// Link makes the entry a symbolic link to this target.
	Link string
	// Dir makes the entry a directory.
	Dir bool
	// Mode holds the permission bits, sticky bit included (01777).
	Mode int64
}

// Spec describes an image completely: two equal specs over equal file contents
// give the same digest.
type Spec struct {
	// Ref is the short name that pods use, for example pingcap/pd:v8.5.7.
	Ref string
	// Files are put into the layer sorted by path; parent directories and a
	// writable /tmp are added.
	Files []File
	// Entrypoint of the container.
	Entrypoint []string
	// Cmd holds the default arguments.
	Cmd []string
	// User as in an image config, for example "65532:65532"; empty is root.
	User string
	// Env as in an image config, NAME=value.
	Env []string
	// Arch of the machine that runs it, as Go names it; empty for this one.
	Arch string `json:",omitempty"`
	// Labels as in an image config.
	Labels map[string]string `json:",omitempty"`
	// Compressed images travel; the others never leave this machine's disk.
	Compressed bool `json:",omitempty"`
}

// epoch is the timestamp of everything in an image: reproducibility needs a
// fixed one, and zero trips some tools that take it for "unset".
var epoch = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// Pack builds the image of a spec in memory.
func Pack(spec Spec) (v1.Image, error) {
	content, err := renderLayer(spec.Files)
	if err != nil {
		return nil, fmt.Errorf("pack image %s: %w", spec.Ref, err)
	}
	packed, err := packLayer(content, spec.Compressed)
	if err != nil {
		return nil, fmt.Errorf("pack image %s: %w", spec.Ref, err)
	}
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		Architecture: cmp.Or(spec.Arch, runtime.GOARCH),
		OS:           "linux",
		Created:      v1.Time{Time: epoch},
		RootFS:       v1.RootFS{Type: "layers"}, // the only type, and it must be told
		Config: v1.Config{
			Entrypoint: spec.Entrypoint,
			Cmd:        spec.Cmd,
			User:       spec.User,
			Env:        spec.Env,
			Labels:     spec.Labels,
			WorkingDir: "/",
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set config of image %s: %w", spec.Ref, err)
	}
	img, err = mutate.Append(img, mutate.Addendum{
		Layer:   packed,
		History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "tidb-groups e2e/images"},
	})
	if err != nil {
		return nil, fmt.Errorf("append layer of image %s: %w", spec.Ref, err)
	}
	return img, nil
}

// packLayer makes a layer of a tar.
func packLayer(content []byte, compressed bool) (v1.Layer, error) {
	if !compressed {
		return static.NewLayer(content, types.OCIUncompressedLayer), nil
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// renderLayer renders files as an uncompressed tar with fixed times and owners.
func renderLayer(files []File) ([]byte, error) {
	entries := map[string]File{"/tmp": {Path: "/tmp", Dir: true, Mode: 0o1777}}
	for _, f := range files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path {
			return nil, fmt.Errorf("path %q is not a clean absolute path", f.Path)
		}
		entries[f.Path] = f
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			if _, ok := entries[dir]; !ok {
				entries[dir] = File{Path: dir, Dir: true, Mode: 0o755}
			}
		}
	}
	paths := make([]string, 0, len(entries))
	for p := range entries {
		paths = append(paths, p)
	}
	sort.Strings(paths)

	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, p := range paths {
		if err := writeEntry(w, entries[p]); err != nil {
			return nil, fmt.Errorf("write %s: %w", p, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("finish layer: %w", err)
	}
	return buf.Bytes(), nil
}

func writeEntry(w *tar.Writer, f File) error {
	h := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, ModTime: epoch, Format: tar.FormatPAX}
	switch {
	case f.Dir:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return w.WriteHeader(h)
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
		return w.WriteHeader(h)
	}
	src, err := os.Open(f.Source)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // opened for reading only
	info, err := src.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(w, src)
	return err
}

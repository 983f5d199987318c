package install

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Overlays returns the names of the overlays of a copy of this module.
func Overlays(deploy string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(deploy, "overlays"))
	if err != nil {
		return nil, fmt.Errorf("list overlays: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Render builds an overlay with the operators' images at a version. It does what a
// user does who writes a kustomization of his own: see docs/tasks/install.md.
func Render(deploy, overlay, version string) ([]byte, error) {
	top, err := os.MkdirTemp("", "tidb-groups-install-")
	if err != nil {
		return nil, fmt.Errorf("render overlay %s: %w", overlay, err)
	}
	defer func() { _ = os.RemoveAll(top) }() // only this kustomization is in it
	source, err := relativePath(top, filepath.Join(deploy, "overlays", overlay))
	if err != nil {
		return nil, fmt.Errorf("render overlay %s: %w", overlay, err)
	}
	text, err := yaml.Marshal(types.Kustomization{Resources: []string{source}, Images: taggedImages(version)})
	if err != nil {
		return nil, fmt.Errorf("render overlay %s: %w", overlay, err)
	}
	if err := os.WriteFile(filepath.Join(top, "kustomization.yaml"), text, 0o600); err != nil {
		return nil, fmt.Errorf("render overlay %s: %w", overlay, err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), top)
	if err != nil {
		return nil, fmt.Errorf("render overlay %s: %w", overlay, err)
	}
	return rendered.AsYaml()
}

// relativePath is the path from one folder to another. Kustomize takes no other, and
// resolves links before it follows it.
func relativePath(from, to string) (string, error) {
	for _, folder := range []*string{&from, &to} {
		absolute, err := filepath.Abs(*folder)
		if err != nil {
			return "", err
		}
		if *folder, err = filepath.EvalSymlinks(absolute); err != nil {
			return "", err
		}
	}
	return filepath.Rel(from, to)
}

// taggedImages gives every operator's image a tag.
func taggedImages(tag string) []types.Image {
	var out []types.Image
	for _, name := range v1alpha1.Programs() {
		out = append(out, types.Image{Name: "tidb-groups/" + name + "-operator", NewTag: tag})
	}
	return out
}

package release

import (
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tidb-groups/tidb-groups/e2e/images"
)

const (
	source  = "https://github.com/tidb-groups/tidb-groups"
	license = "Apache-2.0"
)

// operator is an operator on all platforms.
type operator struct {
	// ref is its image, as tidb-groups/instance-operator:v0.1.0.
	ref string
	// platforms are its images' contents.
	platforms []images.Spec
}

// title is the operator's name: instance-operator.
func (o operator) title() string {
	name, _, _ := strings.Cut(path.Base(o.ref), ":")
	return name
}

// addPlatform adds the images of a further platform to their operators.
func addPlatform(operators []operator, specs []images.Spec) []operator {
	for _, s := range specs {
		at := slices.IndexFunc(operators, func(o operator) bool { return o.ref == s.Ref })
		if at < 0 {
			at, operators = len(operators), append(operators, operator{ref: s.Ref})
		}
		operators[at].platforms = append(operators[at].platforms, s)
	}
	return operators
}

// writeImages writes an OCI layout with one index per operator.
func writeImages(dir string, operators []operator, o Options) error {
	path, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}
	for _, op := range operators {
		index, err := packOperator(op, o)
		if err != nil {
			return err
		}
		// The first name is what tools for registries look an image up by, the second
		// what containerd calls it when it imports it.
		names := map[string]string{"org.opencontainers.image.ref.name": op.ref, "io.containerd.image.name": images.FullName(op.ref)}
		if err := path.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
			return fmt.Errorf("write image %s: %w", op.ref, err)
		}
	}
	return nil
}

// packOperator builds the images of an operator, and the index that chooses between them.
func packOperator(op operator, o Options) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, spec := range op.platforms {
		spec.Labels, spec.Compressed = imageLabels(op.title(), o), true
		image, err := images.Pack(spec)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: spec.Arch}},
		})
	}
	return index, nil
}

// imageLabels tell where an image comes from.
func imageLabels(title string, o Options) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": title, images.LabelVersion: o.Version, prefix + "revision": o.Revision,
		prefix + "source": source, prefix + "licenses": license,
	}
}

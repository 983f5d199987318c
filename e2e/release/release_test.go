package release

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/images"
)

func TestOnlySemanticVersionsAreReleased(t *testing.T) {
	for _, version := range []string{"v0.1.0", "v1.22.333", "v0.1.0-rc.1", "v1.0.0-alpha"} {
		require.NoError(t, CheckVersion(version), version)
	}
	for _, version := range []string{"", "dev", "0.1.0", "v1", "v1.2", "v01.2.3", "v1.2.3-", "v1.2.3+build", "v1.2.3 ", "f826d88-dirty", "v1.2.3/../x"} {
		err := CheckVersion(version)
		require.ErrorContains(t, err, "VERSION="+version+" is no version of a release")
		require.ErrorContains(t, err, "v0.1.0")
	}
}

// pause compiles with a program that stands in for every operator: it is linked in a second.
func pause(t *testing.T) Compile {
	t.Helper()
	program := filepath.Join(t.TempDir(), "pause")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, "../images/cmd/pause").CombinedOutput()
	require.NoError(t, err, string(out))
	return func(_ context.Context, target images.Target, names ...string) ([]images.Spec, error) {
		var specs []images.Spec
		for _, name := range names {
			specs = append(specs, images.Spec{
				Ref: "tidb-groups/" + name + "-operator:" + target.Version, Arch: target.Arch, Entrypoint: []string{"/operator"}, User: "65532:65532",
				Files: []images.File{{Path: "/operator", Source: program, Mode: 0o755}},
			})
		}
		return specs, nil
	}
}

func TestARelease(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dist", "v1.2.3-rc.1")
	o := Options{Version: "v1.2.3-rc.1", Revision: "0123abc", Deploy: "../../deploy", Operators: []string{"instance", "pdgroup"}, Compile: pause(t)}
	require.NoError(t, Write(t.Context(), dir, o))
	sums := read(t, dir, ChecksumFile)

	t.Run("has a checksum of every file", func(t *testing.T) {
		for _, file := range []string{
			"images/index.json", "images/oci-layout", "install-default.yaml", "install-minimal.yaml", "install-namespaces.yaml", "install-one-process.yaml",
			"instance-operator.cdx.json", "pdgroup-operator.cdx.json",
		} {
			assert.Contains(t, sums, "  "+file+"\n")
		}
		check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--quiet", ChecksumFile)
		check.Dir = dir
		out, err := check.CombinedOutput()
		require.NoError(t, err, string(out))
	})
	t.Run("has images of all platforms that tell where they come from", func(t *testing.T) { checkImages(t, filepath.Join(dir, "images")) })
	t.Run("has bills that their library reads", func(t *testing.T) {
		var b cyclonedx.BOM
		require.NoError(t, json.Unmarshal([]byte(read(t, dir, "pdgroup-operator.cdx.json")), &b))
		assert.Equal(t, "pdgroup-operator", b.Metadata.Component.Name)
		assert.NotEmpty(t, *b.Components)
	})
	t.Run("is the same when it is made again", func(t *testing.T) {
		require.NoError(t, Write(t.Context(), dir, o))
		assert.Equal(t, sums, read(t, dir, ChecksumFile))
	})
	t.Run("stays when the next one fails, which leaves nothing", func(t *testing.T) {
		broken := errors.New("no compiler")
		o.Compile = func(context.Context, images.Target, ...string) ([]images.Spec, error) { return nil, broken }
		require.ErrorIs(t, Write(t.Context(), dir, o), broken)
		assert.Equal(t, sums, read(t, dir, ChecksumFile))
		left, err := os.ReadDir(filepath.Dir(dir))
		require.NoError(t, err)
		assert.Len(t, left, 1)
	})
}

func read(t *testing.T, dir, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	require.NoError(t, err)
	return string(text)
}

func checkImages(t *testing.T, dir string) {
	t.Helper()
	all, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	require.NoError(t, validate.Index(all))
	top, err := all.IndexManifest()
	require.NoError(t, err)
	require.Len(t, top.Manifests, 2)
	for i, name := range []string{"instance-operator", "pdgroup-operator"} {
		assert.Equal(t, map[string]string{
			"org.opencontainers.image.ref.name": "tidb-groups/" + name + ":v1.2.3-rc.1",
			"io.containerd.image.name":          "docker.io/tidb-groups/" + name + ":v1.2.3-rc.1",
		}, top.Manifests[i].Annotations)
		index, err := all.ImageIndex(top.Manifests[i].Digest)
		require.NoError(t, err)
		manifest, err := index.IndexManifest()
		require.NoError(t, err)
		var platforms []string
		for _, m := range manifest.Manifests {
			image, err := index.Image(m.Digest)
			require.NoError(t, err)
			config, err := image.ConfigFile()
			require.NoError(t, err)
			platforms = append(platforms, m.Platform.String())
			assert.Equal(t, m.Platform.Architecture, config.Architecture)
			assert.Equal(t, map[string]string{
				"org.opencontainers.image.title": name, "org.opencontainers.image.version": "v1.2.3-rc.1", "org.opencontainers.image.revision": "0123abc",
				"org.opencontainers.image.source": "https://github.com/tidb-groups/tidb-groups", "org.opencontainers.image.licenses": "Apache-2.0",
			}, config.Config.Labels)
		}
		assert.Equal(t, []string{"linux/amd64", "linux/arm64"}, platforms)
	}
}

func TestABillNamesEveryModuleOnce(t *testing.T) {
	replaced := &debug.Module{Path: "example.com/fork", Version: "v2.0.0+incompatible"}
	operator := &debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Path: ours + "operators", Version: "(devel)"}, Deps: []*debug.Module{
		{Path: ours + "apis", Version: "v0.0.0", Replace: &debug.Module{Path: "../apis", Version: "(devel)"}},
		{Path: "example.com/a", Version: "v1.0.0"},
		{Path: "example.com/b", Version: "v1.0.0", Replace: replaced},
	}}
	tool := &debug.BuildInfo{GoVersion: "go1.26.1", Main: operator.Main, Deps: operator.Deps[1:2]}
	b := buildBOM("pdgroup-operator", "v0.1.0", []*debug.BuildInfo{operator, tool})
	var urls []string
	for _, c := range *b.Components {
		urls = append(urls, c.PackageURL)
	}
	assert.Equal(t, []string{
		"pkg:golang/example.com/a@v1.0.0",
		"pkg:golang/example.com/fork@v2.0.0%2Bincompatible",
		"pkg:golang/github.com/tidb-groups/tidb-groups/apis@v0.1.0",
		"pkg:golang/github.com/tidb-groups/tidb-groups/operators@v0.1.0",
		"pkg:golang/stdlib@1.26.1",
	}, urls)
	assert.Equal(t, "v0.1.0", b.Metadata.Component.Version)
}

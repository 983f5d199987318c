package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/semver"

	"github.com/tidb-groups/tidb-groups/deploy/install"
	"github.com/tidb-groups/tidb-groups/e2e/images"
)

// ChecksumFile is the name of the file with the checksum of every other file.
const ChecksumFile = "checksums.txt"

// listPlatforms are the architectures of the machines that the images run on.
func listPlatforms() []string { return []string{"amd64", "arm64"} }

// Options of a release.
type Options struct {
	// Version of the release, as v0.1.0.
	Version string
	// Revision is the commit that it is made from.
	Revision string
	// Deploy is the module with the overlays.
	Deploy string
	// Operators to build, by the names of their folders; all if there are none.
	Operators []string
	// Compile builds operators. Tests have one that takes no minutes.
	Compile Compile
}

// Compile builds operators for a target.
type Compile func(ctx context.Context, t images.Target, names ...string) ([]images.Spec, error)

// CheckVersion refuses what is no complete semantic version. One with build metadata
// (v1.0.0+x) is refused as well: no image can have such a tag.
func CheckVersion(version string) error {
	if version != "" && semver.Canonical(version) == version {
		return nil
	}
	return fmt.Errorf("VERSION=%s is no version of a release: write it as v0.1.0 or v0.1.0-rc.1", version)
}

// Write makes a release. dir appears when all of it is there, and replaces an older one.
func Write(ctx context.Context, dir string, o Options) (err error) {
	if err := CheckVersion(o.Version); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("create directory for releases: %w", err)
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), ".release-*")
	if err != nil {
		return fmt.Errorf("create directory for a release: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	if err := writeFiles(ctx, made, o); err != nil {
		return err
	}
	if err := os.Chmod(made, 0o755); err != nil { // MkdirTemp's are for their owner only
		return fmt.Errorf("publish release: %w", err)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(made, dir)); err != nil {
		return fmt.Errorf("publish release: %w", err)
	}
	return nil
}

// writeFiles writes the files of a release.
func writeFiles(ctx context.Context, dir string, o Options) error {
	work, err := os.MkdirTemp("", "tidb-groups-release-")
	if err != nil {
		return fmt.Errorf("create directory for binaries: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }() // the go tool has what it needs for the next time
	var operators []operator
	for _, arch := range listPlatforms() {
		specs, err := o.Compile(ctx, images.Target{Dir: filepath.Join(work, arch), Version: o.Version, Arch: arch}, o.Operators...)
		if err != nil {
			return err
		}
		operators = addPlatform(operators, specs)
	}
	if err := writeImages(filepath.Join(dir, "images"), operators, o); err != nil {
		return err
	}
	for _, op := range operators {
		if err := writeBill(dir, op, o.Version); err != nil {
			return err
		}
	}
	if err := writeInstalls(dir, o); err != nil {
		return err
	}
	return writeChecksums(dir)
}

// writeInstalls writes one file to install per overlay.
func writeInstalls(dir string, o Options) error {
	overlays, err := install.Overlays(o.Deploy)
	if err != nil {
		return err
	}
	for _, name := range overlays {
		text, err := install.Render(o.Deploy, name, o.Version)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "install-"+name+".yaml"), text, 0o644); err != nil {
			return fmt.Errorf("write overlay %s: %w", name, err)
		}
	}
	return nil
}

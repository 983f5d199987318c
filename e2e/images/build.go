package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// packLimit bounds how many images are packed at once: each is held in memory.
const packLimit = 2

// Build makes the named images or sets (all when none is named) and returns
// their archives in the catalog's order. What did not change since the last
// call is neither compiled nor packed again.
func Build(ctx context.Context, names ...string) ([]Archive, error) {
	recipes, err := selectRecipes(names)
	if err != nil {
		return nil, err
	}
	root, err := binaries.Root()
	if err != nil {
		return nil, err
	}
	cache, err := binaries.CacheDir()
	if err != nil {
		return nil, err
	}
	if err := buildModules(ctx, root, cache, recipes); err != nil {
		return nil, err
	}
	dir := ""
	if packages := packagesFor(recipes); len(packages) > 0 {
		if dir, err = CompileBinaries(ctx, root, cache, packages...); err != nil {
			return nil, err
		}
	}
	archives := make([]Archive, len(recipes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(packLimit)
	for i, r := range recipes {
		group.Go(func() error {
			spec, err := r.spec(ctx, cache, dir)
			if err != nil {
				return err
			}
			spec.Labels = r.labels(os.Getenv(versionVariable))
			archives[i], err = Write(filepath.Join(cache, "images"), spec)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return archives, nil
}

// LabelVersion is the label of an image that tells the version of what it holds.
const LabelVersion = "org.opencontainers.image.version"

// labels of an image. One that stays on this machine has none, as its programs have no version:
// a commit that changes nothing makes no new image.
func (r recipe) labels(version string) map[string]string {
	if r.set != SetOperators || version == "" {
		return nil
	}
	return map[string]string{LabelVersion: version}
}

// Write packs a spec into an archive below dir and removes the archives of the
// same image's earlier contents. An archive of the same content is reused.
func Write(dir string, spec Spec) (Archive, error) {
	key, err := contentKey(spec)
	if err != nil {
		return Archive{}, fmt.Errorf("read content of image %s: %w", spec.Ref, err)
	}
	base := strings.NewReplacer("/", "_", ":", "_").Replace(spec.Ref)
	file := filepath.Join(dir, base+"@"+key+".tar")
	if found, err := ReadArchives(file); err == nil && len(found) == 1 {
		return found[0], nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Archive{}, err
	}
	img, err := Pack(spec)
	if err != nil {
		return Archive{}, err
	}
	if err := writeArchive(file, spec.Ref, img); err != nil {
		return Archive{}, err
	}
	if err := removeOthers(filepath.Join(dir, base+"@*.tar"), file); err != nil {
		return Archive{}, fmt.Errorf("remove old archives of %s: %w", spec.Ref, err)
	}
	digest, err := img.Digest()
	if err != nil {
		return Archive{}, fmt.Errorf("get digest of %s: %w", spec.Ref, err)
	}
	return Archive{Ref: FullName(spec.Ref), Digest: digest.String(), Path: file}, nil
}

func removeOthers(pattern, keep string) error {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range matches {
		if m == keep {
			continue
		}
		if err := os.Remove(m); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// packFormat is part of every key, so that archives written by an older
// version of the packing code are not taken for current ones.
const packFormat = "2"

// contentKey hashes a spec and the contents of its files. Where the files lie
// on this machine does not matter.
func contentKey(spec Spec) (string, error) {
	sum := sha256.New()
	if _, err := io.WriteString(sum, packFormat); err != nil {
		return "", err
	}
	for _, f := range spec.Files {
		if f.Source == "" {
			continue
		}
		if err := hashFile(sum, f.Source); err != nil {
			return "", err
		}
	}
	described := spec
	described.Files = make([]File, len(spec.Files))
	for i, f := range spec.Files {
		f.Source = ""
		described.Files[i] = f
	}
	text, err := json.Marshal(described)
	if err != nil {
		return "", err
	}
	if _, err := sum.Write(text); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

func hashFile(sum io.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	_, err = io.Copy(sum, f)
	return err
}

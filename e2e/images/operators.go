package images

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// CompileOperators compiles operators, all if none is named, with the programs that their
// images bring into pods, and returns what their images are made from. Nothing of it
// is cached but by the go tool.
func CompileOperators(ctx context.Context, t Target, names ...string) ([]Spec, error) {
	root, err := binaries.Root()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(t.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("create directory for binaries: %w", err)
	}
	recipes := slices.DeleteFunc(listRecipes(), func(r recipe) bool {
		return r.set != SetOperators || len(names) > 0 && !slices.Contains(names, path.Base(r.pkg))
	})
	if err := compilePackages(ctx, root, t, packagesFor(recipes)); err != nil {
		return nil, err
	}
	specs := make([]Spec, 0, len(recipes))
	for _, r := range recipes {
		spec, err := r.spec(ctx, "", t.Dir)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(r.ref, ":")
		spec.Ref, spec.Arch = name+":"+t.Version, t.Arch
		specs = append(specs, spec)
	}
	return specs, nil
}

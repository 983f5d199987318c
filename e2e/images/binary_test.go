package images

import (
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
)

// S F8: what ships is what was tested. Every program is compiled in its own module.
func TestProgramsAreCompiledInTheirOwnModule(t *testing.T) {
	assert.Equal(t, []packagesOf{
		{"operators", []string{"./pdgroup", "./tikvgroup/cmd/handover"}},
		{"e2e", []string{"./standin/pd"}},
	}, modulesOf([]string{"./operators/pdgroup", "./e2e/standin/pd", "./operators/tikvgroup/cmd/handover"}))
}

func TestOnlyAReleasedImageIsBuiltWithItsVersion(t *testing.T) {
	assert.Contains(t, buildArgs("/out", "v1.2.3", []string{"./pdgroup"}), "-ldflags=-s -w -X github.com/tidb-groups/tidb-groups/shared/operator.version=v1.2.3")
	assert.Contains(t, buildArgs("/out", "", []string{"./pdgroup"}), "-ldflags=-s -w", "a commit that changes nothing makes no new image")
}

func TestOperatorsImagesAreLabelledWithTheirVersion(t *testing.T) {
	of := func(set, version string) map[string]string { return recipe{set: set}.labels(version) }
	assert.Equal(t, map[string]string{"org.opencontainers.image.version": "v1.2.3"}, of(SetOperators, "v1.2.3"))
	assert.Nil(t, of(SetOperators, ""))
	assert.Nil(t, of(SetStandins, "v1.2.3"), "a stand-in tells the version of what it stands for")
}

// The flags of the Makefile, so that what tests have compiled is not compiled again for images.
func TestImagesShareWhatTestsHaveCompiled(t *testing.T) {
	assert.Subset(t, buildArgs("/out", "", nil), []string{"-trimpath", "-buildvcs=false", "-tags=grpcnotrace"})
}

// Two images may bring the same program.
func TestAProgramOfTwoImagesIsCompiledOnce(t *testing.T) {
	assert.Equal(t, []string{"./b", "./a", "./c"}, packagesFor([]recipe{
		{pkg: "./a", extra: []string{"./b"}}, {pkg: "./c", extra: []string{"./b"}}, {pkg: "./apart", module: "e2e/apart"}, {program: "coredns"},
	}))
	all := packagesFor(listRecipes())
	for i, pkg := range all {
		assert.NotContains(t, all[:i], pkg)
	}
}

// All programs of a module get into one folder.
func TestNoTwoProgramsHaveOneName(t *testing.T) {
	names := map[string]string{}
	for _, r := range listRecipes() {
		for _, pkg := range append([]string{r.pkg}, r.extra...) {
			if other, taken := names[r.module+path.Base(pkg)]; pkg != "" && taken {
				assert.Equal(t, other, pkg, "they would get the same file name")
			}
			names[r.module+path.Base(pkg)] = pkg
		}
	}
}

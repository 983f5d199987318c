package affected

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	store   = repository + "shared/store"
	group   = repository + "shared/group"
	rig     = repository + "e2e/rig"
	budget  = repository + "shared/budget"
	listing = store + " fmt\n" +
		store + ".test " + store + " [" + store + ".test],fmt,testing\n" +
		store + " [" + store + ".test] fmt,testing\n" +
		budget + ".test " + budget + ",testing\n" +
		group + ".test " + group + "," + store + "\n" +
		rig + ".test " + controlPlane + "," + store + "\n"
)

func TestATestIsRunIfItUsesThePackageAndNoControlPlane(t *testing.T) {
	for name, c := range map[string]struct {
		changed   string
		run, left []string
	}{
		"others use it":        {store, []string{store, group}, []string{rig}},
		"no package uses it":   {budget, []string{budget}, nil},
		"it has no test":       {controlPlane, nil, []string{rig}},
		"it does not exist":    {repository + "shared/stor", nil, nil},
		"it starts a plane":    {rig, nil, []string{rig}},
		"a package of Go's":    {"testing", []string{store, budget}, nil},
		"its test uses itself": {group, []string{group}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			run, left := Split(parseListing(listing), c.changed)
			assert.Equal(t, c.run, run)
			assert.Equal(t, c.left, left)
		})
	}
}

func TestUntestedPackagesAreReportedWithTheCommandThatTestsThem(t *testing.T) {
	modules := []string{"shared", "e2e"}
	assert.Equal(t, `NOT TESTED: these use shared/store too, but start a control plane, which takes minutes. Test them with:
  GOWORK=off go -C e2e test -timeout 30m ./rig ./bench
or all of them with: make test
`, DescribeUntested(store, modules, map[string][]string{"shared": nil, "e2e": {rig, repository + "e2e/bench"}}))
	assert.Empty(t, DescribeUntested(store, modules, map[string][]string{"shared": nil}))
}

func TestASeparateModuleIsSearchedOnlyForItsOwnPackages(t *testing.T) {
	modules := []string{"shared", "e2e"}
	assert.Equal(t, []string{"e2e/tikv"}, Modules(repository+"e2e/tikv/raftstore", "e2e/tikv", modules))
	assert.Equal(t, []string{"e2e/tikv"}, Modules(repository+"e2e/tikv", "e2e/tikv", modules))
	assert.Equal(t, modules, Modules(repository+"e2e/tikvs", "e2e/tikv", modules))
	assert.Equal(t, modules, Modules(store, "", modules))
}

func TestAPackageIsNamedFromTheRoot(t *testing.T) {
	const root = "../../.."
	for _, name := range []string{"./shared/budget", "shared/budget", "shared/budget/"} {
		path, err := ImportPath(root, name)
		require.NoError(t, err)
		assert.Equal(t, budget, path)
	}
	for _, name := range []string{"", ".", "/tmp", "../shared/budget", "shared/nothing", "docs", "./..."} {
		_, err := ImportPath(root, name)
		require.ErrorContains(t, err, "PKG="+name+" ")
		require.ErrorContains(t, err, "PKG=./shared/store")
	}
}

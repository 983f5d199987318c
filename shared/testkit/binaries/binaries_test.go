package binaries

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tiny is a program that needs no module but the standard library's and builds
// in a moment.
func tiny(t *testing.T) (place, map[string]program) {
	t.Helper()
	root := t.TempDir()
	t.Setenv(CacheEnv, filepath.Join(root, "cache"))
	source := filepath.Join(root, "tree", toolsDir, "tiny")
	require.NoError(t, os.MkdirAll(source, 0o755))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(source, name), []byte(text), 0o600))
	}
	// The required module is only read for its version: nothing imports it.
	write("go.mod", "module example.com/tiny\n\ngo 1.26.0\n\n// require example.com/pinned v1.2.3\n")
	write("go.sum", "")
	write("main.go", "package main\n\nvar version string\n\nfunc main() { println(version) }\n")
	module := toolModule{dir: "tiny", pins: "example.com/pinned", versionVars: []string{"main.version"}, estimate: time.Second}
	p := place{
		module: module, source: source, version: "v1.2.3",
		flags: []string{"-trimpath", "-ldflags=" + linkerFlags(module, "v1.2.3")},
		cache: filepath.Join(root, "cache", "bin", "tiny"),
	}
	return p, map[string]program{"renamed": {module: module, pkg: "example.com/tiny", builds: "tiny"}}
}

// countingCompiler puts a "go" in front of $PATH that notes each build.
func countingCompiler(t *testing.T) (calls func() int) {
	t.Helper()
	compiler, err := exec.LookPath("go")
	require.NoError(t, err)
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := "#!/bin/sh\n[ \"$1\" != build ] || echo call >> " + log + "\nexec " + compiler + " \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() int {
		text, err := os.ReadFile(log)
		if os.IsNotExist(err) {
			return 0
		}
		require.NoError(t, err)
		return len(text) / len("call\n")
	}
}

func TestEnsureBuildsOnceForConcurrentCallers(t *testing.T) {
	p, table := tiny(t)
	calls := countingCompiler(t)

	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() { errs[i] = p.buildMissing(t.Context(), table, []string{"renamed"}) })
	}
	group.Wait()

	for _, err := range errs {
		require.NoError(t, err)
	}
	assert.Equal(t, 1, calls())
	assert.True(t, isExecutable(p.program("renamed")))
	left, err := filepath.Glob(filepath.Join(p.cache, ".build-*"))
	require.NoError(t, err)
	assert.Empty(t, left, "the build directory is removed")
}

func TestEnsureReportsWhatTheCompilerSaid(t *testing.T) {
	p, table := tiny(t)
	require.NoError(t, os.WriteFile(filepath.Join(p.source, "main.go"), []byte("package main\n\nfunc main() { undefinedThing() }\n"), 0o600))
	err := p.buildMissing(t.Context(), table, []string{"renamed"})
	require.ErrorContains(t, err, "undefinedThing")
	require.ErrorContains(t, err, "build renamed v1.2.3")
	assert.False(t, isExecutable(p.program("renamed")))
}

func TestEnsureNamesTheMissingCompiler(t *testing.T) {
	p, table := tiny(t)
	t.Setenv("PATH", t.TempDir())
	require.ErrorContains(t, p.buildMissing(t.Context(), table, []string{"renamed"}), "the Go compiler is not in $PATH")
}

func TestLockIsGivenUpWhenTheContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = lockFile(ctx, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	unlock()
	again, err := lockFile(t.Context(), path)
	require.NoError(t, err)
	again()
}

func TestPathOfAnUnknownNameListsTheKnownOnes(t *testing.T) {
	_, err := Path(t.Context(), "kube-nothing")
	require.ErrorContains(t, err, `"kube-nothing"`)
	require.ErrorContains(t, err, "kube-apiserver")
}

func TestPathPrefersTheAssetsThatTheMachineHas(t *testing.T) {
	assets := t.TempDir()
	t.Setenv(assetsEnv, assets)
	t.Setenv(CacheEnv, t.TempDir())
	for _, name := range []string{"etcd", "kubectl"} {
		require.NoError(t, os.WriteFile(filepath.Join(assets, name), nil, 0o700))
	}
	path, err := Path(t.Context(), "etcd")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(assets, "etcd"), path)
	dir, err := Dir(t.Context(), "etcd", "kubectl")
	require.NoError(t, err)
	assert.Equal(t, assets, dir)
}

func TestLinkTogetherMakesOneDirectoryPerSet(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	found := map[string]string{}
	for _, name := range []string{"one", "two"} {
		found[name] = filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(found[name], []byte(name), 0o700))
	}
	dir, err := linkTogether(found)
	require.NoError(t, err)
	again, err := linkTogether(found)
	require.NoError(t, err)
	assert.Equal(t, dir, again)
	for name := range found {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, name, string(text))
	}
}

func TestEveryProgramHasAPinnedVersion(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	for name, p := range knownPrograms() {
		t.Run(name, func(t *testing.T) {
			found, err := locateModule(root, p.module)
			require.NoError(t, err)
			assert.Regexp(t, `^v\d+\.\d+\.\d+`, found.version)
			mod, err := os.ReadFile(filepath.Join(found.source, "go.mod"))
			require.NoError(t, err)
			assert.Contains(t, string(mod), p.pkg, "the tool module names the program's package")
		})
	}
}

func TestRequiredVersion(t *testing.T) {
	for name, tc := range map[string]struct{ mod, want string }{
		"a requirement on a line of its own":        {"module x\nrequire a.b/c v1.2.3\n", "v1.2.3"},
		"a requirement within a block":              {"module x\nrequire (\n\ta.b/c v1.2.3 // indirect\n)\n", "v1.2.3"},
		"a longer path is another module":           {"module x\nrequire (\n\ta.b/c/v2 v2.0.0\n)\n", ""},
		"a replace line is not a requirement":       {"module x\nreplace a.b/c => a.b/d v1.0.0\n", ""},
		"nothing is required":                       {"module x\n", ""},
		"the tool line of the same path counts not": {"module x\ntool a.b/c\nrequire a.b/c v1.0.0\n", "v1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := requiredVersion([]byte(tc.mod), "a.b/c")
			if tc.want == "" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestFingerprintFollowsPinsAndFlags(t *testing.T) {
	base := computeFingerprint([]byte("mod"), []byte("sum"), nil, []string{"-a"})
	assert.Equal(t, base, computeFingerprint([]byte("mod"), []byte("sum"), nil, []string{"-a"}))
	assert.Len(t, base, hashLength)
	for name, other := range map[string]string{
		"another go.mod":                      computeFingerprint([]byte("mod2"), []byte("sum"), nil, []string{"-a"}),
		"another go.sum":                      computeFingerprint([]byte("mod"), []byte("sum2"), nil, []string{"-a"}),
		"another program":                     computeFingerprint([]byte("mod"), []byte("sum"), []byte("main"), []string{"-a"}),
		"other flags":                         computeFingerprint([]byte("mod"), []byte("sum"), nil, []string{"-b"}),
		"the same bytes, divided differently": computeFingerprint([]byte("mods"), []byte("um"), nil, []string{"-a"}),
	} {
		assert.NotEqual(t, base, other, name)
	}
}

func TestEditionsOfOneModuleAreBuildsOfTheirOwn(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	builds, err := MissingBuilds("pd-server", "pd-server-older", "tidb-server", "pd-server")
	require.NoError(t, err)
	var made [][]string
	for _, b := range builds {
		made = append(made, b.Programs)
	}
	assert.Equal(t, [][]string{{"pd-server"}, {"pd-server-older"}, {"tidb-server"}}, made)

	root, err := Root()
	require.NoError(t, err)
	newer, err := locateModule(root, knownPrograms()["pd-server"].module)
	require.NoError(t, err)
	older, err := locateModule(root, knownPrograms()["pd-server-older"].module)
	require.NoError(t, err)
	assert.Equal(t, newer.source, older.source)
	assert.NotEqual(t, newer.cache, older.cache, "each has a folder of its own")
}

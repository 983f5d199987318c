package images

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// DefaultVersion is the version that the samples ask for, and that the stand-in
// images are tagged with. The real ones have the tags [binaries.Release] and
// [binaries.OlderRelease]: both kinds can be in one cluster, and a group's version
// says which it runs.
const DefaultVersion = "v8.5.7"

// Names of the images that every node needs before the first pod can run.
const (
	PauseRef   = "tidb-groups/pause:dev"
	CoreDNSRef = "tidb-groups/coredns:dev"
	BusyboxRef = "busybox:1.37.0"
)

// busyboxPath is where Debian's package busybox-static puts its only binary.
const busyboxPath = "/bin/busybox"

// unprivileged is the user that images without a need for root run as.
const unprivileged = "65532:65532"

// Sets of images, in the order in which a demo needs them.
const (
	SetBase      = "base"
	SetOperators = "operators"
	SetStandins  = "standins"
	// SetReal is a PD and a TiDB that are built from the real ones' source over a
	// TiKV of ours that replicates, and a stand-in of TiFlash, of which no source
	// can be had here.
	SetReal = "real"
	// SetOlder is the same as an older release, for upgrades.
	SetOlder = "older"
	// SetBackup are Dumpling and TiDB Lightning of the real TiDB and a server of S3, which no
	// demo needs.
	SetBackup = "backup"
)

// Sets returns the names of all sets.
func Sets() []string {
	return slices.Concat([]string{SetBase, SetOperators, SetReal, SetOlder, SetStandins}, OwnSets(), []string{SetBackup})
}

// OwnSets returns the names of the sets of one stand-in each, which no demo needs: those whose
// versions are not those of the cluster, or beside the real database.
func OwnSets() []string {
	var out []string
	for _, s := range listStandins() {
		if s.version != DefaultVersion {
			out = append(out, s.component)
		}
	}
	return out
}

// standin is how a component is played in an image.
type standin struct {
	// component and version are those of the image.
	component, version string
	// program below standin/cmd, and its path in the image.
	program, path string
	// tool is the program that the image of the operator brings into pods; empty if none.
	tool string
}

// listStandins are how all components are played.
func listStandins() []standin {
	return []standin{
		{v1alpha1.ComponentPD, DefaultVersion, "pd-server", "/pd-server", "resign"},
		{v1alpha1.ComponentTiKV, DefaultVersion, "tikv-server", "/tikv-server", "handover"},
		{v1alpha1.ComponentTiDB, DefaultVersion, "tidb-server", "/tidb-server", "sql"},
		{v1alpha1.ComponentTiFlash, DefaultVersion, "tiflash", "/tiflash/tiflash", ""},
		{v1alpha1.ComponentTiProxy, "v1.3.0", "tiproxy", "/bin/tiproxy", "drain-clients"},
		{v1alpha1.ComponentTiCDC, binaries.Release, "cdc", "/cdc", "drain-capture"},
	}
}

// recipe makes one image. Exactly one of the sources is set.
type recipe struct {
	set string
	ref string
	// pkg is a main package of this repository.
	pkg string
	// program is the name of a program that the test kit builds.
	program string
	// module is the folder of a module of this repository with requirements of its
	// own, in which pkg is.
	module string
	// shell puts busybox beside the binary, for the scripts that some pods run.
	shell bool
	// env as in an image's config.
	env []string
	// busybox takes the machine's static busybox with links for its applets.
	busybox bool
	// extra are more main packages of this repository, whose programs lie at the root of
	// the image.
	extra []string
	// path of the binary in the image, which is also its entrypoint.
	path string
	user string
}

// listTools are the programs beside an operator that its image brings into pods.
func listTools() map[string][]string {
	out := map[string][]string{v1alpha1.OperatorBackup: {"./operators/backup/cmd/backup-runner"}}
	for _, s := range listStandins() {
		if operator := s.component + "group"; s.tool != "" {
			out[operator] = []string{"./operators/" + operator + "/cmd/" + s.tool}
		}
	}
	return out
}

// listRecipes lists every image that this package can make.
func listRecipes() []recipe {
	recipes := []recipe{
		{set: SetBase, ref: PauseRef, pkg: "./e2e/images/cmd/pause", path: "/pause", user: unprivileged},
		{set: SetBase, ref: CoreDNSRef, program: "coredns", path: "/coredns"},
		{set: SetBase, ref: BusyboxRef, busybox: true, path: "/bin/busybox"},
	}
	for _, name := range v1alpha1.Programs() {
		r := recipe{
			set: SetOperators, ref: "tidb-groups/" + name + "-operator:dev",
			pkg: "./operators/" + name, path: "/operator", user: unprivileged,
		}
		r.extra = listTools()[name]
		if name == v1alpha1.OperatorAll {
			r.extra = slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(listTools()))...)))
		}
		recipes = append(recipes, r)
	}
	for _, s := range listStandins() {
		r := recipe{set: SetStandins, ref: "pingcap/" + s.component + ":" + s.version, pkg: "./e2e/standin/cmd/" + s.program, path: s.path}
		if s.version != DefaultVersion {
			r.set = s.component
		}
		recipes = append(recipes, r)
	}
	recipes = append(recipes, realRecipes(SetReal, binaries.Release, "")...)
	recipes = append(recipes,
		recipe{set: SetBackup, ref: "pingcap/dumpling:" + binaries.Release, program: "dumpling", path: "/dumpling"},
		recipe{set: SetBackup, ref: "pingcap/tidb-lightning:" + binaries.Release, program: "tidb-lightning", path: "/tidb-lightning"},
		recipe{set: SetBackup, ref: "versity/versitygw:dev", program: "versitygw", path: "/versitygw"},
	)
	return append(recipes, realRecipes(SetOlder, binaries.OlderRelease, "-older")...)
}

// packagesFor lists the main packages that images are made from, each once, but for those of
// modules apart.
func packagesFor(recipes []recipe) []string {
	var out []string
	for _, r := range recipes {
		own := slices.Clone(r.extra)
		if r.pkg != "" && r.module == "" {
			own = append(own, r.pkg)
		}
		for _, pkg := range own {
			if !slices.Contains(out, pkg) {
				out = append(out, pkg)
			}
		}
	}
	return out
}

// toldVersion begins the variable that tells our TiKV and a stand-in their release.
const toldVersion = "STANDIN_VERSION="

// realRecipes lists the images of a database that answers SQL and keeps its rows. They
// have a shell, as PingCAP's have. The test kit's programs end with suffix.
func realRecipes(set, release, suffix string) []recipe {
	env := []string{toldVersion + release}
	return []recipe{
		{set: set, ref: "pingcap/pd:" + release, program: "pd-server" + suffix, path: "/pd-server", shell: true},
		{set: set, ref: "pingcap/tidb:" + release, program: "tidb-server" + suffix, path: "/tidb-server", shell: true},
		{set: set, ref: "pingcap/tikv:" + release, module: "e2e/tikv", pkg: "./cmd/tikv-server", env: env, path: "/tikv-server", shell: true},
		{set: set, ref: "pingcap/tiflash:" + release, pkg: "./e2e/standin/cmd/tiflash", env: env, path: "/tiflash/tiflash"},
	}
}

// Programs returns the programs of the test kit that the images of sets are made
// from, in their order.
func Programs(sets ...string) []string {
	var out []string
	for _, r := range listRecipes() {
		if r.program != "" && slices.Contains(sets, r.set) {
			out = append(out, r.program)
		}
	}
	return out
}

// Refs returns the names of all images that can be built.
func Refs() []string {
	var refs []string
	for _, r := range listRecipes() {
		refs = append(refs, r.ref)
	}
	return refs
}

// selectRecipes returns the recipes of the named sets or images; no name means all.
func selectRecipes(names []string) ([]recipe, error) {
	if len(names) == 0 {
		return listRecipes(), nil
	}
	var chosen []recipe
	for _, name := range names {
		found := false
		for _, r := range listRecipes() {
			if name == r.set || name == r.ref {
				chosen, found = append(chosen, r), true
			}
		}
		if !found {
			return nil, fmt.Errorf("choose image %q: unknown; sets are %s and images are %s", name,
				strings.Join(Sets(), ", "), strings.Join(Refs(), ", "))
		}
	}
	return chosen, nil
}

// spec resolves a recipe to files on this machine. The binaries of repository
// packages must have been built into dir, those of modules of their own below the
// cache.
func (r recipe) spec(ctx context.Context, cache, dir string) (Spec, error) {
	s := Spec{Ref: r.ref, Entrypoint: []string{r.path}, User: r.user, Env: append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, r.env...)}
	if r.shell {
		links, err := linkApplets(ctx)
		if err != nil {
			return Spec{}, err
		}
		s.Files = append(s.Files, links...)
		s.Files = append(s.Files, File{Path: busyboxPath, Source: busyboxPath, Mode: 0o755})
	}
	source := ""
	switch {
	case r.module != "":
		source = r.moduleBinary(cache)
	case r.pkg != "":
		source = filepath.Join(dir, filepath.Base(r.pkg))
	case r.program != "":
		path, err := binaries.Path(ctx, r.program)
		if err != nil {
			return Spec{}, fmt.Errorf("find binary of image %s: %w", r.ref, err)
		}
		source = path
	case r.busybox:
		// A shell must start when no command is given, and the applets are called by name.
		s.Entrypoint, s.Cmd = nil, []string{"/bin/sh"}
		source = busyboxPath
		links, err := linkApplets(ctx)
		if err != nil {
			return Spec{}, err
		}
		s.Files = links
	}
	s.Files = append(s.Files, File{Path: r.path, Source: source, Mode: 0o755})
	for _, pkg := range r.extra {
		s.Files = append(s.Files, File{Path: "/" + filepath.Base(pkg), Source: filepath.Join(dir, filepath.Base(pkg)), Mode: 0o755})
	}
	return s, nil
}

// linkApplets returns a link for every program that busybox can play.
func linkApplets(ctx context.Context) ([]File, error) {
	if _, err := os.Stat(busyboxPath); err != nil {
		return nil, errors.New("find " + busyboxPath + ": it is not there; install Debian's busybox-static: apt-get install -y busybox-static")
	}
	out, err := exec.CommandContext(ctx, busyboxPath, "--list-full").Output()
	if err != nil {
		return nil, fmt.Errorf("list busybox applets: %w", err)
	}
	var files []File
	for line := range strings.Lines(string(out)) {
		if p := "/" + strings.TrimSpace(line); p != busyboxPath && p != "/" {
			files = append(files, File{Path: p, Link: busyboxPath})
		}
	}
	return files, nil
}

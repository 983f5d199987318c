package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// DefaultVersion is the version that the samples ask for, and that the stand-in
// images are tagged with.
const DefaultVersion = "v8.5.7"

// RealPDRef is the image of the real PD.
const RealPDRef = "pingcap/pd:" + binaries.PDVersion

// Names of the images that every node needs before the first pod can run.
const (
	PauseRef   = "tidb-groups/pause:dev"
	CoreDNSRef = "tidb-groups/coredns:dev"
	BusyboxRef = "busybox:1.37.0"
)

// busyboxPath is where Debian's package busybox-static puts its only binary.
const busyboxPath = "/bin/busybox"

// nobody is the user that images without a need for root run as.
const nobody = "65532:65532"

// Sets of images, in the order in which a demo needs them.
const (
	SetBase      = "base"
	SetOperators = "operators"
	SetStandins  = "standins"
	// SetReal is what is built from the real database's source: PD, so far. It is
	// tagged with the version that it tells of itself, beside the stand-ins.
	SetReal = "real"
)

// Sets returns the names of all sets.
func Sets() []string { return []string{SetBase, SetOperators, SetReal, SetStandins} }

// recipe makes one image. Exactly one of the sources is set.
type recipe struct {
	set string
	ref string
	// pkg is a main package of this repository.
	pkg string
	// program is the name of a program that the test kit builds.
	program string
	// busybox takes the machine's static busybox with links for its applets.
	busybox bool
	// extra are more main packages of this repository, whose programs lie at the root of
	// the image.
	extra []string
	// path of the binary in the image, which is also its entrypoint.
	path string
	user string
}

// catalog lists every image that this package can make.
func catalog() []recipe {
	recipes := []recipe{
		{set: SetBase, ref: PauseRef, pkg: "./e2e/images/cmd/pause", path: "/pause", user: nobody},
		{set: SetBase, ref: CoreDNSRef, program: "coredns", path: "/coredns"},
		{set: SetBase, ref: BusyboxRef, busybox: true, path: "/bin/busybox"},
	}
	for _, name := range []string{"pdgroup", "tikvgroup", "tidbgroup", "tiflashgroup", "instance", "tidbcluster"} {
		r := recipe{
			set: SetOperators, ref: "tidb-groups/" + name + "-operator:dev",
			pkg: "./operators/" + name, path: "/operator", user: nobody,
		}
		if name == "tikvgroup" {
			r.extra = []string{"./operators/tikvgroup/cmd/handover"}
		}
		recipes = append(recipes, r)
	}
	for _, s := range []struct{ image, binary, path string }{
		{"pd", "pd-server", "/pd-server"},
		{"tikv", "tikv-server", "/tikv-server"},
		{"tidb", "tidb-server", "/tidb-server"},
		{"tiflash", "tiflash", "/tiflash/tiflash"},
	} {
		recipes = append(recipes, recipe{
			set: SetStandins, ref: "pingcap/" + s.image + ":" + DefaultVersion,
			pkg: "./e2e/standin/cmd/" + s.binary, path: s.path,
		})
	}
	return append(recipes, recipe{set: SetReal, ref: RealPDRef, program: "pd-server", path: "/pd-server"})
}

// Programs returns the programs of the test kit that the images of sets are made
// from, in their order.
func Programs(sets ...string) []string {
	var out []string
	for _, r := range catalog() {
		if r.program != "" && slices.Contains(sets, r.set) {
			out = append(out, r.program)
		}
	}
	return out
}

// Refs returns the names of all images that can be built.
func Refs() []string {
	var refs []string
	for _, r := range catalog() {
		refs = append(refs, r.ref)
	}
	return refs
}

// choose returns the recipes of the named sets or images; no name means all.
func choose(names []string) ([]recipe, error) {
	if len(names) == 0 {
		return catalog(), nil
	}
	var chosen []recipe
	for _, name := range names {
		found := false
		for _, r := range catalog() {
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
// packages must have been built into dir.
func (r recipe) spec(ctx context.Context, dir string) (Spec, error) {
	s := Spec{Ref: r.ref, Entrypoint: []string{r.path}, User: r.user, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}}
	source := ""
	switch {
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
		links, err := applets(ctx)
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

// applets returns a link for every program that busybox can play.
func applets(ctx context.Context) ([]File, error) {
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

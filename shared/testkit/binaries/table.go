package binaries

import (
	"maps"
	"slices"
	"time"
)

// Releases that the database's programs report of themselves. Their modules are
// pinned by commits, whose pseudo-versions say nothing to PD or to a user, and
// which lie near these releases: PD of April 2024, TiDB of November 2025, and of
// July 2024 for the older one. There is one commit of PD for both.
const (
	Release      = "v8.5.0"
	OlderRelease = "v8.1.0"
)

// toolModule is one folder under shared/tools: a go.mod that pins a module, and
// the programs that are built from it.
type toolModule struct {
	// dir is the folder's name below shared/tools.
	dir string
	// edition tells builds of one folder with different stamps apart.
	edition string
	// pins is the module path whose required version names the cache folder.
	pins string
	// versionVars are the string variables that are set to the pinned version.
	versionVars []string
	// semverPackages are packages whose gitMajor and gitMinor are set as well.
	semverPackages []string
	// tags are build tags.
	tags []string
	// stamps are further string variables and what they are set to.
	stamps map[string]string
	// linker holds further flags of the linker.
	linker []string
	// estimate is how long the first build of the whole module takes on two
	// cores, as shown to the user who waits for it.
	estimate time.Duration
}

// program is one executable of a tool module.
type program struct {
	module toolModule
	pkg    string
	// builds is the file that the compiler writes when it is not the name.
	builds string
}

// buildName names the one call of the compiler that makes a program with others.
func (m toolModule) buildName() string { return m.dir + m.edition }

func (p program) output(name string) string {
	if p.builds != "" {
		return p.builds
	}
	return name
}

// knownPrograms returns every program that is known, by name.
func knownPrograms() map[string]program {
	kubernetes := toolModule{
		dir:  "kubernetes",
		pins: "k8s.io/kubernetes",
		versionVars: []string{
			"k8s.io/component-base/version.gitVersion",
			"k8s.io/client-go/pkg/version.gitVersion",
		},
		semverPackages: []string{
			"k8s.io/component-base/version",
			"k8s.io/client-go/pkg/version",
		},
		estimate: 4 * time.Minute,
	}
	table := map[string]program{
		"etcd": {
			module: toolModule{dir: "etcd", pins: "go.etcd.io/etcd/server/v3", estimate: 20 * time.Second},
			pkg:    "go.etcd.io/etcd/server/v3",
			builds: "server",
		},
		"coredns": {
			module: toolModule{dir: "coredns", pins: "github.com/coredns/coredns", estimate: time.Minute},
			pkg:    "github.com/tidb-groups/tidb-groups/shared/tools/coredns", // with few plugins: see there
		},
		"controller-gen": {
			module: toolModule{dir: "controller-gen", pins: "sigs.k8s.io/controller-tools", estimate: 30 * time.Second},
			pkg:    "sigs.k8s.io/controller-tools/cmd/controller-gen",
		},
		"golangci-lint": {
			module: toolModule{
				dir:         "golangci-lint",
				pins:        "github.com/golangci/golangci-lint/v2",
				versionVars: []string{"main.version"},
				estimate:    3 * time.Minute,
			},
			pkg: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint",
		},
		"govulncheck": {
			module: toolModule{dir: "govulncheck", pins: "golang.org/x/vuln", estimate: 20 * time.Second},
			pkg:    "golang.org/x/vuln/cmd/govulncheck",
		},
	}
	table["versitygw"] = program{ // a server of S3 on a folder
		module: toolModule{dir: "versitygw", pins: "github.com/versity/versitygw", estimate: time.Minute},
		pkg:    "github.com/versity/versitygw/cmd/versitygw",
	}
	table["cert-manager"] = program{
		module: toolModule{dir: "cert-manager", pins: "github.com/cert-manager/cert-manager", estimate: time.Minute},
		pkg:    "github.com/tidb-groups/tidb-groups/shared/tools/cert-manager", // with few controllers: see there
	}
	table["fake-gcs-server"] = program{ // a server of Google Cloud Storage on a folder
		module: toolModule{dir: "fakegcs", pins: "github.com/fsouza/fake-gcs-server", estimate: time.Minute},
		pkg:    "github.com/fsouza/fake-gcs-server",
	}
	maps.Copy(table, databasePrograms("", Release, "tidb"))
	tools := table["tidb-server"].module
	table["dumpling"] = program{module: tools, pkg: "github.com/pingcap/tidb/dumpling/cmd/dumpling"}
	table["tidb-lightning"] = program{module: tools, pkg: "github.com/pingcap/tidb/lightning/cmd/tidb-lightning"}
	maps.Copy(table, databasePrograms("-older", OlderRelease, "tidb-older"))
	for _, name := range []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
	} {
		table[name] = program{module: kubernetes, pkg: "k8s.io/kubernetes/cmd/" + name}
	}
	return table
}

// databasePrograms returns PD and TiDB as one release: their names end with suffix, and
// TiDB is pinned in the folder tidb.
func databasePrograms(suffix, release, tidb string) map[string]program {
	return map[string]program{
		"pd-server" + suffix: {
			module: toolModule{
				dir:     "pd",
				edition: suffix,
				pins:    "github.com/tikv/pd",
				// The dashboard is a web page that is built elsewhere.
				tags:     []string{"without_dashboard"},
				stamps:   map[string]string{"github.com/tikv/pd/pkg/versioninfo.PDReleaseVersion": release},
				estimate: time.Minute,
			},
			pkg:    "github.com/tikv/pd/cmd/pd-server",
			builds: "pd-server",
		},
		"tidb-server" + suffix: {
			module: toolModule{
				dir:    tidb,
				pins:   "github.com/pingcap/tidb",
				stamps: map[string]string{"github.com/pingcap/tidb/pkg/parser/mysql.TiDBReleaseVersion": release},
				// TiDB reaches into the runtime by go:linkname, which the linker refuses without.
				linker:   []string{"-checklinkname=0"},
				estimate: 4 * time.Minute,
			},
			pkg:    "github.com/pingcap/tidb/cmd/tidb-server",
			builds: "tidb-server",
		},
	}
}

// Names returns the name of every program that [Path] knows, sorted.
func Names() []string {
	return slices.Sorted(maps.Keys(knownPrograms()))
}

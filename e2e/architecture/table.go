package architecture

// prefix begins the import path of every module of the suite.
const prefix = "github.com/tidb-groups/tidb-groups/"

// module is one row of the import table.
type module struct {
	name string
	// siblings are the modules of the suite that it may depend on, by any path.
	siblings []string
	// external are the modules that its code, tests excepted, may import. A
	// sibling's external modules are allowed as well: their types show in its API.
	external []string
	// testExternal are further modules that its tests may import.
	testExternal []string
	// anything lifts the restriction on external modules.
	anything bool
}

// importTable is the import table.
func importTable() []module {
	testing := []string{"github.com/stretchr/testify", "pgregory.net/rapid"}
	return []module{
		{
			name:         "apis",
			external:     []string{"k8s.io/api", "k8s.io/apimachinery"},
			testExternal: testing,
		},
		{
			name:     "shared",
			siblings: []string{"apis"},
			external: []string{
				"github.com/KimMachineGun/automemlimit", // the memory limit of the container
				"github.com/go-logr/logr",               // controller-runtime's own logging interface
				"github.com/pelletier/go-toml/v2",
				"github.com/pingcap/kvproto", // types of PD's client
				"github.com/pingcap/log",     // the logger of PD's client, which is turned off
				"github.com/prometheus/client_golang",
				"github.com/robfig/cron/v3",   // maintenance windows
				"github.com/stretchr/testify", // testkit
				"github.com/tikv/pd/client",
				"go.uber.org/zap",                // the logger behind logr
				"k8s.io/apiextensions-apiserver", // testkit
				"k8s.io/client-go",
				"k8s.io/component-helpers", // on which nodes the scheduler lets a pod
				"k8s.io/klog/v2",           // client-go's logger, to be led into ours
				"k8s.io/utils",
				"sigs.k8s.io/controller-runtime",
				"sigs.k8s.io/json", // strict decoding
				"sigs.k8s.io/yaml",
			},
			testExternal: testing,
		},
		{
			name:     "operators",
			siblings: []string{"apis", "shared"},
			external: []string{
				"github.com/Azure/azure-sdk-for-go/sdk/azcore", // what Azure and Google refuse
				"google.golang.org/api",
				"github.com/Azure/azure-sdk-for-go/sdk/azidentity", // the clients of Azure and Google that it takes
				"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob",
				"golang.org/x/crypto/x509roots/fallback", // for the images, which have no certificate authorities
				"golang.org/x/oauth2",
				"github.com/aws/aws-sdk-go-v2",        // the client of S3 that gocloud.dev takes
				"github.com/aws/aws-sdk-go-v2/config", // finds the role of a pod
				"github.com/aws/aws-sdk-go-v2/credentials",
				"github.com/aws/aws-sdk-go-v2/feature/ec2/imds", // to be switched off
				"github.com/aws/aws-sdk-go-v2/service/s3",
				"github.com/aws/smithy-go",       // its errors
				"github.com/dustin/go-humanize",  // sizes of backups
				"github.com/go-jose/go-jose/v4",  // keys of tokens
				"github.com/go-sql-driver/mysql", // SQL that a Job runs
				"gocloud.dev",                    // the storage of backups
				"google.golang.org/grpc",         // TiKV's own port
			},
			testExternal: testing,
		},
		{
			name:     "deploy",
			siblings: []string{"apis", "shared", "operators"},
			external: []string{
				"github.com/grafana/grafana-foundation-sdk/go", // the dashboard
				"github.com/spf13/cobra",
				"k8s.io/cli-runtime",
				"sigs.k8s.io/kustomize/api",
				"sigs.k8s.io/kustomize/kyaml",
			},
			// One runs the checks for Argo CD, the others read alerts and monitors as Prometheus does.
			testExternal: append([]string{"github.com/yuin/gopher-lua", "github.com/prometheus/common", "github.com/prometheus/prometheus"}, testing...),
		},
		{
			name:     "e2e",
			siblings: []string{"apis", "shared", "operators", "deploy"},
			anything: true,
		},
	}
}

// pureFiles are the files of an operator that decide and do nothing else.
func pureFiles() []string { return []string{"plan.go", "report.go", "safe.go", "template.go"} }

// impureImports are import paths, with all below them, through which a file could read
// or change the world. Names and types of Kubernetes objects are data.
func impureImports() []string {
	return []string{
		"context", "crypto/rand", "io/fs", "k8s.io/client-go", "math/rand", "net", "os",
		"sigs.k8s.io/controller-runtime", "syscall",
		prefix + "shared/apply", prefix + "shared/leaseclient", prefix + "shared/operator",
		prefix + "shared/pd/polling", prefix + "shared/pdclient", prefix + "shared/watch",
	}
}

// controllerFiles are the files that every operator has in controller/.
func controllerFiles() []string {
	return append([]string{"act.go", "controller.go", "doc.go", "observe.go"}, pureFiles()...)
}

// mainLines is how long an operator's main.go may be.
const mainLines = 40

// docLines is how long the doc.go of a package may be, but for a controller's.
const docLines = 10

// emptyNames say nothing about what a package is for.
func emptyNames() []string {
	return []string{"common", "helper", "helpers", "manager", "misc", "util", "utils"}
}

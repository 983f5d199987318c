package operator

import (
	"flag"
	"fmt"
	"net"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/accessreview"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/shard"
)

// Flags are the command line of every operator. docs/reference/operators.md lists them.
type Flags struct {
	// Namespaces to watch, comma-separated; empty means all.
	Namespaces string
	// Shard limits it to namespaces with its name in their label; empty means no limit.
	Shard string
	// MetricsAddress to serve Prometheus metrics on; "0" turns them off.
	MetricsAddress string
	// MetricsSecure serves them over TLS, to whom the API server lets read /metrics.
	MetricsSecure bool
	// ProbeAddress to serve /healthz and /readyz on; "0" turns them off.
	ProbeAddress string
	// ProfilingAddress to serve profiles of the processor, heap and goroutines on, to
	// every client that connects; empty or "0" is none.
	ProfilingAddress string
	// LeaderElect lets only one of several replicas act.
	LeaderElect bool
	// LeaderElectionNamespace holds the lease; empty means the pod's own.
	LeaderElectionNamespace string
	// Concurrency is how many objects are reconciled at once.
	Concurrency int
	// NamespaceConcurrency is how many of a namespace are; zero means as many as of all.
	NamespaceConcurrency int
	// ReconcileTimeout bounds one reconcile.
	ReconcileTimeout time.Duration
	// RelistPeriod is how often the caches are filled again with a full list,
	// which makes up for an event of a watch that was lost; zero means never.
	RelistPeriod time.Duration
	// ClientQPS limits requests to the API server per second; negative means no
	// limit of our own: the API server's priority and fairness decides.
	ClientQPS float64
	// ClientBurst goes with ClientQPS.
	ClientBurst int
	// LogLevel is debug, info or error.
	LogLevel string
	// LogFormat is json or text.
	LogFormat string
	// PDURL is where a PDGroup is reached; {name} and {namespace} are replaced.
	PDURL string
	// ClusterDomain of Kubernetes, such as cluster.local, in which the names of Services
	// are looked up. Empty leaves them to the resolver's search list; Main fills it in.
	ClusterDomain string
	// Image that the operator runs from, of which it brings programs into pods. Empty is
	// that of its own pod, "none" is none.
	Image string
	// Version prints the version and exits.
	Version bool
}

// Parse reads the command line of an operator: what is not set has its default. An
// error says which flag is wrong, or is flag.ErrHelp.
func Parse(name string, args []string) (Flags, error) {
	var f Flags
	set := flag.NewFlagSet(name+"-operator", flag.ContinueOnError)
	set.StringVar(&f.Namespaces, "namespaces", "", "comma-separated namespaces to watch; empty means all")
	set.StringVar(&f.Shard, "shard", "", "act only in namespaces with label "+v1alpha1.LabelShard+"=<this name>, which may change; empty means whatever their label")
	set.StringVar(&f.MetricsAddress, "metrics-bind-address", ":8080", "address to serve Prometheus metrics on; 0 turns them off")
	set.BoolVar(&f.MetricsSecure, "metrics-secure", false, "serve metrics over TLS, with a certificate made at the start, to whom the API server authenticates and lets get /metrics")
	set.StringVar(&f.ProbeAddress, "health-probe-bind-address", ":8081", "address to serve /healthz and /readyz on; 0 turns them off")
	set.StringVar(&f.ProfilingAddress, "profiling-address", "", "address to serve profiles of the processor, heap and goroutines on below /debug/pprof/, without authentication: take a loopback address such as 127.0.0.1:6060, which a port-forward to the pod reaches; empty or 0 serves none")
	set.BoolVar(&f.LeaderElect, "leader-elect", false, "let only one of several replicas act")
	set.StringVar(&f.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the leader lease; empty means the pod's own")
	set.IntVar(&f.Concurrency, "concurrency", 32, "how many objects are reconciled at once")
	set.IntVar(&f.NamespaceConcurrency, "concurrency-per-namespace", 8, "max reconciles per namespace; 2 while one is slow; user edits get one extra worker; 0 means no limit per namespace")
	set.DurationVar(&f.ReconcileTimeout, "reconcile-timeout", time.Minute, "bound on one reconcile")
	set.DurationVar(&f.RelistPeriod, "relist-period", 10*time.Minute, "how often caches are filled again with a full list, in case an event of a watch was lost; 0 means never")
	set.Float64Var(&f.ClientQPS, "kube-client-qps", -1, "requests per second to the API server; negative means no client-side limit")
	set.IntVar(&f.ClientBurst, "kube-client-burst", 0, "burst that goes with kube-client-qps")
	set.StringVar(&f.LogLevel, "log-level", "info", "debug, info or error")
	set.StringVar(&f.LogFormat, "log-format", "json", "json or text")
	set.StringVar(&f.PDURL, "pd-url", "http://{name}.{namespace}.svc:2379", "where a PDGroup is reached; {name} and {namespace} are replaced")
	set.StringVar(&f.ClusterDomain, "cluster-domain", "", "domain of the Kubernetes cluster, such as cluster.local, in which PD's names below .svc are looked up; empty means that of the search list in "+httpclient.ResolvConf)
	set.StringVar(&f.Image, "image", "", "image that the operator runs from, for programs that it brings into pods; empty means that of its own pod, none that it brings none")
	set.BoolVar(&f.Version, "version", false, "print the version and exit")
	if err := set.Parse(args); err != nil {
		return f, fmt.Errorf("parse flags: %w", err)
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("parse flags: unexpected argument %q", set.Arg(0))
	}
	if err := f.checkShard(); err != nil {
		return f, err
	}
	if err := f.checkProfiling(); err != nil {
		return f, err
	}
	if f.Concurrency < 1 {
		return f, fmt.Errorf("flag --concurrency is %d: it must be at least 1", f.Concurrency)
	}
	if f.NamespaceConcurrency < 0 {
		return f, fmt.Errorf("flag --concurrency-per-namespace is %d: it must not be negative", f.NamespaceConcurrency)
	}
	if f.RelistPeriod < 0 {
		return f, fmt.Errorf("flag --relist-period is %s: it must not be negative", f.RelistPeriod)
	}
	if problems := validation.IsDNS1123Subdomain(f.ClusterDomain); f.ClusterDomain != "" && len(problems) > 0 {
		return f, fmt.Errorf("flag --cluster-domain is %q: it must be a DNS name such as cluster.local, without a dot at its end", f.ClusterDomain)
	}
	if _, err := f.logOptions(); err != nil {
		return f, err
	}
	return f, nil
}

// checkShard says what is wrong with the shard.
func (f Flags) checkShard() error {
	if f.Shard == "" {
		return nil
	}
	if len(f.namespaces()) > 0 {
		return fmt.Errorf("flag --shard is %q and --namespaces is %q: leave one of them out, for the label %s says which namespaces belong to a shard", f.Shard, f.Namespaces, v1alpha1.LabelShard)
	}
	if err := shard.CheckName(f.Shard); err != nil {
		return fmt.Errorf("flag --shard is %q: %w", f.Shard, err)
	}
	return nil
}

// checkProfiling says what is wrong with the address of the profiles.
func (f Flags) checkProfiling() error {
	if f.ProfilingAddress == "" || f.ProfilingAddress == "0" {
		return nil
	}
	if _, _, err := net.SplitHostPort(f.ProfilingAddress); err != nil {
		return fmt.Errorf("flag --profiling-address is %q: it must be host:port, such as 127.0.0.1:6060, or 0 for none", f.ProfilingAddress)
	}
	return nil
}

// perNamespace is how many workers a namespace may have.
func (f Flags) perNamespace() int {
	if f.NamespaceConcurrency == 0 {
		return f.Concurrency
	}
	return f.NamespaceConcurrency
}

// metrics returns how to serve metrics.
func (f Flags) metrics() metricsserver.Options {
	out := metricsserver.Options{BindAddress: f.MetricsAddress, SecureServing: f.MetricsSecure}
	if f.MetricsSecure {
		out.FilterProvider = accessreview.NewFilter
	}
	return out
}

// logOptions returns how to log.
func (f Flags) logOptions() ([]zap.Opts, error) {
	opts := []zap.Opts{}
	switch f.LogFormat {
	case "json":
		opts = append(opts, zap.JSONEncoder(func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.ISO8601TimeEncoder }))
	case "text":
		opts = append(opts, zap.ConsoleEncoder())
	default:
		return nil, fmt.Errorf("flag --log-format is %q: it must be json or text", f.LogFormat)
	}
	switch f.LogLevel {
	case "debug":
		opts = append(opts, zap.Level(zapcore.DebugLevel))
	case "info":
		opts = append(opts, zap.Level(zapcore.InfoLevel))
	case "error":
		opts = append(opts, zap.Level(zapcore.ErrorLevel))
	default:
		return nil, fmt.Errorf("flag --log-level is %q: it must be debug, info or error", f.LogLevel)
	}
	return append(opts, zap.StacktraceLevel(zapcore.PanicLevel)), nil
}

// namespaces returns the namespaces to watch, none for all.
func (f Flags) namespaces() []string {
	var out []string
	for n := range strings.SplitSeq(f.Namespaces, ",") {
		if n = strings.TrimSpace(n); n != "" {
			out = append(out, n)
		}
	}
	return out
}

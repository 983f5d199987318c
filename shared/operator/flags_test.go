package operator

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tidb-groups/tidb-groups/shared/credentials"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
)

func TestFlags(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		check func(*testing.T, Flags)
		says  string
	}{
		"by default all namespaces are watched":                {nil, func(t *testing.T, f Flags) { assert.Empty(t, f.namespaces()) }, ""},
		"by default there is no client-side limit on requests": {nil, func(t *testing.T, f Flags) { assert.Negative(t, f.ClientQPS) }, ""},
		"by default 32 objects are reconciled at once":         {nil, func(t *testing.T, f Flags) { assert.Equal(t, 32, f.Concurrency); assert.Equal(t, 8, f.perNamespace()) }, ""},
		"by default a reconcile takes a minute at most":        {nil, func(t *testing.T, f Flags) { assert.Equal(t, time.Minute, f.ReconcileTimeout) }, ""},
		"by default caches are filled again every ten minutes": {nil, func(t *testing.T, f Flags) { assert.Equal(t, 10*time.Minute, f.RelistPeriod) }, ""},
		"namespaces are separated by commas":                   {[]string{"--namespaces=a, b,,c"}, func(t *testing.T, f Flags) { assert.Equal(t, []string{"a", "b", "c"}, f.namespaces()) }, ""},
		"a limit on requests can be set": {[]string{"--kube-client-qps=20", "--kube-client-burst=30"}, func(t *testing.T, f Flags) {
			assert.InDelta(t, 20, f.ClientQPS, 0)
			assert.Equal(t, 30, f.ClientBurst)
		}, ""},
		"leader election can be turned on": {[]string{"--leader-elect", "--leader-election-namespace=x"}, func(t *testing.T, f Flags) {
			assert.True(t, f.LeaderElect)
			assert.Equal(t, "x", f.LeaderElectionNamespace)
		}, ""},
		"by default listeners are of any family of addresses": {nil, func(t *testing.T, f Flags) {
			assert.Equal(t, ":8080", f.MetricsAddress)
			assert.Equal(t, ":8081", f.ProbeAddress)
		}, ""},
		"by default no profiles are served":                   {nil, func(t *testing.T, f Flags) { assert.Empty(t, f.ProfilingAddress) }, ""},
		"profiles can be served at an address of a pod alone": {[]string{"--profiling-address=127.0.0.1:6060"}, func(t *testing.T, f Flags) { assert.Equal(t, "127.0.0.1:6060", f.ProfilingAddress) }, ""},
		"profiles can be served at an address of IPv6":        {[]string{"--profiling-address=[::1]:6060"}, func(t *testing.T, f Flags) { assert.Equal(t, "[::1]:6060", f.ProfilingAddress) }, ""},
		"profiles can be turned off":                          {[]string{"--profiling-address=0"}, func(t *testing.T, f Flags) { assert.Equal(t, "0", f.ProfilingAddress) }, ""},
		"an address of profiles without host is refused":      {[]string{"--profiling-address=6060"}, nil, `flag --profiling-address is "6060": it must be host:port, such as 127.0.0.1:6060, or 0 for none`},
		"an address of profiles without port is refused":      {[]string{"--profiling-address=127.0.0.1"}, nil, `flag --profiling-address is "127.0.0.1": it must be host:port`},
		"the cluster's domain can be named":                   {[]string{"--cluster-domain=k8s.example.com"}, func(t *testing.T, f Flags) { assert.Equal(t, "k8s.example.com", f.ClusterDomain) }, ""},
		"a cluster's domain that ends with a dot is refused":  {[]string{"--cluster-domain=cluster.local."}, nil, `--cluster-domain is "cluster.local.": it must be a DNS name such as cluster.local`},
		"text at debug level can be logged":                   {[]string{"--log-format=text", "--log-level=debug"}, func(t *testing.T, f Flags) { assert.Equal(t, "text", f.LogFormat) }, ""},
		"an unknown flag is refused":                          {[]string{"--nope"}, nil, "flag provided but not defined: -nope"},
		"an argument is refused":                              {[]string{"start"}, nil, `unexpected argument "start"`},
		"no concurrency is refused":                           {[]string{"--concurrency=0"}, nil, "--concurrency is 0: it must be at least 1"},
		"an unknown log format is refused":                    {[]string{"--log-format=xml"}, nil, `--log-format is "xml": it must be json or text`},
		"an unknown log level is refused":                     {[]string{"--log-level=loud"}, nil, `--log-level is "loud": it must be debug, info or error`},
		"a duration without unit is refused":                  {[]string{"--reconcile-timeout=5"}, nil, "reconcile-timeout"},
		"a negative period is refused":                        {[]string{"--relist-period=-1s"}, nil, "--relist-period is -1s: it must not be negative"},
		"by default no label of a namespace counts":           {nil, func(t *testing.T, f Flags) { assert.Empty(t, f.Shard) }, ""},
		"a shard can be named":                                {[]string{"--shard=shop-1"}, func(t *testing.T, f Flags) { assert.Equal(t, "shop-1", f.Shard) }, ""},
		"a shard that no Lease can be named after is refused": {[]string{"--shard=Shop_1"}, nil, `flag --shard is "Shop_1": it must have at most 63 of a-z, 0-9 and -, as in shop-1`},
		"a shard beside a list of namespaces is refused":      {[]string{"--shard=a", "--namespaces=x,y"}, nil, `flag --shard is "a" and --namespaces is "x,y": leave one of them out`},
		"help is no failure but no run either":                {[]string{"--help"}, nil, flag.ErrHelp.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("test", c.args)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			c.check(t, f)
		})
	}
}

// F7 of the security review: no server in a namespace called svc is asked.
func TestP12TheClusterDomainIsThatOfThePod(t *testing.T) {
	logged := &logBuffer{}
	logger := zap.New(zap.WriteTo(logged))
	file := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(file, []byte("search tidb-groups-system.svc.cluster.local svc.cluster.local cluster.local\n"), 0o600))
	assert.Equal(t, "cluster.local", clusterDomain(logger, file))
	assert.Empty(t, logged.after(0))
	assert.Empty(t, clusterDomain(logger, file+"-none"))
	assert.Equal(t, 1, strings.Count(logged.after(0), "name the domain with --cluster-domain"))

	var got []string
	_, done, err := newDialer(NewProgram(Definition{Dialer: func(url, domain string, _ pdclient.TLS, _ prometheus.Registerer) (pd.Dialer, error) {
		got = []string{url, domain}
		return nil, nil
	}}), Flags{PDURL: "http://{name}.{namespace}.svc:2379", ClusterDomain: "cluster.local"}, credentials.New(time.Now))
	require.NoError(t, err)
	done()
	assert.Equal(t, []string{"http://{name}.{namespace}.svc:2379", "cluster.local"}, got)
}

func TestExitCodes(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	for arg, code := range map[string]int{"--version": 0, "--help": 0, "--nope": 2, "--log-level=loud": 2, "--profiling-address=6060": 2} {
		os.Args = []string{"test-operator", arg}
		assert.Equal(t, code, Main(Definition{Name: "test"}), arg)
	}
	assert.NotEmpty(t, Version())
}

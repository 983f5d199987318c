package pd_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pdclient "github.com/tikv/pd/client"
	pdhttp "github.com/tikv/pd/client/http"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/e2e/standin/pd"
	operators "github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

func ownURL(t *testing.T) string {
	t.Helper()
	return "http://" + loopback.Address(t)
}

func config(t *testing.T, name string) pd.Config {
	t.Helper()
	cfg := pd.DefaultConfig()
	cfg.Name, cfg.DataDir = name, filepath.Join(t.TempDir(), name)
	cfg.ClientURLs, cfg.PeerURLs = ownURL(t), ownURL(t)
	cfg.LogFile = filepath.Join(t.TempDir(), name+".log")
	return cfg
}

// start starts a member. As a kubelet would, it goes on trying while etcd does not take
// it in, for 5 s after another one has.
func start(t *testing.T, cfg pd.Config) *pd.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := pd.Start(ctx, cfg)
	if err != nil && cfg.Join != "" && strings.Contains(err.Error(), "unhealthy cluster") {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			s, err = pd.Start(ctx, cfg)
			require.NoError(c, err)
		}, 2*time.Minute, 500*time.Millisecond)
	}
	require.NoError(t, err)
	return s
}

func lead(t *testing.T, s *pd.Server) {
	t.Helper()
	require.Eventually(t, s.IsLeader, time.Minute, 10*time.Millisecond)
}

func bootstrap(t *testing.T, s *pd.Server, url string) {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	c := pdpb.NewPDClient(conn)
	h := &pdpb.RequestHeader{ClusterId: s.ClusterID()}
	store := &metapb.Store{Id: 1, Address: "tikv-0:20160", Version: "8.5.7"}
	res, err := c.Bootstrap(t.Context(), &pdpb.BootstrapRequest{
		Header: h, Store: store, Region: &metapb.Region{Id: 2, Peers: []*metapb.Peer{{Id: 3, StoreId: 1}}},
	})
	require.NoError(t, err)
	require.Nil(t, res.GetHeader().GetError())
	again, err := c.Bootstrap(t.Context(), &pdpb.BootstrapRequest{
		Header: h, Store: store, Region: &metapb.Region{Id: 2, Peers: []*metapb.Peer{{Id: 3, StoreId: 1}}},
	})
	require.NoError(t, err)
	assert.Equal(t, pdpb.ErrorType_ALREADY_BOOTSTRAPPED, again.GetHeader().GetError().GetType())
	beat, err := c.StoreHeartbeat(t.Context(), &pdpb.StoreHeartbeatRequest{Header: h, Stats: &pdpb.StoreStats{StoreId: 1, Capacity: 1 << 30}})
	require.NoError(t, err)
	require.Nil(t, beat.GetHeader().GetError())
	_, err = c.AllocID(t.Context(), &pdpb.AllocIDRequest{Header: &pdpb.RequestHeader{ClusterId: 1}})
	require.ErrorContains(t, err, "mismatch cluster id")
}

func TestTheOfficialClientsWork(t *testing.T) {
	cfg := config(t, "pd-0")
	s := start(t, cfg)
	defer s.Close()
	lead(t, s)
	bootstrap(t, s, cfg.ClientURLs)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()

	client, err := pdclient.NewClientWithContext(ctx, []string{cfg.ClientURLs}, pdclient.SecurityOption{})
	require.NoError(t, err)
	defer client.Close()
	assert.Equal(t, s.ClusterID(), client.GetClusterID(ctx))
	p1, l1, err := client.GetTS(ctx)
	require.NoError(t, err)
	p2, l2, err := client.GetTS(ctx)
	require.NoError(t, err)
	assert.Less(t, p1<<18+l1, p2<<18+l2)
	stores, err := client.GetAllStores(ctx)
	require.NoError(t, err)
	require.Len(t, stores, 1)
	region, err := client.GetRegion(ctx, []byte("a"))
	require.NoError(t, err)
	assert.Equal(t, uint64(1), region.Leader.GetStoreId())

	http := pdhttp.NewClient("test", []string{cfg.ClientURLs})
	require.NotNil(t, http)
	defer http.Close()
	list, err := http.GetStores(ctx)
	require.NoError(t, err)
	assert.Equal(t, "Up", list.Stores[0].Store.StateName)
	members, err := http.GetMembers(ctx)
	require.NoError(t, err)
	assert.Equal(t, "pd-0", members.Leader.GetName())
}

// A PDGroup with preferIPv6 has PD listen on [::].
func TestPDListensByIPv6(t *testing.T) {
	cfg := config(t, "pd-0")
	cfg.ClientURLs, cfg.PeerURLs = "http://[::]:"+free(t), "http://[::]:"+free(t)
	cfg.AdvertiseClientURLs = strings.Replace(cfg.ClientURLs, "[::]", "[::1]", 1)
	cfg.AdvertisePeerURLs = strings.Replace(cfg.PeerURLs, "[::]", "[::1]", 1)
	s := start(t, cfg)
	defer s.Close()
	lead(t, s)
	bootstrap(t, s, cfg.AdvertiseClientURLs)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client, err := operators.NewDialer(cfg.AdvertiseClientURLs)(types.NamespacedName{Namespace: "ns", Name: "basic-pd"})
	require.NoError(t, err)
	defer client.Close()
	view, err := client.View(ctx)
	require.NoError(t, err)
	assert.Equal(t, "pd-0", view.Leader)
	require.Len(t, view.Members, 1)
	assert.Equal(t, cfg.AdvertisePeerURLs, view.Members[0].PeerURL)
	http := pdhttp.NewClient("test", []string{strings.Replace(cfg.ClientURLs, "[::]", "127.0.0.1", 1)})
	require.NotNil(t, http)
	defer http.Close()
	_, err = http.GetMembers(ctx)
	require.NoError(t, err, "by IPv4 as well")
}

// free returns a port that no process listens on by IPv6. The test is skipped where there is
// none.
func free(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return port
}

func TestARestartKeepsClusterStoresAndIdsAndIgnoresTheFirstMembersFlag(t *testing.T) {
	cfg := config(t, "pd-0")
	s := start(t, cfg)
	lead(t, s)
	bootstrap(t, s, cfg.ClientURLs)
	id := s.ClusterID()
	first, err := s.Cluster().AllocID()
	require.NoError(t, err)
	s.Close()

	cfg.InitialCluster = "pd-0=" + cfg.PeerURLs + ",pd-1=http://127.0.0.1:1"
	s = start(t, cfg)
	defer s.Close()
	lead(t, s)
	assert.Equal(t, id, s.ClusterID())
	v, err := s.Cluster().Store(1)
	require.NoError(t, err)
	assert.Equal(t, "Disconnected", v.StateName)
	second, err := s.Cluster().AllocID()
	require.NoError(t, err)
	assert.Greater(t, second, first)
}

func TestJoining(t *testing.T) {
	t.Parallel()
	cfg := config(t, "pd-0")
	s := start(t, cfg)
	defer s.Close()
	lead(t, s)

	self := config(t, "pd-1")
	self.Join = self.ClientURLs
	_, err := pd.Start(t.Context(), self)
	require.ErrorContains(t, err, "join self is forbidden")

	self.Join = cfg.ClientURLs + "," + cfg.ClientURLs
	_, err = pd.Start(t.Context(), self)
	require.ErrorContains(t, err, "failed to parse join addr")

	duplicate := config(t, "pd-0")
	duplicate.Join = cfg.ClientURLs
	_, err = pd.Start(t.Context(), duplicate)
	require.ErrorContains(t, err, "missing data or join a duplicated pd")

	second := config(t, "pd-1")
	second.Join = cfg.ClientURLs
	s2 := start(t, second)
	assert.Equal(t, s.ClusterID(), s2.ClusterID())
	list, err := s.List(t.Context())
	require.NoError(t, err)
	assert.Len(t, list, 2)
	// etcd takes another one in only when all have been connected for 5 s, and a member
	// that is refused ends.
	third := config(t, "pd-2")
	third.Join = cfg.ClientURLs
	_, err = pd.Start(t.Context(), third)
	require.ErrorContains(t, err, "unhealthy cluster")
	s2.Close()
	// With data, the flag is not looked at: the cluster it names needs not exist.
	second.Join = "http://127.0.0.1:1"
	s2 = start(t, second)
	defer s2.Close()
	assert.Equal(t, s.ClusterID(), s2.ClusterID())
}

func TestTheConfigurationFile(t *testing.T) {
	for name, test := range map[string]struct{ toml, err string }{
		"known keys are taken":                {"[replication]\nmax-replicas = 5\nlocation-labels = [\"zone\"]\n[schedule]\nmax-store-down-time = \"1h\"\n", ""},
		"labels are free":                     {"[labels]\nzone = \"z1\"\n", ""},
		"the token is the operator's":         {"initial-cluster-token = \"x\"\n", ""},
		"an unknown key at the top is fatal":  {"no-such-key = 1\n", "undefined item: no-such-key"},
		"an unknown key in a table is fatal":  {"[schedule]\nno-such-key = 1\n", "undefined item: schedule.no-such-key"},
		"an unknown table is fatal":           {"[nothing]\na = 1\n", "undefined item: nothing"},
		"a wrong duration is fatal":           {"[schedule]\nmax-store-down-time = \"soon\"\n", "invalid duration"},
		"a key of the wrong kind is fatal":    {"name = 7\n", "want a string"},
		"what is no TOML at all is fatal":     {"[[", "parse configuration"},
		"nested tables are looked into":       {"[log.file]\nno-such-key = 1\n", "undefined item: log.file.no-such-key"},
		"a well-known nested table is known":  {"[log.file]\nmax-days = 1\n[security.encryption]\ndata-encryption-method = \"plaintext\"\n", ""},
		"the dashboard and others are known":  {"[dashboard]\nenable-telemetry = false\n[pd-server]\nmetric-storage = \"http://x\"\n[keyspace]\nwait-region-split = true\n", ""},
		"replication mode is known to be set": {"[replication-mode]\nreplication-mode = \"majority\"\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pd.toml")
			require.NoError(t, os.WriteFile(file, []byte(test.toml), 0o600))
			cfg := pd.DefaultConfig()
			err := cfg.LoadFile(file)
			if err == nil {
				err = cfg.Complete()
			}
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.err)
		})
	}
}

func TestEveryLineOfTheLogNamesTheStandIn(t *testing.T) {
	cfg := config(t, "pd-0")
	s := start(t, cfg)
	lead(t, s)
	s.Close()
	data, err := os.ReadFile(cfg.LogFile)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	require.NotEmpty(t, lines)
	for _, line := range lines {
		assert.True(t, strings.HasPrefix(line, "stand-in "), line)
	}
}

func TestAMemberThatWaitsForAMajorityCanBeStopped(t *testing.T) {
	cfg := config(t, "pd-0")
	cfg.InitialCluster = "pd-0=" + cfg.PeerURLs + ",pd-1=http://127.0.0.1:1"
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := pd.Start(ctx, cfg)
		ended <- err
	}()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.DeadlineExceeded)
	case <-time.After(time.Minute):
		require.Fail(t, "it does not stop")
	}
}

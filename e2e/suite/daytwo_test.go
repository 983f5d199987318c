//go:build e2e

package suite_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
	"github.com/tidb-groups/tidb-groups/e2e/containers"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
	"github.com/tidb-groups/tidb-groups/e2e/session"
)

// dayTwo does to a living cluster what touches kubelets and the network, where
// the rig only has a pod actor: real grace periods and preStop hooks, real
// endpoints, real evictions. Parity: KV-07, KV-16, DB-03, DB-04, GRP-11.
func dayTwo(t *testing.T, ns string) {
	t.Run("a restart rolls through TiKV and TiDB while clients are answered", func(t *testing.T) {
		before := podUIDs(t, ns)
		began := time.Now()
		clients := connect(t, ns)
		at := began.UTC().Format(time.RFC3339)
		patch(t, ns, fmt.Sprintf(`[{"op":"add","path":"/spec/tikv/0/restartedAt","value":%q},{"op":"add","path":"/spec/tidb/0/restartedAt","value":%q}]`, at, at))
		awaitWithin(t, rollTimeout, ns, "every TiKV and TiDB restarted", func(nodes []*tree.Node) bool {
			now := podUIDs(t, ns)
			for name, uid := range before {
				if now[name] == uid && (strings.Contains(name, "-tikv-") || strings.Contains(name, "-tidb-")) {
					return false
				}
			}
			return tree.IsAllGood(nodes)
		})
		asked, failed := clients.stop()
		t.Logf("rolled in %s; %d connections made meanwhile, %d failed", time.Since(began).Round(100*time.Millisecond), asked, len(failed))
		assert.Empty(t, failed)
		for name, uid := range podUIDs(t, ns) {
			if strings.Contains(name, "-pd-") || strings.Contains(name, "-tiflash-") {
				assert.Equal(t, before[name], uid, "%s was not to be restarted", name)
			}
		}
	})
	t.Run("more replicas join a living cluster", func(t *testing.T) {
		scaleTiKV(t, ns, 4)
	})
	t.Run("a store leaves through PD and keeps its claim", func(t *testing.T) {
		scaleTiKV(t, ns, 3)
		assert.Len(t, claims(t, ns, "basic-tikv"), 4)
	})
	t.Run("a process that is killed is started again in its pod", func(t *testing.T) {
		if shared.provider.Name() != provider.Local {
			t.Skip("kills a process of this machine")
		}
		before := instance(t, ns, "basic-tikv-0")
		signal(t, ns, "basic-tikv-0", syscall.SIGKILL)
		await(t, ns, "basic-tikv-0 restarted and everything Ready", func(nodes []*tree.Node) bool {
			return restarts(t, ns, "basic-tikv-0") > 0 && tree.IsAllGood(nodes)
		})
		after := instance(t, ns, "basic-tikv-0")
		assert.Equal(t, before.Status.PodUID, after.Status.PodUID, "the pod stays")
		assert.Equal(t, before.Status.Member.ID, after.Status.Member.ID)
	})
	if shared.provider.Name() != provider.Local {
		t.Run("a drain ends and stops no pod of another node", func(t *testing.T) { drains(t, ns) })
	} // else where no other cluster is disturbed: TestOperatorsAndNodesComeAndGo
}

// drains drains a node, of all clusters there are: other tests may not run beside.
func drains(t *testing.T, ns string) {
	t.Helper()
	node := instance(t, ns, "basic-tikv-0").Status.NodeName
	id, elsewhere := clusterID(t, ns), podsOff(t, ns, node)
	t.Cleanup(func() {
		_, err := shared.session.Kubectl(context.WithoutCancel(t.Context()), "uncordon", node)
		assert.NoError(t, err)
	})
	began := time.Now()
	_, err := shared.session.Kubectl(t.Context(), "drain", node, "--ignore-daemonsets", "--delete-emptydir-data",
		"--pod-selector", v1alpha1.LabelManagedBy+"="+v1alpha1.ManagedBy, "--timeout=150s")
	require.NoError(t, err)
	await(t, ns, "everything Ready elsewhere", func(nodes []*tree.Node) bool {
		return tree.IsAllGood(nodes) && !nodesOf(t, ns, "")[node]
	})
	t.Logf("drained and Ready elsewhere after %s", time.Since(began).Round(100*time.Millisecond))
	untouched(t, ns, node, elsewhere)
	assert.Equal(t, id, clusterID(t, ns))
	query(t, ns)
}

func scaleTiKV(t *testing.T, ns string, replicas int) {
	t.Helper()
	patch(t, ns, fmt.Sprintf(`[{"op":"replace","path":"/spec/tikv/0/replicas","value":%d}]`, replicas))
	await(t, ns, fmt.Sprintf("%d stores", replicas), func(nodes []*tree.Node) bool {
		g := find(nodes, "TiKVGroup", "basic-tikv")
		return g != nil && len(g.Children) == replicas && tree.IsAllGood(nodes)
	})
}

func patch(t *testing.T, ns, json string) {
	t.Helper()
	_, err := shared.session.Kubectl(t.Context(), "patch", "-n", ns, "tidbcluster", "basic", "--type=json", "-p", json)
	require.NoError(t, err)
}

// podUIDs returns the pods of the suite.
func podUIDs(t *testing.T, ns string) map[string]types.UID {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, shared.session.Client.List(t.Context(), &list, client.InNamespace(ns), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}))
	out := map[string]types.UID{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].UID
	}
	return out
}

// podOf reads a pod.
func podOf(t *testing.T, ns, name string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	require.NoError(t, shared.session.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, &p))
	return &p
}

// restarts is how often the containers of a pod were started again.
func restarts(t *testing.T, ns, pod string) int32 {
	t.Helper()
	return containers.CountRestarts(podOf(t, ns, pod))
}

// signal sends a signal to the main process of a pod, which is a process of this
// machine.
func signal(t *testing.T, ns, pod string, what syscall.Signal) {
	t.Helper()
	require.NoError(t, containers.Signal(podOf(t, ns, pod), what), "pod %s", pod)
}

// clients connect to the database one after the other, as an application without
// a pool would.
type clients struct {
	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{}
	asked  int
	failed []failure
}

// failure is a connection that was not answered.
type failure struct {
	began time.Time
	why   error
}

func (f failure) String() string { return fmt.Sprintf("%s: %v", f.began.Format(time.TimeOnly), f.why) }

// between is the time between two connections.
const between = 50 * time.Millisecond

// connect begins to connect until stop; it does nothing where Services cannot be
// reached from here.
func connect(t *testing.T, ns string) *clients {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &clients{t: t, cancel: cancel, ended: make(chan struct{})}
	if shared.provider.Name() != provider.Local {
		close(c.ended)
		return c
	}
	address := serviceAddress(t, ns)
	go func() {
		defer close(c.ended)
		ticker := time.NewTicker(between)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			began := time.Now()
			err := ask(ctx, address)
			if ctx.Err() != nil {
				return
			}
			c.asked++
			if err != nil {
				c.failed = append(c.failed, failure{began, err})
			}
		}
	}()
	return c
}

// stop ends the connections, and returns how many were made and why some failed.
func (c *clients) stop() (asked int, failed []failure) {
	c.cancel()
	<-c.ended
	if shared.provider.Name() == provider.Local {
		assert.Positive(c.t, c.asked, "no client has connected")
	}
	return c.asked, c.failed
}

// ask makes one connection and asks one question.
func ask(ctx context.Context, address string) error {
	version, err := session.Ask(ctx, session.Login(address), "SELECT VERSION()")
	if err != nil {
		return err
	}
	if !strings.Contains(version, "TiDB") {
		return fmt.Errorf("the database calls itself %q", version)
	}
	return nil
}

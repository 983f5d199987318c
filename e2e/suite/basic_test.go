//go:build e2e

package suite_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
)

// The demo as assertions: one TidbCluster from nothing to Ready, used, disturbed
// and deleted. Parity: PD-01, PD-02, PD-19, KV-01, KV-02, DB-01, DB-02, DB-07,
// DB-15, FL-01, FL-02, FL-03, GRP-01, GRP-08.
func TestATidbClusterFromNothingToReady(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "e2e-basic")
	began := time.Now()
	apply(t, ns, "deploy/samples/basic.yaml")
	nodes := awaitAll(t, ns, 1)
	t.Logf("everything was Ready after %s", time.Since(began).Round(100*time.Millisecond))

	t.Run("every object of the sample is there", func(t *testing.T) {
		for kind, groups := range map[string]map[string]int{
			"PDGroup": {"basic-pd": 3}, "TiKVGroup": {"basic-tikv": 3}, "TiDBGroup": {"basic-tidb": 2}, "TiFlashGroup": {"basic-tiflash": 1},
		} {
			for name, replicas := range groups {
				g := find(nodes, kind, name)
				if assert.NotNil(t, g, "%s %s", kind, name) {
					assert.Len(t, g.Children, replicas)
				}
			}
		}
	})
	t.Run("a MySQL client is answered", func(t *testing.T) { query(t, ns) })
	t.Run("members are spread over the nodes", func(t *testing.T) {
		assert.Len(t, nodesOf(t, ns, "basic-pd"), 3)
		assert.Len(t, nodesOf(t, ns, "basic-tikv"), 3)
	})
	t.Run("a deleted pod comes back as the same member with the same data", func(t *testing.T) {
		before := instance(t, ns, "basic-tikv-1")
		id := clusterID(t, ns)
		_, err := shared.session.Kubectl(t.Context(), "delete", "pod", "-n", ns, "basic-tikv-1", "basic-pd-2", "basic-tidb-0")
		require.NoError(t, err)
		await(t, ns, "pod basic-tikv-1 replaced and everything Ready", func(nodes []*tree.Node) bool {
			return instance(t, ns, "basic-tikv-1").Status.PodUID != before.Status.PodUID && tree.IsAllGood(nodes)
		})
		assert.Equal(t, before.Status.Member.ID, instance(t, ns, "basic-tikv-1").Status.Member.ID)
		assert.Equal(t, id, clusterID(t, ns))
		query(t, ns)
	})
	t.Run("day two", func(t *testing.T) { dayTwo(t, ns) })
	t.Run("deleting the cluster keeps the claims", func(t *testing.T) {
		_, err := shared.session.Kubectl(t.Context(), "delete", "-n", ns, "tidbcluster", "basic", "--timeout=150s")
		require.NoError(t, err)
		await(t, ns, "no object left", func(nodes []*tree.Node) bool { return len(nodes) == 0 && instances(t, ns) == 0 })
		kept := claims(t, ns, "")
		assert.Len(t, kept, 3+4+1)
		for _, c := range kept {
			assert.Nil(t, c.DeletionTimestamp, c.Name)
		}
	})
}

// An idle cluster causes no write at all (P9). It idles beside the other test.
func TestAnIdleClusterIsNotWritten(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "e2e-idle")
	apply(t, ns, "deploy/samples/groups-only.yaml")
	awaitReady(t, ns)
	// What follows from coming up, such as the last labels, may still be written.
	require.Eventually(t, func() bool {
		before := versions(t, ns)
		pass(t, quiet)
		return assert.ObjectsAreEqual(before, versions(t, ns))
	}, readyTimeout, time.Millisecond, "the cluster never came to rest")
	idle := idleTime(t)
	for range idleLooks {
		before, members := versions(t, ns), turns(t, ns)
		pass(t, idle)
		after := versions(t, ns)
		if assert.ObjectsAreEqual(before, after) {
			t.Logf("%d objects, nothing but kubelets wrote any in %s", len(before), idle)
			return
		}
		// A machine that is too busy to answer a probe in time has no idle cluster.
		if now := turns(t, ns); assert.ObjectsAreEqual(members, now) {
			require.Equal(t, before, after, "resourceVersions after %s", idle)
		} else {
			t.Logf("members came or went: %v, then %v", members, now)
		}
	}
	t.Fatalf("members kept coming and going: looked %d times", idleLooks)
}

// Operators are missed and found again: groups wait without an error for an
// operator that is not there, and one that is killed gives its lease back. Then
// processes die and hang, a node is lost and comes back, another one's disk is full,
// one is gone for good, operators and all, and one is drained.
func TestOperatorsAndNodesComeAndGo(t *testing.T) {
	if shared.provider.Name() != provider.Local {
		t.Skip("scales the operators and stops a node of the whole cluster: only on a cluster of our own")
	}
	ns := namespace(t, "e2e-operators")
	scale(t, "tiflashgroup", 0)
	apply(t, ns, "deploy/samples/basic.yaml")
	// What a lost node is named for is that pods do not stop within their grace: two minutes
	// otherwise. No TiKV has started yet, as PD is not Ready.
	patch(t, ns, `[{"op":"add","path":"/spec/tikv/0/terminationGracePeriodSeconds","value":30}]`)
	await(t, ns, "all but TiFlash", func(nodes []*tree.Node) bool {
		flash, tidb := find(nodes, "TiFlashGroup", "basic-tiflash"), find(nodes, "TiDBGroup", "basic-tidb")
		return flash != nil && tidb != nil && tidb.State == tree.Good && flash.State == tree.Waiting && len(flash.Children) == 0
	})
	scale(t, "tiflashgroup", 1)
	awaitAll(t, ns, 1)
	inTurn(t, []part{
		{"a process that is killed is started again in its pod", func(t *testing.T) { killsPDAndTiDB(t, ns) }},
		{"a process that hangs is named and costs no pod", func(t *testing.T) { hangs(t, ns) }},
		{"a node that loses power and comes back costs no data", func(t *testing.T) { unlessCore(t); losesNode(t, ns) }},
		{"a node whose disk is full loses its pods and no data", func(t *testing.T) { fillsDisk(t, ns) }},
		{"a node that is gone for good costs no data either", func(t *testing.T) { unlessCore(t); losesNodeForGood(t, ns) }},
		// Last: it leaves two of three members on one node, and the parts above lose one of each.
		{"a drain ends and stops no pod of another node", func(t *testing.T) { drains(t, ns) }},
	})
}

// unlessCore skips what takes minutes where the core on the real database takes them.
func unlessCore(t *testing.T) {
	t.Helper()
	if shared.real && !isFull() {
		t.Skip("waits minutes for a node: FULL=1, or IMAGES=standin")
	}
}

// query connects as the demo tells people to.
func query(t *testing.T, ns string) {
	t.Helper()
	if shared.provider.Name() != provider.Local {
		t.Skip("Services are reached from the host only on the local cluster")
	}
	require.NoError(t, ask(t.Context(), serviceAddress(t, ns)))
}

// serviceAddress is where the TiDB Service listens.
func serviceAddress(t *testing.T, ns string) string {
	t.Helper()
	var service corev1.Service
	require.NoError(t, shared.session.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "basic-tidb"}, &service))
	return service.Spec.ClusterIP + ":4000"
}

// in selects what is in a namespace and, if one is named, of a group.
func in(ns, group string) *client.ListOptions {
	out := &client.ListOptions{Namespace: ns}
	if group != "" {
		client.MatchingLabels{v1alpha1.LabelGroup: group}.ApplyToList(out)
	}
	return out
}

// claims returns the claims of a group, of all groups without a name.
func claims(t *testing.T, ns, group string) []corev1.PersistentVolumeClaim {
	t.Helper()
	var list corev1.PersistentVolumeClaimList
	require.NoError(t, shared.session.Client.List(t.Context(), &list, in(ns, group)))
	return list.Items
}

// nodesOf returns the nodes that members of a group run on, of all groups without
// a name.
func nodesOf(t *testing.T, ns, group string) map[string]bool {
	t.Helper()
	var list v1alpha1.InstanceList
	require.NoError(t, shared.session.Client.List(t.Context(), &list, in(ns, group)))
	out := map[string]bool{}
	for _, i := range list.Items {
		out[i.Status.NodeName] = true
	}
	return out
}

func instance(t *testing.T, ns, name string) *v1alpha1.Instance {
	t.Helper()
	var i v1alpha1.Instance
	require.NoError(t, shared.session.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, &i))
	return &i
}

func instances(t *testing.T, ns string) int {
	t.Helper()
	var list v1alpha1.InstanceList
	require.NoError(t, shared.session.Client.List(t.Context(), &list, client.InNamespace(ns)))
	return len(list.Items)
}

func clusterID(t *testing.T, ns string) string {
	t.Helper()
	var g v1alpha1.PDGroup
	require.NoError(t, shared.session.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "basic-pd"}, &g))
	require.NotEmpty(t, g.Status.ClusterID)
	return g.Status.ClusterID
}

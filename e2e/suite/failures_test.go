//go:build e2e

package suite_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
)

// losesNode takes the power of a node away, with whatever runs on it: members of
// every component and, maybe, operators. Its pods are evicted, and cannot end
// until the node is back or deleted.
func losesNode(t *testing.T, ns string) {
	t.Helper()
	nodes, ok := shared.provider.(provider.Nodes)
	require.True(t, ok, "the local cluster's nodes can be lost")
	ids, id := storeIDs(t, ns), clusterID(t, ns)
	kept := claimUIDs(t, ns)
	node := instance(t, ns, "basic-tikv-1").Status.NodeName
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*readyTimeout)
	t.Cleanup(cancel)
	began := time.Now()
	require.NoError(t, nodes.StopNode(ctx, node))
	t.Run("it is named with what to do, and the rest serves", func(t *testing.T) {
		awaitWord(t, ns, "basic-tikv-1", "kubectl delete node "+node)
		t.Logf("named after %s", time.Since(began).Round(100*time.Millisecond))
		// The Service may have sent the first one to the server that is gone: it
		// leaves that out when the node is known not to answer, and not before.
		address := serviceAddress(t, ns)
		require.Eventually(t, func() bool { return ask(ctx, address) == nil }, readyTimeout, time.Second)
	})
	require.NoError(t, nodes.StartNode(ctx, node))
	back := time.Now()
	await(t, ns, "everything Ready again", func(trees []*tree.Node) bool {
		return tree.IsAllGood(trees) && instance(t, ns, "basic-tikv-1").Status.PodUID != ""
	})
	t.Logf("everything was Ready %s after the node was back", time.Since(back).Round(100*time.Millisecond))
	assert.Equal(t, id, clusterID(t, ns))
	assert.Equal(t, ids, storeIDs(t, ns))
	assert.Equal(t, kept, claimUIDs(t, ns))
	query(t, ns)
}

// losesNodeForGood takes the power of a node away and then does what a user does
// whose machine will not come back: kubectl delete node. The volumes of the local
// cluster can be used on every node, as those on a network: all members come Ready
// elsewhere, with their data. Last, a new machine takes the place of the old one.
func losesNodeForGood(t *testing.T, ns string) {
	t.Helper()
	machines, ok := shared.provider.(provider.Nodes)
	require.True(t, ok, "the local cluster's nodes can be lost")
	ids, id, kept := storeIDs(t, ns), clusterID(t, ns), claimUIDs(t, ns)
	node := instance(t, ns, "basic-tikv-2").Status.NodeName
	elsewhere := podsOff(t, ns, node)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*readyTimeout)
	t.Cleanup(cancel)
	require.NoError(t, machines.StopNode(ctx, node))
	gone := time.Now()
	_, err := shared.session.Kubectl(ctx, "delete", "node", node)
	require.NoError(t, err)
	await(t, ns, "everything Ready elsewhere", func(trees []*tree.Node) bool {
		return tree.IsAllGood(trees) && !nodesOf(t, ns, "")[node]
	})
	t.Logf("everything was Ready elsewhere %s after the node's deletion", time.Since(gone).Round(100*time.Millisecond))
	untouched(t, ns, node, elsewhere)
	assert.Equal(t, id, clusterID(t, ns))
	assert.Equal(t, ids, storeIDs(t, ns))
	assert.Equal(t, kept, claimUIDs(t, ns))
	serves(t, ns)
	require.NoError(t, machines.StartNode(ctx, node))
	awaitAll(t, ns, 1)
}

// awaitWord waits until an Instance that is not Ready says so with some words.
func awaitWord(t *testing.T, ns, name, word string) {
	t.Helper()
	await(t, ns, fmt.Sprintf("Instance %s says %q", name, word), func([]*tree.Node) bool {
		return says(instance(t, ns, name).Status.Conditions, v1alpha1.ConditionReady, word)
	})
}

// awaitGroupWord waits until a TiKVGroup that is not UpToDate says so with some
// words.
func awaitGroupWord(t *testing.T, ns, name, word string) {
	t.Helper()
	await(t, ns, fmt.Sprintf("TiKVGroup %s says %q", name, word), func([]*tree.Node) bool {
		var g v1alpha1.TiKVGroup
		require.NoError(t, shared.session.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, &g))
		return says(g.Status.Conditions, v1alpha1.ConditionUpToDate, word)
	})
}

func says(conditions []metav1.Condition, conditionType, word string) bool {
	c := meta.FindStatusCondition(conditions, conditionType)
	return c != nil && c.Status != metav1.ConditionTrue && strings.Contains(c.Message, word)
}

// storeIDs returns the IDs that PD gave to the stores of a namespace.
func storeIDs(t *testing.T, ns string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name := range podUIDs(t, ns) {
		if strings.Contains(name, "-tikv-") || strings.Contains(name, "-tiflash-") {
			out[name] = instance(t, ns, name).Status.Member.ID
		}
	}
	return out
}

// claimUIDs returns the claims of a namespace.
func claimUIDs(t *testing.T, ns string) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for _, c := range claims(t, ns, "") {
		out[c.Name] = c.UID
	}
	return out
}

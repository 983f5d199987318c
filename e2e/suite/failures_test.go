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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
)

// hangs stops a store's process without ending it: its readiness probe fails,
// and PD hears nothing of it.
func hangs(t *testing.T, ns string) {
	t.Helper()
	before := instance(t, ns, "basic-tikv-1")
	goOn := func(t *testing.T) { signal(t, ns, "basic-tikv-1", "tikv", syscall.SIGCONT) }
	signal(t, ns, "basic-tikv-1", "tikv", syscall.SIGSTOP)
	t.Run("it is named", func(t *testing.T) {
		awaitWord(t, ns, "basic-tikv-1", "is not ready")
		awaitGroupWord(t, ns, "basic-tikv", "basic-tikv-1")
		query(t, ns)
	})
	goOn(t)
	awaitAll(t, ns, 1)
	after := instance(t, ns, "basic-tikv-1")
	assert.Equal(t, before.Status.PodUID, after.Status.PodUID, "the pod stays")
	assert.Zero(t, restarts(t, ns, "basic-tikv-1"))
}

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
		return tree.Done(trees) && instance(t, ns, "basic-tikv-1").Status.PodUID != ""
	})
	t.Logf("everything was Ready %s after the node was back", time.Since(back).Round(100*time.Millisecond))
	assert.Equal(t, id, clusterID(t, ns))
	assert.Equal(t, ids, storeIDs(t, ns))
	assert.Equal(t, kept, claimUIDs(t, ns))
	query(t, ns)
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

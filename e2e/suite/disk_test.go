//go:build e2e

package suite_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
)

// fillsDisk leaves no room on the disk of a node: its kubelet evicts what runs
// there, members and, maybe, operators. What has a volume has it on that node, and
// nowhere to go until there is room again.
func fillsDisk(t *testing.T, ns string) {
	t.Helper()
	disks, ok := shared.provider.(provider.Disks)
	require.True(t, ok, "the disks of the local cluster's nodes can be filled")
	const store = "basic-tikv-1"
	ids, id, kept := storeIDs(t, ns), clusterID(t, ns), claimUIDs(t, ns)
	node := instance(t, ns, store).Status.NodeName
	for _, group := range []string{"basic-pd", "basic-tikv"} {
		require.Len(t, nodesOf(t, ns, group), 3, "each node holds one member of %s, or the rest of them cannot serve", group)
	}
	elsewhere := podsOff(t, ns, node)
	holdVolumesOn(t, node)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*readyTimeout)
	t.Cleanup(cancel)
	t.Cleanup(func() { assert.NoError(t, disks.FreeDisk(ctx, node)) })
	began := time.Now()
	require.NoError(t, disks.FillDisk(ctx, node))
	t.Run("it is named with what to do, and the rest serves", func(t *testing.T) {
		awaitWord(t, ns, store, "untolerated taint")
		t.Logf("named after %s", time.Since(began).Round(100*time.Millisecond))
		ready := meta.FindStatusCondition(instance(t, ns, store).Status.Conditions, v1alpha1.ConditionReady)
		require.NotNil(t, ready)
		assert.Contains(t, ready.Message, "kubectl get nodes -o custom-columns='NODE:.metadata.name,TAINTS:.spec.taints[*].key'")
		awaitGroupWord(t, ns, "basic-tikv", store)
		taints, err := shared.session.Kubectl(t.Context(), "get", "node", node, "-o", "custom-columns=NODE:.metadata.name,TAINTS:.spec.taints[*].key")
		require.NoError(t, err)
		assert.Contains(t, taints, corev1.TaintNodeDiskPressure)
		// Events are written in their own time.
		require.Eventually(t, func() bool {
			evicted, err := shared.session.Kubectl(t.Context(), "get", "events", "-n", ns, "--field-selector", "reason=Evicted,involvedObject.name="+store)
			return err == nil && strings.Contains(evicted, "low on resource: ephemeral-storage")
		}, readyTimeout, time.Second, "it was the kubelet")
		serves(t, ns)
	})
	require.NoError(t, disks.FreeDisk(ctx, node))
	back := time.Now()
	await(t, ns, "everything Ready again", func(trees []*tree.Node) bool {
		return tree.IsAllGood(trees) && instance(t, ns, store).Status.NodeName == node
	})
	t.Logf("everything was Ready %s after there was room", time.Since(back).Round(100*time.Millisecond))
	untouched(t, ns, node, elsewhere)
	assert.Equal(t, id, clusterID(t, ns))
	assert.Equal(t, ids, storeIDs(t, ns))
	assert.Equal(t, kept, claimUIDs(t, ns))
	query(t, ns)
}

// untouched requires that nothing has stopped the pods that ran on other nodes than
// this one.
func untouched(t *testing.T, ns, node string, elsewhere map[string]types.UID) {
	t.Helper()
	now := podsOff(t, ns, node)
	for name, uid := range elsewhere {
		assert.Equal(t, uid, now[name], "%s runs elsewhere and was not to be stopped", name)
	}
}

// podsOff returns the pods that run on other nodes than this one.
func podsOff(t *testing.T, ns, node string) map[string]types.UID {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, shared.session.Client.List(t.Context(), &list, in(ns, "")))
	out := map[string]types.UID{}
	for i := range list.Items {
		if on := list.Items[i].Spec.NodeName; on != "" && on != node {
			out[list.Items[i].Name] = list.Items[i].UID
		}
	}
	return out
}

// holdVolumesOn makes one node the only one that the volumes of the local cluster
// can be used on, for a while: they go by a label of the nodes.
func holdVolumesOn(t *testing.T, node string) {
	t.Helper()
	var nodes corev1.NodeList
	require.NoError(t, shared.session.Client.List(t.Context(), &nodes))
	for i := range nodes.Items {
		other := &nodes.Items[i]
		if other.Name == node {
			continue
		}
		label(t, other, "elsewhere")
		t.Cleanup(func() { label(t, other, other.Labels[corev1.LabelTopologyRegion]) })
	}
}

func label(t *testing.T, node *corev1.Node, region string) {
	t.Helper()
	_, err := shared.session.Kubectl(context.WithoutCancel(t.Context()), "label", "node", node.Name, corev1.LabelTopologyRegion+"="+region, "--overwrite")
	require.NoError(t, err)
}

package clusterwide_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/rig/sample"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// KV-19: the sample of three zones keeps its stores evenly spread, however many there
// are to be: the scheduler places those that come, and the operator chooses those that
// leave.
func TestKV19StoresStayEvenlySpreadOverZones(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/samples/three-zones.yaml")
	require.NoError(t, err)
	r := rig.New(t, plane, rig.Options{ClusterWide: true, Nodes: 6, Database: scenario.Database{Speed: 10, Regions: 6}, Delays: rig.Delays{Start: time.Second, Stop: time.Second}})
	r.Start(rig.Operators()...)
	cluster := sample.Parse[v1alpha1.TidbCluster](t, string(text))
	r.Apply(cluster)
	api, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	whole := rig.Key{Kind: v1alpha1.KindTidbCluster, Name: cluster.Name}
	r.AwaitConverged(whole)
	for _, c := range []struct{ stores, fullest, emptiest int }{{3, 1, 1}, {6, 2, 2}, {4, 2, 1}, {7, 3, 2}} {
		cluster = sample.Parse[v1alpha1.TidbCluster](t, string(text))
		cluster.Spec.TiKV[0].Replicas = ptr.To(int32(c.stores))
		r.Apply(cluster)
		r.Await(rig.Timeout, "those that come have a node, and those that leave are gone", func(o rig.Objects) error {
			placed := 0
			for _, name := range o.Names("Pod", cluster.Name+"-tikv-") {
				if node, _, _ := unstructured.NestedString(o.Get("Pod", name).Object, "spec", "nodeName"); node == "" {
					return fmt.Errorf("pod %s has no node", name)
				}
				placed++
			}
			if placed != c.stores {
				return fmt.Errorf("there are %d stores, not %d", placed, c.stores)
			}
			return nil
		})
		r.AwaitConverged(whole)
		fullest, emptiest := nodeZones(t, api, r.Namespace(), cluster.Name+"-tikv")
		assert.Equal(t, c.fullest, fullest, "the fullest zone of %d stores", c.stores)
		assert.Equal(t, c.emptiest, emptiest, "the emptiest zone of %d stores", c.stores)
	}
}

// KV-19: stores that came while a zone was closed are spread over it once the spec says
// so, and no member moves before. There are never fewer of them than it asks for.
func TestKV19StoresAreSpreadAgainWhenTheSpecSaysSo(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/samples/three-zones.yaml")
	require.NoError(t, err)
	r := rig.New(t, plane, rig.Options{ClusterWide: true, Nodes: 6, Database: scenario.Database{Speed: 20, Regions: 6}})
	api, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	open := func(yes bool) {
		var nodes corev1.NodeList
		require.NoError(t, api.List(t.Context(), &nodes, client.MatchingLabels{corev1.LabelTopologyZone: "zone-c"}))
		require.NotEmpty(t, nodes.Items)
		for n := range nodes.Items {
			nodes.Items[n].Spec.Unschedulable = !yes
			require.NoError(t, api.Update(t.Context(), &nodes.Items[n]))
		}
	}
	open(false)
	r.Start(rig.Operators()...)
	cluster := sample.Parse[v1alpha1.TidbCluster](t, strings.ReplaceAll(string(text), "DoNotSchedule", "ScheduleAnyway"))
	cluster.Spec.TiKV[0].Replicas = ptr.To(int32(6))
	r.Apply(cluster.DeepCopy())
	whole := rig.Key{Kind: v1alpha1.KindTidbCluster, Name: cluster.Name}
	r.AwaitConverged(whole)
	open(true)
	fullest, emptiest := nodeZones(t, api, r.Namespace(), cluster.Name+"-tikv")
	require.Equal(t, []int{3, 0}, []int{fullest, emptiest})
	cluster.Spec.TiKV[0].Rebalance = "zone"
	r.Apply(cluster.DeepCopy())
	r.Await(rig.Timeout, "both that were one too many have been exchanged", func(o rig.Objects) error {
		if n := len(o.Names("Pod", cluster.Name+"-tikv-")); n < 6 {
			return fmt.Errorf("there are %d stores", n)
		}
		if o.Get(v1alpha1.KindInstance, cluster.Name+"-tikv-7") == nil {
			return errors.New("the second has not come yet")
		}
		return nil
	})
	r.AwaitConverged(whole)
	fullest, emptiest = nodeZones(t, api, r.Namespace(), cluster.Name+"-tikv")
	assert.Equal(t, []int{2, 2}, []int{fullest, emptiest})
}

// DB-14, PX-03: a proxy has the zone of its node, whatever configuration it takes while it runs, and
// again after a restart.
func TestDB14AProxyHasTheZoneOfItsNode(t *testing.T) {
	r := rig.New(t, plane, rig.Options{ClusterWide: true, Database: scenario.Database{Speed: 20, Regions: 6}})
	api, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	proxies := &v1alpha1.TiProxyGroup{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	proxies.Spec.ComponentSpec, proxies.Spec.Replicas, proxies.Spec.PDGroup.Name = sample.Component(nil), ptr.To(int32(2)), "a"
	proxies.Spec.Version, proxies.Spec.ConfigUpdate, proxies.Spec.Config = "v1.3.0", v1alpha1.ConfigOnline, "[log]\nlevel = \"info\"\n"
	proxies.Spec.Shutdown = &v1alpha1.TiProxyShutdown{DelaySeconds: ptr.To(int64(0)), DrainSeconds: ptr.To(int64(0))}
	r.Start("instance", "pdgroup", "tiproxygroup")
	r.Apply(sample.PDGroup("a", 1), proxies.DeepCopy())
	wait := func(level string) {
		r.AwaitConverged(rig.Key{Kind: v1alpha1.KindTiProxyGroup, Name: "p"})
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			for _, name := range []string{"p-0", "p-1"} {
				var pod corev1.Pod
				require.NoError(c, r.Get(&pod, name))
				var node corev1.Node
				require.NoError(c, api.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, &node))
				for key, want := range map[string]string{"labels.zone": node.Labels[corev1.LabelTopologyZone], "log.level": level} {
					has, err := r.Setting(t.Context(), name, key)
					require.NoError(c, err)
					assert.NotEmpty(c, want)
					assert.Equal(c, want, has, "%s of %s", key, name)
				}
			}
		}, rig.Timeout, 50*time.Millisecond)
	}
	wait("info")
	proxies.Spec.Config = "[log]\nlevel = \"warn\"\n"
	r.Apply(proxies.DeepCopy())
	wait("warn")
	proxies.Spec.Version = "v1.3.1"
	r.Apply(proxies.DeepCopy())
	wait("warn")
}

// nodeZones returns how many pods of a group the fullest and the emptiest zone have.
func nodeZones(t *testing.T, api client.Client, namespace, group string) (fullest, emptiest int) {
	t.Helper()
	var pods corev1.PodList
	var nodes corev1.NodeList
	require.NoError(t, api.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelGroup: group}))
	require.NoError(t, api.List(t.Context(), &nodes))
	zoneOf, have := map[string]string{}, map[string]int{}
	for _, n := range nodes.Items {
		zoneOf[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	for _, p := range pods.Items {
		have[zoneOf[p.Spec.NodeName]]++
	}
	emptiest = len(pods.Items)
	for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		fullest, emptiest = max(fullest, have[zone]), min(emptiest, have[zone])
	}
	return fullest, emptiest
}

package clusterwide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/rig/sample"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// named is how soon a mistake is named in status.
const named = 5 * time.Second

// mistake is one bad input, what is said about it, and how it is fixed.
type mistake struct {
	name string
	// apply is what the user does wrong.
	apply []client.Object
	// on is the object that must say so, with reason and words.
	on     rig.Key
	reason string
	words  []string
	// fix is what the user then does right.
	fix []client.Object
	// remove is what he removes.
	remove client.Object
}

func changed[T client.Object](object T, change func(T)) T {
	change(object)
	return object
}

func mistakes() []mistake {
	tidb := func(name string) rig.Key { return rig.Key{Kind: v1alpha1.KindTiDBGroup, Name: name} }
	tikv := func(name string) rig.Key { return rig.Key{Kind: v1alpha1.KindTiKVGroup, Name: name} }
	pd := func(name string) rig.Key { return rig.Key{Kind: v1alpha1.KindPDGroup, Name: name} }
	sql := func(g *v1alpha1.TiDBGroup) {
		g.Spec.BootstrapSQL = &v1alpha1.KeyReference{Name: "first", Key: "bootstrap.sql"}
	}
	out := []mistake{
		{
			name:  "a TiKVGroup names a PDGroup that does not exist",
			apply: []client.Object{sample.TiKVGroup("k1", "nowhere", 1)},
			on:    tikv("k1"), reason: v1alpha1.ReasonWaitingForPDGroup, words: []string{"nowhere"},
			fix: []client.Object{sample.PDGroup("nowhere", 1)},
		},
		{
			name:  "a TiDBGroup names a PDGroup that does not exist",
			apply: []client.Object{sample.TiDBGroup("d1", "missing", 1)},
			on:    tidb("d1"), reason: v1alpha1.ReasonWaitingForPDGroup, words: []string{"missing"},
			fix: []client.Object{sample.PDGroup("missing", 1), sample.TiKVGroup("k-missing", "missing", 1)},
		},
		{
			name:  "a TiFlashGroup names a PDGroup that does not exist",
			apply: []client.Object{sample.TiFlashGroup("f1", "lost", 1)},
			on:    rig.Key{Kind: v1alpha1.KindTiFlashGroup, Name: "f1"}, reason: v1alpha1.ReasonWaitingForPDGroup, words: []string{"lost"},
			fix: []client.Object{sample.PDGroup("lost", 1), sample.TiKVGroup("k-lost", "lost", 1)},
		},
		{
			name:  "the image of TiKV does not exist",
			apply: []client.Object{changed(sample.TiKVGroup("k2", "a", 1), func(g *v1alpha1.TiKVGroup) { g.Spec.Image = "pingcap/tikv:bad" })},
			on:    tikv("k2"), reason: v1alpha1.ReasonImagePullFailed, words: []string{"pingcap/tikv:bad"},
			fix: []client.Object{sample.TiKVGroup("k2", "a", 1)},
		},
		{
			name:  "the version of PD does not exist",
			apply: []client.Object{changed(sample.PDGroup("p2", 1), func(g *v1alpha1.PDGroup) { g.Spec.Version = "bad" })},
			on:    pd("p2"), reason: v1alpha1.ReasonImagePullFailed, words: []string{"pingcap/pd:bad"},
			fix: []client.Object{sample.PDGroup("p2", 1)},
		},
		{
			name:  "the image of the slow-log sidecar does not exist",
			apply: []client.Object{changed(sample.TiDBGroup("d2", "a", 1), func(g *v1alpha1.TiDBGroup) { g.Spec.SlowLog = &v1alpha1.Sidecar{Image: "bad/tail:1"} })},
			on:    tidb("d2"), reason: v1alpha1.ReasonImagePullFailed, words: []string{"bad/tail:1"},
			fix: []client.Object{sample.TiDBGroup("d2", "a", 1)},
		},
		{
			name:  "the StorageClass of TiKV does not exist and is created",
			apply: []client.Object{changed(sample.TiKVGroup("k3", "a", 1), func(g *v1alpha1.TiKVGroup) { g.Spec.Volumes[0].StorageClassName = ptr.To("k3-class") })},
			on:    tikv("k3"), reason: v1alpha1.ReasonStorageClassMissing, words: []string{"k3-class"},
			fix: []client.Object{&storagev1.StorageClass{
				ObjectMeta: metav1.ObjectMeta{Name: "k3-class"}, Provisioner: "rig.tidb-groups.dev",
				VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
			}},
		},
		{
			name:  "the StorageClass of PD does not exist and the spec is corrected",
			apply: []client.Object{changed(sample.PDGroup("p3", 1), func(g *v1alpha1.PDGroup) { g.Spec.Volumes[0].StorageClassName = ptr.To("wrong") })},
			on:    pd("p3"), reason: v1alpha1.ReasonStorageClassMissing, words: []string{"wrong"},
			fix: []client.Object{changed(sample.PDGroup("p3", 1), func(g *v1alpha1.PDGroup) { g.Spec.Volumes[0].StorageClassName = ptr.To(rig.StorageClass) })},
		},
		{
			name:  "the ConfigMap of the bootstrap SQL does not exist",
			apply: []client.Object{changed(sample.TiDBGroup("d3", "a", 1), sql)},
			on:    tidb("d3"), reason: v1alpha1.ReasonMissingReference, words: []string{"ConfigMap first"},
			fix: []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first"}, Data: map[string]string{"bootstrap.sql": "SELECT 1;"}}},
		},
		{
			name: "a Secret that an environment variable comes from does not exist",
			apply: []client.Object{changed(sample.TiDBGroup("d4", "a", 1), func(g *v1alpha1.TiDBGroup) {
				g.Spec.Env = []v1alpha1.EnvVar{{Name: "KEY", SecretKeyRef: &v1alpha1.KeyReference{Name: "hidden", Key: "key"}}}
			})},
			on: tidb("d4"), reason: v1alpha1.ReasonMissingReference, words: []string{"hidden"},
			fix: []client.Object{sample.TiDBGroup("d4", "a", 1)},
		},
		{
			name:  "TiKV's configuration is no TOML",
			apply: []client.Object{changed(sample.TiKVGroup("k4", "a", 1), func(g *v1alpha1.TiKVGroup) { g.Spec.Config = "= oops" })},
			on:    tikv("k4"), reason: v1alpha1.ReasonInvalidSpec, words: []string{"spec.config"},
			fix: []client.Object{sample.TiKVGroup("k4", "a", 1)},
		},
		{
			name:  "TiKV's configuration sets a key that the operator owns",
			apply: []client.Object{changed(sample.TiKVGroup("k5", "a", 1), func(g *v1alpha1.TiKVGroup) { g.Spec.Config = "[server]\naddr = \"1.2.3.4:1\"\n" })},
			on:    tikv("k5"), reason: v1alpha1.ReasonInvalidSpec, words: []string{"server.addr"},
			fix: []client.Object{sample.TiKVGroup("k5", "a", 1)},
		},
		{
			name:  "PD's configuration sets a key that the operator owns",
			apply: []client.Object{changed(sample.PDGroup("p5", 1), func(g *v1alpha1.PDGroup) { g.Spec.Config = "data-dir = \"/tmp\"\n" })},
			on:    pd("p5"), reason: v1alpha1.ReasonInvalidSpec, words: []string{"data-dir"},
			fix: []client.Object{sample.PDGroup("p5", 1)},
		},
		{
			name:  "TiDB's configuration sets a key that the operator owns",
			apply: []client.Object{changed(sample.TiDBGroup("d5", "a", 1), func(g *v1alpha1.TiDBGroup) { g.Spec.Config = "port = 1\n" })},
			on:    tidb("d5"), reason: v1alpha1.ReasonInvalidSpec, words: []string{"port"},
			fix: []client.Object{sample.TiDBGroup("d5", "a", 1)},
		},
		{
			name:  "no node matches the selector",
			apply: []client.Object{changed(sample.TiKVGroup("k6", "a", 1), func(g *v1alpha1.TiKVGroup) { g.Spec.NodeSelector = map[string]string{"disk": "gold"} })},
			on:    tikv("k6"), reason: v1alpha1.ReasonPodUnschedulable, words: []string{"k6-0", "affinity/selector"},
			fix: []client.Object{sample.TiKVGroup("k6", "a", 1)},
		},
		{
			name: "no node is large enough",
			apply: []client.Object{changed(sample.TiDBGroup("d6", "a", 1), func(g *v1alpha1.TiDBGroup) {
				g.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
			})},
			on: tidb("d6"), reason: v1alpha1.ReasonPodUnschedulable, words: []string{"d6-0", "Insufficient cpu"},
			fix: []client.Object{changed(sample.TiDBGroup("d6", "a", 1), func(g *v1alpha1.TiDBGroup) {
				g.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			})},
		},
		{
			name: "the overlay is no pod",
			apply: []client.Object{changed(sample.TiDBGroup("d7", "a", 1), func(g *v1alpha1.TiDBGroup) {
				g.Spec.Overlay = &runtime.RawExtension{Raw: []byte(`{"spec":{"containers":5}}`)}
			})},
			on: tidb("d7"), reason: v1alpha1.ReasonInvalidSpec, words: []string{"spec.overlay"},
			fix: []client.Object{sample.TiDBGroup("d7", "a", 1)},
		},
		{
			name: "the affinity has a field that does not exist",
			apply: []client.Object{changed(sample.TiKVGroup("k8", "a", 1), func(g *v1alpha1.TiKVGroup) {
				g.Spec.Affinity = &runtime.RawExtension{Raw: []byte(`{"nodeAfinity":{}}`)}
			})},
			on: tikv("k8"), reason: v1alpha1.ReasonInvalidSpec, words: []string{"affinity"},
			fix: []client.Object{sample.TiKVGroup("k8", "a", 1)},
		},
		{
			name: "limits are below requests",
			apply: []client.Object{changed(sample.TiDBGroup("d8", "a", 1), func(g *v1alpha1.TiDBGroup) {
				g.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
				g.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			})},
			on: tidb("d8"), reason: v1alpha1.ReasonPodRejected, words: []string{"cpu"},
			fix: []client.Object{changed(sample.TiDBGroup("d8", "a", 1), func(g *v1alpha1.TiDBGroup) {
				g.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			})},
		},
		{
			name: "the Service's name is taken",
			apply: []client.Object{
				&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "d9"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
				sample.TiDBGroup("d9", "a", 1),
			},
			on: tidb("d9"), reason: v1alpha1.ReasonNameConflict, words: []string{"Service d9"},
			remove: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "d9"}},
			// The name is looked at again after a minute: touch the group.
			fix: []client.Object{changed(sample.TiDBGroup("d9", "a", 1), func(g *v1alpha1.TiDBGroup) { g.Spec.Labels = map[string]string{"again": "true"} })},
		},
		{
			name: "a TidbCluster's group exists and has another owner",
			apply: []client.Object{
				sample.PDGroup("taken-pd", 1),
				changed(&v1alpha1.TidbCluster{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}, func(c *v1alpha1.TidbCluster) {
					c.Spec.Version = sample.Version
					c.Spec.PD.Replicas, c.Spec.PD.Volumes = ptr.To[int32](1), sample.Data()
				}),
			},
			on: rig.Key{Kind: v1alpha1.KindTidbCluster, Name: "taken"}, reason: v1alpha1.ReasonNameConflict, words: []string{"taken-pd"},
			remove: &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "taken-pd"}},
		},
	}
	return out
}

// P7, P11: whatever blocks is named in time, with the object and what to do, and
// undoing the mistake fixes it. Words of a status wait as long as they do in production.
func TestMistakesAreNamedAndFixed(t *testing.T) {
	r := rig.New(t, plane, rig.Options{Tolerate: sample.TakingDown(), ClusterWide: true, Remedies: kubectl, MessageDelay: status.MessageDelay})
	r.Start(rig.Operators()...)
	t.Cleanup(func() {
		r.Delete(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "k3-class"}})
	})
	r.Apply(sample.PDGroup("a", 1), sample.TiKVGroup("b", "a", 1), sample.TiDBGroup("c", "a", 1))
	r.AwaitConverged(rig.Key{Kind: v1alpha1.KindTiDBGroup, Name: "c"})
	for _, m := range mistakes() {
		t.Run(m.name, func(t *testing.T) {
			stop := stalls(t, r, "a")
			r.Apply(m.apply...)
			took := r.AwaitFor(t, rig.Timeout, m.name, func(o rig.Objects) error {
				return o.Says(m.on.Kind, m.on.Name, v1alpha1.ConditionUpToDate, m.reason, m.words...)
			})
			stalled := stop()
			assert.LessOrEqual(t, took, machine.StretchWait(named)+stalled, "the machine stalled for %s of it", stalled)
			if m.remove != nil {
				r.Delete(m.remove)
			}
			for _, object := range m.fix {
				require.NoError(t, r.TryApply(object))
			}
			r.AwaitFor(t, rig.Timeout, "fixed", func(o rig.Objects) error { return o.Converged(m.on.Kind, m.on.Name) })
		})
	}
}

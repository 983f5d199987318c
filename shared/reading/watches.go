package reading

import (
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// AddWatches adds everything that wakes a group of any kind up: its children, the
// claims of its slots, the groups of its cluster, the cluster's disruption Lease
// and budgets and, where they may be read, nodes.
func AddWatches(b *builder.Builder, env operator.Env, info v1alpha1.ComponentInfo) *builder.Builder {
	list := func() client.ObjectList { return info.NewList() }
	changed := builder.WithPredicates(watch.ChangedPredicate())
	b = b.Watches(&v1alpha1.Instance{}, watch.Members(info.Kind), changed).
		Owns(&corev1.Service{}, changed).
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata, changed).
		Owns(&appsv1.ControllerRevision{}, changed).
		Watches(&corev1.PersistentVolumeClaim{}, watch.GroupsOfObject(info.Component), builder.OnlyMetadata, changed).
		Watches(&coordinationv1.Lease{}, watch.GroupsOf(env.Client, list, watch.ByLease), changed).
		Watches(&policyv1.PodDisruptionBudget{}, watch.GroupsOf(env.Client, list, watch.ByCluster), builder.WithPredicates(watch.SpecPredicate()))
	for _, other := range v1alpha1.ComponentTable() {
		if other.Kind != info.Kind {
			b = b.Watches(other.New(), watch.GroupsOf(env.Client, list, watch.ByPDGroup), changed)
		}
	}
	if env.ClusterScoped {
		b = b.Watches(&corev1.Node{}, watch.AllGroups(env.Client, list), builder.WithPredicates(watch.NodePredicate()))
	}
	return b
}

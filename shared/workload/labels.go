package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Selector returns the labels that select a group's pods. They never change.
func Selector(g v1alpha1.Group) map[string]string {
	return map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
		v1alpha1.LabelComponent: g.Component(),
		v1alpha1.LabelGroup:     g.GetName(),
	}
}

// Labels returns the labels of every object of a group.
func Labels(g v1alpha1.Group) map[string]string {
	out := Selector(g)
	out[v1alpha1.LabelName] = "tidb"
	out[v1alpha1.LabelCluster] = g.PDGroupName()
	return out
}

// ClusterOf returns the name of the cluster that an object of the suite belongs to: that
// of its TidbCluster where it is labelled with one, else that of its PDGroup.
func ClusterOf(o metav1.Object) string {
	if c, ok := o.(*v1alpha1.TidbCluster); ok {
		return c.Name
	}
	if umbrella := o.GetLabels()[v1alpha1.LabelUmbrella]; umbrella != "" {
		return umbrella
	}
	if g, ok := o.(v1alpha1.Group); ok {
		return g.PDGroupName()
	}
	return o.GetLabels()[v1alpha1.LabelCluster]
}

// SelectorText returns Selector as /scale wants it.
func SelectorText(g v1alpha1.Group) string {
	return labels.SelectorFromSet(Selector(g)).String()
}

// Owner returns the controller reference to a group.
func Owner(g v1alpha1.Group) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: g.GroupKind(), Name: g.GetName(), UID: g.GetUID(),
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}

// GroupVersionKind returns the kind of a group.
func GroupVersionKind(g v1alpha1.Group) schema.GroupVersionKind {
	return v1alpha1.GroupVersion().WithKind(g.GroupKind())
}

// Meta returns the metadata of an object that a group owns.
func Meta(g v1alpha1.Group, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: g.GetNamespace(), Labels: Labels(g),
		OwnerReferences: []metav1.OwnerReference{Owner(g)},
	}
}

// KeepUnowned has an object outlive its group: it has no owner. Argo CD takes such an object by its
// label LabelCluster for one of the Application of that name, and would delete it, for it is not in Git.
func KeepUnowned(o metav1.Object) {
	o.SetOwnerReferences(nil)
	o.SetAnnotations(labels.Merge(o.GetAnnotations(), KeptAnnotations()))
}

// KeptAnnotations returns the annotations by which Argo CD leaves an object alone.
func KeptAnnotations() map[string]string {
	return map[string]string{"argocd.argoproj.io/compare-options": "IgnoreExtraneous", "argocd.argoproj.io/sync-options": "Prune=false,Delete=false"}
}

package operator

import (
	"maps"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/relist"
)

// NewScheme returns a scheme that knows Kubernetes' kinds and the suite's.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, v1alpha1.AddToScheme(scheme)
}

// ManagedSelector selects the objects that the suite made.
func ManagedSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})
}

// cacheOptions keeps the caches small: only objects of the suite, without
// managed fields, and of nodes only name, labels and size. Memory must not follow
// what strangers keep in the cluster. They are filled again every so often.
func cacheOptions(namespaces []string, cached map[client.Object]cache.ByObject, period time.Duration) cache.Options {
	managed := cache.ByObject{Label: ManagedSelector()}
	byObject := map[client.Object]cache.ByObject{
		&corev1.Pod{}:                   managed,
		&corev1.PersistentVolumeClaim{}: managed,
		&corev1.Service{}:               managed,
		&corev1.ConfigMap{}:             managed,
		&appsv1.ControllerRevision{}:    managed,
		&coordinationv1.Lease{}:         managed,

		&policyv1.PodDisruptionBudget{}: managed,
		&corev1.Node{}:                  {Transform: stripNode},
	}
	for object, options := range cached {
		maps.DeleteFunc(byObject, func(held client.Object, _ cache.ByObject) bool { return reflect.TypeOf(held) == reflect.TypeOf(object) })
		byObject[object] = options
	}
	out := cache.Options{ByObject: byObject, DefaultTransform: cache.TransformStripManagedFields(), NewInformer: relist.Every(period)}
	if len(namespaces) > 0 {
		out.DefaultNamespaces = map[string]cache.Config{}
		for _, n := range namespaces {
			out.DefaultNamespaces[n] = cache.Config{}
		}
	}
	return out
}

// stripNode keeps a node's name, labels, unschedulable flag and size: kubelets write
// the rest every few seconds.
func stripNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil
	}
	node.ManagedFields = nil
	node.Annotations = nil
	size := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if amount, said := node.Status.Allocatable[name]; said {
			size[name] = amount
		}
	}
	node.Status = corev1.NodeStatus{Allocatable: size}
	node.Spec = corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints}
	return node, nil
}

package reading

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Observe reads the Snapshot of a group.
func Observe(ctx context.Context, env operator.Env, g v1alpha1.Group) (observation.Snapshot, error) {
	s := observation.Snapshot{Now: env.Now(), Image: env.Image, Records: env.Records}
	var err error
	if s.Instances, err = Instances(ctx, env.Client, g); err != nil {
		return s, err
	}
	s.Overdue = map[types.UID]bool{}
	for _, i := range s.Instances {
		s.Overdue[i.UID] = env.Waits.IsOverdue(i, i.Status.Conditions, s.Now)
	}
	if s.Services, err = getServices(ctx, env.Client, g); err != nil {
		return s, err
	}
	if s.ConfigMaps, err = configMaps(ctx, env.Client, g); err != nil {
		return s, err
	}
	var revisions appsv1.ControllerRevisionList
	if err := env.Client.List(ctx, &revisions, client.InNamespace(g.GetNamespace()), client.MatchingLabels(workload.Selector(g))); err != nil {
		return s, fmt.Errorf("list ControllerRevisions of %s: %w", g.GetName(), err)
	}
	// Those of a group of the same name that was deleted are about to go.
	s.Revisions = slices.DeleteFunc(revisions.Items, func(r appsv1.ControllerRevision) bool { return !workload.IsOwned(g, &r) })
	if s.PDGroup, err = pdGroup(ctx, env.Client, g); err != nil {
		return s, err
	}
	if s.Certificates, err = env.Credentials.Observe(ctx, env.Live, g, s.PDGroup); err != nil {
		return s, err
	}
	if err := ObserveClaims(ctx, env.Client, g, &s); err != nil {
		return s, err
	}
	if err := restoredClaims(ctx, env.Live, s); err != nil {
		return s, err
	}
	if s.Budget, err = podDisruptionBudget(ctx, env.Client, g); err != nil {
		return s, err
	}
	if err := observeLease(ctx, env, g, &s); err != nil {
		return s, err
	}
	if err := ObserveGroups(ctx, env.Client, g, &s); err != nil {
		return s, err
	}
	if err := env.Credentials.ObserveOthers(ctx, env.Live, g, certificate.Cluster{PDGroup: s.PDGroup, Groups: s.Groups}, &s.Certificates); err != nil {
		return s, err
	}
	if s.Siblings, err = listSiblings(ctx, env.Client, g); err != nil {
		return s, err
	}
	if env.ClusterScoped {
		if s.LostNodes, err = lostNodes(ctx, env, s); err != nil {
			return s, err
		}
		if err := observeNodes(ctx, env.Client, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func podDisruptionBudget(ctx context.Context, c client.Reader, g v1alpha1.Group) (*policyv1.PodDisruptionBudget, error) {
	var out policyv1.PodDisruptionBudget
	err := c.Get(ctx, types.NamespacedName{Namespace: g.GetNamespace(), Name: observation.BudgetName(g)}, &out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get PodDisruptionBudget %s: %w", observation.BudgetName(g), err)
	}
	return &out, nil
}

func getServices(ctx context.Context, c client.Reader, g v1alpha1.Group) (map[string]*corev1.Service, error) {
	out := map[string]*corev1.Service{}
	for _, name := range []string{g.GetName(), names.PeerService(g.GetName())} {
		var s corev1.Service
		err := c.Get(ctx, types.NamespacedName{Namespace: g.GetNamespace(), Name: name}, &s)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("get Service %s: %w", name, err)
		default:
			out[name] = &s
		}
	}
	return out, nil
}

// configMaps reads which ConfigMaps exist; their content is named by their name
// and immutable, so that their metadata is all that is ever read.
func configMaps(ctx context.Context, c client.Reader, g v1alpha1.Group) (map[string]bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.List(ctx, list, client.InNamespace(g.GetNamespace()), client.MatchingLabels(workload.Selector(g))); err != nil {
		return nil, fmt.Errorf("list ConfigMaps of %s: %w", g.GetName(), err)
	}
	out := map[string]bool{}
	for i := range list.Items {
		if workload.IsOwned(g, &list.Items[i]) {
			out[list.Items[i].Name] = true
		}
	}
	return out, nil
}

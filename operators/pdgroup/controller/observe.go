package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/reading"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// errNoMembers says that no member can be asked.
var errNoMembers = errors.New("no member has been started")

// observe reads everything that plan and report decide from.
func (r *steps) observe(ctx context.Context, g *v1alpha1.PDGroup) (observation.Snapshot, error) {
	s, err := reading.Observe(ctx, r.Env, g)
	if err != nil {
		return s, err
	}
	if recovery.IsWanted(g) {
		if s.ClusterInstances, err = listServedInstances(ctx, r.Client, g); err != nil {
			return s, err
		}
	}
	if err := r.observeBootstrap(ctx, g, &s); err != nil {
		return s, err
	}
	// Members of a group of the same name that was deleted are about to stop.
	if !slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return workload.IsOwned(g, i) }) {
		s.PD.Err = errNoMembers
		return s, nil
	}
	r.askPD(ctx, g, &s)
	r.askMembers(g, &s)
	return s, nil
}

// askMembers asks the members, while one of them is disrupted, whether they have loaded the regions. Nothing
// else depends on it, and what they said is too old for the next one.
func (r *steps) askMembers(g *v1alpha1.PDGroup, s *observation.Snapshot) {
	key := client.ObjectKeyFromObject(g)
	if !slices.ContainsFunc(s.Instances, s.Lease.IsHeldBy) {
		r.members.Forget(key)
		return
	}
	s.StatusPorts, s.StatusPortsPending = r.members.Observe(key, s.Instances, r.Credentials.TLSForInstances(s.Groups))
}

// askPD puts what PD says into the Snapshot. Until the cluster's ID is recorded, which is done once,
// PD is asked again at this moment: the last answer may be that of members of a group of the
// same name that was deleted.
func (r *steps) askPD(ctx context.Context, g *v1alpha1.PDGroup, s *observation.Snapshot) {
	reading.AskPD(r.Env, g, s, observation.IsProgressing(g))
	if g.Status.ClusterID == "" && s.PD.HasQuorum() {
		s.PD = r.PD.Ask(ctx, client.ObjectKeyFromObject(g))
	}
}

// observeBootstrap looks in the API server for the claims on which the members of a
// cluster might have been that no member has begun to bootstrap here: one that was restored
// may carry none of the labels by which the others are found. A user says whose it
// is by an annotation.
func (r *steps) observeBootstrap(ctx context.Context, g *v1alpha1.PDGroup, s *observation.Snapshot) error {
	if !bootstrap.IsUndecided(g, *s) || bootstrap.DataClaim(g, "") == "" {
		return nil
	}
	ours := labels.SelectorFromSet(workload.Selector(g))
	for _, name := range bootstrap.CandidateInstances(g) {
		claim := &metav1.PartialObjectMetadata{}
		claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: bootstrap.DataClaim(g, name)}, claim)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("get claim %s: %w", bootstrap.DataClaim(g, name), err)
		case claim.Labels[v1alpha1.LabelInstance] == name && ours.Matches(labels.Set(claim.Labels)):
		case claim.Annotations[v1alpha1.AnnotationAdopt] == name && claim.Labels[v1alpha1.LabelInstance] == "" && len(claim.OwnerReferences) == 0:
			s.Claims[name] = append(s.Claims[name], claim.ObjectMeta)
		default:
			s.ForeignClaims = append(s.ForeignClaims, claim.Name)
		}
	}
	return nil
}

// listServedInstances reads the Instances of everything that a group's PD serves, those of
// groups that are gone included.
func listServedInstances(ctx context.Context, c client.Reader, g *v1alpha1.PDGroup) ([]*v1alpha1.Instance, error) {
	var list v1alpha1.InstanceList
	cluster := client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelCluster: g.Name}
	if err := c.List(ctx, &list, client.InNamespace(g.Namespace), cluster); err != nil {
		return nil, fmt.Errorf("list Instances of PDGroup %s: %w", g.Name, err)
	}
	var out []*v1alpha1.Instance
	for i := range list.Items {
		if list.Items[i].Spec.Group.Kind != v1alpha1.KindPDGroup {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

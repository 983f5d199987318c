package execution

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/leaseclient"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// takeLease takes the disruption Lease. The second to take it learns that from the
// Lease's watch.
func takeLease(ctx context.Context, env operator.Env, g v1alpha1.Group, s observation.Snapshot, change planning.LeaseChange) step.Outcome {
	if s.PDGroup == nil {
		return step.Wait("PDGroup", member.WaitDeadline, v1alpha1.ReasonWaitingForPDGroup, "PDGroup "+g.PDGroupName()+" does not exist")
	}
	d, next := change.Take, change.State()
	if next.Since.IsZero() {
		next.Since = env.Now()
	}
	err := newLeaseWriter(env).Take(ctx, s.PDGroup, s.Lease, next)
	switch {
	case apierrors.IsAlreadyExists(err):
		return leaseTaken(ctx, env, g, s.PDGroup)
	case apierrors.IsConflict(err):
		return step.Conflict(v1alpha1.ReasonWaitingForLease, "the Lease "+lease.Name(g.PDGroupName())+" has changed meanwhile")
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	if !change.Since.IsZero() {
		return step.Done() // it goes on
	}
	env.Recorder.Eventf(g, d.Instance, corev1.EventTypeNormal, "DisruptionBegun", string(d.Verb), "%s Instance %s: %s", d.Verb, d.Instance.Name, d.Why)
	for _, c := range change.Batch {
		env.Recorder.Eventf(g, s.Instance(c.Instance), corev1.EventTypeNormal, "DisruptionBegun", string(d.Verb), "%s Instance %s together with %s: %s", d.Verb, c.Instance, d.Instance.Name, d.Why)
	}
	return step.Done()
}

// leaseTaken tells a Lease that another owner has made under the name from one that the
// cache does not show: yet, or because it has lost its labels, which it gets back.
func leaseTaken(ctx context.Context, env operator.Env, g v1alpha1.Group, pd *v1alpha1.PDGroup) step.Outcome {
	name := lease.Name(g.PDGroupName())
	there, err := leaseclient.Read(ctx, env.Live, g.GetNamespace(), g.PDGroupName())
	switch {
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	case there.Object == nil || there.Object.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy:
	case !slices.ContainsFunc(there.Object.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == pd.UID }):
		return nameTaken(g, "Lease", name)
	default:
		if err := newLeaseWriter(env).Relabel(ctx, pd, there); err != nil && !apierrors.IsConflict(err) {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
	}
	return step.Conflict(v1alpha1.ReasonWaitingForLease, "the Lease "+name+" has changed meanwhile")
}

// releaseLease releases the disruption Lease, which another Instance may take then.
func releaseLease(ctx context.Context, env operator.Env, g v1alpha1.Group, s observation.Snapshot, change planning.LeaseChange) step.Outcome {
	err := newLeaseWriter(env).Release(ctx, s.Lease)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return step.Conflict(v1alpha1.ReasonProgressing, "the Lease "+lease.Name(g.PDGroupName())+" has changed meanwhile")
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	env.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "DisruptionEnded", "Release", "Released the disruption Lease of %s: %s", s.Lease.Holder, change.Why)
	return step.Done()
}

// newLeaseWriter writes Leases as the operator.
func newLeaseWriter(env operator.Env) leaseclient.Writer {
	return leaseclient.Writer{Client: env.Client, Owner: env.Name}
}

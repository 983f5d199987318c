package voting

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/statusports"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Prepare implements component.Component: the leader moves to another member and, for
// Remove, the member leaves PD. Each is done when PD says so.
func (v Voters) Prepare(d component.Disruption, _ time.Time) component.Preparation {
	name := d.Instance.Name
	if d.Verb == member.Remove {
		if meta.IsStatusConditionTrue(d.Instance.Status.Conditions, v1alpha1.ConditionDrained) && !membership.HasReturned(v.g, v.s, d.Instance) {
			return component.Preparation{Ready: true, Suspend: d.Instance.Spec.Suspended}
		}
		if !bootstrap.IsBootstrapped(v.g, v.s) {
			return v.beforeBootstrap(d.Instance)
		}
		if !bootstrap.MayHaveStarted(d.Instance) && len(v.s.Claims[name]) == 0 {
			return v.removeUnjoined(d) // a claim may be that of a member which PD lists
		}
	}
	if known := membership.MayTrustAnswer(v.g, v.s); !known.IsAllowed() {
		return waitForPD(v1alpha1.ReasonUnsafe, "Instance %s stays (%s): PD's state is unknown: %s", name, d.Why, known.Reason())
	}
	m, listed := membership.FindMember(v.g, v.s, d.Instance)
	if d.Verb == member.Remove && !listed && d.Instance.Status.Member == nil {
		return v.removeUnjoined(d)
	}
	if d.Verb == member.Remove && !listed {
		return component.Preparation{Ready: true}
	}
	if d.Verb == member.Remove {
		if may := v.Allows(d); !may.IsAllowed() {
			return waitForPD(v1alpha1.ReasonUnsafe, "Instance %s stays (%s): %s", name, d.Why, may.Reason())
		}
	}
	if m.Name == v.s.PD.Leader && len(v.s.PD.Members) > 1 {
		to := v.Successor(d, FitsAny)
		if to == "" {
			return waitForPD(v1alpha1.ReasonPreparing, "member %s leads PD, and no other member is healthy", name)
		}
		return waitForOrder(component.Call{Verb: component.TransferLeader, Target: to, Instance: name}, v1alpha1.ReasonPreparing, "PD's leader moves from %s to %s", name, to)
	}
	if d.Verb == member.Remove {
		return waitForOrder(component.Call{Verb: component.DeleteMember, Target: m.ID, Instance: name}, v1alpha1.ReasonDraining, "member %s is being removed from PD", name)
	}
	return component.Preparation{Ready: true}
}

// removeUnjoined removes a member that PD has never listed: once its pod has stopped for good it
// never will be. It would vote from the moment that it joins, and a single member has no majority
// without it. A pod whose claim is being deleted does not stop before its Instance goes.
func (v Voters) removeUnjoined(d component.Disruption) component.Preparation {
	i := d.Instance
	if member.HasStopped(i) || v.s.IsClaimDeleted(i.Name) {
		return component.Preparation{Ready: true, Suspend: true}
	}
	return component.Preparation{Suspend: true, Wait: step.Wait("Instance", membership.LookAgain, v1alpha1.ReasonDraining,
		fmt.Sprintf("Instance %s (%s) has not joined PD and is being stopped", i.Name, d.Why))}
}

func waitForPD(reason, format string, args ...any) component.Preparation {
	return component.Preparation{Wait: step.Wait("PD", membership.LookAgain, reason, fmt.Sprintf(format, args...))}
}

// waitForOrder waits for the effect of an order to PD.
func waitForOrder(call component.Call, reason, format string, args ...any) component.Preparation {
	return component.Preparation{Calls: []component.Call{call}, Wait: step.Wait("PD", membership.OrderRetryPeriod, reason, fmt.Sprintf(format, args...))}
}

// beforeBootstrap is how far a deleted Instance is before PD has a cluster ID. One that
// never started is recreated in its slot; one that may have bootstrapped must not
// forget it, and is replaced when the cluster is there.
func (v Voters) beforeBootstrap(i *v1alpha1.Instance) component.Preparation {
	switch {
	case bootstrap.MayHaveStarted(i):
		return waitForPD(v1alpha1.ReasonBootstrapping, "Instance %s was deleted while it bootstraps PD's cluster: it is replaced when the cluster is there", i.Name)
	case bootstrap.IsInitial(v.g.Status.InitialMembers, i):
		return waitForPD(v1alpha1.ReasonBootstrapping, "Instance %s is taken off status.initialMembers: it has never started", i.Name)
	}
	return component.Preparation{Ready: true, Stays: true}
}

// Recover implements component.Component: the Lease is given back when PD calls the
// member healthy again and it could lead. PD itself would hand the leader to a member that has not
// loaded the regions yet, and no client would find one until then.
func (v Voters) Recover(i *v1alpha1.Instance, _ lease.State) component.Preparation {
	back := membership.MayTrustAnswer(v.g, v.s)
	if m, listed := membership.FindMember(v.g, v.s, i); back.IsAllowed() && (!listed || !m.Healthy) {
		back = verdict.Refuse("PD does not call it healthy")
	}
	if !back.IsAllowed() {
		return waitForPD(v1alpha1.ReasonRecovering, "member %s is coming back: %s", i.Name, back.Reason())
	}
	if v.isLoading(i) {
		p := waitForPD(v1alpha1.ReasonRecovering, "member %s is loading the regions, and the others wait for it, for %s at most", i.Name, loadTimeout)
		p.Wait.After = statusports.AskAgain
		return p
	}
	return component.Preparation{Ready: true}
}

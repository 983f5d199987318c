package controller

import (
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Evict implements group.Leading: a member that a person wants to lead nothing hands
// PD's leader on whenever it has it, and nothing of that is left in PD to be taken back.
func (v voters) Evict(i *v1alpha1.Instance) group.Eviction {
	if _, asked := group.LeadsNothing(i); !asked || i.DeletionTimestamp != nil {
		return group.Eviction{}
	}
	wait := func(format string, args ...any) step.Outcome {
		return waiting(v1alpha1.ReasonEvictingLeaders, "Instance %s is not to lead PD (annotation %s), and %s", i.Name, v1alpha1.AnnotationEvictLeaders, fmt.Sprintf(format, args...)).Wait
	}
	m, listed := membership.Of(v.g, v.s, i)
	switch why := membership.Unknown(v.g, v.s); {
	case why != "":
		return group.Eviction{Wait: wait("nobody knows whether it does: %s", why)}
	case !listed:
		return group.Eviction{Wait: wait("PD does not list its member yet")}
	case m.Name != v.s.PD.Leader:
		return group.Eviction{Done: true}
	}
	to := v.successor(group.Disruption{Instance: i, Revision: v.g.Status.UpdateRevision}, v.mayLead)
	if to == "" {
		return group.Eviction{Wait: wait("does: no other member that is healthy and stays may lead; let another one, or this one: kubectl -n %s annotate instance %s %s-",
			i.Namespace, i.Name, v1alpha1.AnnotationEvictLeaders)}
	}
	p := ordering(group.Call{Verb: group.TransferLeader, Target: to, Instance: i.Name}, v1alpha1.ReasonEvictingLeaders,
		"PD's leader moves from %s to %s: annotation %s on Instance %s", m.Name, to, v1alpha1.AnnotationEvictLeaders, i.Name)
	return group.Eviction{Calls: p.Calls, Wait: p.Wait}
}

// mayLead reports whether PD's leader may be handed to the member of an Instance
// although nobody is stopped for it: it stays, nothing is being done to it, and nobody
// wants it to lead nothing.
func (v voters) mayLead(i *v1alpha1.Instance) bool {
	if i == nil || i.DeletionTimestamp != nil || i.Spec.Retire || i.Annotations[v1alpha1.AnnotationDisruption] != "" || v.s.Lease.HeldBy(i) {
		return false
	}
	_, evicted := group.LeadsNothing(i)
	return !evicted && group.FootingOf(i) == group.Firm && group.InstanceReady(i)
}

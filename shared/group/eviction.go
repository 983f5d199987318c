package group

import (
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/disruption"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// planEviction takes over how far a member is on its way to lead nothing. A member that
// leaves has given its leaders away already; one that is being restarted does so by
// itself.
func (out *changes) planEviction(in planning.Inputs, i *v1alpha1.Instance, stops disruption.Result) component.Eviction {
	leading, able := in.Rendering.Component.(component.LeaderEvictor)
	if !able {
		return component.Eviction{}
	}
	e := leading.PlanEviction(i)
	verb, under := stops.Disrupted[i.Name]
	if in.Group.GetComponentSpec().Suspended || verb == member.Remove {
		return component.Eviction{Marked: e.Marked && i.Annotations[v1alpha1.AnnotationDisruption] != ""}
	}
	// A member that has just been chosen to be disrupted must not get the leaders of others.
	if !under && stops.Lease.Take == nil {
		out.Evictions = append(out.Evictions, e.Calls...)
	}
	request, asked := member.EvictionRequest(i)
	answered := asked && i.Annotations[v1alpha1.AnnotationLeadersEvicted] == request
	if !answered || e.Blocked {
		// Once it was so, a leader that comes and is sent away is no deviation.
		out.EvictionOutcome = step.Worst(out.EvictionOutcome, e.Wait)
	}
	if out.UnansweredEviction == "" && (asked && e.Done && !answered || !asked && i.Annotations[v1alpha1.AnnotationLeadersEvicted] != "") {
		out.UnansweredEviction = i.Name
	}
	return e
}

// explainPausedEvictions says which of this would be done if the group were not paused. No
// other group waits for it.
func explainPausedEvictions(p *planning.Plan, message string) {
	switch {
	case p.EvictionOutcome.Kind == step.KindWait:
		message += "; next: " + p.EvictionOutcome.Message
	case p.UnansweredEviction != "":
		message += fmt.Sprintf("; next: annotation %s of Instance %s", v1alpha1.AnnotationLeadersEvicted, p.UnansweredEviction)
	default:
		return
	}
	p.EvictionOutcome = step.Wait("group", member.WaitDeadline, v1alpha1.ReasonEvictingLeaders, message)
}

// recordEviction writes on an Instance that its member has come to lead nothing. That
// stays until the request is gone, and what was done for it.
func recordEviction(desired, live *v1alpha1.Instance, e component.Eviction) {
	request, asked := member.EvictionRequest(live)
	before := live.Annotations[v1alpha1.AnnotationLeadersEvicted]
	switch {
	case asked && e.Done:
		member.SetAnnotation(desired, v1alpha1.AnnotationLeadersEvicted, request)
	case before != "" && (asked || desired.Annotations[v1alpha1.AnnotationDisruption] != ""):
		member.SetAnnotation(desired, v1alpha1.AnnotationLeadersEvicted, before)
	}
}

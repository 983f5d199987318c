package voting

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// FitsAny may lead when the one that does is stopped.
func FitsAny(*v1alpha1.Instance) bool { return true }

// Successor names the member that leads next after an Instance's: one that is healthy
// and stays, at best one that has loaded the regions, none that a user wants to lead nothing, Ready and at the
// wanted revision, and of those the one that has been healthy for longest. fits reports the
// Instance of one whether it may, nil if it has none. Empty if there is none.
func (v Voters) Successor(d component.Disruption, fits func(*v1alpha1.Instance) bool) string {
	type candidate struct {
		name  string
		score int
		since time.Time
	}
	var all []candidate
	for _, m := range v.s.PD.Members {
		i := v.s.Instance(m.Name)
		if !m.Healthy || m.Name == d.Instance.Name || m.Name == "" || !fits(i) {
			continue
		}
		c := candidate{name: m.Name}
		if i != nil {
			_, evicted := member.EvictionRequest(i)
			for _, good := range []bool{member.PodStateOf(i) == member.PodReady, !v.isLoading(i), i.DeletionTimestamp == nil && !i.Spec.Retire, !evicted, member.IsReady(i), i.Status.Revision == d.Revision} {
				c.score *= 2
				if good {
					c.score++
				}
			}
			if healthy := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionHealthy); healthy != nil {
				c.since = healthy.LastTransitionTime.Time
			}
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return ""
	}
	return slices.MinFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), a.since.Compare(b.since), strings.Compare(a.name, b.name))
	}).name
}

// PlanEviction implements component.LeaderEvictor: a member that a user wants to lead nothing hands
// PD's leader on whenever it has it, and nothing of that is left in PD to be taken back.
func (v Voters) PlanEviction(i *v1alpha1.Instance) component.Eviction {
	if _, asked := member.EvictionRequest(i); !asked || i.DeletionTimestamp != nil {
		return component.Eviction{}
	}
	wait := func(format string, args ...any) step.Outcome {
		return waitForPD(v1alpha1.ReasonEvictingLeaders, "Instance %s must not lead PD (annotation %s): %s", i.Name, v1alpha1.AnnotationEvictLeaders, fmt.Sprintf(format, args...)).Wait
	}
	m, listed := membership.FindMember(v.g, v.s, i)
	switch known := membership.MayTrustAnswer(v.g, v.s); {
	case !known.IsAllowed():
		return component.Eviction{Wait: wait("PD's leader is unknown: %s", known.Reason())}
	case !listed:
		return component.Eviction{Wait: wait("PD does not list its member yet")}
	case m.Name != v.s.PD.Leader:
		return component.Eviction{Done: true}
	}
	to := v.Successor(component.Disruption{Instance: i, Revision: v.g.Status.UpdateRevision}, v.mayLead)
	if to == "" {
		return component.Eviction{Blocked: true, Wait: wait("it still leads, because no other healthy member may; let another member lead, or cancel: kubectl -n %s annotate instance %s %s-",
			i.Namespace, i.Name, v1alpha1.AnnotationEvictLeaders)}
	}
	p := waitForOrder(component.Call{Verb: component.TransferLeader, Target: to, Instance: i.Name}, v1alpha1.ReasonEvictingLeaders,
		"PD's leader moves from %s to %s: annotation %s on Instance %s", m.Name, to, v1alpha1.AnnotationEvictLeaders, i.Name)
	return component.Eviction{Calls: p.Calls, Wait: p.Wait}
}

// mayLead reports whether PD's leader may be handed to the member of an Instance
// although no member is stopped for it: it stays, nothing is being done to it, and no member
// wants it to lead nothing.
func (v Voters) mayLead(i *v1alpha1.Instance) bool {
	if i == nil || i.DeletionTimestamp != nil || i.Spec.Retire || i.Annotations[v1alpha1.AnnotationDisruption] != "" || v.s.Lease.IsHeldBy(i) {
		return false
	}
	_, evicted := member.EvictionRequest(i)
	return !evicted && member.PodStateOf(i) == member.PodReady && member.IsReady(i)
}

package store

import (
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Leave takes a member out of its cluster (KV-04, FL-04): its leaders move away,
// then its regions, and it has left when it is a tombstone, which PD does not
// list. Nothing is stopped until then. begun is when the Lease was taken.
//
// The Lease is held until PD knows that the store is to go: whether the cluster
// can do without it is decided by one at a time. How long its regions take to
// move is nobody else's business; TiKV stores that are to be restarted meanwhile
// see it in PD.
//
// A member whose Instance was deleted and which is to stay does not leave: it is
// made anew in the same slot, with its data. One that serves is restarted; it never
// comes here.
func (c Component) Leave(d component.Disruption, begun time.Time) component.Preparation {
	i := d.Instance
	m := c.of(i)
	switch {
	case !c.departs(i):
		return c.comeBack(d)
	case c.Silence != "":
		return waiting(v1alpha1.ReasonPDUnreachable, "Instance %s stays for now (%s): %s", i.Name, d.Why, c.Silence)
	case m.Problem != "":
		return waiting(v1alpha1.ReasonStoreMismatch, "%s", m.Problem)
	case c.left(m):
		return c.gone(d, m)
	case m.Store == nil && m.Recorded != "":
		return waiting(v1alpha1.ReasonDraining, "Instance %s stays for now (%s): PD lists no store at all", i.Name, d.Why)
	case m.Store == nil:
		return unregistered(d)
	case m.Store.State == pd.StateOffline:
		return c.offline(d, m)
	}
	if c.HasLeaders {
		if p := c.Vacate(d, begun); !p.Ready {
			p.Wait.Reason = v1alpha1.ReasonDraining
			return p
		}
	}
	p := waiting(v1alpha1.ReasonDraining, "store %s of Instance %s (%s) is to give its regions away", m.Store.ID, i.Name, d.Why)
	p.Calls = []component.Call{{Verb: component.DeleteStore, Target: m.Store.ID, Instance: i.Name}}
	return p
}

// departs reports whether a member that is being removed leaves for good: it is
// one too many, or on its way out already, or has left, or is dead and not to come
// back, or has lost its data or is about to: an empty store at the address of one
// that PD knows would be refused.
func (c Component) departs(i *v1alpha1.Instance) bool {
	if i.DeletionTimestamp == nil || i.Spec.Retire || mark(i) == member.Remove || c.left(c.of(i)) || c.replaceable(i) || c.dataLost(i) {
		return true
	}
	return c.living() >= int(c.Group.GetReplicas()+c.Extra())
}

// dataLost reports whether the data of a member that PD knows is gone, or goes: its
// claim is gone, and nobody has put another one in its place; it goes with its
// Instance; or it is being deleted, and goes with the pod. A volume that is lost, or
// all whose nodes are, is lost whether or not PD knows the member: it would be made
// anew on that volume, and never start.
func (c Component) dataLost(i *v1alpha1.Instance) bool {
	if c.of(i).Problem == "" && (c.Snapshot.LostNodes[i.Name] != "" || member.IsVolumeLost(i)) {
		return true
	}
	claims := c.Snapshot.Claims[i.Name]
	goes := i.Spec.ClaimRetention.WhenDeleted == v1alpha1.DeleteClaim ||
		slices.ContainsFunc(claims, func(m metav1.ObjectMeta) bool { return m.DeletionTimestamp != nil })
	if goes && len(i.Spec.VolumeClaimTemplates) > 0 && recorded(i) != "" && c.of(i).Problem == "" {
		return true
	}
	return member.IsClaimLost(i) && recorded(i) != "" && len(claims) < len(i.Spec.VolumeClaimTemplates)
}

// left reports whether PD has let a member's store go. A PD that lists no store
// at all has forgotten them.
func (c Component) left(m Match) bool {
	return c.Silence == "" && c.Snapshot.PD.Bootstrapped && len(c.Snapshot.PD.Stores) > 0 && m.Store == nil && m.Recorded != "" && m.Problem == ""
}

// gone ends a removal. A store that left fast leaves its name in the scheduler that
// has moved its leaders.
func (c Component) gone(d component.Disruption, m Match) component.Preparation {
	if !c.Snapshot.PD.Evicts(m.Recorded) {
		return component.Preparation{Ready: true}
	}
	p := waiting(v1alpha1.ReasonDraining, "store %s of Instance %s (%s) has left, and PD is to forget about its leaders", m.Recorded, d.Instance.Name, d.Why)
	p.Calls = []component.Call{{Verb: component.StopEvictingLeaders, Target: m.Recorded, Instance: d.Instance.Name}}
	return p
}

// comeBack lets a member's Instance go without its store, once nothing of an
// earlier preparation is left in PD.
func (c Component) comeBack(d component.Disruption) component.Preparation {
	if c.Silence != "" && mark(d.Instance) != "" {
		p := waiting(v1alpha1.ReasonPDUnreachable, "Instance %s (%s) stays until it is known what was done to its store: %s", d.Instance.Name, d.Why, c.Silence)
		p.Stays = true
		return p
	}
	if calls := c.UndoPreparation(d.Instance); len(calls) > 0 {
		p := waiting(v1alpha1.ReasonRecovering, "the store of Instance %s (%s) is to lead again", d.Instance.Name, d.Why)
		p.Calls, p.Stays = calls, true
		return p
	}
	return component.Preparation{Ready: true, Stays: true}
}

// offline waits for PD to move the regions of a store away.
func (c Component) offline(d component.Disruption, m Match) component.Preparation {
	text := fmt.Sprintf("store %s of Instance %s (%s) is Offline and has %s left", m.Store.ID, d.Instance.Name, d.Why, regions(m.Store.Regions))
	if why := c.stuck(*m.Store); why != "" && m.Store.Regions > 0 {
		text += ": " + why
	}
	p := waiting(v1alpha1.ReasonDraining, "%s", text)
	p.Wait.After = poll // the operator is woken when PD says something else of the store
	p.Calls = c.readmission(d.Instance)
	return p
}

// poll is how soon an operator looks again by itself at what a change of PD's View
// should have told it.
const poll = 10 * time.Second

// unregistered removes a member that PD has never listed (KV-08): once its pod
// has stopped for good it never will be.
func unregistered(d component.Disruption) component.Preparation {
	i := d.Instance
	if i.Spec.Suspended && i.Status.PodUID == "" && i.Status.ObservedGeneration == i.Generation {
		return component.Preparation{Ready: true, Suspend: true}
	}
	return component.Preparation{Suspend: true, Wait: step.Wait("Instance", time.Minute, v1alpha1.ReasonDraining,
		fmt.Sprintf("Instance %s (%s) has never registered with PD and is being stopped", i.Name, d.Why))}
}

// about rounds a number of regions: to tens below 100, to two digits above. Each
// change of it is a write, and nobody needs to know it that well.
func about(n int) string {
	if n < 10 {
		return fmt.Sprint(n)
	}
	unit := math.Pow10(max(1, int(math.Log10(float64(n)))-1))
	return fmt.Sprintf("about %d", int(math.Round(float64(n)/unit)*unit))
}

// regions tells how many regions there are, as about does.
func regions(n int) string {
	if n == 1 {
		return "1 region"
	}
	return about(n) + " regions"
}

// mark returns what the planner has noted to be doing to a member.
func mark(i *v1alpha1.Instance) member.Verb {
	return member.Verb(i.Annotations[v1alpha1.AnnotationDisruption])
}

// UndoPreparation implements group.Component: what an earlier preparation has left in PD,
// by the mark that it left on the Instance, is taken back (KV-05, KV-15). What a
// person has done carries no mark. What he asks for by an annotation stays.
func (c Component) UndoPreparation(i *v1alpha1.Instance) []component.Call {
	var calls []component.Call
	if !c.leadsNothing(i) {
		calls = c.readmission(i)
	}
	if m := c.of(i); m.Store != nil && m.Store.State == pd.StateOffline && mark(i) == member.Remove {
		calls = append(calls, component.Call{Verb: component.RestoreStore, Target: m.Store.ID, Instance: i.Name})
	}
	return calls
}

// readmission lets a store lead again that was kept from it by us.
func (c Component) readmission(i *v1alpha1.Instance) []component.Call {
	m := c.of(i)
	if mark(i) == "" || m.Store == nil || !c.Snapshot.PD.Evicts(m.Store.ID) {
		return nil
	}
	return []component.Call{{Verb: component.StopEvictingLeaders, Target: m.Store.ID, Instance: i.Name}}
}

// WhyDead implements group.Component: a store that has left when its removal was
// taken back never returns, and one that is dead is not waited for if the user
// says so.
func (c Component) WhyDead(i *v1alpha1.Instance) string {
	m := c.of(i)
	switch {
	case mark(i) == member.Remove && c.left(m):
		return fmt.Sprintf("store %s had left PD before its removal was taken back", m.Recorded)
	case c.replaceable(i):
		return fmt.Sprintf("store %s has been down for spec.failover.after (%s)", m.Store.ID, c.patience())
	}
	return ""
}

// WhyRefused implements group.Component.
func (c Component) WhyRefused(victims []*v1alpha1.Instance) string {
	if c.silent() != "" {
		return "" // it is asked again before each begins to leave
	}
	why := c.Needed(victims...)
	if why == "" {
		return ""
	}
	if asked := member.ReplacementReason(c.Group, victims[0]); asked != "" && len(victims) == 1 {
		return fmt.Sprintf("Instance %s stays (%s): %s", victims[0].Name, asked, why)
	}
	edit := origin.Of(c.Group)
	return fmt.Sprintf("%s is %d, and nothing is removed: %s; to set it back: %s",
		edit.Field("replicas"), c.Group.GetReplicas(), why, edit.Scale(int(c.Group.GetReplicas())+len(victims)))
}

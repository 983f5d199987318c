package safety

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// IsNotServing implements component.Component: a member adds nothing if it has no pod on a
// node, or if PD does not count on it and its process does not run. A process
// that runs without being ready may only have lost its way to PD for a moment.
//
// KV-14: such a member is restarted without a check of the others, so that every mistake
// can be undone.
func IsNotServing(c storestate.State, i *v1alpha1.Instance) bool {
	if i.Status.PodUID == "" || i.Status.NodeName == "" {
		return true
	}
	m := storestate.StoreOf(c, i)
	switch {
	case !c.TrustPD.IsAllowed(), !m.Own.IsAllowed():
		return false
	case m.Store == nil:
		return true
	case m.Store.State == pd.StateUp, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady):
		return false
	}
	return m.Store.State == pd.StateDown || member.IsBroken(i)
}

// OthersWork says whether PD and every other store of a member's kind, of whatever group, work,
// so that it may be stopped.
func OthersWork(c storestate.State, i *v1alpha1.Instance) verdict.Verdict {
	m := storestate.StoreOf(c, i)
	if may := verdict.RequireAll(IsTrusted(c, i), noneIsForceRemoved(c)); !may.IsAllowed() {
		return may
	}
	for _, other := range storestate.OtherStores(c, m) {
		if may := storeWorks(c, other, member.PodStateOf(i), storestate.KnowsRegions(m)); !may.IsAllowed() {
			return may
		}
	}
	return verdict.Allow()
}

// noneIsForceRemoved refuses while PD makes new majorities for the regions of stores that it was told to
// remove by force: every other store has a part in it, and it is over when one fails.
func noneIsForceRemoved(c storestate.State) verdict.Verdict {
	if len(c.Snapshot.PD.ForceRemoved) == 0 {
		return verdict.Allow()
	}
	return verdict.Refuse(storestate.DescribeForceRemoved(c.Group, c.Snapshot.PD))
}

// PodCanStop refuses for a pod that nothing stops now, as member.CanStop does, and for one that is being
// stopped and of whose store PD does not hear any more. A new revision would keep the member from
// being replaced (KV-20).
func PodCanStop(c storestate.State, i *v1alpha1.Instance) verdict.Verdict {
	pod, m := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady), storestate.StoreOf(c, i)
	if pod != nil && pod.Reason == v1alpha1.ReasonPodTerminating && m.Store != nil && m.Store.IsUnreachable() {
		return member.RefuseStopping(i)
	}
	return member.CanStop(i, c.Group, c.Snapshot.Now)
}

// IsTrusted says whether PD and a member's store are known. If not, nothing is done to it whatever
// a user says.
func IsTrusted(c storestate.State, i *v1alpha1.Instance) verdict.Verdict {
	return verdict.RequireAll(storestate.PDKnown(c), storestate.StoreOf(c, i).Own)
}

// storeWorks says whether a store works, and will, when one that stands so is stopped. One without regions does not matter once PD knows
// which regions lie where.
func storeWorks(c storestate.State, other pd.Store, than member.PodState, informed bool) verdict.Verdict {
	if other.State == pd.StateUp && other.Regions > 0 {
		if may := storeStaysUp(c, other, than); !may.IsAllowed() {
			return may
		}
	}
	if other.State == pd.StateUp && other.Started || other.Regions == 0 && informed {
		return verdict.Allow()
	}
	name := other.PodName()
	switch suspended := storestate.DescribeSuspension(c, other); {
	case storestate.IsAbandoned(c.Snapshot, other):
		return verdict.Refuse(storestate.DescribeLeftBehind(c.Snapshot, other))
	case suspended != "":
		return verdict.Refusef("store %s (%s) is %s, for %s", other.ID, name, other.State, suspended)
	case other.State == pd.StateOffline:
		return verdict.Refusef("store %s (%s) is being removed and still holds regions", other.ID, name)
	case other.State == pd.StateDown && c.Snapshot.PD.MajorityLost:
		return verdict.Refusef("store %s (%s) is Down, and regions have lost their majority: bring it back: kubectl -n %s describe instance %s", other.ID, name, c.Group.GetNamespace(), name)
	case other.State == pd.StateDown:
		return verdict.Refusef("store %s (%s) is Down: bring it back, or replace it: kubectl -n %s annotate instance %s %s=", other.ID, name, c.Group.GetNamespace(), name, v1alpha1.AnnotationReplace)
	}
	return verdict.Refusef("store %s (%s) is %s", other.ID, name, other.State)
}

// storeStaysUp says whether a store that PD calls Up counts when a member that stands so is
// stopped. Of members that stand no better than each
// other either may be restarted: what is pending may be what makes them ready.
func storeStaysUp(c storestate.State, store pd.Store, than member.PodState) verdict.Verdict {
	name := store.PodName()
	other := c.Snapshot.Find(name)
	switch {
	case other == nil:
		return verdict.Allow()
	case member.IsStopping(other):
		return verdict.Refusef("the pod of Instance %s is being stopped or recreated, and PD still takes store %s for Up", name, store.ID)
	case member.PodStateOf(other) > than:
		return verdict.Refusef("the pod of Instance %s is not ready, or stops again and again, and PD still takes store %s for Up: kubectl -n %s describe instance %s", name, store.ID, c.Group.GetNamespace(), name)
	}
	return verdict.Allow()
}

// IsOverridden reports whether a user has decided that the pod of a member is stopped
// although that is not safe (KV-13). It counts for the pod that is named, and for no later
// one.
func IsOverridden(i *v1alpha1.Instance) bool {
	return i.Status.PodUID != "" && i.Annotations[v1alpha1.AnnotationStopAnyway] == string(i.Status.PodUID)
}

// OverrideCommand is the command by which a user decides that.
func OverrideCommand(i *v1alpha1.Instance) string {
	return fmt.Sprintf("kubectl -n %s annotate instance %s %s=%s --overwrite", i.Namespace, i.Name, v1alpha1.AnnotationStopAnyway, i.Status.PodUID)
}

// StallIfOverdue turns a restart that has been held back for too long into something that a
// user must repair. A region that has been in the way all the time is named, and one
// that PD is about to replicate is not: while PD works these are others at every
// moment. Nothing is ever stopped because time has passed.
func StallIfOverdue(c storestate.State, d *component.Disruption, o step.Outcome) step.Outcome {
	hold, now := c.Snapshot.Hold, c.Snapshot.Now
	if d == nil || o.Reason != v1alpha1.ReasonUnsafe || o.Kind != step.KindWait || hold.Instance == "" || d.Verb != member.Restart || !storestate.PDKnown(c).IsAllowed() {
		return o
	}
	if !noneIsForceRemoved(c).IsAllowed() {
		return o // a restart would end what PD does
	}
	others := OthersWork(c, d.Instance)
	regions := hold.OlderThan(now, unsafeTimeout)
	if others.IsAllowed() && len(regions) == 0 || !others.IsAllowed() && now.Sub(hold.Since) < unsafeTimeout {
		return o
	}
	unsafe := others.Reason()
	if others.IsAllowed() {
		named := strings.Join(regions[:min(len(regions), namedRegions)], ", ")
		if more := len(regions) - namedRegions; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		unsafe = fmt.Sprintf("for more than %s PD has not replicated region %s: %s region %s", unsafeTimeout, named, storestate.PDCtl(c.Group), regions[0])
	}
	out := step.Stall(v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is not restarted (%s): %s; fix that, or force the restart; regions may lose their majority until the pod is back: %s",
		d.Instance.Name, d.Why, unsafe, OverrideCommand(d.Instance)))
	out.After = o.After
	return out
}

const (
	// unsafeTimeout is after how long a restart that is held back is Stalled.
	unsafeTimeout = 10 * time.Minute
	// namedRegions is how many regions a message names.
	namedRegions = 3
)

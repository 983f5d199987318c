package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/disruption"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// A group that is deleted takes nothing out of PD: its stores stay there as they
// are when their pods have stopped. As long as they do no other one of their kind is
// restarted, and no operator is left whose they are. So whoever is left names them.

// abandoned reports whether PD lists a store that it does not hear of and that no
// Instance of the cluster is. An Instance that is being made anew is there.
func abandoned(s observation.Snapshot, store pd.Store) bool {
	if store.State != pd.StateDown && store.State != pd.StateDisconnected {
		return false
	}
	name := podName(store)
	return s.Lease.Holder.Instance != name && s.Find(name) == nil
}

// Orphans are the calls that take back what was begun with a member whose Instance
// has gone meanwhile, with its group or because a person took its finalizer off: its
// leaders are kept away from its store (KV-15), also from one of that name that comes
// later. The Lease alone still tells that it was the operators who did it, so that it
// is not to be given on before. unknown says that PD cannot be asked.
func (c Component) Orphans() (calls []component.Call, unknown bool) {
	held := c.Snapshot.Lease
	if !c.Snapshot.HolderLost || held.Holder.Kind != c.Group.GroupKind() {
		return nil, false
	}
	calls = slices.DeleteFunc(disruption.Leftovers(c.Snapshot.PD, held), func(call component.Call) bool {
		s, _ := c.Snapshot.PD.Store(call.Target)
		return c.marked(call.Instance) || isTiFlash(s) == c.HasLeaders
	})
	return calls, c.Silence != ""
}

// marked reports whether a companion of the Lease's holder is there to be taken care
// of: something was done to it, by its mark.
func (c Component) marked(name string) bool {
	i := c.Snapshot.Find(name)
	return name != c.Snapshot.Lease.Holder.Instance && i != nil && mark(i) != ""
}

// asleep says that a member's group is suspended, and how to resume it; empty if it
// is not.
func (c Component) asleep(store pd.Store) string {
	i := c.Snapshot.Find(podName(store))
	if i == nil {
		return ""
	}
	for _, g := range c.Snapshot.Groups {
		if g.GroupKind() == c.Group.GroupKind() && g.GetName() == i.Spec.Group.Name && g.GetComponentSpec().Suspended {
			return fmt.Sprintf("%s %s is suspended: to resume it, set its spec.suspended to false", g.GroupKind(), g.GetName())
		}
	}
	return ""
}

// groupName is what the group of a store was called, by its pod.
func groupName(store pd.Store) string {
	pod := podName(store)
	if at := strings.LastIndex(pod, "-"); at > 0 {
		return pod[:at]
	}
	return pod
}

// outage says that regions have lost their majority with stores that do not run,
// whoever owns them, and what brings them back; empty if none has. A leader of PD that
// is new misses stores that run.
func outage(g v1alpha1.Group, s observation.Snapshot) string {
	if _, silence := Distrust(g, s); silence != "" || !s.PD.MajorityLost || g.GroupKind() != v1alpha1.KindTiKVGroup {
		return ""
	}
	var dead []pd.Store
	for _, store := range s.PD.Missed() {
		if i := s.Find(podName(store)); i == nil || !meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady) {
			dead = append(dead, store)
		}
	}
	if len(dead) < s.PD.Fatal() {
		return ""
	}
	var named []string
	for _, store := range dead[:min(len(dead), 3)] {
		named = append(named, fmt.Sprintf("%s (%s)", store.ID, podName(store)))
	}
	if more := len(dead) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	say := "regions have lost their majority and do not serve: these stores have them and do not run: " + strings.Join(named, ", ") + ": "
	if at := slices.IndexFunc(dead, func(store pd.Store) bool { return abandoned(s, store) }); at >= 0 {
		return say + fmt.Sprintf("their group is gone: make the group %s again, which takes its claims", groupName(dead[at]))
	}
	return say + fmt.Sprintf("kubectl -n %s describe instance %s", g.GetNamespace(), podName(dead[0]))
}

// Outage waits while regions are without a majority: nothing that depends on them
// should go on.
func Outage(g v1alpha1.Group, s observation.Snapshot) step.Outcome {
	why := outage(g, s)
	if why == "" || g.GetComponentSpec().Suspended || len(s.Instances) == 0 {
		return step.Done()
	}
	return step.Wait("PD", outageDeadline, v1alpha1.ReasonRegionsUnavailable, why)
}

// outageDeadline is after how long a group looks again whether regions are back.
const outageDeadline = time.Minute

// leftBehind names an abandoned store and what a person may do.
func leftBehind(store pd.Store) string {
	return fmt.Sprintf("store %s (%s) does not run and its group is gone: make the group %s again, which takes its claims, and to be rid of it scale it to 0; if its claims are gone for good: see delete.md",
		store.ID, podName(store), groupName(store))
}

// ctl is the command that begins an order to the PD of a group.
func ctl(g v1alpha1.Group) string {
	return fmt.Sprintf("kubectl -n %s exec svc/%s -- /pd-ctl", g.GetNamespace(), g.PDGroupName())
}

// ruins names the first abandoned store of a group's kind, and how many there are;
// empty if there is none.
func ruins(g v1alpha1.Group, s observation.Snapshot) string {
	var all []pd.Store
	for _, store := range s.PD.Stores {
		if isTiFlash(store) == (g.GroupKind() == v1alpha1.KindTiFlashGroup) && abandoned(s, store) {
			all = append(all, store)
		}
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return "; " + leftBehind(all[0])
	}
	return fmt.Sprintf("; %s; and %d more", leftBehind(all[0]), len(all)-1)
}

package store

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// footing is how far a store can be relied upon by what its kubelet says of its
// pod. PD calls a store Up for 20 s after its last heartbeat, and one that crashes
// again and again sends one whenever it has started.
type footing int

const (
	// firm runs and is ready.
	firm footing = iota
	// shaky is not ready, or has been for a short time only after several crashes.
	shaky
	// fallen does not run, or is being stopped.
	fallen
)

// footingOf tells how a member stands.
func footingOf(i *v1alpha1.Instance) footing {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	switch {
	case stopping(i), broken(i):
		return fallen
	case pod == nil || pod.Status != metav1.ConditionTrue || pod.Reason == v1alpha1.ReasonContainerCrashing:
		return shaky
	}
	return firm
}

// stopping reports whether an Instance has no pod that goes on running.
func stopping(i *v1alpha1.Instance) bool {
	return slices.Contains([]string{
		v1alpha1.ReasonPodTerminating, v1alpha1.ReasonPodMissing, v1alpha1.ReasonPodPending, v1alpha1.ReasonPodUnschedulable, v1alpha1.ReasonPodFailed,
	}, group.InstanceOutcome(i).Reason)
}

// unsteady says why a store that PD calls Up does not count when a member that
// stands so is stopped; empty if it does. Of members that stand no better than each
// other either may be restarted: what is pending may be what makes them ready.
func (c Component) unsteady(store pd.Store, than footing) string {
	name := podName(store)
	all := slices.Concat(c.Snapshot.Instances, c.Snapshot.Peers)
	at := slices.IndexFunc(all, func(other *v1alpha1.Instance) bool { return other.Name == name })
	switch {
	case at < 0:
		return ""
	case stopping(all[at]):
		return fmt.Sprintf("the pod of Instance %s is being stopped or made anew, and PD still takes store %s for Up", name, store.ID)
	case footingOf(all[at]) > than:
		return fmt.Sprintf("the pod of Instance %s is not ready, or stops again and again, and PD still takes store %s for Up: kubectl -n %s describe instance %s", name, store.ID, c.Group.GetNamespace(), name)
	}
	return ""
}

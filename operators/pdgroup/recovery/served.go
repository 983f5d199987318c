package recovery

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// checkServed refuses while something runs that PD serves. The survivor may not have
// the last that PD wrote down, and would give out again what the others have given
// out: the IDs of regions and peers. A group says what is meant to run, and its
// Instances what does: they outlive a group that is deleted.
func checkServed(g *v1alpha1.PDGroup, s observation.Snapshot) step.Outcome {
	for _, other := range s.Groups {
		kind := strings.ToLower(other.GroupKind())
		switch {
		case other.GroupKind() == v1alpha1.KindPDGroup, other.GetDeletionTimestamp() != nil:
		case !other.GetComponentSpec().Suspended:
			return stallForUser("%s %s must be stopped first: %s", other.GroupKind(), other.GetName(), origin.OfGroup(other).Set("suspended", true))
		case gate.FindCurrentCondition(other.GetGroupStatus().Conditions, other.GetGeneration(), v1alpha1.ConditionUpToDate) == nil:
			// An operator that has not seen it may still make an Instance.
			return step.Wait(other.GroupKind(), recheckPeriod, v1alpha1.ReasonRecoveryRefused, fmt.Sprintf("not yet: the operator of %s %s has not seen yet that it is suspended: kubectl -n %s describe %s %s",
				other.GroupKind(), other.GetName(), g.Namespace, kind, other.GetName()))
		}
	}
	if i := FindRunningClient(s.ClusterInstances); i != nil {
		return step.Wait("Instance", recheckPeriod, v1alpha1.ReasonRecoveryRefused, "not yet: "+describeRunning(s, i))
	}
	return step.Done()
}

// FindRunningClient returns the first Instance of those that PD serves whose pod may run or
// may still be made; nil if there is none.
func FindRunningClient(instances []*v1alpha1.Instance) *v1alpha1.Instance {
	at := slices.IndexFunc(instances, func(i *v1alpha1.Instance) bool { return !member.IsAtRest(i) })
	if at < 0 {
		return nil
	}
	return instances[at]
}

// describeRunning says of an Instance that PD serves what keeps it from having stopped, and
// who is to be asked: its group while there is one, its node while its pod stops.
// One without an owner is stopped by hand, which costs no claim.
func describeRunning(s observation.Snapshot, i *v1alpha1.Instance) string {
	what := "may still make its pod"
	switch {
	case i.Status.PodUID != "":
		what = "still has its pod " + i.Name
	case member.IsUsurped(i):
		what = "has a pod " + i.Name + " of another owner"
	}
	of := i.Spec.Group
	at := slices.IndexFunc(s.Groups, func(other v1alpha1.Group) bool {
		return other.GroupKind() == of.Kind && other.GetName() == of.Name && other.GetDeletionTimestamp() == nil
	})
	remedy := fmt.Sprintf("kubectl -n %s describe instance %s", i.Namespace, i.Name)
	switch {
	case i.Spec.Suspended:
	case at >= 0 && s.Groups[at].GetComponentSpec().Paused:
		remedy = "its group is paused: " + origin.OfGroup(s.Groups[at]).Set("paused", false)
	case at >= 0:
		remedy = fmt.Sprintf("kubectl -n %s describe %s %s", i.Namespace, strings.ToLower(of.Kind), of.Name)
	case i.DeletionTimestamp == nil && metav1.GetControllerOf(i) == nil:
		remedy = fmt.Sprintf("kubectl -n %s patch instance %s --type=merge -p '{\"spec\":{\"suspended\":true}}'", i.Namespace, i.Name)
	}
	return fmt.Sprintf("Instance %s of %s %s %s, and PD must have no clients while it is rebuilt: %s", i.Name, of.Kind, of.Name, what, remedy)
}

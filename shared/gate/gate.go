package gate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Result of a gate.
type Result struct {
	// Open says that the work behind the gate may go on.
	Open bool
	// Message says what the gate waits for and who must act; empty when open.
	Message string
	// Lagging says that it is closed for nothing but that the object has been edited
	// and its operator has not yet reported that it is still Ready.
	Lagging bool
}

// FindCurrentCondition returns a condition that was computed for the object's current
// generation, nil if there is none.
func FindCurrentCondition(conditions []metav1.Condition, generation int64, conditionType string) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil || c.ObservedGeneration != generation {
		return nil
	}
	return c
}

// Require opens if the object has the condition at True for its current
// generation.
func Require(kind string, object metav1.Object, conditions []metav1.Condition, conditionType string) Result {
	name := kind + " " + object.GetName()
	if object.GetDeletionTimestamp() != nil {
		return Result{Message: name + " is being deleted"}
	}
	if meta.IsStatusConditionTrue(conditions, conditionType) {
		if FindCurrentCondition(conditions, object.GetGeneration(), conditionType) != nil {
			return Result{Open: true}
		}
		return Result{Message: fmt.Sprintf("%s has no current condition %s: its operator has not processed it yet", name, conditionType), Lagging: true}
	}
	// The other object's own message would change with every step that it takes,
	// and with it the status of everything that waits: also that its operator has not processed
	// it yet. What a user must fix is worth repeating.
	if stalled := FindCurrentCondition(conditions, object.GetGeneration(), v1alpha1.ConditionStalled); stalled != nil {
		return Result{Message: fmt.Sprintf("%s is stalled: %s", name, stalled.Message)}
	}
	return Result{Message: fmt.Sprintf("%s is not %s yet: kubectl -n %s describe %s %s", name, conditionType, object.GetNamespace(), strings.ToLower(kind), object.GetName())}
}

// PDGroup opens if the PDGroup is Ready; pd is nil when there is none of that
// name.
func PDGroup(name string, pd *v1alpha1.PDGroup) Result {
	if pd == nil {
		return Result{Message: fmt.Sprintf("PDGroup %s does not exist: create it, or name an existing one in spec.pdGroup.name", name)}
	}
	return Require(v1alpha1.KindPDGroup, pd, pd.Status.Conditions, v1alpha1.ConditionReady)
}

// AnyTiKVGroup opens if at least one TiKVGroup of the PDGroup is Ready.
func AnyTiKVGroup(pdGroup string, groups []*v1alpha1.TiKVGroup) Result {
	out := Result{Message: fmt.Sprintf("no TiKVGroup names PDGroup %s: create one with spec.pdGroup.name %s", pdGroup, pdGroup)}
	for _, g := range groups {
		if g.PDGroupName() != pdGroup {
			continue
		}
		result := Require(v1alpha1.KindTiKVGroup, g, g.Status.Conditions, v1alpha1.ConditionReady)
		if result.Open {
			return result
		}
		out.Message, out.Lagging = result.Message, out.Lagging || result.Lagging
	}
	return out
}

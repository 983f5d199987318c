package invariants

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	groups "github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// checkParts checks that Ready and UpToDate follow from what they are made of, as far
// as one object tells: its own conditions and its own counts, which one
// reconcile writes together.
func (c *checker) checkParts(conditions []metav1.Condition) {
	if conditionStatus(conditions, groups.ConditionReady) == metav1.ConditionTrue {
		for _, part := range readyParts(c.obj.GetKind()) {
			// Unknown keeps an object Ready for a while: nothing says that it is not.
			if conditionStatus(conditions, part) == metav1.ConditionFalse {
				c.report("Ready is True although %s is False", part)
			}
		}
		ready := c.count("status", "readyReplicas")
		if component, _ := groups.LookupComponent(c.obj.GetKind()); component.Stores && ready != nil && *ready == 0 {
			c.report("Ready is True although no Instance is")
		}
	}
	if conditionStatus(conditions, groups.ConditionUpToDate) != metav1.ConditionTrue {
		return
	}
	for _, unlike := range []string{groups.ConditionReconciling, groups.ConditionStalled} {
		if conditionStatus(conditions, unlike) == metav1.ConditionTrue {
			c.report("UpToDate is True although %s is", unlike)
		}
	}
	if !isGroup(c.obj.GetKind()) || c.isSuspended() || !isCurrent(conditions, c.obj.GetGeneration()) {
		return
	}
	have, want := c.count("status", "replicas"), c.count("spec", "replicas")
	if have != nil && want != nil && *have != *want {
		c.report("UpToDate is True although there are %d Instances and not %d", *have, *want)
	}
}

// readyParts are the conditions that Ready of a kind is made of.
func readyParts(kind string) []string {
	switch kind {
	case groups.KindInstance:
		return []string{groups.ConditionPodReady, groups.ConditionVolumesReady}
	case groups.KindPDGroup:
		return []string{groups.ConditionBootstrapped, groups.ConditionQuorumHealthy}
	}
	return nil
}

// isGroup says whether a kind is one of the four groups.
func isGroup(kind string) bool {
	_, known := groups.LookupComponent(kind)
	return known
}

// isCurrent says whether UpToDate was computed for the spec that is there now.
func isCurrent(conditions []metav1.Condition, generation int64) bool {
	return slices.ContainsFunc(conditions, func(condition metav1.Condition) bool {
		return condition.Type == groups.ConditionUpToDate && condition.ObservedGeneration == generation
	})
}

func (c *checker) isSuspended() bool {
	suspended, _, err := unstructured.NestedBool(c.obj.Object, "spec", "suspended")
	return err == nil && suspended
}

// count reads a number, nil if there is none.
func (c *checker) count(path ...string) *int64 {
	n, found, err := unstructured.NestedInt64(c.obj.Object, path...)
	if err != nil || !found {
		return nil
	}
	return &n
}

package invariants

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	groups "github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Check returns one sentence per invariant that the object's status breaks, each
// beginning with the object's kind and name; none means that all hold.
//
// Objects of other API groups break nothing. Neither does an object without any
// condition: no operator has seen it yet, which is right where the operator of
// its kind is not installed.
func Check(obj *unstructured.Unstructured) []string {
	if obj.GroupVersionKind().Group != groups.GroupName {
		return nil
	}
	c := checker{obj: obj}
	conditions, ok := c.conditions()
	if !ok || len(conditions) == 0 {
		return c.broken
	}
	c.checkEach(conditions)
	if !slices.ContainsFunc(conditions, isSetByOwner) {
		return c.broken
	}
	c.checkCore(conditions)
	c.checkParts(conditions)
	c.checkUnconverged(conditions)
	return c.broken
}

// isSetByOwner says whether the operator of the object's own kind sets the
// condition. On an Instance, its group's operator may well be the first to write, and its
// conditions rest on what the database says, so that they have no generation.
func isSetByOwner(condition metav1.Condition) bool {
	switch condition.Type {
	case groups.ConditionJoined, groups.ConditionHealthy, groups.ConditionDrained:
		return false
	default:
		return true
	}
}

type checker struct {
	obj    *unstructured.Unstructured
	broken []string
}

func (c *checker) report(format string, args ...any) {
	name := c.obj.GetName()
	if namespace := c.obj.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	c.broken = append(c.broken, fmt.Sprintf("%s %s: ", c.obj.GetKind(), name)+fmt.Sprintf(format, args...))
}

// conditions decodes status.conditions. It is false when they cannot be judged.
func (c *checker) conditions() ([]metav1.Condition, bool) {
	value, found, err := unstructured.NestedFieldNoCopy(c.obj.Object, "status", "conditions")
	entries, list := value.([]any)
	switch {
	case err != nil || found && !list:
		c.report("status.conditions is not a list: %T", value)
		return nil, false
	case !found:
		return nil, true
	}
	conditions := make([]metav1.Condition, len(entries))
	for i, entry := range entries {
		fields, ok := entry.(map[string]any)
		if !ok {
			c.report("status.conditions[%d] is not an object", i)
			return nil, false
		}
		if conditions[i], err = Read(fields); err != nil {
			c.report("status.conditions[%d] is not a condition: %v", i, err)
			return nil, false
		}
	}
	return conditions, true
}

// Read reads a condition of an unstructured object, field by field: reflection takes ten times
// as long, and the tests read some millions.
func Read(fields map[string]any) (c metav1.Condition, err error) {
	text := func(key string) string {
		value, is := fields[key].(string)
		if !is && fields[key] != nil {
			err = fmt.Errorf("%s is a %T", key, fields[key])
		}
		return value
	}
	c = metav1.Condition{Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
	turned := text("lastTransitionTime")
	switch generation := fields["observedGeneration"].(type) {
	case nil:
	case int64:
		c.ObservedGeneration = generation
	case float64: // as encoding/json decodes numbers
		c.ObservedGeneration = int64(generation)
	default:
		err = fmt.Errorf("observedGeneration is a %T", generation)
	}
	if err != nil || turned == "" {
		return c, err
	}
	at, err := time.Parse(time.RFC3339, turned)
	c.LastTransitionTime = metav1.NewTime(at.Local())
	return c, err
}

// reasonPattern is stricter than the API's own: CamelCase, so that reasons stay
// words of a closed set.
var reasonPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// checkEach checks every condition on its own.
func (c *checker) checkEach(conditions []metav1.Condition) {
	table := groups.ConditionTable()
	seen := map[string]bool{}
	for _, condition := range conditions {
		if seen[condition.Type] {
			c.report("%s is there twice", condition.Type)
		}
		seen[condition.Type] = true

		switch condition.Status {
		case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
		default:
			c.report("%s has status %q", condition.Type, condition.Status)
		}
		switch generation := c.obj.GetGeneration(); {
		case condition.ObservedGeneration <= 0 && isSetByOwner(condition):
			c.report("%s has no observedGeneration", condition.Type)
		case condition.ObservedGeneration > generation:
			c.report("%s has observedGeneration %d, but the object's generation is only %d",
				condition.Type, condition.ObservedGeneration, generation)
		}
		if !reasonPattern.MatchString(condition.Reason) {
			c.report("%s has reason %q, which is not a CamelCase word", condition.Type, condition.Reason)
		}
		if strings.TrimSpace(condition.Message) == "" {
			c.report("%s has no message", condition.Type)
		}
		if strings.ContainsAny(condition.Message, "\r\n") {
			c.report("%s has a message of several lines: %q", condition.Type, condition.Message)
		}
		if condition.LastTransitionTime.IsZero() {
			c.report("%s has no lastTransitionTime", condition.Type)
		}
		c.checkDocumented(table, condition)
	}
}

// checkDocumented checks a condition against the table that the documentation is
// generated from.
func (c *checker) checkDocumented(table []groups.ConditionInfo, condition metav1.Condition) {
	at := slices.IndexFunc(table, func(info groups.ConditionInfo) bool {
		return info.Type == condition.Type && slices.Contains(info.Kinds, c.obj.GetKind())
	})
	if at < 0 {
		c.report("%s is not a condition of this kind", condition.Type)
		return
	}
	info := table[at]
	if info.Polarity == groups.NegativePolarity && condition.Status != metav1.ConditionTrue {
		c.report("%s is %s, but may only be present when True", condition.Type, condition.Status)
	}
	if !slices.Contains(info.Reasons, condition.Reason) {
		c.report("%s has reason %s, which is not one of its documented reasons", condition.Type, condition.Reason)
	}
}

// checkCore checks how the core conditions go together.
func (c *checker) checkCore(conditions []metav1.Condition) {
	// Ready and Stalled go together: a group serves on while a user fixes an
	// edit of its spec that cannot be followed.
	stalled, reconciling := conditionStatus(conditions, groups.ConditionStalled), conditionStatus(conditions, groups.ConditionReconciling)
	if reconciling == metav1.ConditionTrue && stalled == metav1.ConditionTrue {
		c.report("Reconciling and Stalled are both True")
	}
	for _, core := range []string{groups.ConditionReady, groups.ConditionUpToDate} {
		if conditionStatus(conditions, core) == "" {
			c.report("%s is missing", core)
		}
	}
}

// checkUnconverged checks that an object that has not arrived says why: with a
// reason and a message on a condition that is not as it should be.
func (c *checker) checkUnconverged(conditions []metav1.Condition) {
	if conditionStatus(conditions, groups.ConditionReady) == metav1.ConditionTrue &&
		conditionStatus(conditions, groups.ConditionUpToDate) == metav1.ConditionTrue {
		return
	}
	negative := []string{groups.ConditionReconciling, groups.ConditionStalled, groups.ConditionPaused}
	named := slices.ContainsFunc(conditions, func(condition metav1.Condition) bool {
		good := metav1.ConditionTrue
		if slices.Contains(negative, condition.Type) {
			good = metav1.ConditionFalse
		}
		return condition.Status != good && condition.Reason != "" && strings.TrimSpace(condition.Message) != ""
	})
	if !named {
		c.report("it is not converged, and no condition says why")
	}
}

// conditionStatus returns the status of a condition, or "" when it is absent.
func conditionStatus(conditions []metav1.Condition, conditionType string) metav1.ConditionStatus {
	for _, condition := range conditions {
		if condition.Type == conditionType {
			return condition.Status
		}
	}
	return ""
}

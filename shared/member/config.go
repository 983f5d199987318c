package member

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
)

// StatusPortAnswer is what the process of a member reports of itself on its status port.
type StatusPortAnswer struct {
	// Pod of the process, and since when that is ready.
	Pod   types.UID
	Since metav1.Time
	// State in the component's own words, as it last said; empty if it reports none.
	State string
	// Err is why it could not be asked now.
	Err error
}

// IsFrom reports whether the answer is from the process that an Instance reports.
func (s StatusPortAnswer) IsFrom(i *v1alpha1.Instance) bool {
	since, ready := ReadySince(i)
	return ready && s.Pod == i.Status.PodUID && s.Since.Equal(&since)
}

// ReadySince returns since when the pod of an Instance is ready, and whether it
// is.
func ReadySince(i *v1alpha1.Instance) (metav1.Time, bool) {
	c := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionPodReady)
	if c == nil || c.Status != metav1.ConditionTrue || i.Status.PodIP == "" {
		return metav1.Time{}, false
	}
	return c.LastTransitionTime, true
}

// MayRunOtherConfig reports whether the running member of an Instance may run with another
// configuration than the file of its pod, so that it has to be asked.
func MayRunOtherConfig(i *v1alpha1.Instance) bool {
	return i.Status.MadeFrom != "" || len(AppliedRevisions(i)) > 0
}

// AppliedRevisions returns the revisions whose configuration may have been sent to the
// running member.
func AppliedRevisions(i *v1alpha1.Instance) []string {
	pod, revisions, _ := strings.Cut(i.Annotations[v1alpha1.AnnotationAppliedConfig], " ")
	if pod == "" || pod != string(i.Status.PodUID) {
		return nil
	}
	return strings.Fields(revisions)
}

package group

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Said is what the process of a member said of itself on its status port.
type Said struct {
	// Pod of the process, and since when that is ready.
	Pod   types.UID
	Since metav1.Time
	// State in the component's own words; empty if it does not tell.
	State string
	// Err is why it could not be asked.
	Err error
}

// By reports whether it was said by the process that an Instance speaks of.
func (s Said) By(i *v1alpha1.Instance) bool {
	since, ready := ReadySince(i)
	return ready && s.Pod == i.Status.PodUID && s.Since.Equal(&since)
}

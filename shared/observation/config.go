package observation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RunningConfig is the configuration that a running member was last seen with.
type RunningConfig struct {
	// Pod of the member, and since when it is ready: a process that starts again
	// runs with its file again.
	Pod   types.UID
	Since metav1.Time
	// Values of the items that the member shows, by key.
	Values map[string]string
	// Taken are the items that it said it took, by key, and Refused those that it
	// did not take: what was asked for, and its answer. Tried is when it answered, or
	// was given up.
	Taken   map[string]string
	Refused map[string]Refusal
	Tried   metav1.Time
	// Giving says that items are being sent to it: what else is known of it was so before.
	Giving bool
	// Err is why it could not be asked, or given something, at Tried. Failed is why it
	// could not be given something the last time.
	Err, Failed error
}

// Refusal is the value that a member did not take, and what it answered.
type Refusal struct {
	Value, Answer string
	// Uncertain says that the member may have taken the item all the same: it does not
	// show the item, and has refused it together with others.
	Uncertain bool
}

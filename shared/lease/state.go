package lease

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Holder is the member that is being disrupted; the zero Holder is none.
type Holder struct {
	// Kind of the member's group.
	Kind string
	// Instance of the member.
	Instance string
	// UID of the Instance. An Instance of the same name that was made later is
	// not the holder.
	UID types.UID
}

// String is the holder as the Lease names it: <kind>/<instance>.
func (h Holder) String() string {
	if h.Instance == "" {
		return ""
	}
	return h.Kind + "/" + h.Instance
}

// NewHolder returns the Holder that an Instance is.
func NewHolder(i *v1alpha1.Instance) Holder {
	return Holder{Kind: i.Spec.Group.Kind, Instance: i.Name, UID: i.UID}
}

// State is a Lease as last read; the zero State is one that was never taken.
type State struct {
	// Holder of the right, zero if it is free.
	Holder Holder
	// Since is when the holder took it: when its disruption began.
	Since time.Time
	// Leaders that the holder's store had at that time.
	Leaders int
	// Recreating is the group of the holder if its Instance was deleted and is created
	// again under the same name; empty if it is not.
	Recreating string
	// Batch are the members that are restarted together with the holder; none if it is
	// restarted alone.
	Batch []BatchMember
	// BatchBlocked is why it is, although its group asks for batches; empty if it does
	// not.
	BatchBlocked string

	// Object is the Lease itself, nil if there was none. It is written only at this
	// version.
	Object *coordinationv1.Lease
}

// Name returns the name of a cluster's Lease.
func Name(pdGroup string) string { return pdGroup + "-disruption" }

// PDGroup returns the PDGroup of a Lease by its name, empty if it is none of
// ours.
func PDGroup(name string) string {
	group, ok := strings.CutSuffix(name, "-disruption")
	if !ok {
		return ""
	}
	return group
}

// IsFree reports whether no member holds the right.
func (s State) IsFree() bool { return s.Holder.Instance == "" }

// IsHeldBy reports whether an Instance holds the right.
func (s State) IsHeldBy(i *v1alpha1.Instance) bool {
	return !s.IsFree() && s.Holder == NewHolder(i)
}

// NewState returns a State for tests of what is decided by it.
func NewState(h Holder, since time.Time, leaders int) State {
	return State{Holder: h, Since: since, Leaders: leaders}
}

// BatchMember is a member of the holder's group that is restarted together with the
// holder.
type BatchMember struct {
	// Instance of the member. One of the same name that is created later takes its
	// place.
	Instance string
	// Leaders that its store had when the Lease was taken.
	Leaders int
}

// ForMember returns the State for the holder or a member of its batch: with the leaders that
// the store of that member had.
func (s State) ForMember(i *v1alpha1.Instance) State {
	if c, ok := s.batchMember(i.Name); ok && !s.IsHeldBy(i) {
		s.Leaders = c.Leaders
	}
	return s
}

// Covers reports whether an Instance may be stopped under the right: it holds it, or is
// in the batch of the holder.
func (s State) Covers(i *v1alpha1.Instance) bool {
	_, ok := s.batchMember(i.Name)
	return s.IsHeldBy(i) || ok && !s.IsFree() && s.Holder.Kind == i.Spec.Group.Kind
}

// NamesInstance reports whether the Lease names an Instance, as its holder or as one of the batch:
// also one that has gone.
func (s State) NamesInstance(instance string) bool {
	_, ok := s.batchMember(instance)
	return !s.IsFree() && (ok || s.Holder.Instance == instance)
}

func (s State) batchMember(name string) (BatchMember, bool) {
	for _, c := range s.Batch {
		if c.Instance == name {
			return c, true
		}
	}
	return BatchMember{}, false
}

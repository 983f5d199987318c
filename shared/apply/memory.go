package apply

import (
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/shared/expiring"
)

const (
	// remembered is how many objects are remembered at most: the children of some
	// thousands of groups.
	remembered = 1 << 14
	// rememberedFor is after how long an object is compared once more in any case.
	rememberedFor = time.Hour
)

// Memory remembers which objects were found to be as desired, so that they are not
// encoded and compared again while neither they nor what is desired has changed. Nil
// remembers nothing.
type Memory struct{ found *expiring.Cache }

// NewMemory returns a Memory that remembers nothing yet.
func NewMemory() *Memory { return &Memory{expiring.New(remembered, rememberedFor)} }

// found is an object that needed no write: what was desired, and what there was.
type found struct{ desired, live client.Object }

// isUnchanged reports whether it is known that live is as desired.
func (m *Memory) isUnchanged(desired, live client.Object) bool {
	if m == nil || live == nil {
		return false
	}
	value, known := m.found.Get(live.GetUID())
	last, ok := value.(found)
	return known && ok && equalExceptStatus(last.live, live) && reflect.DeepEqual(last.desired, desired)
}

// note remembers that live is as desired, or that it is not.
func (m *Memory) note(desired, live client.Object, asDesired bool) {
	switch {
	case m == nil || live == nil:
	case asDesired:
		m.found.Add(live.GetUID(), found{desired, live})
	default:
		m.found.Remove(live.GetUID())
	}
}

// equalExceptStatus reports whether two versions of an object are equal except for their status.
// The generation counts the changes of a spec, but not for every built-in kind.
func equalExceptStatus(a, b client.Object) bool {
	if a.GetResourceVersion() == b.GetResourceVersion() {
		return true
	}
	return a.GetGeneration() != 0 && DifferOnlyInStatus(a, b)
}

// DifferOnlyInStatus reports whether two versions of an object of a kind whose generation counts
// the changes of its spec differ in their status at most.
func DifferOnlyInStatus(a, b client.Object) bool {
	return a.GetGeneration() == b.GetGeneration() &&
		maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		equality.Semantic.DeepEqual(a.GetFinalizers(), b.GetFinalizers()) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		equality.Semantic.DeepEqual(a.GetDeletionTimestamp(), b.GetDeletionTimestamp())
}

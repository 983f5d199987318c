package apply

import (
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
type Memory struct{ found *cache.LRUExpireCache }

// NewMemory returns a Memory that remembers nothing yet.
func NewMemory() *Memory { return &Memory{cache.NewLRUExpireCache(remembered)} }

// found is an object that needed no write: what was desired, and what there was.
type found struct{ desired, live client.Object }

// Unless calls write, which is one of this package's functions with desired and live,
// unless it is known that nothing would be sent. Neither of the objects may be changed
// afterwards.
func (m *Memory) Unless(desired, live client.Object, write func() (Result, error)) (Result, error) {
	if m == nil || live == nil {
		return write()
	}
	if value, known := m.found.Get(live.GetUID()); known {
		if last, ok := value.(found); ok && sameSaid(last.live, live) && reflect.DeepEqual(last.desired, desired) {
			return Unchanged, nil
		}
	}
	result, err := write()
	if err == nil && result == Unchanged {
		m.found.Add(live.GetUID(), found{desired, live}, rememberedFor)
	} else {
		m.found.Remove(live.GetUID())
	}
	return result, err
}

// sameSaid reports whether two versions of an object say the same but for their status.
// The generation counts the changes of a spec, but not for every built-in kind.
func sameSaid(a, b client.Object) bool {
	if a.GetResourceVersion() == b.GetResourceVersion() {
		return true
	}
	return a.GetGeneration() != 0 && a.GetGeneration() == b.GetGeneration() &&
		maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		equality.Semantic.DeepEqual(a.GetFinalizers(), b.GetFinalizers()) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		equality.Semantic.DeepEqual(a.GetDeletionTimestamp(), b.GetDeletionTimestamp())
}

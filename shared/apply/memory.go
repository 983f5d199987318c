package apply

import (
	"maps"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forgetAfter is for how long it is remembered at least that an object is as desired.
const forgetAfter = 10 * time.Minute

// Memory remembers which objects were found to be as desired, so that they are not
// encoded and compared again while neither they nor what is desired has changed. The
// zero value remembers nothing yet; nil never remembers.
type Memory struct {
	lock sync.Mutex
	// recent are those that were asked for since begun, former those of the time before.
	recent, former map[types.UID]found
	begun          time.Time
}

// found is an object that needed no write: what was desired, and what there was.
type found struct{ desired, live client.Object }

// Unless calls write, which is one of this package's functions with desired and live,
// unless it is known that nothing would be sent. Neither of the objects may be changed
// afterwards.
func (m *Memory) Unless(desired, live client.Object, write func() (Result, error)) (Result, error) {
	if m == nil || live == nil {
		return write()
	}
	if last, known := m.look(live.GetUID(), time.Now()); known && sameSaid(last.live, live) && reflect.DeepEqual(last.desired, desired) {
		return Unchanged, nil
	}
	result, err := write()
	m.lock.Lock()
	defer m.lock.Unlock()
	if err == nil && result == Unchanged {
		m.recent[live.GetUID()] = found{desired, live}
	} else {
		delete(m.recent, live.GetUID())
	}
	return result, err
}

// look returns what is known of an object, and forgets what nobody has asked for.
func (m *Memory) look(uid types.UID, now time.Time) (found, bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.recent == nil || now.Sub(m.begun) >= forgetAfter {
		m.former, m.recent, m.begun = m.recent, map[types.UID]found{}, now
	}
	last, known := m.recent[uid]
	if !known {
		if last, known = m.former[uid]; known {
			m.recent[uid] = last
			delete(m.former, uid)
		}
	}
	return last, known
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

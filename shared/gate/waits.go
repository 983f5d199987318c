package gate

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// ProcessingTimeout is how long an operator may take to look at a change before a user is
// asked whether it runs at all: mostly it takes less than a second.
const ProcessingTimeout = 10 * time.Second

// forgotten is after how long a debt that was not asked about is dropped: its
// object is gone.
const forgotten = 10 * time.Minute

// Waits remembers since when objects have had no current status. It starts empty: what
// restarts waits once more. The zero value is ready; a nil one never calls anything
// overdue.
type Waits struct {
	mu    sync.Mutex
	since map[types.UID]debt
}

// debt is an answer that an operator owes.
type debt struct {
	generation   int64
	since, asked time.Time
}

// IsOverdue reports whether an object has been without a current Ready condition for
// longer than ProcessingTimeout.
func (w *Waits) IsOverdue(object metav1.Object, conditions []metav1.Condition, now time.Time) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := object.GetUID()
	if FindCurrentCondition(conditions, object.GetGeneration(), v1alpha1.ConditionReady) != nil {
		delete(w.since, uid)
		return false
	}
	owed, known := w.since[uid]
	if !known || owed.generation != object.GetGeneration() {
		if w.since == nil {
			w.since = map[types.UID]debt{}
		}
		for other, d := range w.since {
			if now.Sub(d.asked) > forgotten {
				delete(w.since, other)
			}
		}
		owed = debt{generation: object.GetGeneration(), since: now}
	}
	owed.asked = now
	w.since[uid] = owed
	return now.Sub(owed.since) >= ProcessingTimeout
}

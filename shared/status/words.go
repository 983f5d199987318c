package status

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

const (
	// MessageDelay is for how long words wait. While a cluster starts or rolls they change with
	// each step of each member, and a user reads none of them within a second.
	MessageDelay = time.Second
	// unmade and begun multiply MessageDelay for the first message about a member: unmade until
	// its pod exists, begun from then on. The Instance and its group report what blocks the
	// start.
	unmade, begun = 5, 3
	// passing multiplies MessageDelay for a pod that was just created, or stops for good: many are
	// Ready by then, or have stopped, and one write reports both.
	passing = 2
	// mirrored multiplies MessageDelay for words that other objects have already.
	mirrored = 2
	// forgotten is after how long unused messages are dropped: their object is gone.
	forgotten = time.Minute
)

// Described is a pointer to a status of which a part is words for people.
type Described interface{ DropWords() }

// Passing is a pointer to a status that says whether another one follows soon: that of a pod which
// was just made, or stops for good.
type Passing interface{ IsPassing() bool }

// Mirror is a pointer to a status whose words are those of other objects.
type Mirror interface{ MirrorsWords() }

// chooseDelayFactor is how many times as long as others words of a status wait.
func chooseDelayFactor(of any) time.Duration {
	if s, ok := of.(Passing); ok && s.IsPassing() {
		return passing
	}
	if _, ok := of.(Mirror); ok {
		return mirrored
	}
	return 1
}

// Words remembers since when the words of an object differ from what its status says. Its
// methods may be used concurrently.
type Words struct {
	now   func() time.Time
	delay time.Duration

	mu     sync.Mutex
	since  map[types.UID]time.Time
	pruned time.Time
}

// NewWords returns an empty memory. Words wait for as long as delay.
func NewWords(now func() time.Time, delay time.Duration) *Words {
	return &Words{now: now, delay: delay, since: map[types.UID]time.Time{}}
}

// waitForMember is wait for the first words about a member.
func (w *Words) waitForMember(instance *v1alpha1.Instance, differ bool) time.Duration {
	if instance.Status.PodUID == "" {
		return w.wait(instance.UID, differ, unmade)
	}
	return w.wait(instance.UID+"/"+instance.Status.PodUID, differ, begun)
}

// wait returns for how long words of an object have to wait, a multiple of the usual delay;
// differ says that nothing but these has changed.
func (w *Words) wait(of types.UID, differ bool, times time.Duration) time.Duration {
	if w == nil {
		return 0
	}
	delay := times * w.delay
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	w.prune(now)
	since, waits := w.since[of]
	switch {
	case !differ:
		delete(w.since, of)
		return 0
	case !waits:
		w.since[of] = now
		return delay
	}
	left := since.Add(delay).Sub(now)
	if left <= 0 {
		delete(w.since, of)
	}
	return max(left, 0)
}

// prune drops unused messages, once in a while: a reconcile must not cost more for
// every other object.
func (w *Words) prune(now time.Time) {
	if now.Sub(w.pruned) < forgotten {
		return
	}
	w.pruned = now
	for of, since := range w.since {
		if now.Sub(since) >= forgotten {
			delete(w.since, of)
		}
	}
}

// differsInWordsOnly reports whether a status that differs from what it was does so in words alone.
func differsInWordsOnly(before, after any) bool {
	was, is := withoutWords(before), withoutWords(after)
	return was != nil && is != nil && equality.Semantic.DeepEqual(was, is)
}

// withoutWords returns a copy of a status without its words; nil if none of it is words.
func withoutWords(of any) any {
	copied := reflect.New(reflect.TypeOf(of).Elem())
	copied.Elem().Set(reflect.ValueOf(of).Elem())
	described, ok := copied.Interface().(Described)
	if !ok {
		return nil
	}
	described.DropWords()
	return described
}

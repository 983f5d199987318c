package status

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// spacing is the least time from a write of a status to one that changes only what
// people read: while a cluster comes up, a number or a message changes many times a
// second, and nobody reads as fast.
const spacing = 2 * time.Second

// Pace remembers when statuses were written, for as long as that holds words back. The
// zero value is ready for use, also concurrently.
type Pace struct {
	mu    sync.Mutex
	wrote map[types.UID]time.Time
}

// note notes that an object's status was written.
func (p *Pace) note(object types.UID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.wrote, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= spacing })
	if p.wrote == nil {
		p.wrote = map[types.UID]time.Time{}
	}
	p.wrote[object] = now
}

// left returns for how long no wording of an object is to be written; 0 if it may be.
func (p *Pace) left(object types.UID, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, found := p.wrote[object]
	if !found {
		return 0
	}
	return max(0, spacing-now.Sub(at))
}

// wording names the fields of statuses, and of what is in their lists, that only people
// read, or programs that two seconds do not matter to. What operators act on is the status
// of conditions, the generation that they are of, and what is recorded.
func wording() (status []string, entries map[string][]string) {
	return []string{"reason", "message", "updated", "replicas", "updatedReplicas"}, map[string][]string{
		"conditions": {"reason", "message"},
		"groups":     {"reason", "replicas", "readyReplicas"}, // of a TidbCluster
	}
}

// differsInWording reports whether two statuses differ in nothing else.
func differsInWording(before, after any) (bool, error) {
	b, err := withoutWording(before)
	if err != nil {
		return false, err
	}
	a, err := withoutWording(after)
	if err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(b, a), nil
}

func withoutWording(status any) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, err
	}
	own, entries := wording()
	remove(out, own)
	for list, fields := range entries {
		all, _ := out[list].([]any)
		for _, entry := range all {
			if m, ok := entry.(map[string]any); ok {
				remove(m, fields)
			}
		}
	}
	return out, nil
}

func remove(from map[string]any, fields []string) {
	for _, field := range fields {
		delete(from, field)
	}
}

package status

import (
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// again is for how long the same order to PD is not logged again: it is given until what
// PD shows has followed it.
const again = 30 * time.Second

// mostNote is how many bytes the text of an Event may have for the API server.
const mostNote = 1024

// Journal records Events, and writes each into the operator's log as well: Events are
// gone after an hour, and a user who asks in the morning what happened at night needs it.
type Journal struct {
	events.EventRecorder
	// Log to write to.
	Log logr.Logger
	// Now is the clock.
	Now func() time.Time

	mu   sync.Mutex
	told map[telling]time.Time
}

// telling is what was reported of an object, without a second one that it is about.
type telling struct {
	about        types.UID
	reason, line string
}

// Eventf records an Event and logs it.
func (j *Journal) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) { //nolint:revive // events.EventRecorder has these arguments
	line := conditions.SanitizeText(fmt.Sprintf(note, args...))
	if isNil(related) {
		if related = nil; j.wasReported(regarding, reason, line) {
			return
		}
	}
	j.EventRecorder.Eventf(regarding, related, eventType, reason, action, "%s", conditions.CutText(line, mostNote))
	j.Log.Info(line, logFields(regarding, related, reason)...)
}

// wasReported reports whether the same was reported a moment ago.
func (j *Journal) wasReported(regarding runtime.Object, reason, line string) bool {
	object, ok := regarding.(client.Object)
	if !ok {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	now, key := j.Now(), telling{object.GetUID(), reason, line}
	for old, at := range j.told {
		if now.Sub(at) >= again {
			delete(j.told, old)
		}
	}
	if _, said := j.told[key]; said {
		return true
	}
	if j.told == nil {
		j.told = map[telling]time.Time{}
	}
	j.told[key] = now
	return false
}

// About is what a line of the log is about.
type About struct {
	// Object that was worked for, and Related, another one that it is about; nil if there is
	// none.
	Object, Related client.Object
	// Reason in one word.
	Reason string
}

// Note logs a side effect that is no Event: what leads to it or follows from it is one.
func Note(log logr.Logger, about About, format string, args ...any) {
	log.Info(fmt.Sprintf(format, args...), logFields(about.Object, about.Related, about.Reason)...)
}

// logFields are what the lines of a log are looked up by: the cluster, the object, the
// member and the reason.
func logFields(regarding, related runtime.Object, reason string) []any {
	out := []any{"reason", reason}
	object, ok := regarding.(client.Object)
	if !ok || isNil(regarding) {
		return out
	}
	kind, cluster, member := reflect.TypeOf(regarding).Elem().Name(), workload.ClusterOf(object), ""
	if i, ok := regarding.(*v1alpha1.Instance); ok {
		member = i.Name
	}
	if i, ok := related.(*v1alpha1.Instance); ok && i != nil {
		member = i.Name
	}
	out = append(out, "cluster", object.GetNamespace()+"/"+cluster, "object", kind+"/"+object.GetName())
	if member != "" {
		out = append(out, "member", member)
	}
	return out
}

// isNil reports whether there is no object.
func isNil(o runtime.Object) bool {
	return o == nil || reflect.ValueOf(o).Kind() == reflect.Pointer && reflect.ValueOf(o).IsNil()
}

package rig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// An object that gets so many versions in so short a time is written in a loop.
const (
	hotVersions = 60
	hotWindow   = 5 * time.Second
)

// history is what the rules remember that tell from several versions of an
// object. All is kept by UID: an object of the same name that comes later is
// another one.
type history struct {
	// latched are the conditions that were True and must stay so.
	latched map[types.UID]map[string]bool
	// written are the values of fields that are written once.
	written map[types.UID]map[string]string
	// bound are the claims that ever had a volume.
	bound map[types.UID]bool
	// strangers are the objects that are not the suite's.
	strangers map[types.UID]bool
	// gone are the resourceVersions at which Instances and, by the UID of their
	// Instance, pods were gone.
	gone, podGone map[types.UID]uint64
	// times of the last versions.
	times map[types.UID][]time.Time
	// ready are the groups that are Ready at their present generation, closed is
	// since when they are not any more.
	ready  map[Key]bool
	closed map[Key]time.Time
	// admitted are the resourceVersions at which the first Service of a TidbCluster led clients
	// to its servers, and restored those at which its Restore was complete, by its name.
	admitted, restored map[string]uint64
	// tikv are the TiKVGroups that there ever were, by the PDGroup that each named.
	tikv map[Key]string
}

func newHistory() *history {
	return &history{
		latched: map[types.UID]map[string]bool{}, written: map[types.UID]map[string]string{}, bound: map[types.UID]bool{},
		strangers: map[types.UID]bool{}, gone: map[types.UID]uint64{}, podGone: map[types.UID]uint64{}, times: map[types.UID][]time.Time{}, ready: map[Key]bool{}, closed: map[Key]time.Time{}, admitted: map[string]uint64{}, restored: map[string]uint64{}, tikv: map[Key]string{},
	}
}

// judge takes a version of an object in and returns which rules it breaks.
func (h *history) judge(event watch.EventType, object *unstructured.Unstructured, now time.Time) []string {
	h.open(event, object, now)
	if event == watch.Deleted {
		return h.leave(object)
	}
	var out []string
	for _, broken := range []string{h.latch(object), h.once(object), h.claim(object), h.touch(object), h.admit(object), h.hot(object, now)} {
		if broken != "" {
			out = append(out, fmt.Sprintf("%s %s: %s", object.GetKind(), object.GetName(), broken))
		}
	}
	return out
}

// leave: an Instance is there for as long as its pod is. Both ends come through
// different watches, in any order; their resourceVersions tell which was first.
func (h *history) leave(object *unstructured.Unstructured) []string {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return []string{fmt.Sprintf("%s %s: %v", object.GetKind(), object.GetName(), err)}
	}
	uid := object.GetUID()
	switch owner := metav1.GetControllerOf(object); {
	case object.GetKind() == v1alpha1.KindInstance:
		h.gone[uid] = version
	case object.GetKind() == kindPod && owner != nil:
		uid = owner.UID
		h.podGone[uid] = version
	default:
		return nil
	}
	if gone, pod := h.gone[uid], h.podGone[uid]; gone != 0 && pod > gone {
		return []string{"Instance " + object.GetName() + " was gone before its pod"}
	}
	return nil
}

// latch: a condition that never goes back does not.
func (h *history) latch(object *unstructured.Unstructured) string {
	for _, c := range objects.Conditions(object) {
		if info, _ := v1alpha1.LookupCondition(c.Type); !info.Latch {
			continue
		}
		if c.Status == metav1.ConditionTrue {
			setEntry(h.latched, object.GetUID(), c.Type, true)
		} else if h.latched[object.GetUID()][c.Type] {
			return fmt.Sprintf("%s went back to %s, which it never does", c.Type, c.Status)
		}
	}
	return ""
}

// once: what a cluster or a member is known by never changes.
func (h *history) once(object *unstructured.Unstructured) string {
	paths := map[string][]string{v1alpha1.KindPDGroup: {"status.clusterID"}, v1alpha1.KindInstance: {"status.member.id"}}
	for _, path := range paths[object.GetKind()] {
		value, _, err := unstructured.NestedString(object.Object, strings.Split(path, ".")...)
		before := h.written[object.GetUID()][path]
		switch {
		case err != nil || value == before:
		case before == "":
			setEntry(h.written, object.GetUID(), path, value)
		default:
			return fmt.Sprintf("%s was %q and is %q", path, before, value)
		}
	}
	return ""
}

// claim: a member that is to be held back when its claim is lost never goes on
// with another one than that which had its data.
func (h *history) claim(object *unstructured.Unstructured) string {
	if object.GetKind() == kindClaim {
		if volume, _, _ := unstructured.NestedString(object.Object, "spec", "volumeName"); volume != "" {
			h.bound[object.GetUID()] = true
		}
		return ""
	}
	if policy, _, _ := unstructured.NestedString(object.Object, "spec", "claimLoss"); object.GetKind() != v1alpha1.KindInstance || policy != string(v1alpha1.HoldOnClaimLoss) {
		return ""
	}
	volumes, _, _ := unstructured.NestedSlice(object.Object, "status", "volumes")
	for _, volume := range volumes {
		fields, _ := volume.(map[string]any)
		name, _ := fields["name"].(string)
		uid, _ := fields["claimUID"].(string)
		before := h.written[object.GetUID()]["claim "+name]
		if before != "" && before != uid && h.bound[types.UID(before)] {
			return fmt.Sprintf("its data on volume %s was lost, and it goes on with another claim", name)
		}
		setEntry(h.written, object.GetUID(), "claim "+name, uid)
	}
	return ""
}

// touch: an object of another owner is not written by an operator.
func (h *history) touch(object *unstructured.Unstructured) string {
	stranger, known := h.strangers[object.GetUID()]
	if !known {
		stranger = !belongsToSuite(object)
		h.strangers[object.GetUID()] = stranger
	}
	if !stranger {
		return ""
	}
	for _, entry := range object.GetManagedFields() {
		// A user's group is his, but its status and finalizers are its operator's.
		own := slices.Contains(v1alpha1.Kinds(), object.GetKind()) && entry.Manager != operatorOf(v1alpha1.KindTidbCluster)
		if slices.Contains(Operators(), entry.Manager) && entry.Subresource == "" && !own {
			return fmt.Sprintf("it has another owner, and the %s operator has written it", entry.Manager)
		}
	}
	return ""
}

// admit: a cluster that begins with a backup lets no client in before its Restore is complete.
// Both come through different watches; their resourceVersions tell which was first.
func (h *history) admit(object *unstructured.Unstructured) string {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return err.Error()
	}
	first := func(of map[string]uint64, cluster string) {
		if of[cluster] == 0 {
			of[cluster] = version
		}
	}
	cluster, client := "", false
	for _, c := range v1alpha1.ComponentTable() {
		name, is := strings.CutSuffix(object.GetName(), "-"+c.Component)
		if !is || object.GetKind() != "Service" {
			continue
		}
		if _, serves := c.New().(v1alpha1.ClientGroup); serves {
			cluster, client = name, true
		}
	}
	owner := metav1.GetControllerOf(object)
	switch {
	case client:
		selector, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector")
		if selector[v1alpha1.LabelClosed] == "" {
			first(h.admitted, cluster)
		}
	case object.GetKind() == v1alpha1.KindRestore && owner != nil && wasReady(object):
		cluster = owner.Name
		first(h.restored, cluster)
	}
	if in, done := h.admitted[cluster], h.restored[cluster]; in != 0 && in < done {
		return "TidbCluster " + cluster + " let clients in before its Restore was complete"
	}
	return ""
}

// belongsToSuite says whether an object, as it is seen first, is the suite's: made by an
// operator, or left behind by one. A claim without an owner may be adopted.
func belongsToSuite(object *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(object)
	return object.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy ||
		owner != nil && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") ||
		object.GetKind() == kindClaim && owner == nil && object.GetLabels()[v1alpha1.LabelManagedBy] == ""
}

// hot: no operator writes an object in a loop.
func (h *history) hot(object *unstructured.Unstructured, now time.Time) string {
	if object.GetKind() == "PodDisruptionBudget" && object.GetGeneration() < hotVersions {
		return "" // Kubernetes writes its status with each pod that turns Ready
	}
	times := slices.DeleteFunc(h.times[object.GetUID()], func(at time.Time) bool { return now.Sub(at) > hotWindow })
	times = append(times, now)
	h.times[object.GetUID()] = times
	if len(times) != hotVersions {
		return ""
	}
	return fmt.Sprintf("it got %d versions within %s: it is written in a loop", hotVersions, now.Sub(times[0]).Round(time.Millisecond))
}

// open notes which groups may be depended on.
func (h *history) open(event watch.EventType, object *unstructured.Unstructured, now time.Time) {
	key := Key{Kind: object.GetKind(), Name: object.GetName()}
	before := h.ready[key]
	h.ready[key] = event != watch.Deleted && isReadyNow(object)
	if before && !h.ready[key] {
		h.closed[key] = now
	}
	if key.Kind == v1alpha1.KindTiKVGroup {
		h.tikv[key] = pdOf(object)
	}
}

// former returns the TiKVGroups that there ever were of what a group needs: who learns
// through a watch that one is deleted may depend on it for a while.
func (h *history) former(n needs) []Key {
	var out []Key
	for key, pd := range h.tikv {
		if n.tikv != nil && pd == n.pd.Name {
			out = append(out, key)
		}
	}
	return out
}

// mayDependOn says whether a group may be depended on, as far as those know who
// learn of it through a watch, within a time that they may take for it.
func (h *history) mayDependOn(key Key, within time.Duration) bool {
	return h.ready[key] || time.Since(h.closed[key]) < within
}

// isReadyNow says whether an object is Ready at its present generation, and stays.
func isReadyNow(object *unstructured.Unstructured) bool {
	if object == nil || object.GetDeletionTimestamp() != nil {
		return false
	}
	c := objects.Condition(object, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == object.GetGeneration()
}

// wasReady reports whether an object was Ready when its operator last looked at it,
// which an edit alone does not change.
func wasReady(object *unstructured.Unstructured) bool {
	if object == nil || object.GetDeletionTimestamp() != nil {
		return false
	}
	c := objects.Condition(object, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue
}

func setEntry[V any](table map[types.UID]map[string]V, uid types.UID, key string, value V) {
	if table[uid] == nil {
		table[uid] = map[string]V{}
	}
	table[uid][key] = value
}

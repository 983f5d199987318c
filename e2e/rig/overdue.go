package rig

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// overdueEvery is how often untruths are looked for.
const overdueEvery = 500 * time.Millisecond

// overdue is how long an operator may say what is not so any more. It is far
// above what a watch takes, and far below the deadline of a wait: who needs
// longer was not woken up.
func (w *Watcher) overdue() time.Duration { return 2 * w.reasonDeadline }

// supervise notes every untruth that an operator leaves standing for too long.
func (w *Watcher) supervise(ctx context.Context) {
	ticker := time.NewTicker(overdueEvery)
	defer ticker.Stop()
	since := map[untruth]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			w.mu.Lock()
			told := w.untruths()
			for u, begin := range since {
				switch {
				case !slices.Contains(told, u):
					delete(since, u)
				case !begin.IsZero() && now.Sub(begin) > w.overdue():
					since[u] = time.Time{} // said once
					w.violations = append(w.violations, fmt.Sprintf("%s: for %s its operator has not seen that %s", u.key, w.overdue(), u.what))
					w.wake()
				}
			}
			for _, u := range told {
				if _, known := since[u]; !known {
					since[u] = now
				}
			}
			w.mu.Unlock()
		}
	}
}

// untruth is something that an object's status says and that is not so.
type untruth struct {
	key  Key
	what string
}

// untruths compares what conditions say with what the objects that they speak of
// say of themselves. An operator that does not run says nothing.
func (w *Watcher) untruths() []untruth {
	var out []untruth
	tikv := w.tikvGroups()
	for key, object := range w.objects {
		if !w.operators[operatorOf(key.Kind)] || object.GetDeletionTimestamp() != nil {
			continue
		}
		switch key.Kind {
		case v1alpha1.KindInstance:
			for _, what := range w.instanceUntruths(object) {
				out = append(out, untruth{key, what})
			}
		default:
			if _, group := v1alpha1.LookupComponent(key.Kind); !group || key.Kind == v1alpha1.KindPDGroup {
				continue
			}
			if what := w.gateUntruth(object, tikv); what != "" {
				out = append(out, untruth{key, what})
			}
		}
	}
	return out
}

// instanceUntruths compares PodReady with the pod, and Ready with its parts.
func (w *Watcher) instanceUntruths(instance *unstructured.Unstructured) []string {
	var out []string
	is := func(condition string) bool {
		c := objects.Condition(instance, condition)
		return c != nil && c.Status == metav1.ConditionTrue
	}
	pod := w.objects[Key{Kind: kindPod, Name: instance.GetName()}]
	runs := pod != nil && pod.GetDeletionTimestamp() == nil && metav1.IsControlledBy(pod, instance)
	if runs {
		ready := objects.Condition(pod, "Ready")
		runs = ready != nil && ready.Status == metav1.ConditionTrue
	}
	if said := objects.Condition(instance, v1alpha1.ConditionPodReady); said != nil && said.Status != metav1.ConditionUnknown && is(v1alpha1.ConditionPodReady) != runs {
		out = append(out, fmt.Sprintf("pod %s is %s", instance.GetName(), chooseWord(runs, "ready", "not ready")))
	}
	suspended, _, _ := unstructured.NestedBool(instance.Object, "spec", "suspended")
	gates, _, _ := unstructured.NestedStringSlice(instance.Object, "spec", "readinessGates")
	all := is(v1alpha1.ConditionPodReady) && is(v1alpha1.ConditionVolumesReady) && !suspended
	for _, gate := range gates {
		all = all && is(gate)
	}
	if said := objects.Condition(instance, v1alpha1.ConditionReady); said != nil && is(v1alpha1.ConditionReady) != all {
		out = append(out, fmt.Sprintf("%s of what makes it Ready is so", chooseWord(all, "all", "not all")))
	}
	return out
}

// gateUntruth compares DependenciesReady with the groups that a group waits for.
func (w *Watcher) gateUntruth(group *unstructured.Unstructured, tikv map[string][]Key) string {
	said := objects.Condition(group, v1alpha1.ConditionDependenciesReady)
	paused, _, _ := unstructured.NestedBool(group.Object, "spec", "paused")
	if said == nil || said.ObservedGeneration != group.GetGeneration() || paused {
		return ""
	}
	missing := needsOf(group, tikv).missing(func(key Key) bool { return isReadyNow(w.objects[key]) })
	if (said.Status == metav1.ConditionTrue) == (missing == "") {
		return ""
	}
	edited := needsOf(group, tikv).missing(func(key Key) bool { return wasReady(w.objects[key]) }) == ""
	if said.Status == metav1.ConditionTrue && edited {
		return "" // no group becomes unready because a group that it needs was edited
	}
	return chooseWord(missing == "", "everything that it waits for is Ready", missing+" is not Ready")
}

// needs are the groups that have to be Ready before a group starts a member.
type needs struct {
	pd Key
	// tikv are the TiKVGroups of which one is enough; nil if none is needed.
	tikv []Key
}

// tikvGroups returns the TiKVGroups by the PDGroup that they name.
func (w *Watcher) tikvGroups() map[string][]Key {
	out := map[string][]Key{}
	for key, object := range w.objects {
		if key.Kind == v1alpha1.KindTiKVGroup {
			out[pdOf(object)] = append(out[pdOf(object)], key)
		}
	}
	return out
}

func needsOf(group *unstructured.Unstructured, tikv map[string][]Key) needs {
	name := pdOf(group)
	out := needs{pd: Key{Kind: v1alpha1.KindPDGroup, Name: name}}
	if info, _ := v1alpha1.LookupComponent(group.GetKind()); !info.NeedsTiKV {
		return out // PD is enough
	}
	out.tikv = append([]Key{}, tikv[name]...)
	return out
}

// pdOf returns the PDGroup that a group names.
func pdOf(group *unstructured.Unstructured) string {
	name, _, err := unstructured.NestedString(group.Object, "spec", "pdGroup", "name")
	if err != nil {
		return ""
	}
	return name
}

// missing names what ready does not call so; empty if nothing.
func (n needs) missing(ready func(Key) bool) string {
	switch {
	case !ready(n.pd):
		return n.pd.String()
	case n.tikv != nil && !slices.ContainsFunc(n.tikv, ready):
		return "any TiKVGroup of " + n.pd.String()
	}
	return ""
}

func chooseWord(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

package rollout

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/revision"
)

// historyLimit is how many unused revisions are kept by default, as many as a
// Deployment keeps.
const historyLimit = 10

// storedRevision is a stored revision and what it holds.
type storedRevision struct {
	object appsv1.ControllerRevision
	revision.Record
	hash string
}

// Prune finds the oldest revisions beyond spec.revisionHistoryLimit that no
// Instance runs, and the ConfigMaps that only they need. What cannot be read is
// left alone.
func Prune(g v1alpha1.Group, s observation.Snapshot, target revision.Target) []planning.Object {
	limit := int(ptr.Deref(g.GetComponentSpec().RevisionHistoryLimit, historyLimit))
	if len(s.Revisions) <= limit {
		return nil // which is so nearly always, and needs none of them decoded
	}
	used := map[string]bool{target.Hash: true}
	for _, i := range s.Instances {
		used[i.Spec.Revision], used[i.Status.Revision] = true, true
		// A pod has the files of the revision that it was made from mounted.
		used[i.Spec.InPlaceFrom], used[i.Status.MadeFrom] = true, true
		for _, name := range member.AppliedRevisions(i) {
			used[name] = true
		}
	}
	var idle []storedRevision
	needed := map[string]bool{}
	need := func(files map[string]string) {
		if name, err := ConfigMapName(g.GetName(), files); err == nil {
			needed[name] = true
		}
	}
	need(target.Files)
	for _, object := range s.Revisions {
		r := storedRevision{object: object}
		var err error
		if r.Record, err = revision.Decode(object); err != nil {
			return nil
		}
		if r.hash, err = r.Record.Hash(); err != nil {
			return nil
		}
		if used[r.hash] {
			need(r.Files)
			continue
		}
		idle = append(idle, r)
	}
	if len(idle) <= limit {
		return nil
	}
	slices.SortFunc(idle, func(a, b storedRevision) int {
		return cmp.Or(cmp.Compare(b.object.Revision, a.object.Revision), cmp.Compare(a.object.Name, b.object.Name))
	})
	for _, r := range idle[:limit] {
		need(r.Files)
	}
	var out []planning.Object
	for _, r := range idle[limit:] {
		out = append(out, &r.object)
		name, err := ConfigMapName(g.GetName(), r.Files)
		if err != nil || !s.ConfigMaps[name] || needed[name] {
			continue
		}
		needed[name] = true // it goes once
		out = append(out, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.GetNamespace(), Name: name}})
	}
	return out
}

package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// tenancy is what a tenant who means harm has: the rights of edit in his namespace, and
// what he has heard of the target.
type tenancy struct {
	client.Client
	own, other string
	hostile    []*unstructured.Unstructured // what there is in his namespace
	target     []*unstructured.Unstructured // what there is in the target's
	theirs     map[objects.Key]types.UID    // what he has made under names that operators want
	taken      int                          // writes that the API server took
	refused    int
}

// deed is what such a tenant does.
type deed struct {
	name string
	// endless deeds go on until their context ends.
	endless bool
	do      func(ctx context.Context, t *tenancy) error
}

// listDeeds are all of them.
func listDeeds() []deed {
	return []deed{
		{"owned-by-the-target", false, ownedByTarget},
		{"owners-in-a-ring", false, ownersInARing},
		{"labels-on-strangers", false, labelsOnStrangers},
		{"annotations-everywhere", false, annotationsEverywhere},
		{"names-taken", false, namesTaken()},
		{"names-of-pods-taken", false, namesTaken("Pod")},
		{"names-of-claims-taken", false, namesTaken("PersistentVolumeClaim")},
		{"names-of-services-taken", false, namesTaken("Service")},
		{"names-of-files-taken", false, namesTaken("ConfigMap", "ControllerRevision")},
		{"finalizers-on-ours", false, finalizersOnOurs},
		{"references-to-the-target", false, referencesToTarget},
		{"many-groups", true, manyGroups},
		{"many-servers", true, manyServers},
		{"edits-without-end", true, editsWithoutEnd},
		{"made-and-deleted", true, madeAndDeleted},
		{"ours-deleted", true, oursDeleted},
	}
}

// deedLabel is on everything that a deed makes, so that it can be taken away.
const deedLabel = "example.com/deed"

// deedEvery is how often an endless deed does something: 20 times a second.
const deedEvery = 50 * time.Millisecond

// count counts an answer of the API server, whatever it is; the only error is one that is
// none of its answers.
func (t *tenancy) count(err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		t.taken++
	case errors.As(err, &status):
		t.refused++
	default:
		return fmt.Errorf("reach the API server as a tenant: %w", err)
	}
	return nil
}

// make creates an object, and counts.
func (t *tenancy) make(ctx context.Context, object client.Object) error {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[deedLabel] = "1"
	object.SetLabels(labels)
	return t.count(t.Create(ctx, object))
}

// change patches an object, and counts.
func (t *tenancy) change(ctx context.Context, object client.Object, patch string) error {
	return t.count(t.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (t *tenancy) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.own, Name: name}}
}

func ownerOf(object *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID(), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}
}

// mine is what there is of his cluster: not what belongs to the bystanders and strangers
// in his namespace, so that what becomes of that is the operators' doing.
func (t *tenancy) mine() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(t.hostile), func(o *unstructured.Unstructured) bool {
		group := cmp.Or(o.GetLabels()[v1alpha1.LabelGroup], o.GetName())
		return group == bystander || group == "y" || o.GetName() == strangers || strings.HasPrefix(o.GetName(), bystander+"-")
	})
}

// ownedByTarget makes objects that objects of the target own.
func ownedByTarget(ctx context.Context, t *tenancy) error {
	for n, owner := range t.target {
		if owner.GroupVersionKind().Group != v1alpha1.GroupName && owner.GetKind() != "Pod" {
			continue
		}
		group := groupOf(t.own, v1alpha1.KindTiKVGroup, fmt.Sprintf("t-%d", n), "a", 0)
		for _, object := range []client.Object{group, t.configMap(fmt.Sprintf("t-%d", n))} {
			object.SetOwnerReferences([]metav1.OwnerReference{ownerOf(owner)})
			if err := t.make(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownersInARing makes objects that own each other, and themselves.
func ownersInARing(ctx context.Context, t *tenancy) error {
	names := []string{"t", "u"}
	ring := map[string][]client.Object{
		"ConfigMap":              {t.configMap("t"), t.configMap("u")},
		v1alpha1.KindTiKVGroup:   {groupOf(t.own, v1alpha1.KindTiKVGroup, "t", "a", 1), groupOf(t.own, v1alpha1.KindTiKVGroup, "u", "a", 1)},
		v1alpha1.KindTidbCluster: {clusterNamed(t.own, "t"), clusterNamed(t.own, "u")},
	}
	for kind, pair := range ring {
		version := v1alpha1.GroupVersion().String()
		if kind == "ConfigMap" {
			version = "v1"
		}
		for _, object := range pair {
			if err := t.make(ctx, object); err != nil {
				return err
			}
		}
		for n, object := range pair {
			for _, owner := range []client.Object{pair[1-n], object} {
				owns := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"blockOwnerDeletion":true}`, version, kind, names[n], owner.GetUID())
				if err := t.change(ctx, object, `{"metadata":{"ownerReferences":[`+owns+`]}}`); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func clusterNamed(namespace, name string) *v1alpha1.TidbCluster {
	out := &v1alpha1.TidbCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	out.Spec.Version = aVersion
	pd, _ := groupOf(namespace, v1alpha1.KindPDGroup, name, "", 1).(*v1alpha1.PDGroup)
	out.Spec.PD.Replicas, out.Spec.PD.Volumes = pd.Spec.Replicas, pd.Spec.Volumes
	return out
}

// labelsOnStrangers puts all labels and annotations of objects of the target, and of
// his own groups' objects, on objects of other owners in his namespace.
func labelsOnStrangers(ctx context.Context, t *tenancy) error {
	for _, from := range append(t.hostile, t.target...) {
		if from.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy {
			continue
		}
		for _, object := range []client.Object{
			t.configMap(strangers), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: t.own, Name: strangers}},
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: t.own, Name: strangers}},
		} {
			patch, err := encodeJSON(map[string]any{"metadata": map[string]any{"labels": from.GetLabels(), "annotations": from.GetAnnotations()}})
			if err != nil {
				return err
			}
			if err := t.change(ctx, object, patch); err != nil {
				return err
			}
		}
	}
	return nil
}

// annotationsEverywhere puts every annotation of ours, with the target's names in it, on
// every object of his namespace that he may change.
func annotationsEverywhere(ctx context.Context, t *tenancy) error {
	for _, key := range []string{
		v1alpha1.AnnotationTemplate, v1alpha1.AnnotationRendering, v1alpha1.AnnotationApplied, v1alpha1.AnnotationRetired, v1alpha1.AnnotationExpires,
		v1alpha1.AnnotationMadeBy, v1alpha1.AnnotationAdopt, v1alpha1.AnnotationRestart, v1alpha1.AnnotationRemoveFirst, v1alpha1.AnnotationReplace,
		v1alpha1.AnnotationRebalance, v1alpha1.AnnotationEvictLeaders, v1alpha1.AnnotationStopAnyway, v1alpha1.AnnotationSurge, v1alpha1.AnnotationFailedOver,
		v1alpha1.AnnotationRecoverQuorum, v1alpha1.AnnotationAllowRemoval, v1alpha1.AnnotationAppliedConfig, v1alpha1.AnnotationMadeFrom, v1alpha1.AnnotationHolder,
	} {
		for _, object := range t.mine() {
			if kind := object.GetKind(); kind == v1alpha1.KindInstance || kind == "Lease" {
				continue
			}
			for _, value := range []string{t.other + "/b-0", `{"a":` + strings.Repeat("[", 2000), "2001-01-01T00:00:00Z"} {
				patch, err := encodeJSON(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
				if err != nil {
					return err
				}
				if err := t.change(ctx, object.DeepCopy(), patch); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// namesTaken makes objects of his own under every name that a cluster wants, of some
// kinds or of all, by the example of the bystanders, and then the cluster.
func namesTaken(kinds ...string) func(context.Context, *tenancy) error {
	return func(ctx context.Context, t *tenancy) error { return t.takeNames(ctx, kinds) }
}

func (t *tenancy) takeNames(ctx context.Context, kinds []string) error {
	rename := func(name string) (string, bool) {
		for from, to := range map[string]string{bystander: "t", "y": "u"} {
			for _, begin := range []string{"", "data-"} {
				if rest, is := strings.CutPrefix(name, begin+from); is && (rest == "" || rest[0] == '-') {
					return begin + to + rest, true
				}
			}
		}
		return "", false
	}
	for _, like := range t.hostile {
		name, is := rename(like.GetName())
		if !is || like.GroupVersionKind().Group == v1alpha1.GroupName || len(kinds) > 0 && !slices.Contains(kinds, like.GetKind()) {
			continue
		}
		theirs := &unstructured.Unstructured{Object: map[string]any{}}
		for _, field := range []string{"spec", "data", "revision"} {
			if v, has := like.Object[field]; has {
				theirs.Object[field] = runtime.DeepCopyJSONValue(v)
			}
		}
		for _, path := range [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "volumeName"}, {"spec", "nodeName"}} {
			unstructured.RemoveNestedField(theirs.Object, path...)
		}
		theirs.SetGroupVersionKind(like.GroupVersionKind())
		theirs.SetNamespace(t.own)
		theirs.SetName(name)
		if theirs.GetKind() == "Pod" { // never scheduled, so that it never runs
			gates := []any{map[string]any{"name": "example.com/theirs"}}
			if err := unstructured.SetNestedSlice(theirs.Object, gates, "spec", "schedulingGates"); err != nil {
				return fmt.Errorf("make pod %s: %w", name, err)
			}
		}
		if err := t.make(ctx, theirs); err != nil {
			return err
		}
		if uid := theirs.GetUID(); uid != "" {
			t.theirs[objects.Key{Kind: theirs.GetKind(), Name: name}] = uid
		}
	}
	for _, group := range []client.Object{groupOf(t.own, v1alpha1.KindPDGroup, "t", "", 1), groupOf(t.own, v1alpha1.KindTiKVGroup, "u", "t", 1)} {
		if err := t.make(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// finalizersOnOurs holds what the operators have made for him, and deletes it.
func finalizersOnOurs(ctx context.Context, t *tenancy) error {
	for _, object := range t.mine() {
		if kind := object.GetKind(); kind == v1alpha1.KindInstance || kind == "Lease" || object.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy || kind == "PersistentVolumeClaim" {
			continue
		}
		if err := t.change(ctx, object.DeepCopy(), `{"metadata":{"finalizers":["example.com/stays"]}}`); err != nil {
			return err
		}
		if err := t.count(t.Delete(ctx, object.DeepCopy())); err != nil {
			return err
		}
	}
	return nil
}

// referencesToTarget makes groups whose references lead, one way or the other, into the
// target's namespace.
func referencesToTarget(ctx context.Context, t *tenancy) error {
	for n, name := range []string{"a." + t.other, "a." + t.other + ".svc", "a-peer." + t.other, "a." + t.other + ".svc.cluster.local", t.other} {
		for _, kind := range []string{v1alpha1.KindTiKVGroup, v1alpha1.KindTiDBGroup, v1alpha1.KindTiFlashGroup} {
			if err := t.make(ctx, groupOf(t.own, kind, fmt.Sprintf("t-%d", n), name, 1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// each does something again and again, 20 times a second.
func (t *tenancy) each(ctx context.Context, do func(n int) error) error {
	ticker := time.NewTicker(deedEvery)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if err := do(n); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// manyGroups makes 300 groups, as fast as the API server takes them, and edits them.
func manyGroups(ctx context.Context, t *tenancy) error {
	kinds := []string{v1alpha1.KindTiKVGroup, v1alpha1.KindTiDBGroup, v1alpha1.KindTiFlashGroup}
	const many = 300
	group := func(n int) client.Object {
		pd := "a"
		if n%2 == 1 {
			pd = "nowhere"
		}
		return groupOf(t.own, kinds[n%len(kinds)], fmt.Sprintf("t-%d", n%many), pd, 0)
	}
	for n := range many {
		if err := t.make(ctx, group(n)); err != nil {
			return ignoreCanceled(ctx, err)
		}
	}
	return t.each(ctx, func(n int) error {
		return t.change(ctx, group(n), fmt.Sprintf(`{"spec":{"labels":{"a":"%d"}}}`, n))
	})
}

// ignoreCanceled is an error, unless a deed was told to end.
func ignoreCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// manyServers asks for 60 servers of which none can be pulled, and takes them away again.
func manyServers(ctx context.Context, t *tenancy) error {
	group, _ := groupOf(t.own, v1alpha1.KindTiDBGroup, "t", "a", 0).(*v1alpha1.TiDBGroup)
	group.Spec.Image = "pingcap/tidb:bad"
	if err := t.make(ctx, group); err != nil {
		return ignoreCanceled(ctx, err)
	}
	return t.each(ctx, func(n int) error {
		if n%100 > 0 {
			return nil
		}
		return t.change(ctx, groupOf(t.own, v1alpha1.KindTiDBGroup, "t", "a", 0), fmt.Sprintf(`{"spec":{"replicas":%d}}`, 60-60*(n/100%2)))
	})
}

// editsWithoutEnd changes his groups' pods and files all the time.
func editsWithoutEnd(ctx context.Context, t *tenancy) error {
	groups := []client.Object{groupOf(t.own, v1alpha1.KindPDGroup, "a", "", 0), groupOf(t.own, v1alpha1.KindTiKVGroup, "b", "a", 0), groupOf(t.own, v1alpha1.KindTiDBGroup, "c", "a", 0)}
	return t.each(ctx, func(n int) error {
		object := groups[n%len(groups)]
		return t.change(ctx, object, fmt.Sprintf(`{"spec":{"labels":{"a":"%d"},"config":"[log]\nlevel = \"%d\"\n"}}`, n, n))
	})
}

// madeAndDeleted makes groups and deletes them again.
func madeAndDeleted(ctx context.Context, t *tenancy) error {
	return t.each(ctx, func(n int) error {
		kind := []string{v1alpha1.KindPDGroup, v1alpha1.KindTiKVGroup, v1alpha1.KindTiDBGroup}[n%3]
		group := groupOf(t.own, kind, fmt.Sprintf("t-%d", n/3%5), "a", 1)
		if err := t.make(ctx, group); err != nil {
			return err
		}
		return t.count(t.Delete(ctx, group))
	})
}

// oursDeleted deletes what the operators have made for him, again and again; claims
// apart, which are his data.
func oursDeleted(ctx context.Context, t *tenancy) error {
	mine := t.mine()
	return t.each(ctx, func(n int) error {
		object := mine[n%len(mine)]
		if kind := object.GetKind(); object.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy || kind == "PersistentVolumeClaim" || kind == v1alpha1.KindInstance {
			return nil
		}
		return t.count(t.Delete(ctx, object.DeepCopy()))
	})
}

// tenancy is the tenant of the hostile namespace at this moment.
func (b *beside) tenancy() *tenancy {
	all := func(o objects.Set) []*unstructured.Unstructured {
		var out []*unstructured.Unstructured
		for _, key := range o.Keys() {
			out = append(out, o.Get(key.Kind, key.Name).DeepCopy())
		}
		return out
	}
	b.busy = true
	t := &tenancy{Client: b.tenant, own: b.hostile.Namespace(), other: b.target.Namespace(), theirs: map[objects.Key]types.UID{}}
	b.hostile.Watcher.Now(func(o objects.Set) { t.hostile = all(o) })
	b.target.Watcher.Now(func(o objects.Set) { t.target = all(o) })
	return t
}

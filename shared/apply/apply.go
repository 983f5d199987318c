package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/canonical"
	"github.com/tidb-groups/tidb-groups/shared/cause"
)

// Result says what an apply did.
type Result string

const (
	// Unchanged sent nothing.
	Unchanged Result = "Unchanged"
	// Created made the object.
	Created Result = "Created"
	// Updated changed the object.
	Updated Result = "Updated"
)

// Writer writes objects as one field owner.
type Writer struct {
	// Client to write with.
	Client client.Client
	// Owner is the field owner, which is the operator's name.
	Owner string
	// Memory of what needed no write; nil remembers nothing.
	Memory *Memory
	// Live reads an owner right before an object gets it that has had none; nil reads nothing.
	Live client.Reader
}

// Object applies desired. live is the object as the caller last saw it, nil if
// it saw none; with live, the write carries its UID, so that an object that was
// deleted and recreated in the meantime is refused with a conflict instead of
// being overwritten. Without live, an existing object is adopted if its fields
// allow. Neither of the objects may be changed afterwards.
func (w Writer) Object(ctx context.Context, desired, live client.Object) (Result, error) {
	return w.apply(ctx, change{desired: desired, live: live})
}

// ObjectKeepingField is Object that leaves one field to others while desired does not say it.
// What live has there is written with all else: a field that the owner has said
// before and left out now would fall back to its default. As with ObjectIfLatest, the write is
// refused with a conflict if live is not the newest version of the object any more, so
// that it takes nothing back that others have just said, or taken away.
func (w Writer) ObjectKeepingField(ctx context.Context, desired, live client.Object, field ...string) (Result, error) {
	return w.apply(ctx, change{desired: desired, live: live, kept: field, version: versionOf(live)})
}

// ObjectIfLatest is Object that is refused with a conflict if live is not the newest
// version of the object any more: for objects of which a field is a permission,
// so that what an outdated version says is not given again.
func (w Writer) ObjectIfLatest(ctx context.Context, desired, live client.Object) (Result, error) {
	return w.apply(ctx, change{desired: desired, live: live, version: versionOf(live)})
}

// WasApplied reports whether live says that exactly desired was applied last. What of it differs
// all the same, another writer has changed since.
func (w Writer) WasApplied(desired, live client.Object) bool {
	want, err := renderObject(w.Client.Scheme(), desired)
	if err != nil {
		return false
	}
	sum, err := hashObject(desired, want.Object)
	return err == nil && live.GetAnnotations()[v1alpha1.AnnotationApplied] == sum
}

func versionOf(live client.Object) string {
	if live == nil {
		return ""
	}
	return live.GetResourceVersion()
}

// change is an object that is to be applied.
type change struct {
	desired, live client.Object
	// version that live has to have still, empty if any will do.
	version string
	// kept is the field that is left to others.
	kept []string
}

func (w Writer) apply(ctx context.Context, c change) (Result, error) {
	if w.Memory.isUnchanged(c.desired, c.live) {
		return Unchanged, nil
	}
	result, err := w.send(ctx, c)
	w.Memory.note(c.desired, c.live, err == nil && result == Unchanged)
	return result, err
}

// send compares an object with what there is, and sends what differs.
func (w Writer) send(ctx context.Context, c change) (Result, error) {
	desired, live, version := c.desired, c.live, c.version
	want, err := renderObject(w.Client.Scheme(), desired)
	if err != nil {
		return Unchanged, err
	}
	sum, err := hashObject(desired, want.Object)
	if err != nil {
		return Unchanged, err
	}
	annotations := want.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationApplied] = sum
	want.SetAnnotations(annotations)

	result := Created
	if live != nil {
		result = Updated
		have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
		if err != nil {
			return Unchanged, fmt.Errorf("convert live %s %s: %w", want.GetKind(), want.GetName(), err)
		}
		if live.GetAnnotations()[v1alpha1.AnnotationApplied] == sum && canonical.Contains(have, withoutType(want.Object)) && canonical.HasSameLiterals(live, desired) {
			added := findAdditions(desired, want.Object, have)
			if len(added) == 0 {
				return Unchanged, nil
			}
			for field, value := range added {
				if err := unstructured.SetNestedField(want.Object, value, "spec", field); err != nil {
					return Unchanged, fmt.Errorf("write spec.%s of %s %s: %w", field, want.GetKind(), want.GetName(), err)
				}
			}
		}
		if err := keepField(want.Object, have, c.kept); err != nil {
			return Unchanged, fmt.Errorf("keep %s of %s %s: %w", strings.Join(c.kept, "."), want.GetKind(), want.GetName(), err)
		}
		if owner := metav1.GetControllerOf(desired); owner != nil && metav1.GetControllerOf(live) == nil {
			if err := w.confirmOwner(ctx, want, *owner); err != nil {
				return Unchanged, err
			}
			version = live.GetResourceVersion()
		}
		want.SetUID(live.GetUID())
		want.SetResourceVersion(version)
	}
	if err := w.write(ctx, want, desired, live); err != nil {
		if cause.IsUIDConflict(err) {
			err = apierrors.NewConflict(schema.GroupResource{Group: want.GroupVersionKind().Group, Resource: want.GetKind()}, want.GetName(), err)
		}
		return Unchanged, fmt.Errorf("apply %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	return result, nil
}

// confirmOwner asks the API server whether the future owner of an object exists and stays. One
// that is deleted with --cascade=orphan lets its objects go, and the cache may not show yet
// that it is. What it owned then would be deleted by the garbage collector.
func (w Writer) confirmOwner(ctx context.Context, object *unstructured.Unstructured, owner metav1.OwnerReference) error {
	if w.Live == nil {
		return nil
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	err := w.Live.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}, there)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get %s %s: %w", owner.Kind, owner.Name, err)
	}
	if err == nil && there.UID == owner.UID && there.DeletionTimestamp == nil {
		return nil
	}
	gone := fmt.Errorf("%s %s, which takes it over, is being deleted", owner.Kind, owner.Name)
	return apierrors.NewConflict(schema.GroupResource{Group: object.GroupVersionKind().Group, Resource: object.GetKind()}, object.GetName(), gone)
}

// keepField takes a field over from have that want does not say.
func keepField(want, have map[string]any, field []string) error {
	if len(field) == 0 {
		return nil
	}
	if _, said, err := unstructured.NestedFieldNoCopy(want, field...); said || err != nil {
		return err
	}
	value, there, err := unstructured.NestedFieldCopy(have, field...)
	if !there || err != nil {
		return err
	}
	return unstructured.SetNestedField(want, value, field...)
}

// Status applies the owner's part of the status of an object. live must be the
// object as last read. A field that the owner applied before and now leaves out
// is removed. It always sends: the caller knows whether anything differs.
//
// An object that is being deleted may have gone, and another one have its name by now.
// The API server compares no UID where a status is applied, so that the version has to
// tell them apart: if that is another one, it is a conflict.
func (w Writer) Status(ctx context.Context, live client.Object, status any) (Result, error) {
	version := ""
	if live.GetDeletionTimestamp() != nil {
		version = live.GetResourceVersion()
	}
	return w.applyStatus(ctx, live, status, version)
}

// StatusIfLatest is Status that is refused with a conflict if live is not the newest
// version of the object any more: for statuses that hold what is written once,
// so that what an outdated version does not know is not taken away.
func (w Writer) StatusIfLatest(ctx context.Context, live client.Object, status any) (Result, error) {
	return w.applyStatus(ctx, live, status, live.GetResourceVersion())
}

func (w Writer) applyStatus(ctx context.Context, live client.Object, status any, version string) (Result, error) {
	gvk, err := apiutil.GVKForObject(live, w.Client.Scheme())
	if err != nil {
		return Unchanged, fmt.Errorf("find kind of %s: %w", live.GetName(), err)
	}
	fields, err := toMap(status)
	if err != nil {
		return Unchanged, fmt.Errorf("convert status of %s %s: %w", gvk.Kind, live.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(gvk)
	u.SetName(live.GetName())
	u.SetNamespace(live.GetNamespace())
	u.SetUID(live.GetUID())
	u.SetResourceVersion(version)
	if err := w.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(w.Owner), client.ForceOwnership); err != nil {
		return Unchanged, fmt.Errorf("apply status of %s %s: %w", gvk.Kind, live.GetName(), err)
	}
	return Updated, nil
}

// renderObject renders an object for server-side apply: with its kind, without
// status and without what only the API server may set. It has no nulls but those of
// literal fields.
func renderObject(scheme *runtime.Scheme, obj client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, fmt.Errorf("find kind of %s: %w", obj.GetName(), err)
	}
	m, err := toMap(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	if err := sayLiterally(obj, m); err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: m}
	u.SetGroupVersionKind(gvk)
	delete(m, "status")
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"} {
		unstructured.RemoveNestedField(m, "metadata", field)
	}
	return u, nil
}

// toMap converts through JSON, dropping nulls and empty objects, which mean
// "not said" in server-side apply.
func toMap(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	u := map[string]any{}
	if err := json.Unmarshal(raw, &u); err != nil {
		return nil, err
	}
	normalizeMap(u)
	return u, nil
}

// normalizeMap turns whole float64 values, which is what encoding/json makes of
// numbers, into int64, which is what unstructured objects hold; it also drops
// nulls.
func normalizeMap(m map[string]any) {
	for k, v := range m {
		if v == nil {
			delete(m, k)
			continue
		}
		m[k] = normalizeValue(v)
	}
}

func normalizeValue(v any) any {
	switch x := v.(type) {
	case map[string]any:
		normalizeMap(x)
	case []any:
		for i := range x {
			x[i] = normalizeValue(x[i])
		}
	case float64:
		if x == float64(int64(x)) {
			return int64(x)
		}
	}
	return v
}

func withoutType(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if k != "apiVersion" && k != "kind" {
			out[k] = v
		}
	}
	return out
}

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// user is the field owner of what a scenario applies.
const user = "user"

// apply applies manifests as kubectl does.
func (r *runner) apply(ctx context.Context, names []string) error {
	for _, name := range names {
		all, err := r.scenario.objects(name)
		if err != nil {
			return err
		}
		for _, object := range all {
			if err := r.applyOne(ctx, object); err != nil {
				return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

func (r *runner) applyOne(ctx context.Context, object *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	namespaced, err := r.world.User().IsObjectNamespaced(object)
	if err != nil {
		return err
	}
	if namespaced {
		object.SetNamespace(r.world.Namespace())
	} else {
		r.clusterWide = append(r.clusterWide, object)
	}
	return r.world.User().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(user), client.ForceOwnership)
}

// groupOf returns the API group of a kind: scenarios name kinds without.
func groupOf(kind string) string {
	if slices.Contains(v1alpha1.Kinds(), kind) {
		return v1alpha1.GroupName
	}
	switch kind {
	case "StorageClass":
		return "storage.k8s.io"
	case "Job":
		return "batch"
	case "Lease":
		return "coordination.k8s.io"
	case "PodDisruptionBudget":
		return "policy"
	case "ControllerRevision":
		return "apps"
	case "HorizontalPodAutoscaler":
		return "autoscaling"
	default:
		return ""
	}
}

// reference returns an object with nothing but its name.
func (r *runner) reference(key objects.Key) (*unstructured.Unstructured, error) {
	mapping, err := r.world.User().RESTMapper().RESTMappings(schema.GroupKind{Group: groupOf(key.Kind), Kind: key.Kind})
	if err != nil {
		return nil, fmt.Errorf("find kind %s: %w", key.Kind, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping[0].GroupVersionKind)
	object.SetName(key.Name)
	if mapping[0].Scope.Name() == "namespace" {
		object.SetNamespace(r.world.Namespace())
	}
	return object, nil
}

func (r *runner) patch(ctx context.Context, p Patch) error {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	object, err := r.reference(p.Object)
	if err != nil {
		return err
	}
	var body any = p.Merge
	kind := types.MergePatchType
	if p.JSON != nil {
		body, kind = p.JSON, types.JSONPatchType
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	if text, err = r.fill(ctx, text); err != nil {
		return fmt.Errorf("patch %s: %w", p.Object, err)
	}
	strict, as := &metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, client.FieldOwner(user)
	if p.Status {
		err = r.world.User().Status().Patch(ctx, object, client.RawPatch(kind, text), &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{Raw: strict}}, as)
	} else {
		err = r.world.User().Patch(ctx, object, client.RawPatch(kind, text), &client.PatchOptions{Raw: strict}, as)
	}
	if err != nil {
		return fmt.Errorf("patch %s: %w", p.Object, err)
	}
	return nil
}

// reads is how a patch means the value of a field: kind, name and path.
var reads = regexp.MustCompile(`\$\{(\w+) ([-.a-z0-9]+) ([\w.]+)\}`)

// fill puts the values of fields where a patch means them.
func (r *runner) fill(ctx context.Context, text []byte) ([]byte, error) {
	var failed error
	filled := reads.ReplaceAllFunc(text, func(found []byte) []byte {
		part := reads.FindSubmatch(found)
		object, err := r.reference(objects.Key{Kind: string(part[1]), Name: string(part[2])})
		if err == nil {
			err = r.world.User().Get(ctx, client.ObjectKeyFromObject(object), object)
		}
		if err != nil {
			failed = fmt.Errorf("read %s: %w", found, err)
			return nil
		}
		return fmt.Append(nil, findValue(object.Object, strings.Split(string(part[3]), ".")))
	})
	return filled, failed
}

func (r *runner) scale(ctx context.Context, s Scale) error {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	object, err := r.reference(s.Object)
	if err != nil {
		return err
	}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: s.Replicas}}
	if err := r.world.User().SubResource("scale").Update(ctx, object, client.WithSubResourceBody(scale)); err != nil {
		return fmt.Errorf("scale %s: %w", s.Object, err)
	}
	return nil
}

// refuse is content when a request is refused with the right words.
func (r *runner) refuse(ctx context.Context, f Refuse) error {
	var err error
	if f.Apply != "" {
		err = r.apply(ctx, []string{f.Apply})
	} else {
		err = r.patch(ctx, *f.Patch)
	}
	switch {
	case err == nil:
		return fmt.Errorf("it was not refused")
	case !strings.Contains(err.Error(), f.Says):
		return fmt.Errorf("it was refused without the words %q: %w", f.Says, err)
	}
	return nil
}

// consent lets claims go, whatever deletes them.
func (r *runner) consent(claims []string) {
	r.world.Consent(claims...)
	for _, name := range claims {
		r.deleted[objects.Key{Kind: kindClaim, Name: name}] = ""
	}
}

func (r *runner) deleteAll(ctx context.Context, kind string, names []string, options ...client.DeleteOption) error {
	for _, name := range names {
		filled, err := r.fill(ctx, []byte(name))
		if err != nil {
			return err
		}
		if err := r.delete(ctx, objects.Key{Kind: kind, Name: string(filled)}, "", options...); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes an object and notes which one it was.
func (r *runner) delete(ctx context.Context, key objects.Key, cascade string, options ...client.DeleteOption) error {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	object, err := r.reference(key)
	if err != nil {
		return err
	}
	if err := r.world.User().Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.deleted[key] = object.GetUID()
	policy := metav1.DeletePropagationBackground
	switch cascade {
	case "foreground":
		policy = metav1.DeletePropagationForeground
	case "orphan":
		policy = metav1.DeletePropagationOrphan
	}
	if err := r.world.User().Delete(ctx, object, append(options, client.PropagationPolicy(policy))...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

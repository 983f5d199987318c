package campaign

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// targetNamespace stands in a value for the name of the target's namespace.
const targetNamespace = "TARGET"

// tenantPoints are the attempts of TENANT: each deed, and each hostile value for each
// field of each kind that a tenant may make.
func tenantPoints(name string, schemas map[string]*schema) []Attempt {
	var out []Attempt
	add := func(fault string) {
		out = append(out, Attempt{Campaign: Tenant, Scenario: name, Fault: "tenant:" + fault})
	}
	for _, d := range listDeeds() {
		add(d.name)
	}
	for _, kind := range sortedKeys(schemas) {
		if kind == v1alpha1.KindInstance {
			continue
		}
		for _, m := range hostileMutations(kind, schemas[kind]) {
			add(strings.TrimPrefix(m.String(), "mutate:"))
		}
	}
	return out
}

// hostileMutations are the values that MUTATE knows and that the schema allows, and
// others that a tenant would try who means harm.
func hostileMutations(kind string, spec *schema) []mutation {
	var out []mutation
	for _, m := range listMutations(kind, spec) {
		if m.class == "odd" {
			out = append(out, m)
		}
	}
	spec.each(nil, func(path []string, field *schema) {
		for n, v := range field.hostileValues(path[len(path)-1]) {
			out = append(out, mutation{kind: kind, path: path, class: "hostile", nth: n + 1, value: v, root: spec})
		}
	})
	return out
}

// hostileValues are values for a field as large as may be, or that lead elsewhere.
func (s *schema) hostileValues(name string) []any {
	switch {
	case len(s.Enum) > 0, s.Type == "boolean":
		return nil
	case s.IntOrString:
		return []any{"9999999999999999999999", "0.000000000000000000001", int64(math.MaxInt64)}
	}
	const many = 1000
	switch s.Type {
	case "integer", "number":
		return []any{int64(math.MaxInt32), int64(math.MaxInt64), int64(math.MinInt64)}
	case "array":
		most := s.MaxItems
		if most == 0 {
			most = many
		}
		var full []any
		for n := range most {
			full = append(full, s.Items.another(n))
		}
		return []any{full}
	case "object":
		if s.Open {
			return openValues()
		}
		if s.AdditionalProperties == nil {
			return nil
		}
		most := s.MaxProperties
		if most == 0 {
			most = many
		}
		full := map[string]any{}
		for n := range most {
			full[fmt.Sprintf("example.com/%060d", n)] = s.AdditionalProperties.another(n)
		}
		return []any{full}
	}
	return s.hostileTexts(name)
}

// another is a valid value that differs from others, as far as the schema lets it.
func (s *schema) another(n int) any {
	v := s.valid()
	if object, is := v.(map[string]any); is {
		for name, below := range s.Properties {
			if _, has := object[name]; has && below.Type == "string" && below.allows(fmt.Sprintf("a%d", n)) {
				object[name] = fmt.Sprintf("a%d", n)
			}
		}
		return object
	}
	if text := fmt.Sprintf("a%d", n); s.Type == "string" && len(s.Enum) == 0 && s.allows(text) {
		return text
	}
	return v
}

// hostileTexts are texts that lead elsewhere, and as long ones as the API takes.
func (s *schema) hostileTexts(name string) []any {
	longest := 100000
	if s.MaxLength > 0 {
		longest = min(longest, s.MaxLength)
	}
	out := []any{
		strings.Repeat("a", longest), "a." + targetNamespace, targetNamespace + "/a", "a." + targetNamespace + ".svc:2379", "http://169.254.169.254/",
		"../../" + targetNamespace + "/a", "a\nb: c\x1b[31m\u202e", "$(POD_NAME)`id`{{.}}%s%n",
	}
	if name == "config" {
		var keys, deep strings.Builder
		for n := range 10000 {
			fmt.Fprintf(&keys, "k%d=1\n", n)
		}
		deep.WriteString("a")
		for range 4000 {
			deep.WriteString(".a")
		}
		out = append(out, keys.String(), deep.String()+" = 1", strings.Repeat("[a.b]\n", 20000), "a = "+strings.Repeat("[", 50000))
	}
	return out
}

// openValues are values for a field that takes any object: a piece of a pod.
func openValues() []any {
	deep := map[string]any{}
	for range 3000 {
		deep = map[string]any{"a": deep}
	}
	wide := map[string]any{}
	for n := range 10000 {
		wide[fmt.Sprintf("example.com/a%d", n)] = "b"
	}
	meta := func(m map[string]any) map[string]any { return map[string]any{"metadata": m} }
	spec := func(m map[string]any) map[string]any { return map[string]any{"spec": m} }
	return []any{
		deep, meta(map[string]any{"annotations": wide}), meta(map[string]any{"labels": wide}),
		meta(map[string]any{"namespace": targetNamespace, "name": "b-0"}),
		meta(map[string]any{"labels": map[string]any{v1alpha1.LabelGroup: "b", v1alpha1.LabelInstance: "b-0", v1alpha1.LabelManagedBy: "me"}}),
		meta(map[string]any{"finalizers": []any{"example.com/stays"}, "ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": targetNamespace, "uid": "1"}}}),
		spec(map[string]any{"hostNetwork": true, "hostPID": true, "nodeName": targetNamespace + "-0", "serviceAccountName": "instance-operator"}),
		spec(map[string]any{"volumes": []any{map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data-b-0"}}}}),
		spec(map[string]any{"containers": []any{map[string]any{"$patch": "replace"}}, "$patch": "delete"}),
	}
}

// replaceNamespace is a value with the name of the target's namespace in it.
func replaceNamespace(v any, namespace string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, targetNamespace, namespace)
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = replaceNamespace(out[i], namespace)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, below := range v {
			out[name] = replaceNamespace(below, namespace)
		}
		return out
	}
	return v
}

// tenant makes an attempt of TENANT.
func (h *hostiles) tenant(ctx context.Context, a Attempt) (Record, error) {
	do, err := h.deed(strings.TrimPrefix(a.Fault, "tenant:"))
	if err != nil {
		return Record{}, err
	}
	return h.c.record(ctx, a, func(r *Record) (err error) {
		if err := h.ready(ctx); err != nil {
			return err
		}
		r.Struck, r.Findings, err = h.world.harmed(ctx, do)
		return h.keep(r.Findings, err)
	})
}

// deed returns the deed that a fault names, or that of making an object with a value.
func (h *hostiles) deed(fault string) (deed, error) {
	for _, d := range listDeeds() {
		if d.name == fault {
			return d, nil
		}
	}
	kind, _, _ := strings.Cut(fault, "/")
	if h.schemas[kind] == nil {
		return deed{}, fmt.Errorf("read fault %q: there is no such deed, nor such a kind", fault)
	}
	for _, m := range hostileMutations(kind, h.schemas[kind]) {
		if m.String() == "mutate:"+fault {
			return deed{name: fault, do: func(ctx context.Context, t *tenancy) error { return t.value(ctx, m) }}, nil
		}
	}
	return deed{}, fmt.Errorf("read fault %q: there is no such value", fault)
}

// value makes an object that has a value in a field.
func (t *tenancy) value(ctx context.Context, m mutation) error {
	spec := map[string]any{"version": aVersion, "replicas": int64(1), "volumes": []any{map[string]any{"name": "data", "storage": "1Gi"}}}
	switch m.kind {
	case v1alpha1.KindTidbCluster:
		pd := map[string]any{"replicas": int64(1), "volumes": spec["volumes"]}
		spec = map[string]any{"version": aVersion, "pd": pd}
	case v1alpha1.KindTiDBGroup:
		delete(spec, "volumes")
		fallthrough
	case v1alpha1.KindTiKVGroup, v1alpha1.KindTiFlashGroup:
		spec["pdGroup"] = map[string]any{"name": "a"}
	}
	m.value = replaceNamespace(m.value, t.other)
	spec, err := m.apply(spec)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(m.kind))
	object.SetNamespace(t.own)
	object.SetName("t")
	return t.make(ctx, object)
}

// harmed lets the tenant do something, edits the target meanwhile, and judges. What was
// refused as a whole has done nothing, and the target need not be edited.
func (b *beside) harmed(ctx context.Context, d deed) (bool, []Finding, error) {
	before, t := b.look(), b.tenancy()
	doing, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- d.do(doing, t) }()
	var err error
	if !d.endless {
		if err = <-done; err == nil && t.taken == 0 {
			return t.refused > 0, b.outcome(before, nil), nil
		}
	}
	worked := b.workFor(ctx, besideFor)
	findings := b.judge(ctx, before, worked)
	stop()
	if d.endless {
		err = <-done
	}
	findings = slices.Concat(findings, b.heard(ctx), b.untouched(t))
	if err == nil && len(findings) == 0 {
		if err = b.cleanUp(ctx); err == nil {
			findings = b.judge(ctx, b.look(), nil) // nor has anything happened since
		}
	}
	return t.taken+t.refused > 0, findings, errors.Join(ctx.Err(), err)
}

// untouched finds what operators have done to objects of the tenant's own that only have
// names which his cluster wants.
func (b *beside) untouched(t *tenancy) []Finding {
	var out []Finding
	b.hostile.Watcher.Now(func(o objects.Set) {
		for key, uid := range t.theirs {
			now := o.Get(key.Kind, key.Name)
			if now == nil || now.GetUID() != uid || now.GetDeletionTimestamp() != nil || now.GetLabels()[v1alpha1.LabelManagedBy] != "" {
				out = append(out, Finding{Promise: "P12", What: key.String() + " of the tenant's own was taken over or deleted"})
			}
		}
	})
	return out
}

// workFor edits the target for a while.
func (b *beside) workFor(ctx context.Context, d time.Duration) error {
	for begin := time.Now(); time.Since(begin) < d; {
		if err := b.work(ctx); err != nil {
			return err
		}
		if !trySleep(ctx, tick) {
			return context.Cause(ctx)
		}
	}
	return b.scale(ctx)
}

// cleanUp takes away what deeds have made, and waits for what there was before.
func (b *beside) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, restored, errNotRestored)
	defer cancel()
	err := b.takeAway(ctx)
	if err == nil {
		err = b.converged(ctx)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errNotRestored, err)
	}
	return err
}

// takeAway deletes what deeds have made and what was made of it, with its claims, frees
// what they hold, and gives his groups their specs back.
func (b *beside) takeAway(ctx context.Context) error {
	user := b.hostile.User()
	for kind, name := range map[string]string{v1alpha1.KindPDGroup: "a", v1alpha1.KindTiKVGroup: "b", v1alpha1.KindTiDBGroup: "c"} {
		if err := user.Patch(ctx, groupOf(b.hostile.Namespace(), kind, name, "", 0), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"labels":null,"config":null}}`))); err != nil {
			return fmt.Errorf("give %s %s its spec back: %w", kind, name, err)
		}
	}
	for {
		all := b.made()
		if len(all) == 0 {
			return nil
		}
		for _, object := range all {
			if slices.Contains(object.GetFinalizers(), "example.com/stays") {
				if err := user.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("free %s %s: %w", object.GetKind(), object.GetName(), err)
				}
			}
			if object.GetKind() == "PersistentVolumeClaim" {
				b.hostile.Consent(object.GetName())
			}
			err := user.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
		if !trySleep(ctx, tick) {
			return context.Cause(ctx)
		}
	}
}

// made are the objects that deeds have made, those that operators have made of them, and
// those that they hold.
func (b *beside) made() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	b.hostile.Watcher.Now(func(o objects.Set) {
		for _, key := range o.Keys() {
			object := o.Get(key.Kind, key.Name)
			group := strings.TrimPrefix(object.GetLabels()[v1alpha1.LabelGroup], "data-")
			root, _, _ := strings.Cut(group, "-")
			ours := object.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy && (root == "t" || root == "u")
			if key.Name != strangers && (object.GetLabels()[deedLabel] != "" || ours || slices.Contains(object.GetFinalizers(), "example.com/stays")) {
				out = append(out, object.DeepCopy())
			}
		}
	})
	return out
}

package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// Object is what of an object has to be the same in two runs of a scenario.
type Object struct {
	// Key of the object.
	Key objects.Key `json:"key"`
	// Labels of the object.
	Labels map[string]string `json:"labels,omitempty"`
	// Owners are its owners.
	Owners []string `json:"owners,omitempty"`
	// Finalizers of the object.
	Finalizers []string `json:"finalizers,omitempty"`
	// Deleting says that it is about to go.
	Deleting bool `json:"deleting,omitempty"`
	// Spec, or data, without what is generated. In what is wanted nil is any.
	Spec any `json:"spec,omitempty"`
	// Conditions as "type=status(reason)".
	Conditions []string `json:"conditions,omitempty"`
}

// Outcome normalises all objects of a namespace: what is generated or differs
// by chance is left out, and the namespace's name is replaced, also in what was
// hashed for a name.
func Outcome(o objects.Set, namespace string) ([]Object, error) {
	c, err := readContent(o, namespace)
	if err != nil {
		return nil, fmt.Errorf("normalise names: %w", err)
	}
	var out []Object
	for _, key := range o.Keys() {
		object, err := c.normalise(o.Get(key.Kind, key.Name))
		if err != nil {
			return nil, fmt.Errorf("normalise %s: %w", key, err)
		}
		out = append(out, object)
	}
	return out, nil
}

func (c content) normalise(object *unstructured.Unstructured) (Object, error) {
	text, err := c.text(object.Object)
	if err != nil {
		return Object{}, err
	}
	object = &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		return Object{}, err
	}
	out := Object{
		Key: objects.Key{Kind: object.GetKind(), Name: object.GetName()}, Labels: object.GetLabels(),
		Finalizers: object.GetFinalizers(), Deleting: object.GetDeletionTimestamp() != nil,
	}
	slices.Sort(out.Finalizers)
	if out.Key.Kind == kindPod {
		delete(out.Labels, corev1.LabelTopologyZone) // the node's, and that is chance
	}
	for _, owner := range object.GetOwnerReferences() {
		out.Owners = append(out.Owners, owner.Kind+" "+owner.Name)
	}
	spec := map[string]any{}
	for _, field := range []string{"spec", "data", "binaryData"} {
		if value, found := object.Object[field]; found {
			spec[field] = value
		}
	}
	for _, path := range generatedFields(object.GetKind()) {
		unstructured.RemoveNestedField(spec, strings.Split(path, ".")...)
	}
	out.Spec = spec
	for _, c := range objects.Conditions(object) {
		out.Conditions = append(out.Conditions, fmt.Sprintf("%s=%s(%s)", c.Type, c.Status, c.Reason))
	}
	slices.Sort(out.Conditions)
	return out, nil
}

// generatedFields are the fields that Kubernetes fills in by chance, and those that
// tell who holds something at the moment.
func generatedFields(kind string) []string {
	switch kind {
	case kindPod:
		return []string{"spec.nodeName"}
	case kindClaim:
		return []string{"spec.volumeName"}
	case "Service":
		return []string{"spec.clusterIP", "spec.clusterIPs"}
	case "Lease":
		return []string{"spec"}
	default:
		return nil
	}
}

// Compare says in what an outcome differs from the wanted one, a line for each
// object.
func Compare(have, want []Object) []string {
	var out []string
	texts := func(all []Object) map[objects.Key]string {
		out := map[objects.Key]string{}
		for _, object := range all {
			text, err := json.Marshal(object)
			if err != nil {
				text = []byte(err.Error()) // differs from anything else
			}
			out[object.Key] = string(text)
		}
		return out
	}
	for _, object := range want {
		if object.Spec == nil {
			have = anySpec(have, object.Key)
		}
	}
	had, wanted := texts(have), texts(want)
	for _, object := range want {
		switch text, found := had[object.Key]; {
		case !found:
			out = append(out, object.Key.String()+" is missing")
		case text != wanted[object.Key]:
			out = append(out, object.Key.String()+" differs: "+firstDifference(text, wanted[object.Key]))
		}
	}
	for _, object := range have {
		if _, found := wanted[object.Key]; !found {
			out = append(out, object.Key.String()+" should not be there")
		}
	}
	return out
}

// anySpec is an outcome without the spec of an object.
func anySpec(all []Object, key objects.Key) []Object {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Key == key {
			all[i].Spec = nil
		}
	}
	return all
}

// firstDifference quotes two texts from shortly before where they part.
func firstDifference(have, want string) string {
	at := 0
	for at < len(have) && at < len(want) && have[at] == want[at] {
		at++
	}
	const before, after = 60, 100
	cut := func(s string) string { return s[max(0, at-before):min(len(s), at+after)] }
	return fmt.Sprintf("…%s… instead of …%s…", cut(have), cut(want))
}

package revision

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/canonical"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// Record is a rendering: everything that a member is made of.
type Record struct {
	// Inputs is the hash of the user's part of the spec that was rendered.
	Inputs string `json:"inputs,omitempty"`
	// Template of the pod.
	Template corev1.PodTemplateSpec `json:"template"`
	// Claims of the pod.
	Claims []v1alpha1.VolumeClaimTemplate `json:"claims,omitempty"`
	// Files of the configuration, by name; the template mounts them.
	Files map[string]string `json:"files,omitempty"`
}

// ToolsContainer is the init container that brings a program of the operators into a
// pod. Its image is that of the operator which rendered the pod: with that alone
// changed nothing is rendered differently, or every upgrade of the operators would ask
// for a restart of every pod.
const ToolsContainer = "tidb-groups-tools"

// withTools returns a rendering with the image of the programs that another one has.
func (r Record) withTools(of Record) Record {
	image := func(c corev1.Container) bool { return c.Name == ToolsContainer }
	from := slices.IndexFunc(of.Template.Spec.InitContainers, image)
	to := slices.IndexFunc(r.Template.Spec.InitContainers, image)
	if from < 0 || to < 0 {
		return r
	}
	r.Template.Spec.InitContainers = slices.Clone(r.Template.Spec.InitContainers)
	r.Template.Spec.InitContainers[to].Image = of.Template.Spec.InitContainers[from].Image
	return r
}

// copy returns a copy that shares nothing.
func (r Record) copy() Record {
	out := Record{Inputs: r.Inputs, Template: *r.Template.DeepCopy(), Files: maps.Clone(r.Files)}
	for _, c := range r.Claims {
		out.Claims = append(out.Claims, *c.DeepCopy())
	}
	return out
}

// Hash returns the short digest that names the rendering. Inputs do not count:
// two spellings of one thing are one revision.
func (r Record) Hash() (string, error) {
	r.Inputs = ""
	return canonical.Hash(r)
}

// Target is the rendering that a group's members should have.
type Target struct {
	Record
	// Hash names the rendering.
	Hash string
	// EncodedTemplate is the template as JSON, which is never changed; nil if it is not encoded yet.
	EncodedTemplate []byte
	// Stored says that a ControllerRevision holds it.
	Stored bool
	// Number of its ControllerRevision.
	Number int64
	// NewRendering is the first difference to what this operator would render
	// from the same inputs; empty when there is none.
	NewRendering string
}

// Resolve decides which rendering is wanted: the stored one of the same inputs
// if there is one, the newest of several, else the new one.
func (m *Memory) Resolve(rendered Record, stored []appsv1.ControllerRevision) (Target, error) {
	newestFirst := slices.Clone(stored)
	slices.SortFunc(newestFirst, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(b.Revision, a.Revision) })
	for _, s := range newestFirst {
		old, err := m.decode(s)
		if err != nil {
			return Target{}, err
		}
		if old.Inputs == rendered.Inputs {
			target := Target{Record: old.Record, Hash: old.hash, EncodedTemplate: old.template, Stored: true, Number: s.Revision}
			return keepStored(target, rendered.withTools(old.Record))
		}
	}
	hash, err := rendered.Hash()
	if err != nil {
		return Target{}, err
	}
	target := Target{Record: rendered, Hash: hash, Number: 1}
	if len(newestFirst) > 0 {
		target.Number = newestFirst[0].Revision + 1
	}
	return target, nil
}

// keepStored returns the stored rendering, and how what would be rendered now differs from it.
func keepStored(target Target, now Record) (Target, error) {
	if reflect.DeepEqual(target.Record, now) || equality.Semantic.DeepEqual(target.Record, now) {
		return target, nil // nearly always, and cheaper than a hash
	}
	hash, err := now.Hash()
	if err != nil {
		return Target{}, err
	}
	if hash != target.Hash {
		target.NewRendering = firstDifference(target.Record, now)
	}
	return target, nil
}

// Decode returns the rendering that a ControllerRevision stores.
func Decode(stored appsv1.ControllerRevision) (Record, error) {
	var r Record
	if err := json.Unmarshal(stored.Data.Raw, &r); err != nil {
		return Record{}, fmt.Errorf("decode ControllerRevision %s: %w", stored.Name, err)
	}
	return r, nil
}

// Object returns the ControllerRevision that stores the target for a group.
func (t Target) Object(group, namespace string, labels map[string]string) (*appsv1.ControllerRevision, error) {
	// Two spellings of one thing are one revision, and two records.
	sum, err := canonical.Hash([]string{t.Hash, t.Inputs})
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(t.Record)
	if err != nil {
		return nil, fmt.Errorf("encode revision %s: %w", t.Hash, err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: names.Revision(group, sum), Namespace: namespace, Labels: labels},
		Data:       runtime.RawExtension{Raw: raw},
		Revision:   t.Number,
	}, nil
}

// firstDifference describes how two renderings of the same inputs differ.
func firstDifference(old, rendered Record) string {
	if d := Difference(&old.Template, &rendered.Template); d.Text != "" {
		return d.Text
	}
	for _, name := range slices.Sorted(mapKeys(rendered.Files, old.Files)) {
		if old.Files[name] != rendered.Files[name] {
			return "file " + name
		}
	}
	return "volume claims"
}

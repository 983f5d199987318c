package rollout

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/canonical"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// hashInputs digests encoded inputs; empty maps and lists do not count.
func hashInputs(raw []byte) (string, error) {
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return "", fmt.Errorf("decode the spec: %w", err)
	}
	return canonical.Hash(tree)
}

// ConfigMapName names the ConfigMap of a group's files: by their content, so
// that it never changes under a running pod.
func ConfigMapName(group string, files map[string]string) (string, error) {
	sum, err := canonical.Hash(files)
	if err != nil {
		return "", err
	}
	return group + "-config-" + sum, nil
}

// Inputs returns the part of a group's spec that its members are rendered from: the shared
// part without what changes no pod, and the component's own extras. An empty value counts
// for the hash only where it means something.
func Inputs(g v1alpha1.Group, extra map[string]any) any {
	spec := g.GetComponentSpec().DeepCopy()
	spec.Paused, spec.Suspended = false, false
	spec.PersistentVolumeClaimRetentionPolicy = v1alpha1.ClaimRetention{}
	spec.Disruption, spec.RevisionHistoryLimit, spec.VolumeReplacement, spec.PeerService = nil, nil, "", nil
	for i := range spec.Volumes {
		// Only where volumes are mounted stands in the template; sizes and
		// classes are the claims' own.
		spec.Volumes[i].Storage = resource.Quantity{}
		spec.Volumes[i].StorageClassName, spec.Volumes[i].VolumeAttributesClassName = nil, nil
	}
	inputs := map[string]any{"spec": spec, "extra": extra}
	if empties := canonical.EmptyLiterals(spec); len(empties) > 0 {
		inputs["empties"] = empties
	}
	return inputs
}

// ResolveTarget finds the wanted revision.
func ResolveTarget(s observation.Snapshot, r component.Rendering) (revision.Target, error) {
	raw, err := json.Marshal(r.Inputs)
	if err != nil {
		return revision.Target{}, fmt.Errorf("encode the spec: %w", err)
	}
	inputs, err := hashInputs(raw)
	if err != nil {
		return revision.Target{}, err
	}
	return s.Records.Resolve(revision.Record{Inputs: inputs, Template: r.Template, Files: r.Files}, s.Revisions)
}

// NewConfigMap returns the ConfigMap of a target unless it exists already. It is
// immutable and named after its content.
func NewConfigMap(g v1alpha1.Group, s observation.Snapshot, target revision.Target) (*corev1.ConfigMap, error) {
	name, err := ConfigMapName(g.GetName(), target.Files)
	if err != nil || s.ConfigMaps[name] {
		return nil, err
	}
	return &corev1.ConfigMap{ObjectMeta: workload.Meta(g, name), Data: target.Files, Immutable: ptr.To(true)}, nil
}

// NewRevision returns the ControllerRevision of a target, which the group owns.
func NewRevision(g v1alpha1.Group, target revision.Target) (*appsv1.ControllerRevision, error) {
	object, err := target.Object(g.GetName(), g.GetNamespace(), workload.Labels(g))
	if err != nil {
		return nil, err
	}
	object.OwnerReferences = []metav1.OwnerReference{workload.Owner(g)}
	return object, nil
}

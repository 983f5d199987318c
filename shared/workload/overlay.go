package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	sigsjson "sigs.k8s.io/json"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// applyOverlay merges the user's overlay onto a pod and checks that nothing that the
// operators rely on was taken away.
func applyOverlay(pod corev1.PodTemplateSpec, raw *runtime.RawExtension, mainContainer string) (corev1.PodTemplateSpec, string) {
	if raw == nil || len(raw.Raw) == 0 {
		return pod, ""
	}
	if problem := checkOverlay(raw.Raw); problem != "" {
		return pod, problem
	}
	base, err := json.Marshal(pod)
	if err != nil {
		return pod, fmt.Sprintf("spec.overlay: encode the pod: %v", err)
	}
	patched, err := mergePod(base, raw.Raw)
	if err != nil {
		return pod, fmt.Sprintf("spec.overlay: %v: write it as {metadata, spec} of a pod", err)
	}
	var out corev1.PodTemplateSpec
	if err := json.Unmarshal(patched, &out); err != nil {
		return pod, fmt.Sprintf("spec.overlay: %v: write it as {metadata, spec} of a pod", err)
	}
	if problem := addArguments(pod, &out, mainContainer); problem != "" {
		return pod, problem
	}
	return out, findRemovedParts(pod, out, mainContainer)
}

// mergePod merges an overlay onto a pod. The library panics at some overlays that make no sense.
func mergePod(pod, overlay []byte) (merged []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it cannot be merged: %v", cause)
		}
	}()
	return strategicpatch.StrategicMergePatch(pod, overlay, corev1.PodTemplateSpec{})
}

// addArguments adds an overlay's arguments to those of the operator: a list of them
// would replace the operator's, and an overlay that repeats that would be wrong with the
// first operator that has one more. An argument that the operator sets stays the
// operator's.
func addArguments(before corev1.PodTemplateSpec, after *corev1.PodTemplateSpec, mainContainer string) string {
	old, now := findContainer(before.Spec.Containers, mainContainer), findContainer(after.Spec.Containers, mainContainer)
	if old == nil || now == nil {
		return ""
	}
	args := slices.Clone(old.Args)
	for _, arg := range now.Args {
		if slices.Contains(old.Args, arg) {
			continue
		}
		flag := flagOf(arg)
		if at := slices.IndexFunc(old.Args, func(own string) bool { return flag != "" && flagOf(own) == flag }); at >= 0 {
			return fmt.Sprintf("spec.overlay.spec.containers[%s].args: %q: the operator sets %s itself (%s): remove it from the overlay", mainContainer, arg, flag, old.Args[at])
		}
		args = append(args, arg)
	}
	now.Args = args
	return ""
}

// flagOf is the flag that an argument sets, without leading dashes; empty for one that
// is the value of the one before it. Servers in Go take one dash or two.
func flagOf(arg string) string {
	if !strings.HasPrefix(arg, "-") {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name
}

// checkOverlay finds unknown fields, which a merge would silently drop, and
// metadata that is not the user's.
func checkOverlay(raw []byte) string {
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return fmt.Sprintf("spec.overlay: %v: write it as {metadata, spec} of a pod", err)
	}
	for key := range tree {
		if key != "metadata" && key != "spec" {
			return fmt.Sprintf("spec.overlay.%s: unknown field: only metadata and spec are merged; remove it", key)
		}
	}
	if meta, ok := tree["metadata"].(map[string]any); ok {
		for key := range meta {
			if key != "labels" && key != "annotations" {
				return fmt.Sprintf("spec.overlay.metadata.%s: only labels and annotations are merged; remove it", key)
			}
		}
		for _, field := range []string{"labels", "annotations"} {
			values, _ := meta[field].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(values)) {
				// The operators tell pods apart by these, and keep records in them.
				if strings.HasPrefix(key, v1alpha1.LabelPrefix) {
					return fmt.Sprintf("spec.overlay.metadata.%s[%s]: %v: keys that begin with %s belong to the operators: remove it from the overlay, or choose another prefix", field, key, values[key], v1alpha1.LabelPrefix)
				}
			}
		}
	}
	plain, err := json.Marshal(withoutDirectives(tree))
	if err != nil {
		return fmt.Sprintf("spec.overlay: %v", err)
	}
	if err := decodeStrict(plain, &corev1.PodTemplateSpec{}); err != nil {
		return fmt.Sprintf("spec.overlay: %v: correct the field's name or type (kubectl explain pod.spec)", err)
	}
	return ""
}

// withoutDirectives drops the keys that steer a strategic merge, such as
// $patch, which no type knows.
func withoutDirectives(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			if !strings.HasPrefix(k, "$") {
				out[k] = withoutDirectives(e)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(x))
		for _, e := range x {
			out = append(out, withoutDirectives(e))
		}
		return out
	}
	return v
}

// findRemovedParts names what an overlay took away that must stay.
func findRemovedParts(before, after corev1.PodTemplateSpec, mainContainer string) string {
	for key, value := range before.Labels {
		if (strings.HasPrefix(key, v1alpha1.LabelPrefix) || strings.HasPrefix(key, "app.kubernetes.io/")) && after.Labels[key] != value {
			return fmt.Sprintf("spec.overlay.metadata.labels[%s]: %q belongs to the operator: remove it from the overlay", key, after.Labels[key])
		}
	}
	for key, value := range before.Annotations {
		if strings.HasPrefix(key, v1alpha1.LabelPrefix) && after.Annotations[key] != value {
			return fmt.Sprintf("spec.overlay.metadata.annotations: %s is gone: an overlay may not remove it", key)
		}
	}
	for _, old := range before.Spec.InitContainers {
		switch now := findContainer(after.Spec.InitContainers, old.Name); {
		case now == nil:
			return fmt.Sprintf("spec.overlay.spec.initContainers: container %q is gone: an overlay may not remove it", old.Name)
		case !slices.Equal(old.Command, now.Command) || len(now.Args) > 0:
			return fmt.Sprintf("spec.overlay.spec.initContainers[%s]: command and args belong to the operator: remove them from the overlay", old.Name)
		}
	}
	old, now := findContainer(before.Spec.Containers, mainContainer), findContainer(after.Spec.Containers, mainContainer)
	if old == nil {
		return ""
	}
	if now == nil {
		return fmt.Sprintf("spec.overlay.spec.containers: container %q is gone: an overlay may not remove it", mainContainer)
	}
	if !slices.Equal(old.Command, now.Command) {
		return fmt.Sprintf("spec.overlay.spec.containers[%s].command: belongs to the operator: remove it from the overlay", mainContainer)
	}
	if after.Spec.Subdomain != before.Spec.Subdomain || after.Spec.Hostname != before.Spec.Hostname {
		return "spec.overlay.spec: hostname and subdomain belong to the operator: remove them from the overlay"
	}
	if policy := after.Spec.RestartPolicy; policy != before.Spec.RestartPolicy && policy != corev1.RestartPolicyAlways {
		return fmt.Sprintf("spec.overlay.spec.restartPolicy: %q: a container that ends is started again: remove it from the overlay", policy)
	}
	for _, v := range before.Spec.Volumes {
		if !slices.ContainsFunc(after.Spec.Volumes, func(x corev1.Volume) bool { return x.Name == v.Name }) {
			return fmt.Sprintf("spec.overlay.spec.volumes: volume %q is gone: an overlay may not remove it", v.Name)
		}
	}
	return findChangedParts(*old, *now, before.Spec.Volumes)
}

// findChangedParts names what an overlay changed of the component's container that the rest
// rests on: the variables that its arguments name, the ports that probes and Services name, and
// where claims are mounted, which are not among the template's volumes. Without its claim a
// member would begin with no data.
func findChangedParts(old, now corev1.Container, volumes []corev1.Volume) string {
	at := fmt.Sprintf("spec.overlay.spec.containers[%s]", old.Name)
	for _, v := range ownVariables() {
		if !slices.ContainsFunc(now.Env, func(x corev1.EnvVar) bool { return equality.Semantic.DeepEqual(x, v) }) {
			return fmt.Sprintf("%s.env[%s]: it is gone or another, and arguments of the operator name it: remove it from the overlay", at, v.Name)
		}
	}
	for _, p := range old.Ports {
		if !slices.ContainsFunc(now.Ports, func(x corev1.ContainerPort) bool { return x.Name == p.Name && x.ContainerPort == p.ContainerPort }) {
			return fmt.Sprintf("%s.ports[%s]: it is gone or another, and probes and Services name it: remove it from the overlay", at, p.Name)
		}
	}
	for _, m := range old.VolumeMounts {
		same := func(x corev1.VolumeMount) bool {
			return x.MountPath == m.MountPath && x.Name == m.Name && x.SubPath == m.SubPath && x.SubPathExpr == ""
		}
		isClaim := !slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if isClaim && !slices.ContainsFunc(now.VolumeMounts, same) {
			return fmt.Sprintf("%s.volumeMounts[%s]: volume %q is mounted there, and has to be: remove it from the overlay", at, m.MountPath, m.Name)
		}
	}
	return ""
}

// findContainer returns the container of a name, nil if there is none.
func findContainer(containers []corev1.Container, name string) *corev1.Container {
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	return &containers[at]
}

// decodeStrict decodes JSON and refuses unknown and duplicate fields.
func decodeStrict(raw []byte, into any) error {
	problems, err := sigsjson.UnmarshalStrict(raw, into)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return problems[0]
	}
	return nil
}

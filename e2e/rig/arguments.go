package rig

import (
	"context"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
)

// settings returns what is in the configuration file of a pod's process.
func (a *actor) settings(ctx context.Context, pod *corev1.Pod) (map[string]any, error) {
	out := map[string]any{}
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		var files corev1.ConfigMap
		if err := a.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: v.ConfigMap.Name}, &files); err != nil {
			return nil, fmt.Errorf("get ConfigMap %s: %w", v.ConfigMap.Name, err)
		}
		for name, text := range files.Data {
			if !strings.HasSuffix(name, ".toml") {
				continue
			}
			if err := toml.Unmarshal([]byte(text), &out); err != nil {
				return nil, fmt.Errorf("read %s of ConfigMap %s: %w", name, files.Name, err)
			}
		}
	}
	return out, nil
}

// configure gives a process the configuration of its file. failed is what the
// process ends with that cannot start with it.
func (a *actor) configure(ctx context.Context, pod *corev1.Pod, into *process, read func(map[string]any) (*settings.Config, error)) (failed, err error) {
	file, err := a.settings(ctx, pod)
	if err != nil {
		return nil, err
	}
	into.config, failed = read(file)
	return failed, nil
}

// setting returns what the process of a pod runs with.
func (a *actor) setting(pod types.NamespacedName, key string) (string, error) {
	a.mu.Lock()
	running := a.processes[pod]
	a.mu.Unlock()
	if running == nil || running.config == nil {
		return "", fmt.Errorf("pod %s shows no configuration", pod.Name)
	}
	value, has := running.config.Value(key)
	if !has {
		return "", fmt.Errorf("pod %s does not know %s", pod.Name, key)
	}
	return value, nil
}

// containerArguments returns the --key=value arguments of the main container, with the
// pod's name, namespace and annotations filled in as they are now, which is what the
// kubelet does whenever it starts a container. One without a value is true.
func containerArguments(pod *corev1.Pod) map[string]string {
	known := []string{"$(POD_NAME)", pod.Name, "$(NAMESPACE)", pod.Namespace}
	for _, c := range pod.Spec.Containers {
		for _, e := range c.Env {
			if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
				continue
			}
			if key, found := strings.CutPrefix(e.ValueFrom.FieldRef.FieldPath, "metadata.annotations['"); found {
				known = append(known, "$("+e.Name+")", pod.Annotations[strings.TrimSuffix(key, "']")])
			}
		}
	}
	fill := strings.NewReplacer(known...)
	out := map[string]string{}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name != pod.Labels[v1alpha1.LabelComponent] {
			continue
		}
		for _, arg := range pod.Spec.Containers[i].Args {
			key, value, ok := strings.Cut(fill.Replace(arg), "=")
			if !ok {
				value = "true" // a flag of pd-server
			}
			out[key] = value
		}
	}
	return out
}

// initialCluster returns the names in --initial-cluster.
func initialCluster(list string) []string {
	if list == "" {
		return nil
	}
	var out []string
	for member := range strings.SplitSeq(list, ",") {
		name, _, _ := strings.Cut(member, "=")
		out = append(out, name)
	}
	return out
}

// imageVersion returns the tag of the main container's image, without the v.
func imageVersion(pod *corev1.Pod) string {
	_, tag, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
	return strings.TrimPrefix(tag, "v")
}

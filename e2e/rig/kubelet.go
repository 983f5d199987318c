package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// badImage is part of the name of every image that can't be pulled.
const badImage = "bad"

// process is what runs in a pod.
type process struct {
	pod  types.UID
	ip   string
	stop func() error
}

// run brings a scheduled pod from Pending to Ready, as far as it can get.
func (a *actor) run(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	if left := a.wait(pod, "start", a.delays.Start); left > 0 {
		return left, nil
	}
	reason, message, err := a.obstacle(ctx, pod)
	if err != nil {
		return 0, err
	}
	if reason != "" {
		return 0, a.patchStatus(ctx, pod, waitingPod(pod, reason, message))
	}
	running, startErr, err := a.start(ctx, pod)
	if err != nil {
		return 0, err
	}
	if startErr != nil {
		return again, a.patchStatus(ctx, pod, waitingPod(pod, "CrashLoopBackOff", ""))
	}
	left := a.wait(pod, "ready", a.delays.Ready)
	return left, a.patchStatus(ctx, pod, runningPod(pod, running.ip, left == 0))
}

// obstacle says what keeps the containers of a pod from being created.
func (a *actor) obstacle(ctx context.Context, pod *corev1.Pod) (reason, message string, err error) {
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		err := a.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: v.ConfigMap.Name}, &corev1.ConfigMap{})
		switch {
		case apierrors.IsNotFound(err):
			return "ContainerCreating", "", nil
		case err != nil:
			return "", "", fmt.Errorf("get ConfigMap %s: %w", v.ConfigMap.Name, err)
		}
	}
	for i := range pod.Spec.Containers {
		for _, e := range pod.Spec.Containers[i].Env {
			if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil {
				continue
			}
			name := e.ValueFrom.SecretKeyRef.Name
			err := a.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, &corev1.Secret{})
			switch {
			case apierrors.IsNotFound(err):
				return "CreateContainerConfigError", fmt.Sprintf("secret %q not found", name), nil
			case err != nil:
				return "", "", fmt.Errorf("get Secret %s: %w", name, err)
			}
		}
		if strings.Contains(pod.Spec.Containers[i].Image, badImage) {
			return "ImagePullBackOff", "", nil
		}
	}
	return "", "", nil
}

// start starts a pod's process unless it runs. failed is what the process ends
// with.
func (a *actor) start(ctx context.Context, pod *corev1.Pod) (running *process, failed, err error) {
	key := client.ObjectKeyFromObject(pod)
	a.mu.Lock()
	running = a.processes[key]
	a.mu.Unlock()
	if running != nil {
		return running, nil, nil
	}
	claim, err := a.data(ctx, pod)
	if err != nil {
		return nil, nil, err
	}
	db, err := a.databases.Of(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelCluster]})
	if err != nil {
		return nil, nil, err
	}
	running = &process{pod: pod.UID, stop: func() error { return nil }}
	switch args := arguments(pod); pod.Labels[v1alpha1.LabelComponent] {
	case v1alpha1.ComponentPD:
		settings, err := a.settings(ctx, pod)
		if err != nil {
			return nil, nil, err
		}
		failed = db.StartMember(Member{Name: pod.Name, Claim: claim, InitialCluster: founders(args["--initial-cluster"]), Config: settings})
		running.stop = func() error { return db.StopMember(pod.Name) }
	case v1alpha1.ComponentTiKV:
		failed = db.StartStore(Store{Claim: claim, Address: args["--advertise-addr"], Version: version(pod)})
		running.stop = func() error { db.StopStore(claim); return nil }
	case v1alpha1.ComponentTiFlash:
		failed = db.StartStore(Store{Claim: claim, Address: args["--flash.service_addr"], Version: version(pod), TiFlash: true})
		running.stop = func() error { db.StopStore(claim); return nil }
	case v1alpha1.ComponentTiDB:
		if !db.Serves() {
			return nil, errNoPD, nil
		}
		port, err := openStatusPort(ctx, a.addresses)
		if err != nil {
			return nil, nil, err
		}
		running.ip = port.ip
		running.stop = func() error { port.close(); return nil }
	}
	if failed != nil {
		return nil, failed, nil
	}
	if running.ip == "" {
		running.ip = a.addresses.next()
	}
	a.mu.Lock()
	a.processes[key] = running
	a.mu.Unlock()
	return running, nil, nil
}

// stop stops the process of a pod, except one that belongs to keep.
func (a *actor) stop(key types.NamespacedName, keep types.UID) error {
	a.mu.Lock()
	running := a.processes[key]
	if running == nil || running.pod == keep {
		a.mu.Unlock()
		return nil
	}
	delete(a.processes, key)
	delete(a.placed, running.pod)
	delete(a.spread, running.pod)
	a.mu.Unlock()
	if err := running.stop(); err != nil {
		return fmt.Errorf("stop pod %s: %w", key, err)
	}
	return nil
}

// close stops everything.
func (a *actor) close() error {
	a.mu.Lock()
	keys := make([]types.NamespacedName, 0, len(a.processes))
	for key := range a.processes {
		keys = append(keys, key)
	}
	a.mu.Unlock()
	for _, key := range keys {
		if err := a.stop(key, ""); err != nil {
			return err
		}
	}
	return nil
}

// data returns the claim that holds a pod's data, empty if it has none.
func (a *actor) data(ctx context.Context, pod *corev1.Pod) (types.UID, error) {
	claims := claimNames(pod)
	if len(claims) == 0 {
		return "", nil
	}
	var claim corev1.PersistentVolumeClaim
	if err := a.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: claims[0]}, &claim); err != nil {
		return "", fmt.Errorf("get claim %s: %w", claims[0], err)
	}
	return claim.UID, nil
}

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

// arguments returns the --key=value arguments of the main container, with the
// pod's name and namespace filled in.
func arguments(pod *corev1.Pod) map[string]string {
	fill := strings.NewReplacer("$(POD_NAME)", pod.Name, "$(NAMESPACE)", pod.Namespace)
	out := map[string]string{}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name != pod.Labels[v1alpha1.LabelComponent] {
			continue
		}
		for _, arg := range pod.Spec.Containers[i].Args {
			if key, value, ok := strings.Cut(fill.Replace(arg), "="); ok {
				out[key] = value
			}
		}
	}
	return out
}

// founders returns the names in --initial-cluster.
func founders(list string) []string {
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

// version returns the tag of the main container's image, without the v.
func version(pod *corev1.Pod) string {
	_, tag, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
	return strings.TrimPrefix(tag, "v")
}

// waitingPod returns the pod with containers that do not run.
func waitingPod(pod *corev1.Pod, reason, message string) *corev1.Pod {
	out := pod.DeepCopy()
	out.Status.Phase = corev1.PodPending
	setPodCondition(out, corev1.PodScheduled, corev1.ConditionTrue, "", "")
	setPodCondition(out, corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "")
	out.Status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image}
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		if reason != "ImagePullBackOff" || strings.Contains(c.Image, badImage) {
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
		}
		out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, status)
	}
	return out
}

// runningPod returns the pod with running containers.
func runningPod(pod *corev1.Pod, ip string, ready bool) *corev1.Pod {
	out := pod.DeepCopy()
	out.Status.Phase = corev1.PodRunning
	out.Status.PodIP, out.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	setPodCondition(out, corev1.PodScheduled, corev1.ConditionTrue, "", "")
	status, reason := corev1.ConditionTrue, ""
	if !ready {
		status, reason = corev1.ConditionFalse, "ContainersNotReady"
	}
	setPodCondition(out, corev1.PodReady, status, reason, "")
	before := pod.Status.ContainerStatuses
	out.Status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		container := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "rig://" + string(pod.UID) + "/" + c.Name, Ready: ready}
		started := metav1.Now()
		if at := slices.IndexFunc(before, func(s corev1.ContainerStatus) bool { return s.Name == c.Name && s.State.Running != nil }); at >= 0 {
			started = before[at].State.Running.StartedAt
		}
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
		out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, container)
	}
	return out
}

func setPodCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	condition := corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if at < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, condition)
		return
	}
	if pod.Status.Conditions[at].Status == status {
		condition.LastTransitionTime = pod.Status.Conditions[at].LastTransitionTime
	}
	pod.Status.Conditions[at] = condition
}

// patchStatus writes a pod's status if it has changed.
func (a *actor) patchStatus(ctx context.Context, before, after *corev1.Pod) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	if err := a.client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write status of pod %s: %w", before.Name, err)
	}
	return nil
}

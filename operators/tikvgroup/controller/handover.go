package controller

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	// toolsVolume is where the program lies that the hooks of a pod call.
	toolsVolume = revision.ToolsContainer
	toolsDir    = "/tidb-groups"
	handover    = toolsDir + "/handover"
	// handoverRecord is the file by which it knows what it has told PD. TiKV leaves
	// files that it does not know alone.
	handoverRecord = dataDir + "/.tidb-groups-handover"
	// readmitSeconds is for how long a store that has just been started may not get
	// through to PD before it is started again. Without PD it does not serve anyway.
	readmitSeconds = 60
)

// handOver has a store give its leaders away before it is stopped, whoever stops it,
// and lets it lead again afterwards (KV-16). Both are done in the pod, so that no
// operator has to run. It has half of the grace period for it; the rest is TiKV's own.
func handOver(g *v1alpha1.TiKVGroup, m *workload.Main, image string) {
	grace := m.GraceSeconds
	if own := g.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = *own
	}
	within := time.Duration(grace) * time.Second / 2
	if within <= 0 {
		return // it is killed at once
	}
	pd := fmt.Sprintf("--pd=http://%s:%d", names.ServiceHost(g.PDGroupName(), g.Namespace), v1alpha1.PortPDClient)
	hook := func(command ...string) *corev1.LifecycleHandler {
		return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: append([]string{handover}, command...)}}
	}
	m.Lifecycle = &corev1.Lifecycle{
		PostStart: hook("start", pd, "--record="+handoverRecord, fmt.Sprintf("--within=%ds", readmitSeconds)),
		PreStop: hook("stop", pd, "--record="+handoverRecord, "--within="+within.String(),
			fmt.Sprintf("--address=%s:%d", names.PodHost("$(POD_NAME)", g.Name, g.Namespace), v1alpha1.PortTiKV)),
	}
	mount := corev1.VolumeMount{Name: toolsVolume, MountPath: toolsDir}
	m.Volumes = append(m.Volumes, corev1.Volume{Name: toolsVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	m.Init = append(m.Init, corev1.Container{
		Name: revision.ToolsContainer, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/handover", "install", handover},
		// Kubernetes counts the larger of init containers and containers, and a quota
		// wants to know of each: with the store's own nothing changes for either.
		Resources:       workload.ContainerResources(g.Spec.Resources),
		VolumeMounts:    []corev1.VolumeMount{mount},
		SecurityContext: workload.Unprivileged(false),
	})
	mount.ReadOnly = true
	m.Mounts = append(m.Mounts, mount)
}

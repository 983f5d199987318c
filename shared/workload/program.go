package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/revision"
)

const (
	// programVolume is where a program of ours lies that the hooks of a pod call.
	programVolume = revision.ToolsContainer
	programDir    = "/tidb-groups"
)

// Grace is the termination grace period of a pod: the user's, or the component's.
func (m Main) Grace(g v1alpha1.Group) time.Duration {
	seconds := m.GraceSeconds
	if own := g.GetComponentSpec().TerminationGracePeriodSeconds; own != nil {
		seconds = *own
	}
	return time.Duration(seconds) * time.Second
}

// BringProgram adds an init container of the operator's image that copies a program
// into the pod ("install" and the place), and returns the path by which the component's
// container calls it. The component's own image has to have nothing for that.
func BringProgram(g v1alpha1.Group, m *Main, image, program string) string {
	path := programDir + "/" + program
	mount := corev1.VolumeMount{Name: programVolume, MountPath: programDir}
	m.Volumes = append(m.Volumes, corev1.Volume{Name: programVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	m.Init = append(m.Init, corev1.Container{
		Name: revision.ToolsContainer, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/" + program, "install", path},
		// Kubernetes counts the larger of init containers and containers, and a quota
		// wants to know of each: with the component's own nothing changes for either.
		Resources:       ContainerResources(g.GetComponentSpec().Resources),
		VolumeMounts:    []corev1.VolumeMount{mount},
		SecurityContext: UnprivilegedContext(false),
	})
	mount.ReadOnly = true
	m.Mounts = append(m.Mounts, mount)
	return path
}

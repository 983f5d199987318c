package workload

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// tailScript prints files as they grow and ends at once on SIGTERM: a
// bare tail as the first process of a container ignores SIGTERM, and the pod
// would only stop when its grace period is over. The files are its arguments.
const tailScript = `tail -n0 -F "$@" & trap 'kill $!' TERM INT; wait $!`

// tailerImage is used by objects that no API server has given its default.
const tailerImage = "busybox:1.37.0"

// Tailer returns a sidecar that prints log files to its standard output.
func Tailer(name string, sidecar *v1alpha1.Sidecar, mounts []corev1.VolumeMount, files ...string) corev1.Container {
	image := sidecar.Image
	if image == "" {
		image = tailerImage
	}
	return corev1.Container{
		Name:            name,
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         append([]string{"sh", "-c", tailScript, name}, files...),
		Resources:       ContainerResources(sidecar.Resources),
		VolumeMounts:    mounts,
		SecurityContext: UnprivilegedContext(false),
	}
}

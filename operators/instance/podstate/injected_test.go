package podstate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
)

// Admission webhooks put containers into pods, as those of service meshes do: no field of ours has their image.
func TestTheImageOfAContainerThatOthersPutInIsNoFieldOfTheSpec(t *testing.T) {
	pod := onNode()
	pod.Labels = map[string]string{"app.kubernetes.io/component": "tikv"}
	s := &observation.Snapshot{Instance: instance(), Pod: pod, Now: clock(), Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "mine-first"}}, Containers: []corev1.Container{{Name: "tikv"}, {Name: "mine"}},
	}}}
	refused := func(name string) string {
		return containerOutcome(s, pod, corev1.ContainerStatus{Name: name, Image: "a:b", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}).Message
	}
	assert.Contains(t, refused("istio-proxy"), "correct it in what has put the container into the pod, such as a service mesh")
	for _, own := range []string{"mine", "mine-first"} {
		assert.Contains(t, refused(own), "overlay", own)
	}
	s.Template = nil
	assert.Contains(t, refused("istio-proxy"), "overlay", "whose it is is not known")
}

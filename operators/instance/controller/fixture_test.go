package controller

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// clock is a time of whole seconds, as the API keeps it.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func podTemplate(changes ...func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app.kubernetes.io/component": "pd", "team": "blue"},
			Annotations: map[string]string{"note": "one"},
		},
		Spec: corev1.PodSpec{
			Subdomain: "basic-pd-peer",
			Containers: []corev1.Container{{
				Name: "pd", Image: "pingcap/pd:v8.5.7", Args: []string{"--initial-cluster=a"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/pd"}},
			}},
		},
	}
	for _, change := range changes {
		change(t)
	}
	return t
}

func image(name string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = name }
}

func label(key, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Labels[key] = value }
}

func args(args ...string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Args = args }
}

func raw(t *testing.T, template *corev1.PodTemplateSpec) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(template)
	require.NoError(t, err)
	return runtime.RawExtension{Raw: text}
}

func newInstance(t *testing.T, namespace string) *v1alpha1.Instance {
	t.Helper()
	return &v1alpha1.Instance{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindInstance},
		ObjectMeta: metav1.ObjectMeta{Name: "basic-pd-0", Namespace: namespace},
		Spec: v1alpha1.InstanceSpec{
			Group:       v1alpha1.InstanceGroup{Kind: v1alpha1.KindPDGroup, Name: "basic-pd"},
			Revision:    "r1",
			PodTemplate: raw(t, podTemplate()),
			VolumeClaimTemplates: []v1alpha1.VolumeClaimTemplate{
				{Name: "data", Storage: resource.MustParse("1Gi"), StorageClassName: ptr.To("fast")},
			},
			ClaimRetention: v1alpha1.ClaimRetention{WhenDeleted: v1alpha1.RetainClaim, WhenScaled: v1alpha1.RetainClaim},
			ClaimLoss:      v1alpha1.HoldOnClaimLoss,
		},
	}
}

// world is an Instance that runs: pod ready, claim bound and recorded.
func world(t *testing.T, changes ...func(*snapshot)) *snapshot {
	t.Helper()
	i := newInstance(t, "ns")
	i.UID, i.Generation = "instance-uid", 3
	i.Finalizers = []string{v1alpha1.FinalizerInstance}
	i.Status.Volumes = []v1alpha1.VolumeStatus{{Name: "data", ClaimName: "data-basic-pd-0", ClaimUID: "claim-uid"}}
	pod, err := renderPod(i, podTemplate())
	require.NoError(t, err)
	pod.UID, pod.Spec.NodeName = "pod-uid", "n1"
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1",
		Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "pd", Image: "pingcap/pd:v8.5.7", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	}
	claim := renderClaim(i, podTemplate(), i.Spec.VolumeClaimTemplates[0])
	claim.UID, claim.Spec.VolumeName = "claim-uid", "pv"
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}
	s := &snapshot{
		instance: i, pod: pod, template: podTemplate(),
		volumes: []volume{{template: i.Spec.VolumeClaimTemplates[0], name: "data-basic-pd-0", recorded: "claim-uid", claim: claim}},
		classes: map[string]*storagev1.StorageClass{"fast": {ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "disk.example"}},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func noPod(s *snapshot)   { s.pod = nil }
func noClaim(s *snapshot) { s.volumes[0].claim = nil }
func unrecorded(s *snapshot) {
	s.volumes[0].recorded = ""
	s.instance.Status.Volumes = nil
}
func otherClaim(s *snapshot) { s.volumes[0].claim.UID = "other-uid" }
func pendingClaim(s *snapshot) {
	s.volumes[0].claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	s.volumes[0].claim.Spec.VolumeName = ""
}

// asksFor lets the claim ask for another size than its volume of 1Gi has.
func asksFor(size string) func(*snapshot) {
	return func(s *snapshot) {
		s.volumes[0].claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

// attributes lets the spec ask for a VolumeAttributesClass, the claim likewise, and
// the volume have one; empty for none.
func attributes(wanted, asked, has string) func(*snapshot) {
	optional := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	return func(s *snapshot) {
		s.volumes[0].template.VolumeAttributesClassName = optional(wanted)
		s.volumes[0].claim.Spec.VolumeAttributesClassName = optional(asked)
		s.volumes[0].claim.Status.CurrentVolumeAttributesClassName = optional(has)
	}
}

func classless(s *snapshot) { s.volumes[0].classless = true }
func dropped(s *snapshot)   { s.volumes[0].dropped = true }

// claimSays gives the claim a condition.
func claimSays(kind corev1.PersistentVolumeClaimConditionType) func(*snapshot) {
	return func(s *snapshot) {
		s.volumes[0].claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: kind, Status: corev1.ConditionTrue, Message: "request 17 failed"}}
	}
}
func recreate(s *snapshot)  { s.instance.Spec.ClaimLoss = v1alpha1.RecreateLostClaim }
func suspended(s *snapshot) { s.instance.Spec.Suspended = true }
func paused(s *snapshot)    { s.instance.Spec.Paused = true }
func retire(s *snapshot)    { s.instance.Spec.Retire = true }
func deleting(s *snapshot)  { s.instance.DeletionTimestamp = ptr.To(metav1.NewTime(clock())) }
func member(s *snapshot) {
	s.instance.Finalizers = append(s.instance.Finalizers, v1alpha1.FinalizerMember)
}
func drained(s *snapshot) {
	s.instance.Status.Conditions = append(s.instance.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue})
}
func deleteClaims(s *snapshot) {
	s.instance.Spec.ClaimRetention = v1alpha1.ClaimRetention{WhenDeleted: v1alpha1.DeleteClaim, WhenScaled: v1alpha1.DeleteClaim}
}
func terminatingClaim(s *snapshot) {
	s.volumes[0].claim.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
}
func terminatingPod(s *snapshot) { s.pod.DeletionTimestamp = ptr.To(metav1.NewTime(clock())) }
func retired(s *snapshot) {
	s.volumes[0].claim.Annotations = map[string]string{v1alpha1.AnnotationRetired: "scaled in"}
}

// adopted says what a person does by the annotation.
func adopted(by string) func(*snapshot) {
	return func(s *snapshot) {
		s.volumes[0].claim.Annotations = map[string]string{v1alpha1.AnnotationAdopt: by}
	}
}

func foreign(s *snapshot) {
	s.pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "x", UID: "x", Controller: ptr.To(true)}}
}

// groupless has the group go before its Instance.
func groupless(s *snapshot) { s.ownerless = true }
func alone(s *snapshot)     { s.alone = true }
func ownerless(s *snapshot) { s.pod.OwnerReferences = nil }
func finalizers(f ...string) func(*snapshot) {
	return func(s *snapshot) { s.instance.Finalizers = f }
}

// revised gives the spec another revision with another template.
func revised(changes ...func(*corev1.PodTemplateSpec)) func(*snapshot) {
	return func(s *snapshot) { s.instance.Spec.Revision, s.template = "r2", podTemplate(changes...) }
}

// respelled gives the spec another template under the same revision.
func respelled(changes ...func(*corev1.PodTemplateSpec)) func(*snapshot) {
	return func(s *snapshot) { s.template = podTemplate(changes...) }
}

func notReadyPod(container corev1.ContainerStatus) func(*snapshot) {
	return func(s *snapshot) {
		s.pod.Status.Conditions[1].Status = corev1.ConditionFalse
		container.Name, container.Image = "pd", "pingcap/pd:v8.5.7"
		s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{container}
	}
}

// initContainer is in a state while the pod is being started.
func initContainer(state corev1.ContainerState) func(*snapshot) {
	return func(s *snapshot) {
		s.pod.Spec.InitContainers = []corev1.Container{{Name: "users"}}
		s.pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "users", State: state}}
	}
}

func waitingPod(reason, message string) func(*snapshot) {
	return notReadyPod(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
}

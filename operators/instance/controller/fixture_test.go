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
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/podtemplate"
	"github.com/tidb-groups/tidb-groups/operators/instance/volumeclaim"
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
func world(t *testing.T, changes ...func(*observation.Snapshot)) *observation.Snapshot {
	t.Helper()
	i := newInstance(t, "ns")
	i.UID, i.Generation = "instance-uid", 3
	i.Finalizers = []string{v1alpha1.FinalizerInstance}
	i.Status.Volumes = []v1alpha1.VolumeStatus{{Name: "data", ClaimName: "data-basic-pd-0", ClaimUID: "claim-uid"}}
	pod, err := podtemplate.Render(i, podTemplate())
	require.NoError(t, err)
	pod.UID, pod.Spec.NodeName = "pod-uid", "n1"
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1",
		Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "pd", Image: "pingcap/pd:v8.5.7", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	}
	claim := volumeclaim.Render(i, podTemplate(), i.Spec.VolumeClaimTemplates[0])
	claim.UID, claim.Spec.VolumeName = "claim-uid", "pv"
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}
	s := &observation.Snapshot{
		Instance: i, Pod: pod, Template: podTemplate(),
		Volumes: []observation.Volume{{Template: i.Spec.VolumeClaimTemplates[0], Name: "data-basic-pd-0", Recorded: "claim-uid", Claim: claim}},
		Classes: map[string]*storagev1.StorageClass{"fast": {ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "disk.example"}},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func noPod(s *observation.Snapshot)   { s.Pod = nil }
func noClaim(s *observation.Snapshot) { s.Volumes[0].Claim = nil }
func unrecorded(s *observation.Snapshot) {
	s.Volumes[0].Recorded = ""
	s.Instance.Status.Volumes = nil
}
func otherClaim(s *observation.Snapshot) { s.Volumes[0].Claim.UID = "other-uid" }
func pendingClaim(s *observation.Snapshot) {
	s.Volumes[0].Claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	s.Volumes[0].Claim.Spec.VolumeName = ""
}

// asksFor lets the claim ask for another size than its volume of 1Gi has.
func asksFor(size string) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) {
		s.Volumes[0].Claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

// attributes lets the spec ask for a VolumeAttributesClass, the claim likewise, and
// the volume have one; empty for none.
func attributes(wanted, asked, has string) func(*observation.Snapshot) {
	optional := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	return func(s *observation.Snapshot) {
		s.Volumes[0].Template.VolumeAttributesClassName = optional(wanted)
		s.Volumes[0].Claim.Spec.VolumeAttributesClassName = optional(asked)
		s.Volumes[0].Claim.Status.CurrentVolumeAttributesClassName = optional(has)
	}
}

func classless(s *observation.Snapshot) { s.Volumes[0].Classless = true }
func dropped(s *observation.Snapshot)   { s.Volumes[0].Dropped = true }

// claimSays gives the claim a condition.
func claimSays(kind corev1.PersistentVolumeClaimConditionType) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) {
		s.Volumes[0].Claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: kind, Status: corev1.ConditionTrue, Message: "request 17 failed"}}
	}
}
func recreate(s *observation.Snapshot)  { s.Instance.Spec.ClaimLoss = v1alpha1.RecreateLostClaim }
func suspended(s *observation.Snapshot) { s.Instance.Spec.Suspended = true }
func paused(s *observation.Snapshot)    { s.Instance.Spec.Paused = true }
func retire(s *observation.Snapshot)    { s.Instance.Spec.Retire = true }
func deleting(s *observation.Snapshot) {
	s.Instance.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
}
func member(s *observation.Snapshot) {
	s.Instance.Finalizers = append(s.Instance.Finalizers, v1alpha1.FinalizerMember)
}
func drained(s *observation.Snapshot) {
	s.Instance.Status.Conditions = append(s.Instance.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue})
}
func deleteClaims(s *observation.Snapshot) {
	s.Instance.Spec.ClaimRetention = v1alpha1.ClaimRetention{WhenDeleted: v1alpha1.DeleteClaim, WhenScaled: v1alpha1.DeleteClaim}
}
func terminatingClaim(s *observation.Snapshot) {
	s.Volumes[0].Claim.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
}
func terminatingPod(s *observation.Snapshot) {
	s.Pod.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
}
func retired(s *observation.Snapshot) {
	s.Volumes[0].Claim.Annotations = map[string]string{v1alpha1.AnnotationRetired: "scaled in"}
}

// adopted says what a user does by the annotation.
func adopted(by string) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) {
		s.Volumes[0].Claim.Annotations = map[string]string{v1alpha1.AnnotationAdopt: by}
	}
}

func foreign(s *observation.Snapshot) {
	s.Pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "x", UID: "x", Controller: ptr.To(true)}}
}

// groupless has the group go before its Instance.
func groupless(s *observation.Snapshot) { s.Ownerless = true }
func alone(s *observation.Snapshot)     { s.Alone = true }
func ownerless(s *observation.Snapshot) { s.Pod.OwnerReferences = nil }
func finalizers(f ...string) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) { s.Instance.Finalizers = f }
}

// revised gives the spec another revision with another template.
func revised(changes ...func(*corev1.PodTemplateSpec)) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) { s.Instance.Spec.Revision, s.Template = "r2", podTemplate(changes...) }
}

// respelled gives the spec another template under the same revision.
func respelled(changes ...func(*corev1.PodTemplateSpec)) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) { s.Template = podTemplate(changes...) }
}

func notReadyPod(container corev1.ContainerStatus) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) {
		s.Pod.Status.Conditions[1].Status = corev1.ConditionFalse
		container.Name, container.Image = "pd", "pingcap/pd:v8.5.7"
		s.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{container}
	}
}

// initContainer is in a state while the pod is being started.
func initContainer(state corev1.ContainerState) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) {
		s.Pod.Spec.InitContainers = []corev1.Container{{Name: "users"}}
		s.Pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "users", State: state}}
	}
}

func waitingPod(reason, message string) func(*observation.Snapshot) {
	return notReadyPod(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
}

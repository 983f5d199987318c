package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
)

// besideSidecar is the pod of a Job whose program has ended beside a container that a service mesh has put in.
func besideSidecar(j *batchv1.Job, code int32, message string) *corev1.Pod {
	return pod(j, func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		s.InitContainerStatuses = []corev1.ContainerStatus{{Name: "program", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		s.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "istio-proxy", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: jobtemplate.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message, FinishedAt: metav1.Time{Time: clock()}}}},
		}
	})
}

// A container of a service mesh runs on forever, and with it the pod and its Job.
func TestBR04ARunEndsWithItsProgramBesideAContainerThatGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		code          int32
		message, want string
		state         v1alpha1.RunState
	}{
		"it is complete":          {0, `{"bytes":1024}`, "", v1alpha1.RunComplete},
		"it could not begin":      {1, `{"reason":"StorageUnreachable","message":"no answer"}`, "no answer; it is tried again after", v1alpha1.RunWaiting},
		"it has failed":           {1, `{"begun":true,"reason":"RunFailed","message":"broken"}`, "broken; to run it again delete it", v1alpha1.RunFailed},
		"it has ended wordlessly": {137, "", "container run of its pod ended without a message", v1alpha1.RunWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			b := toRetained()
			j := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Start
			b.Status.State, b.Status.Attempts = v1alpha1.RunRunning, 1
			seen := Seen{Group: group(), Image: image, Now: clock().Add(lag), Jobs: []*batchv1.Job{j}, Pods: []*corev1.Pod{besideSidecar(j, c.code, c.message)}}
			p := MakePlan(b, seen)
			assert.Equal(t, c.state, p.Status.State)
			assert.Contains(t, p.Outcome.Message, c.want)
			assert.Empty(t, p.Stop, "before its end stands in status")
			b.Status.RunStatus = p.Status
			seen.Now = clock().Add(time.Hour)
			assert.Len(t, MakePlan(b, seen).Stop, 1, "nothing else ends the pod, and other physical runs wait for the Job")
		})
	}
}

func TestBR04AProgramThatRunsBesideOtherContainersHasNotEnded(t *testing.T) {
	b := toRetained()
	j := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Start
	goes := besideSidecar(j, 0, "")
	goes.Status.ContainerStatuses[1].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	p := MakePlan(b, Seen{Group: group(), Image: image, Now: clock().Add(time.Hour), Jobs: []*batchv1.Job{j}, Pods: []*corev1.Pod{goes}})
	assert.Equal(t, v1alpha1.RunRunning, p.Status.State)
}

func TestBR01AJobOfALogBackupEndsWithItsProgramBesideAContainerThatGoesOn(t *testing.T) {
	l := running()
	j := jobtemplate.RenderLog(l, jobtemplate.Task{State: v1alpha1.LogRunning}, group(), image, 8)
	j.CreationTimestamp = metav1.Time{Time: clock().Add(-time.Second)}
	seen := Seen{Group: group(), Image: image, Now: clock().Add(lag), Jobs: []*batchv1.Job{j}, Pods: []*corev1.Pod{besideSidecar(j, 0, `{"log":{"task":"Running","start":"`+text(tso(0))+`","checkpoint":"`+text(tso(55))+`"}}`)}}
	p := MakePlan(l, seen)
	assert.Equal(t, text(tso(55)), p.Log.Checkpoint)
	l.Status, l.Status.RunStatus = p.Log, p.Status
	assert.Len(t, MakePlan(l, seen).Stop, 1)
}

func TestBR04FilesAreGoneWhenTheProgramThatDeletesThemHasEnded(t *testing.T) {
	b := toS3()
	b.Spec.CleanupPolicy, b.Finalizers, b.DeletionTimestamp = v1alpha1.CleanupDelete, []string{v1alpha1.FinalizerBackup}, &metav1.Time{Time: clock()}
	j := jobtemplate.RenderClean(b, jobtemplate.FilesOf(b), nil, image)
	p := MakePlan(b, Seen{Group: group(), Image: image, Now: clock().Add(lag), Jobs: []*batchv1.Job{j}, Pods: []*corev1.Pod{besideSidecar(j, 0, "{}")}})
	assert.True(t, p.Release)
	assert.Len(t, p.Stop, 1)
}

// What a Job has done is lost with its pod, and a Restore is never begun again.
func TestBR04NodesOfJobsAreNotRemovedToSaveCosts(t *testing.T) {
	seen := Seen{Group: group(), Image: image, Now: clock()}
	for _, j := range []*batchv1.Job{
		MakePlan(toRetained(), seen).Start, MakePlan(fromPVC(), seen).Start,
		jobtemplate.RenderLog(running(), jobtemplate.Task{State: v1alpha1.LogRunning}, group(), image, 8), jobtemplate.RenderClean(toS3(), jobtemplate.FilesOf(toS3()), nil, image),
	} {
		pod := j.Spec.Template.Annotations
		assert.Equal(t, "false", pod["cluster-autoscaler.kubernetes.io/safe-to-evict"], j.Name)
		assert.Equal(t, "true", pod["karpenter.sh/do-not-disrupt"], j.Name)
		assert.NotEmpty(t, pod[v1alpha1.AnnotationRun], j.Name)
	}
}

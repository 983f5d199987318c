package controller

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// rig is what TestMain hands to the tests: an API server with the CRDs. Each test runs the
// operator in a namespace of its own, and plays Jobs, pods and the TiDBGroup.
var rig *stage.Server

func TestMain(m *testing.M) {
	options := stage.Options{Options: controlplane.Options{CRDPaths: []string{"../../../deploy/crds"}}}
	os.Exit(stage.Main(m, options, func(r *stage.Server) { rig = r }))
}

// image is what the operator runs from.
const image = "tidb-groups/backup-operator:v7"

// world is a stage with the operator.
type world struct {
	*stage.Stage
	group    *v1alpha1.TiDBGroup
	operator *stage.Operator
}

// begin makes a world and starts the operator in it, beside the worlds of other tests.
func begin(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return beginAlone(t)
}

// beginAlone is begin for a test that measures what the process uses.
func beginAlone(t *testing.T) *world {
	t.Helper()
	w := &world{Stage: rig.Stage(t)}
	w.group = &v1alpha1.TiDBGroup{ObjectMeta: w.Meta("basic-tidb"), Spec: v1alpha1.TiDBGroupSpec{
		TiDBTemplate: v1alpha1.TiDBTemplate{ComponentSpec: stage.Component()}, PDGroup: v1alpha1.LocalReference{Name: "basic-pd"},
	}}
	w.operator = w.Operate(Definition(), func(f *operator.Flags) { f.Image = image })
	return w
}

// serve makes the TiDBGroup Ready.
func (w *world) serve() {
	w.Helper()
	if w.group.UID == "" {
		w.Create(w.group)
	}
	w.Edit(w.group, func() {})
	w.group.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, ObservedGeneration: w.group.Generation, LastTransitionTime: metav1.Now()}}
	require.NoError(w, w.Client.Status().Update(w.Context(), w.group))
}

// backup is one to a bucket.
func (w *world) backup(name string) *v1alpha1.Backup {
	return &v1alpha1.Backup{ObjectMeta: w.Meta(name), Spec: v1alpha1.BackupSpec{BackupTemplate: template()}}
}

func template() v1alpha1.BackupTemplate {
	return v1alpha1.BackupTemplate{
		TiDBGroup: v1alpha1.LocalReference{Name: "basic-tidb"},
		Storage:   v1alpha1.Storage{S3: &v1alpha1.S3Storage{Bucket: "backups", Prefix: "shop", Secret: &v1alpha1.LocalReference{Name: "keys"}}},
	}
}

// state waits for the state of a run.
func (w *world) state(run v1alpha1.Run, want v1alpha1.RunState, words string) {
	w.Helper()
	o, _ := run.(client.Object)
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		require.NoError(c, w.Client.Get(w.Context(), client.ObjectKeyFromObject(o), o))
		assert.Equal(c, want, run.GetRunStatus().State, stage.Dump(o))
		assert.Contains(c, stage.Dump(o), words)
	}, machine.StretchWait(stage.Timeout), stage.Tick)
}

// job waits for a Job.
func (w *world) job(name string) *batchv1.Job {
	w.Helper()
	j := &batchv1.Job{}
	require.Eventually(w, func() bool { return w.Client.Get(w.Context(), w.Key(name), j) == nil }, machine.StretchWait(stage.Timeout), stage.Tick, name)
	return j
}

// hasNoJob reports that a Job does not exist.
func (w *world) hasNoJob(name string) bool {
	return apierrors.IsNotFound(w.Client.Get(w.Context(), w.Key(name), &batchv1.Job{}))
}

// runPod plays the controller of Jobs, which has made a Job's pod: one without is told of after a while.
func (w *world) runPod(name string) {
	w.Helper()
	j := w.job(name)
	j.Status.Active, j.Status.StartTime = 1, ptr.To(metav1.Now())
	require.NoError(w, w.Client.Status().Update(w.Context(), j))
}

// end plays the pod of a Job, which leaves a result, and then the controller of Jobs. ago is
// how long it is over.
func (w *world) end(name string, r result.Result, ago metav1.Time) {
	w.Helper()
	j := w.job(name)
	text, err := json.Marshal(r)
	require.NoError(w, err)
	pod := &corev1.Pod{ObjectMeta: w.Meta(name + "-x7k2p"), Spec: *j.Spec.Template.Spec.DeepCopy()}
	pod.Labels, pod.Annotations = j.Spec.Template.Labels, j.Spec.Template.Annotations
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))}
	w.Create(pod)
	code, before, after, why := int32(0), batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, batchv1.JobReasonCompletionsReached
	pod.Status.Phase, j.Status.Succeeded, j.Status.Active = corev1.PodSucceeded, 1, 0
	if r.Reason != "" {
		code, before, after, why = 1, batchv1.JobFailureTarget, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded
		pod.Status.Phase, j.Status.Succeeded, j.Status.Failed = corev1.PodFailed, 0, 1
	} else {
		j.Status.CompletionTime = &ago
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: jobtemplate.Container}}
	pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: string(text)}
	require.NoError(w, w.Client.Status().Update(w.Context(), pod))
	if j.Status.StartTime == nil {
		j.Status.StartTime = &ago
	}
	j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for _, kind := range []batchv1.JobConditionType{before, after} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: why, LastProbeTime: ago, LastTransitionTime: ago})
	}
	require.NoError(w, w.Client.Status().Update(w.Context(), j))
}

// collect waits until a Job is deleted, and plays the garbage collector.
func (w *world) collect(name string) {
	w.Helper()
	require.Eventually(w, func() bool {
		j := &batchv1.Job{}
		err := w.Client.Get(w.Context(), w.Key(name), j)
		if err == nil && j.DeletionTimestamp != nil {
			j.Finalizers = nil
			err = w.Client.Update(w.Context(), j)
		}
		return apierrors.IsNotFound(err)
	}, machine.StretchWait(stage.Timeout), stage.Tick, name)
}

// pod is any.
func (w *world) pod() *corev1.PodSpec {
	return &corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "b"}}}
}

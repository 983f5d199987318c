package job

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/cluster"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/runner"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/golden"
)

const image = "tidb-groups/backup-operator:v7"

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func group() *v1alpha1.TiDBGroup {
	g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: "db", Generation: 1}}
	g.Spec.Version, g.Spec.PDGroup.Name = "v8.5.7", "basic-pd"
	g.Spec.ImagePullSecrets = []v1alpha1.LocalReference{{Name: "registry"}}
	g.Spec.Service = &v1alpha1.ServiceSpec{Ports: []v1alpha1.ServicePort{{Name: "mysql", Port: 3306}}}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	return g
}

func toS3() *v1alpha1.Backup {
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "monday", Namespace: "db", UID: "u1"}}
	b.Spec.TiDBGroup.Name = "basic-tidb"
	b.Spec.Login = v1alpha1.Login{User: "copy", PasswordSecret: &v1alpha1.KeyReference{Name: "people", Key: "copy"}}
	b.Spec.Storage.S3 = &v1alpha1.S3Storage{Bucket: "backups", Prefix: "a/b", Endpoint: "http://s3:7070", Secret: &v1alpha1.LocalReference{Name: "keys"}}
	b.Spec.Filters = []string{"shop.*", "!/^x$(y)/.*"}
	return b
}

func fromPVC() *v1alpha1.Restore {
	r := &v1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: "back", Namespace: "db", UID: "u2"}}
	r.Spec.TiDBGroup.Name = "basic-tidb"
	r.Spec.From = v1alpha1.RestoreSource{Storage: &v1alpha1.Storage{PVC: &v1alpha1.PVCStorage{ClaimName: "old", Path: "copies"}}, Folder: "sunday"}
	return r
}

func TestBR04JobsAreRenderedFromTheSpec(t *testing.T) {
	b := toS3()
	b.Spec.CleanupPolicy = v1alpha1.CleanupRetain
	p := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()})
	require.NotNil(t, p.Start)
	golden.CompareJSON(t, "testdata/backup-s3.json", p.Start)
	golden.CompareJSON(t, "testdata/clean-s3.json", jobtemplate.RenderClean(b, jobtemplate.FilesOf(b), nil, image))
	p = MakePlan(fromPVC(), Seen{Group: group(), Image: image, Now: clock()})
	require.NotNil(t, p.Start)
	golden.CompareJSON(t, "testdata/restore-pvc.json", p.Start)
	for _, j := range []*batchv1.Job{p.Start, jobtemplate.RenderClean(b, jobtemplate.FilesOf(b), nil, image), MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Start} {
		c := j.Spec.Template.Spec.Containers[0]
		verb := c.Command[len(c.Command)-1]
		args := slices.Clone(c.Args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$$(", "$(") // as Kubernetes does
		}
		command, err := runner.Parse(append([]string{verb}, args...))
		require.NoError(t, err, "the program understands it")
		assert.Equal(t, verb, command.Verb)
		if verb == "backup" {
			assert.Equal(t, b.Spec.Filters, command.Filters)
			assert.Equal(t, 3306, command.Database.Port)
		}
	}
}

func TestBR04AuthoritiesAreMountedWhereTheyAreNamed(t *testing.T) {
	b, g := toS3(), group()
	b.Spec.CleanupPolicy = v1alpha1.CleanupRetain
	b.Spec.Storage.S3.Endpoint, b.Spec.Storage.S3.CASecret = "https://s3:7070", &v1alpha1.KeyReference{Name: "authority", Key: "root.pem"}
	g.Spec.TLS = &v1alpha1.TiDBTLS{MySQL: &v1alpha1.MySQLTLS{}}
	pod := MakePlan(b, Seen{Group: g, Image: image, Now: clock()}).Start.Spec.Template.Spec
	for _, arg := range []string{
		"--storage-ca=/etc/backup-storage-ca/ca.crt", "--storage-ca-of=key root.pem of Secret authority", "--tls=/etc/tidb-tls", "--tls-of=Secret basic-tidb-server-secret",
	} {
		assert.Contains(t, pod.Containers[0].Args, arg)
	}
	sources := map[string]corev1.SecretVolumeSource{}
	for _, v := range pod.Volumes {
		if v.Secret != nil {
			sources[v.Name] = *v.Secret
		}
	}
	assert.Equal(t, []corev1.KeyToPath{{Key: "root.pem", Path: "ca.crt"}}, sources["storage-ca"].Items)
	assert.Equal(t, "basic-tidb-server-secret", sources["tls"].SecretName)
	assert.Equal(t, []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}, sources["tls"].Items, "no key that is not needed")
}

func TestBR04WhatARunWaitsFor(t *testing.T) {
	for words, change := range map[string]func(*Seen){
		"TiDBGroup basic-tidb does not exist":  func(s *Seen) { s.Group = nil },
		"is not Ready yet":                     func(s *Seen) { s.Group.Status.Conditions[0].Status = metav1.ConditionFalse },
		"has not processed it yet":             func(s *Seen) { s.Group.Generation = 2 },
		"is its operator running?":             func(s *Seen) { s.Overdue = true },
		"does not know the image that it runs": func(s *Seen) { s.Image = "" },
	} {
		seen := Seen{Group: group(), Image: image, Now: clock()}
		change(&seen)
		p := MakePlan(toRetained(), seen)
		assert.Nil(t, p.Start, words)
		assert.Contains(t, p.Outcome.Message, words)
		assert.NotEmpty(t, p.Outcome.After, "no wait without a deadline")
		assert.Equal(t, v1alpha1.RunWaiting, p.Status.State)
	}
}

func toRetained() *v1alpha1.Backup {
	b := toS3()
	b.Spec.CleanupPolicy = v1alpha1.CleanupRetain
	return b
}

// pod is that of a Job.
func pod(j *batchv1.Job, change func(*corev1.PodStatus)) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: j.Name + "-x", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))}}}
	change(&out.Status)
	return out
}

func TestBR04TheCauseOfAPodThatCannotRunIsNamed(t *testing.T) {
	waits := func(reason string) func(*corev1.PodStatus) {
		return func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: jobtemplate.Container, Image: "a:b", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "why"}}}}
		}
	}
	for reason, status := range map[string]func(*corev1.PodStatus){
		v1alpha1.ReasonPodUnschedulable: func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: `persistentvolumeclaim "x" not found`}}
		},
		v1alpha1.ReasonImagePullFailed:      waits("ImagePullBackOff"),
		v1alpha1.ReasonContainerConfigError: waits("CreateContainerConfigError"),
		v1alpha1.ReasonJobRunning:           waits("ContainerCreating"),
	} {
		b := toRetained()
		j := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Start
		p := MakePlan(b, Seen{Group: group(), Image: image, Now: clock(), Jobs: []*batchv1.Job{j}, Pods: []*corev1.Pod{pod(j, status)}})
		assert.Equal(t, reason, p.Outcome.Reason)
		assert.Equal(t, v1alpha1.RunRunning, p.Status.State)
	}
	// A kubelet says these by turns with ImagePullBackOff.
	for _, reason := range []string{"ErrImagePull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"} {
		b := toRetained()
		j := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Start
		p := MakePlan(b, Seen{Group: group(), Image: image, Now: clock(), Jobs: []*batchv1.Job{j}, Pods: []*corev1.Pod{pod(j, waits(reason))}})
		assert.Equal(t, v1alpha1.ReasonImagePullFailed, p.Outcome.Reason, reason)
	}
}

// Kubernetes says of a Job whose pod is on a node that was cut off neither that it has failed, nor that
// it is gone, before the node is back.
func TestBR04APodOnANodeThatDoesNotAnswerIsNamed(t *testing.T) {
	b, l, deleted := toRetained(), running(), toS3()
	deleted.Spec.CleanupPolicy, deleted.Finalizers, deleted.DeletionTimestamp = v1alpha1.CleanupDelete, []string{v1alpha1.FinalizerBackup}, &metav1.Time{Time: clock()}
	l.DeletionTimestamp = &metav1.Time{Time: clock()}
	j := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Start
	j.UID = "j1"
	log := jobtemplate.RenderLog(l, jobtemplate.Task{State: v1alpha1.LogStopped}, group(), image, 8)
	log.UID = "j2"
	going := func(j *batchv1.Job) *batchv1.Job {
		j = j.DeepCopy()
		j.DeletionTimestamp = &metav1.Time{Time: clock()}
		return j
	}
	for name, c := range map[string]struct {
		run v1alpha1.Run
		job *batchv1.Job
	}{
		"a run":                               {b, j},
		"a run whose Job a user has deleted":  {b, going(j)},
		"a Backup whose files are to go":      {deleted, going(j)},
		"a LogBackup that is deleted":         {l, log},
		"a LogBackup whose Job is going":      {l, going(log)},
		"a Job that deletes files":            {deleted, jobtemplate.RenderClean(deleted, jobtemplate.FilesOf(deleted), nil, image)},
		"a Job that deletes files, and going": {deleted, going(jobtemplate.RenderClean(deleted, jobtemplate.FilesOf(deleted), nil, image))},
	} {
		t.Run(name, func(t *testing.T) {
			cut := pod(c.job, func(*corev1.PodStatus) {})
			cut.Name, cut.Spec.NodeName, cut.DeletionTimestamp = "p", "n7", &metav1.Time{Time: clock().Add(7 * time.Second)}
			seen := Seen{Group: group(), Image: image, Now: clock(), Jobs: []*batchv1.Job{c.job}, Pods: []*corev1.Pod{cut}}
			p := MakePlan(c.run, seen)
			assert.NotContains(t, p.Outcome.Message, "n7", "it has its grace")
			assert.Equal(t, 7*time.Second, p.Wake, "nothing else tells that it has passed")
			seen.Now = clock().Add(7 * time.Second)
			p = MakePlan(c.run, seen)
			assert.Contains(t, p.Outcome.Message, "pod p is being stopped on node n7, past its grace period: does the node answer? kubectl get node n7; if it is gone for good: kubectl delete node n7")
			assert.NotEmpty(t, p.Outcome.After)
			cut.Status.Phase = corev1.PodSucceeded
			assert.NotContains(t, MakePlan(c.run, seen).Outcome.Message, "n7", "nothing of it runs")
		})
	}
}

// That its Job is gone ends a run for good, so that it is not left to the cache.
func TestBR04ARunWhoseJobIsNotSeenIsLookedFor(t *testing.T) {
	b := toRetained()
	j := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Start
	assert.False(t, LacksJob(b, nil), "it has not begun")
	b.Status.State, b.Status.Attempts = v1alpha1.RunRunning, 1
	assert.True(t, LacksJob(b, nil))
	assert.False(t, LacksJob(b, []*batchv1.Job{j}))
	b.Status.Attempts = 3
	assert.True(t, LacksJob(b, []*batchv1.Job{j}), "that is the Job of an earlier attempt")
	b.Status.State = v1alpha1.RunFailed
	assert.False(t, LacksJob(b, nil))
}

// What is not known is not told: a size of 0 B would be that of an empty backup, and a run that has
// ended is not at 45%.
func TestBR04OfARunThatHasEndedOnlyWhatIsKnownIsTold(t *testing.T) {
	b := toRetained()
	j := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Start
	b.Status.State, b.Status.Attempts, b.Status.Progress, b.Status.EstimatedCompletionTime = v1alpha1.RunRunning, 1, "45%", &metav1.Time{Time: clock()}
	gone := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Status
	assert.Equal(t, v1alpha1.RunFailed, gone.State)
	assert.Empty(t, gone.Progress)
	assert.Nil(t, gone.EstimatedCompletionTime)
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: clock()}}}
	for text, size := range map[string]string{"": "", `{"bytes":0}`: "0 B", `{"bytes":1024}`: "1.0 KiB"} {
		seen := Seen{Group: group(), Image: image, Now: clock().Add(lag), Jobs: []*batchv1.Job{j}}
		if text != "" {
			seen.Pods = []*corev1.Pod{pod(j, func(s *corev1.PodStatus) {
				s.ContainerStatuses = []corev1.ContainerStatus{{Name: jobtemplate.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: text}}}}
			})}
		}
		p := MakePlan(b, seen)
		assert.Equal(t, v1alpha1.RunComplete, p.Status.State)
		assert.Equal(t, size, p.Status.Size)
		assert.Empty(t, p.Status.Progress)
	}
}

// What refuses to make a pod tells the Job alone.
func TestBR04AJobWithoutAPodIsNamed(t *testing.T) {
	b := toRetained()
	j := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Start
	j.CreationTimestamp = metav1.Time{Time: clock()}
	at := func(after time.Duration, active int32) Plan {
		j.Status.Active = active
		return MakePlan(b, Seen{Group: group(), Image: image, Now: clock().Add(after), Jobs: []*batchv1.Job{j}})
	}
	early := at(3*time.Second, 0)
	assert.Equal(t, v1alpha1.ReasonJobRunning, early.Outcome.Reason)
	assert.Equal(t, 2*time.Second, early.Wake, "nothing else tells that there is still none")
	late := at(5*time.Second, 0)
	assert.Equal(t, v1alpha1.ReasonPodMissing, late.Outcome.Reason)
	assert.Contains(t, late.Outcome.Message, "has no pod: a quota, a policy or a missing serviceAccountName refuses it")
	assert.Contains(t, late.Outcome.Message, "describe job "+j.Name)
	assert.Equal(t, v1alpha1.ReasonJobRunning, at(time.Minute, 1).Outcome.Reason, "it was only not seen yet")
}

// backupSimulation simulates Kubernetes around one Backup.
type backupSimulation struct {
	*rapid.T
	b    *v1alpha1.Backup
	jobs map[string]*batchv1.Job
	pods map[string]*corev1.Pod
	now  time.Time
	// begun is how many Jobs have written, complete how many have ended well.
	begun, complete int
	gone            bool
}

func (p *backupSimulation) seen() Seen {
	s := Seen{Group: group(), Image: image, Now: p.now}
	for _, j := range p.jobs {
		s.Jobs = append(s.Jobs, j)
	}
	for _, pod := range p.pods {
		s.Pods = append(s.Pods, pod)
	}
	return s
}

// turn plans, and carries the plan out, or dies on the way.
func (p *backupSimulation) turn() Plan {
	plan := MakePlan(p.b, p.seen())
	die := rapid.IntRange(0, 4).Draw(p.T, "dies after")
	for _, j := range plan.Stop {
		if die--; die == 0 {
			return plan
		}
		delete(p.jobs, j.Name)
		delete(p.pods, j.Name)
	}
	switch {
	case plan.Hold:
		p.b.Finalizers = []string{v1alpha1.FinalizerBackup}
	case plan.Release:
		p.b.Finalizers = nil
	case plan.Start != nil && p.jobs[plan.Start.Name] == nil:
		require.True(p.T, p.b.Spec.CleanupPolicy != v1alpha1.CleanupDelete || len(p.b.Finalizers) == 1, "no file is written before the finalizer stands")
		for _, other := range p.jobs {
			require.False(p.T, p.isLive(other), "one at a time: %s beside %s", plan.Start.Name, other.Name)
		}
		require.Zero(p.T, p.complete*len(plan.Start.OwnerReferences), "none after one that was complete")
		plan.Start.UID, plan.Start.CreationTimestamp = types.UID(fmt.Sprint(plan.Start.Name, p.now)), metav1.Time{Time: p.now}
		p.jobs[plan.Start.Name] = plan.Start
	}
	p.gone = p.b.DeletionTimestamp != nil && len(p.b.Finalizers) == 0
	if die != 1 {
		p.b.Status.RunStatus = plan.Status
		p.b.Status.Conditions = nil
		if plan.Outcome.Kind == step.KindStall {
			p.b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Reason: plan.Outcome.Reason, Message: plan.Outcome.Message}}
		}
	}
	return plan
}

func (p *backupSimulation) isLive(j *batchv1.Job) bool { return len(j.Status.Conditions) == 0 }

// end ends a Job that runs.
func (p *backupSimulation) end() {
	for _, j := range p.jobs {
		if !p.isLive(j) || len(j.OwnerReferences) == 0 && rapid.Bool().Draw(p.T, "later") {
			continue
		}
		kind := batchv1.JobFailed
		r := result.Result{Reason: v1alpha1.ReasonStorageRefused, Message: "no"}
		switch rapid.IntRange(0, 3).Draw(p.T, "end") {
		case 0:
			kind, r = batchv1.JobComplete, result.Result{Bytes: 7, TSO: "1"}
			p.complete += len(j.OwnerReferences)
		case 1:
			r.Begun = true
			p.begun += len(j.OwnerReferences)
		}
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: p.now}}}
		if rapid.IntRange(0, 3).Draw(p.T, "lost") > 0 || kind == batchv1.JobComplete || r.Begun {
			text, err := json.Marshal(r)
			require.NoError(p.T, err)
			p.pods[j.Name] = pod(j, func(s *corev1.PodStatus) {
				s.ContainerStatuses = []corev1.ContainerStatus{{Name: jobtemplate.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(text)}}}}
			})
		}
	}
}

func TestBR04ABackupCompletesOnlyOnceAfterAnyFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := toS3()
		b.Spec.CleanupPolicy = rapid.SampledFrom([]v1alpha1.CleanupPolicy{v1alpha1.CleanupRetain, v1alpha1.CleanupDelete}).Draw(t, "policy")
		p := &backupSimulation{T: t, b: b, jobs: map[string]*batchv1.Job{}, pods: map[string]*corev1.Pod{}, now: clock()}
		for range rapid.IntRange(1, 60).Draw(t, "turns") {
			p.turn()
			p.now = p.now.Add(time.Duration(rapid.IntRange(1, 700).Draw(t, "seconds")) * time.Second)
			if rapid.Bool().Draw(t, "ends") {
				p.end()
			}
		}
		require.LessOrEqual(t, p.complete+p.begun, 1, "one run writes")
		// From here on nothing goes wrong.
		for range 60 {
			plan := p.turn()
			require.True(t, plan.Outcome.Kind == step.KindDone || plan.Outcome.Reason != "" && plan.Outcome.Message != "", "what it waits for is named")
			p.now = p.now.Add(11 * time.Minute)
			for _, j := range p.jobs {
				if p.isLive(j) {
					p.complete += len(j.OwnerReferences)
					j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: p.now}}}
				}
			}
		}
		want := v1alpha1.RunComplete
		if p.complete == 0 {
			want = v1alpha1.RunFailed
		}
		require.Equal(t, want, b.Status.State)

		b.DeletionTimestamp = &metav1.Time{Time: p.now}
		for range 10 {
			if p.gone {
				break
			}
			p.turn()
			p.now = p.now.Add(2 * time.Minute)
			for _, j := range p.jobs {
				j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: p.now}}}
			}
		}
		require.True(t, p.gone || b.Spec.CleanupPolicy == v1alpha1.CleanupRetain)
	})
}

func TestBR04ARestoreIsNeverTriedAgainOnceItMayHaveWritten(t *testing.T) {
	r := fromPVC()
	j := MakePlan(r, Seen{Group: group(), Image: image, Now: clock()}).Start
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: clock()}}}
	p := MakePlan(r, Seen{Group: group(), Image: image, Now: clock(), Jobs: []*batchv1.Job{j}})
	assert.Equal(t, "Job back-restore-1 has ended: waiting for its pod's result", p.Outcome.Message)
	p = MakePlan(r, Seen{Group: group(), Image: image, Now: clock().Add(lag), Jobs: []*batchv1.Job{j}})
	assert.Equal(t, v1alpha1.RunFailed, p.Status.State)
	assert.Contains(t, p.Outcome.Message, "to run it again delete it (kubectl -n db delete restore back) and recreate it")
	r.Status.RunStatus = p.Status
	assert.Nil(t, MakePlan(r, Seen{Group: group(), Image: image, Now: clock().Add(time.Hour)}).Start)
}

// A Restore that has failed for good may cost a new cluster, so that it has not if it did nothing.
func TestBR04ARunWhoseContainerNeverStartedIsTriedAgain(t *testing.T) {
	ended := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}}
	}
	waits := corev1.ContainerStatus{Name: jobtemplate.Container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}
	at := func(after time.Duration) *metav1.Time { return &metav1.Time{Time: clock().Add(after)} }
	for name, c := range map[string]struct {
		pod   corev1.PodStatus
		again bool
		words string
	}{
		"the node has refused it":                                     {corev1.PodStatus{Reason: "OutOfmemory", Message: "Pod was rejected: Node didn't have enough resource: memory, requested: 2, used: 2, capacity: 3", StartTime: at(-time.Second)}, true, "its pod ended without a message: OutOfmemory; it is tried again after"},
		"the node was shutting down":                                  {corev1.PodStatus{Reason: "NodeShutdown", Message: "Pod was rejected: Pod was rejected as the node is shutting down.", StartTime: at(0)}, true, "NodeShutdown; it is tried again after"},
		"it ran, and a kubelet that was started again has refused it": {corev1.PodStatus{Reason: "NodeAffinity", Message: "Pod was rejected: Predicate NodeAffinity failed", StartTime: at(-time.Hour)}, false, "delete it"},
		"it is not known when it was refused":                         {corev1.PodStatus{Reason: "NodeAffinity", Message: "Pod was rejected: Predicate NodeAffinity failed"}, false, "delete it"},
		"the program was not brought":                                 {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{ended("program", 1)}, ContainerStatuses: []corev1.ContainerStatus{waits}}, true, "container program of its pod ended without a message: Error, exit code 1; it is tried again"},
		"a node short of disk has refused it":                         {corev1.PodStatus{Reason: "Evicted", Message: "Pod was rejected: The node had condition: [DiskPressure]. ", StartTime: at(-time.Second)}, true, "its pod ended without a message: Evicted; it is tried again after"},
		"the node could not place its processors":                     {corev1.PodStatus{Reason: "TopologyAffinityError", Message: "Pod was rejected: Resources cannot be allocated with Topology locality", StartTime: at(-time.Second)}, true, "TopologyAffinityError; it is tried again after"},
		"it was evicted soon":                                         {corev1.PodStatus{Reason: "Evicted", Message: "The node was low on resource: memory. ", StartTime: at(-time.Second)}, false, "delete it"},
		"it was evicted, perhaps late":                                {corev1.PodStatus{Reason: "Evicted"}, false, "delete it"},
		"the tool may have begun":                                     {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{ended("program", 0)}, ContainerStatuses: []corev1.ContainerStatus{waits}}, false, "delete it"},
		"it was killed":                                               {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{ended("program", 137)}, ContainerStatuses: []corev1.ContainerStatus{ended(jobtemplate.Container, 137)}}, false, "delete it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fromPVC()
			j := MakePlan(r, Seen{Group: group(), Image: image, Now: clock()}).Start
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: clock()}}}
			p := MakePlan(r, Seen{Group: group(), Image: image, Now: clock().Add(lag), Jobs: []*batchv1.Job{j}, Pods: []*corev1.Pod{pod(j, func(s *corev1.PodStatus) {
				*s = c.pod
				s.Phase = corev1.PodFailed
			})}})
			assert.Equal(t, c.again, p.Status.State == v1alpha1.RunWaiting)
			assert.Contains(t, p.Outcome.Message, c.words)
		})
	}
}

func TestBR04ARunIsTriedAgainLaterAndLater(t *testing.T) {
	assert.Equal(t, []time.Duration{firstRetry, 40 * time.Second, lastRetry}, []time.Duration{retryAfter(1), retryAfter(2), retryAfter(30)})
}

// The image of the program may need the Secrets that the group names.
func TestBR04FilesAreDeletedWithTheImageOfAPrivateRegistry(t *testing.T) {
	b, l := toS3(), running()
	b.Spec.CleanupPolicy, l.Spec.CleanupPolicy = v1alpha1.CleanupDelete, v1alpha1.CleanupDelete
	b.Finalizers, l.Status.State = []string{v1alpha1.FinalizerBackup}, v1alpha1.RunStopped
	for _, run := range []v1alpha1.Run{b, l} {
		run.SetDeletionTimestamp(&metav1.Time{Time: clock()})
		p := MakePlan(run, Seen{Group: group(), Image: image, Now: clock()})
		require.NotNil(t, p.Start)
		assert.Equal(t, []corev1.LocalObjectReference{{Name: "registry"}}, p.Start.Spec.Template.Spec.ImagePullSecrets)
		p = MakePlan(run, Seen{Image: image, Now: clock()})
		require.NotNil(t, p.Start, "the group may be gone")
		assert.Empty(t, p.Start.Spec.Template.Spec.ImagePullSecrets)
	}
}

// What deletes the files has no owner: it would go on when the Backup is gone, with files
// that a user has just said to keep.
func TestBR04DeletionOfFilesStopsWhenTheBackupIsSetToRetain(t *testing.T) {
	b := toS3()
	b.Spec.CleanupPolicy, b.Finalizers, b.DeletionTimestamp = v1alpha1.CleanupDelete, []string{v1alpha1.FinalizerBackup}, &metav1.Time{Time: clock()}
	clean := MakePlan(b, Seen{Image: image, Now: clock()}).Start
	require.NotNil(t, clean)
	b.Spec.CleanupPolicy = v1alpha1.CleanupRetain
	p := MakePlan(b, Seen{Image: image, Now: clock(), Jobs: []*batchv1.Job{clean}})
	assert.Equal(t, []*batchv1.Job{clean}, p.Stop)
	assert.False(t, p.Release)
	clean.DeletionTimestamp = &metav1.Time{Time: clock()}
	p = MakePlan(b, Seen{Image: image, Now: clock(), Jobs: []*batchv1.Job{clean}})
	assert.Empty(t, p.Stop)
	assert.False(t, p.Release, "its pod may still run")
	assert.True(t, MakePlan(b, Seen{Image: image, Now: clock()}).Release)
}

func physical() *v1alpha1.Backup {
	b := toS3()
	b.Spec.Type, b.Spec.CleanupPolicy = v1alpha1.BackupPhysical, v1alpha1.CleanupRetain
	return b
}

func TestBR01BRConnectsAsTheServersDo(t *testing.T) {
	b, g := physical(), group()
	b.Spec.Physical = &v1alpha1.PhysicalRun{Concurrency: ptr.To[int32](8), RateLimit: ptr.To[int32](100), Checksum: ptr.To(true)}
	g.Spec.TLS = &v1alpha1.TiDBTLS{}
	j := MakePlan(b, Seen{Group: g, Image: image, Now: clock()}).Start
	main := j.Spec.Template.Spec.Containers[0]
	assert.Equal(t, "pingcap/br:v8.5.7", main.Image)
	for _, arg := range []string{
		"--tool=/br", "--pd=https://basic-pd.db.svc:2379", "--pd-tls=/etc/cluster-tls", "--concurrency=8", "--rate-limit=100", "--checksum=true", "--host=basic-tidb.db.svc",
	} {
		assert.Contains(t, main.Args, arg)
	}
	assert.Equal(t, "basic-pd", j.Spec.Template.Labels[v1alpha1.LabelPhysicalOf])
	c, err := runner.Parse(append(main.Command[1:], main.Args...))
	require.NoError(t, err)
	assert.Equal(t, cluster.Cluster{PD: "https://basic-pd.db.svc:2379", TLS: "/etc/cluster-tls", Concurrency: "8", RateLimit: "100", Checksum: "true"}, c.Cluster)
}

func TestBR04ThreadsAreThoseOfTheSpec(t *testing.T) {
	b, r := toS3(), fromPVC()
	b.Spec.CleanupPolicy = v1alpha1.CleanupRetain
	for _, run := range []v1alpha1.Run{b, r} {
		command := func(threads *v1alpha1.LogicalRun) runner.Command {
			b.Spec.Logical, r.Spec.Logical = threads, threads
			main := MakePlan(run, Seen{Group: group(), Image: image, Now: clock()}).Start.Spec.Template.Spec.Containers[0]
			c, err := runner.Parse(append(main.Command[1:], main.Args...))
			require.NoError(t, err)
			return c
		}
		assert.Equal(t, 16, command(&v1alpha1.LogicalRun{Threads: ptr.To[int32](16)}).Threads)
		assert.Zero(t, command(&v1alpha1.LogicalRun{}).Threads, "the tool's own number")
		assert.Zero(t, command(nil).Threads)
	}
}

func TestBR01AnotherPhysicalRunIsWaitedFor(t *testing.T) {
	first := MakePlan(physical(), Seen{Group: group(), Image: image, Now: clock()}).Start
	b := physical()
	b.Name, b.UID = "tuesday", "u9"
	others := []*batchv1.Job{first}
	p := MakePlan(b, Seen{Group: group(), Image: image, Now: clock(), Others: others})
	assert.Nil(t, p.Start)
	assert.Equal(t, v1alpha1.ReasonWaitingForRun, p.Outcome.Reason)
	assert.Contains(t, p.Outcome.Message, "Job monday-backup-1 belongs to another physical run of the cluster")
	logical := toS3()
	logical.UID, logical.Spec.CleanupPolicy = "u8", v1alpha1.CleanupRetain
	assert.NotNil(t, MakePlan(logical, Seen{Group: group(), Image: image, Now: clock(), Others: others}).Start)
	assert.NotNil(t, MakePlan(physical(), Seen{Group: group(), Image: image, Now: clock(), Others: others}).Start, "its own is none of another")

	first.DeletionTimestamp = &metav1.Time{Time: clock()}
	assert.Nil(t, MakePlan(b, Seen{Group: group(), Image: image, Now: clock(), Others: others}).Start, "its pod may still run")
	first.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	assert.NotNil(t, MakePlan(b, Seen{Group: group(), Image: image, Now: clock(), Others: others}).Start)
}

func TestBR01ARestoreTakesTheTypeOfItsBackup(t *testing.T) {
	source := physical()
	source.Status.State = v1alpha1.RunComplete
	r := &v1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: "back", Namespace: "db", UID: "u2"}}
	r.Spec.TiDBGroup.Name, r.Spec.From.Backup = "basic-tidb", &v1alpha1.LocalReference{Name: "monday"}
	j := MakePlan(r, Seen{Group: group(), Image: image, Now: clock(), Source: source}).Start
	assert.Equal(t, "pingcap/br:v8.5.7", j.Spec.Template.Spec.Containers[0].Image)
	source.Spec.Type, r.Spec.Physical = v1alpha1.BackupLogical, &v1alpha1.PhysicalRun{}
	p := MakePlan(r, Seen{Group: group(), Image: image, Now: clock(), Source: source})
	assert.Nil(t, p.Start)
	assert.Equal(t, "spec.physical says how BR works, and Backup monday was not made by it: remove spec.physical", p.Outcome.Message)
	source.Spec.Type, r.Spec.Physical, r.Spec.Logical = v1alpha1.BackupPhysical, nil, &v1alpha1.LogicalRun{}
	p = MakePlan(r, Seen{Group: group(), Image: image, Now: clock(), Source: source})
	assert.Nil(t, p.Start)
	assert.Equal(t, "spec.logical says how TiDB Lightning works, and BR made Backup monday: remove spec.logical", p.Outcome.Message)
	r.Spec.Logical, r.Spec.From = nil, v1alpha1.RestoreSource{Storage: &source.Spec.Storage, Folder: "monday"}
	assert.Equal(t, "pingcap/tidb-lightning:v8.5.7", MakePlan(r, Seen{Group: group(), Image: image, Now: clock()}).Start.Spec.Template.Spec.Containers[0].Image)
	r.Spec.Type = v1alpha1.BackupPhysical
	assert.Equal(t, "pingcap/br:v8.5.7", MakePlan(r, Seen{Group: group(), Image: image, Now: clock()}).Start.Spec.Template.Spec.Containers[0].Image)
}

func TestBR04AGroupThatLetsNoClientInIsRestoredIntoAndNotCopied(t *testing.T) {
	g := group()
	g.Close()
	p := MakePlan(fromPVC(), Seen{Group: g, Image: image, Now: clock()})
	require.NotNil(t, p.Start)
	assert.Subset(t, p.Start.Spec.Template.Spec.Containers[0].Args, []string{"--host=basic-tidb-peer.db.svc", "--port=4000"})

	b := toS3()
	b.Spec.CleanupPolicy = v1alpha1.CleanupRetain
	p = MakePlan(b, Seen{Group: g, Image: image, Now: clock()})
	assert.Nil(t, p.Start, "what is in it may be a part of a backup")
	assert.Equal(t, v1alpha1.ReasonWaitingForTiDBGroup, p.Outcome.Reason)
	assert.Contains(t, p.Outcome.Message, "lets no client in (spec.service.closed)")
}

// Issue 21: progress is written at most every 10 s, whatever the tool says and however often the
// operator looks. A write is a status that differs from the last.
func TestBR04ProgressIsWrittenAtMostEveryTenSeconds(t *testing.T) {
	b := toS3()
	b.Spec.CleanupPolicy = v1alpha1.CleanupRetain
	job := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()}).Start
	job.UID = "j1"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: job.Spec.Template.Labels, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}}}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	seen := Seen{Group: group(), Image: image, Now: clock(), Jobs: []*batchv1.Job{job}, Pods: []*corev1.Pod{pod}}
	meter := progress.NewMeter(func() time.Time { return seen.Now })
	writes, last := 0, ""
	for second := range 600 {
		seen.Now = clock().Add(time.Duration(second) * time.Second)
		_, err := fmt.Fprintf(meter, "[INFO] [progress] [total=%d.%d%%]\n", second/10, second%10)
		require.NoError(t, err)
		w := httptest.NewRecorder()
		meter.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		seen.Progress = &progress.Report{}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), seen.Progress))
		p := MakePlan(b, seen)
		assert.GreaterOrEqual(t, p.Outcome.After, 10*time.Second, "when it looks again by itself")
		b.Status.RunStatus = p.Status
		text, err := json.Marshal(p.Status)
		require.NoError(t, err)
		if string(text) != last {
			writes, last = writes+1, string(text)
		}
	}
	assert.LessOrEqual(t, writes, 60)
	assert.Greater(t, writes, 50, "and not much less often")
}

func TestARunThatGoesOnSaysHowFarItIs(t *testing.T) {
	b := toS3()
	b.Spec.CleanupPolicy = v1alpha1.CleanupRetain
	started := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()})
	job := started.Start
	job.UID = "j1"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: job.Spec.Template.Labels, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}}}
	seen := Seen{Group: group(), Image: image, Now: clock(), Jobs: []*batchv1.Job{job}, Pods: []*corev1.Pod{pod}}
	assert.Empty(t, ProgressAddress(b, seen))
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	assert.Equal(t, "10.0.0.1", ProgressAddress(b, seen))
	at := clock().Add(time.Hour)
	seen.Progress = &progress.Report{Percent: 44.6, Completion: &at}
	p := MakePlan(b, seen)
	assert.Equal(t, "45%", p.Status.Progress)
	assert.Equal(t, at, p.Status.EstimatedCompletionTime.Time)
	assert.Equal(t, progress.Every, p.Outcome.After)

	b.Status.RunStatus, seen.Progress = p.Status, nil
	p = MakePlan(b, seen)
	assert.Equal(t, "45%", p.Status.Progress, "it has not answered")
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock())}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: jobtemplate.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"bytes":1}`}}}}
	p = MakePlan(b, seen)
	assert.Equal(t, v1alpha1.RunComplete, p.Status.State)
	assert.Empty(t, p.Status.Progress)
	assert.Nil(t, p.Status.EstimatedCompletionTime)
}

// It said that everything matches the spec, and that all was copied.
func TestARunThatIsBeingDeletedSaysSo(t *testing.T) {
	restore, l, backup := fromPVC(), pitr(), toRetained()
	l.Finalizers = nil
	for _, run := range []v1alpha1.Run{restore, l, backup} {
		run.SetDeletionTimestamp(&metav1.Time{Time: clock()})
		p := MakePlan(run, Seen{Now: clock()})
		assert.Equal(t, v1alpha1.ReasonDeleting, p.Outcome.Reason, run.RunKind())
		stuck := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", DeletionTimestamp: &metav1.Time{Time: clock()}}}
		stuck.Spec.NodeName = "n1"
		p = MakePlan(run, Seen{Now: clock(), Pods: []*corev1.Pod{stuck}})
		assert.Equal(t, v1alpha1.ReasonPodTerminating, p.Outcome.Reason, run.RunKind())
		assert.Contains(t, p.Outcome.Message, "kubectl get node n1")
	}
}

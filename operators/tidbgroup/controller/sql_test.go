package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqljob"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

const (
	peopleJob = "basic-tidb-sql-people-1"
	grantsJob = "basic-tidb-sql-grants-1"
)

// withSQL asks for two runs.
func withSQL(g *v1alpha1.TiDBGroup) {
	g.Spec.SQL = []v1alpha1.SQLRun{
		{Name: "people", Revision: 1, Users: &v1alpha1.InitialUsers{Secret: "people"}},
		{Name: "grants", Revision: 1, ConfigMap: &v1alpha1.KeyReference{Name: "my-sql", Key: "grants.sql"}},
	}
}

// sql waits until a run is in a state, and says what.
func (w *world) sql(name string, state v1alpha1.SQLState, says string) v1alpha1.SQLStatus {
	w.Helper()
	var found v1alpha1.SQLStatus
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		found = v1alpha1.SQLStatus{}
		for _, s := range w.Get().Status.SQL {
			if s.Name == name {
				found = s
			}
		}
		assert.Equal(c, state, found.State, "%+v", found)
		assert.Contains(c, found.Message, says)
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	return found
}

// job waits for a Job.
func (w *world) job(name string) *batchv1.Job {
	w.Helper()
	job := &batchv1.Job{}
	require.Eventually(w, func() bool { return w.Client.Get(w.Context(), w.Key(name), job) == nil }, machine.StretchWait(stage.Timeout), stage.Tick, name)
	return job
}

// endJob plays the controller of Jobs, and the pod of one that fails.
func (w *world) endJob(name, failure string) {
	w.Helper()
	job := w.job(name)
	now := metav1.Now()
	before, after := batchv1.JobSuccessCriteriaMet, batchv1.JobComplete
	reason := batchv1.JobReasonCompletionsReached
	if failure != "" {
		before, after, reason = batchv1.JobFailureTarget, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name + "-x7k2p", Labels: map[string]string{batchv1.JobNameLabel: name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}}, Spec: *job.Spec.Template.Spec.DeepCopy()}
		w.Create(pod)
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: sqljob.Container}}
		pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: failure}
		require.NoError(w, w.Client.Status().Update(w.Context(), pod))
		job.Status.Failed = 1
	} else {
		job.Status.Succeeded, job.Status.CompletionTime = 1, &now
	}
	job.Status.StartTime, job.Status.UncountedTerminatedPods = &now, &batchv1.UncountedTerminatedPods{}
	for _, kind := range []batchv1.JobConditionType{before, after} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastProbeTime: now, LastTransitionTime: now})
	}
	require.NoError(w, w.Client.Status().Update(w.Context(), job))
}

// collect waits until a Job is deleted, and plays the garbage collector.
func (w *world) collect(name string) {
	w.Helper()
	require.Eventually(w, func() bool {
		job := &batchv1.Job{}
		err := w.Client.Get(w.Context(), w.Key(name), job)
		if err == nil && job.DeletionTimestamp != nil {
			job.Finalizers = nil
			err = w.Client.Update(w.Context(), job)
		}
		return apierrors.IsNotFound(err)
	}, machine.StretchWait(stage.Timeout), stage.Tick, name)
}

// told returns how often an Event of a reason was told of the group, and its note.
func (w *world) told(reason string) (count int, note string) {
	w.Helper()
	var list eventsv1.EventList
	require.NoError(w, w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace)))
	for _, e := range list.Items {
		if e.Reason == reason {
			count++
			if e.Series != nil {
				count += int(e.Series.Count) - 1
			}
			note = e.Note
		}
	}
	return count, note
}

func TestDB10SQLRunsOnARunningGroupAndStatusShowsItsEnd(t *testing.T) {
	w := begin(t)
	w.create(withSQL)
	w.sql("people", v1alpha1.SQLWaiting, "no server of the group serves")
	w.dependencies()
	w.WaitUntilConverged()

	running := w.sql("people", v1alpha1.SQLRunning, "logs job/"+peopleJob)
	job := w.job(peopleJob)
	assert.Equal(t, job.CreationTimestamp.Unix(), running.StartTime.Unix())
	assert.Equal(t, ownImage, job.Spec.Template.Spec.Containers[0].Image)
	w.sql("grants", v1alpha1.SQLWaiting, "people comes first")
	assert.True(t, apierrors.IsNotFound(w.Client.Get(t.Context(), w.Key(grantsJob), &batchv1.Job{})))

	w.endJob(peopleJob, "")
	w.sql("people", v1alpha1.SQLSucceeded, "")
	w.collect(peopleJob)

	w.endJob(grantsJob, "statement 2 of 3: error 1146 (42S02): no table")
	failed := w.sql("grants", v1alpha1.SQLFailed, "statement 2 of 3: error 1146 (42S02): no table; to run it again raise spec.sql[grants].revision (kubectl -n "+w.Namespace+" edit tidbgroup basic-tidb)")
	require.NotNil(t, failed.CompletionTime)
	g := w.WaitUntilConverged()
	assert.Equal(t, "True/Ready", stage.Verdict(g, v1alpha1.ConditionReady), "the group is as well as it was")

	// An Event is told once the status that it is told of is written. An operator that
	// is stopped between the two has not told it, so the Events come first.
	told := func() {
		for reason, want := range map[string]int{"SQLStarted": 2, "SQLSucceeded": 1, "SQLFailed": 1} {
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				count, _ := w.told(reason)
				assert.Equal(c, want, count, reason)
			}, machine.StretchWait(stage.Timeout), stage.Tick)
		}
	}
	told()

	// Another operator finds everything told, and runs nothing.
	w.operator.Stop()
	w.operator, w.labelled = w.operate()
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.ServerLabels = map[string]v1alpha1.StoreLabelValue{"a": "b"} })
	require.Eventually(t, func() bool { calls, _ := w.labelled.get(); return calls > 0 }, machine.StretchWait(stage.Timeout), stage.Tick)
	for _, path := range w.operator.Writes() {
		assert.False(t, strings.HasPrefix(path, "POST") && strings.HasSuffix(path, "/jobs"), path)
	}
	told()
	_, note := w.told("SQLFailed")
	assert.Contains(t, note, "revision 1 of SQL grants has failed: statement 2 of 3")

	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.SQL[1].Revision = 2 })
	w.collect(grantsJob)
	w.endJob("basic-tidb-sql-grants-2", "")
	again := w.sql("grants", v1alpha1.SQLSucceeded, "")
	assert.EqualValues(t, 2, again.Revision)
	w.collect("basic-tidb-sql-grants-2")
}

func TestDB10SQLThatRunsIsStoppedByRemovingItsEntry(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(withSQL)
	w.sql("people", v1alpha1.SQLRunning, "")
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.SQL = g.Spec.SQL[1:] })
	w.sql("grants", v1alpha1.SQLWaiting, "Job "+peopleJob+" has not ended")
	w.collect(peopleJob)
	w.sql("grants", v1alpha1.SQLRunning, "")
	require.Len(t, w.Get().Status.SQL, 1)
}

// A Job of the wanted name that the cache does not show is not taken.
func TestAJobOfAnotherOwnerIsNamedAndLeftAlone(t *testing.T) {
	w := begin(t)
	w.dependencies()
	theirs := &batchv1.Job{ObjectMeta: w.Meta(peopleJob)}
	theirs.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "b"}}}
	w.Create(theirs)
	w.create(withSQL)
	w.WaitUntilConverged()
	w.sql("people", v1alpha1.SQLWaiting, "its Job cannot be made: it belongs to another owner: delete it: kubectl -n "+w.Namespace+" delete job "+peopleJob)
	require.NoError(t, w.Client.Delete(t.Context(), theirs, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.sql("people", v1alpha1.SQLRunning, "")
}

// S: what has run stands in the group's status, and a cache that does not know it yet
// must not have it run again.
func TestDB10NoJobIsMadeFromAnOldVersionOfTheGroup(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(withSQL)
	w.sql("people", v1alpha1.SQLRunning, "")
	w.operator.Stop()
	old := w.Get()
	w.Touch("newer")
	r := &steps{}
	r.Client, r.Live, r.Now = w.Client, w.Client, time.Now
	start := sqljob.MakePlan(func() *v1alpha1.TiDBGroup {
		g := old.DeepCopy()
		g.Status.SQL, g.Spec.SQL[0].Name = nil, "other"
		return g
	}(), sqljob.Seen{MayBegin: verdict.Allow(), Image: ownImage, Port: 4000})
	require.NotNil(t, start.Start)
	outcome := r.runSQL(t.Context(), old, start)
	assert.Contains(t, outcome.Message, "has changed meanwhile")
	assert.True(t, apierrors.IsNotFound(w.Client.Get(t.Context(), w.Key(start.Start.Name), &batchv1.Job{})))
	require.NoError(t, r.runSQL(t.Context(), w.Get(), start).Err)
	w.job(start.Start.Name)
}

func TestDB10SQLWaitsUntilItCanRunAndNamesTheCause(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(*v1alpha1.TiDBGroup)
		change func(*snapshot)
		says   string
	}{
		"nothing":              {nil, nil, ""},
		"a pause":              {func(g *v1alpha1.TiDBGroup) { g.Spec.Paused = true }, nil, "the group is paused"},
		"a suspension":         {func(g *v1alpha1.TiDBGroup) { g.Spec.Suspended = true }, nil, "the group is suspended"},
		"a deletion":           {func(g *v1alpha1.TiDBGroup) { g.DeletionTimestamp = &metav1.Time{Time: clock()} }, nil, "the group is being deleted"},
		"servers":              {nil, func(s *snapshot) { down(0)(s); down(1)(s) }, "no server of the group serves"},
		"one server is enough": {nil, down(0), ""},
		"an upgrade": {func(g *v1alpha1.TiDBGroup) {
			g.Status.Upgrade = &v1alpha1.TiDBUpgrade{From: "v8.5.6", To: "v8.5.7", State: v1alpha1.UpgradeStarted}
		}, down(0), "until the upgrade to v8.5.7 is over"},
		"another's upgrade": {nil, func(s *snapshot) {
			other := stored()
			other.Name, other.Status.Upgrade, other.Status.Replicas, other.Status.UpdatedReplicas = "more", &v1alpha1.TiDBUpgrade{}, 2, 1
			s.Groups = append(s.Groups, other)
		}, "until the upgrade of TiDBGroup more is over"},
		"the operator's image": {nil, func(s *snapshot) { s.Image = "" }, "start it with --image"},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored(withSQL)
			if c.edit != nil {
				c.edit(g)
			}
			s := started(t, stored(), func(s *snapshot) { s.Image = ownImage })
			if c.change != nil {
				c.change(&s)
			}
			p := mustPlan(t, g, s)
			assert.Equal(t, c.says == "", p.SQL.Start != nil, p.SQL.Status)
			assert.Contains(t, p.SQL.Status[0].Message, c.says)
			status, _ := reportStatus(g, s, p, p.Outcome, clock())
			assert.Equal(t, p.SQL.Status, status.SQL)
		})
	}
}

func TestSQLRestartsNoServer(t *testing.T) {
	without, with := mustPlan(t, stored(), started(t, stored())), mustPlan(t, stored(withSQL), started(t, stored()))
	assert.Equal(t, without.Target.Hash, with.Target.Hash)
	assert.False(t, with.updatesAnyInstance())
}

func TestDB10NoSQLRunsWhileClientsAreKeptOut(t *testing.T) {
	w := begin(t)
	w.create(withSQL, func(g *v1alpha1.TiDBGroup) { g.Close() })
	w.dependencies()
	g := w.WaitUntilConverged()
	assert.Empty(t, g.Status.Endpoint)
	w.sql("people", v1alpha1.SQLWaiting, "spec.service.closed keeps every client out")
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Service.Closed = false })
	w.sql("people", v1alpha1.SQLRunning, "logs job/"+peopleJob)
}

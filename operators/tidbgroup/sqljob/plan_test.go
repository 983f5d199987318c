package sqljob

import (
	"errors"
	"fmt"
	"math/rand/v2"
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

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// cluster plays the API server, and the controller of Jobs.
type cluster struct {
	*testing.T
	group *v1alpha1.TiDBGroup
	hold  string
	jobs  map[string]*batchv1.Job
	ends  map[string]End
	now   time.Time
	// made counts the Jobs by name.
	made map[string]int
}

func play(t *testing.T, runs ...v1alpha1.SQLRun) *cluster {
	t.Helper()
	return &cluster{T: t, group: sample(runs...), jobs: map[string]*batchv1.Job{}, ends: map[string]End{}, now: clock(), made: map[string]int{}}
}

func (c *cluster) plan() Plan {
	c.Helper()
	var jobs []*batchv1.Job
	for _, job := range c.jobs {
		jobs = append(jobs, job.DeepCopy())
	}
	return MakePlan(c.group, Seen{Jobs: jobs, Ends: c.ends, MayBegin: verdict.RefuseIf(c.hold), Image: image, Port: 4000, Now: c.now})
}

// act carries a plan out, but for its report.
func (c *cluster) act(p Plan) {
	c.Helper()
	for _, job := range p.Stop {
		if c.jobs[job.Name] != nil {
			delete(c.jobs, job.Name)
		}
	}
	if p.Start != nil && c.jobs[p.Start.Name] == nil {
		job := p.Start.DeepCopy()
		job.CreationTimestamp, job.UID = metav1.NewTime(c.now), types.UID(fmt.Sprint(job.Name, c.made[job.Name]))
		c.jobs[job.Name] = job
		c.made[job.Name]++
	}
}

// step is one reconcile.
func (c *cluster) step() Plan {
	c.Helper()
	p := c.plan()
	c.act(p)
	c.group.Status.SQL = p.Status
	for _, s := range p.Status {
		require.LessOrEqual(c, len([]rune(s.Message)), 256)
	}
	return p
}

// settle reconciles until nothing changes.
func (c *cluster) settle() {
	c.Helper()
	for range 20 {
		before := fmt.Sprint(c.group.Status.SQL)
		if p := c.step(); p.Start == nil && len(p.Stop) == 0 && fmt.Sprint(c.group.Status.SQL) == before {
			return
		}
	}
	c.Fatal("it does not settle")
}

// end ends a Job.
func (c *cluster) end(name string, how batchv1.JobConditionType, reason string) {
	c.Helper()
	require.NotNil(c, c.jobs[name], name)
	c.now = c.now.Add(time.Minute)
	c.jobs[name].Status.Conditions = append(c.jobs[name].Status.Conditions, batchv1.JobCondition{Type: how, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(c.now)})
}

func (c *cluster) of(name string) v1alpha1.SQLStatus {
	c.Helper()
	at := slices.IndexFunc(c.group.Status.SQL, func(s v1alpha1.SQLStatus) bool { return s.Name == name })
	require.GreaterOrEqual(c, at, 0)
	return c.group.Status.SQL[at]
}

const peopleJob, grantsJob = "basic-tidb-sql-people-1", "basic-tidb-sql-grants-1"

func TestDB10RunsGoOneAfterTheOtherAndOnceEach(t *testing.T) {
	c := play(t, people(), grants())
	c.hold = "no server of the group serves"
	c.settle()
	assert.Equal(t, v1alpha1.SQLWaiting, c.of("people").State)
	assert.Equal(t, c.hold, c.of("people").Message)
	assert.Empty(t, c.jobs)

	c.hold = ""
	c.settle()
	assert.Equal(t, v1alpha1.SQLRunning, c.of("people").State)
	assert.Equal(t, c.now, c.of("people").StartTime.Time)
	assert.Contains(t, c.of("people").Message, "kubectl -n db logs job/"+peopleJob)
	assert.Contains(t, c.of("grants").Message, "run people comes first")

	c.end(peopleJob, batchv1.JobComplete, "")
	c.settle()
	is := c.of("people")
	assert.Equal(t, v1alpha1.SQLSucceeded, is.State)
	assert.Empty(t, is.Message)
	assert.Equal(t, c.now, is.CompletionTime.Time)
	assert.Nil(t, c.jobs[peopleJob], "its end stands in status")
	assert.Equal(t, v1alpha1.SQLRunning, c.of("grants").State)

	c.hold = "the group is suspended"
	c.settle()
	assert.Equal(t, v1alpha1.SQLRunning, c.of("grants").State, "what runs goes on")
	c.end(grantsJob, batchv1.JobComplete, "")
	c.hold = ""
	c.settle()
	assert.Empty(t, c.jobs)
	c.settle()
	assert.Equal(t, map[string]int{peopleJob: 1, grantsJob: 1}, c.made)

	c.group.Spec.SQL[0].Revision = 2
	c.settle()
	assert.EqualValues(t, 2, c.of("people").Revision)
	assert.Equal(t, v1alpha1.SQLRunning, c.of("people").State)
	assert.Nil(t, c.of("people").CompletionTime)
	assert.Equal(t, v1alpha1.SQLSucceeded, c.of("grants").State, "nothing else runs again")
	assert.Equal(t, 1, c.made["basic-tidb-sql-people-2"])
}

func TestDB10FailedSQLIsReportedAndNotRunAgainUntilItsRevisionIsRaised(t *testing.T) {
	c := play(t, grants(), people())
	c.settle()
	c.ends[grantsJob] = End{Message: "statement 2 of 5: error 1146 (42S02): Table 'shop.orders'\n doesn't exist"}
	c.end(grantsJob, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	c.settle()
	is := c.of("grants")
	assert.Equal(t, v1alpha1.SQLFailed, is.State)
	assert.Equal(t, "statement 2 of 5: error 1146 (42S02): Table 'shop.orders' doesn't exist; to run it again raise spec.sql[grants].revision (kubectl -n db edit tidbgroup basic-tidb)", is.Message)
	assert.NotNil(t, c.jobs[grantsJob], "its log can be read")
	assert.Equal(t, "run grants comes first, which is Failed", c.of("people").Message)
	c.ends = nil
	c.settle()
	assert.Equal(t, is, c.of("grants"))
	assert.Equal(t, 1, c.made[grantsJob])

	c.group.Spec.SQL[0].Revision = 2
	c.settle()
	assert.Nil(t, c.jobs[grantsJob])
	assert.Equal(t, v1alpha1.SQLRunning, c.of("grants").State)
	c.end("basic-tidb-sql-grants-2", batchv1.JobComplete, "")
	c.settle()
	assert.Equal(t, v1alpha1.SQLRunning, c.of("people").State)
}

func TestDB10AnOperatorThatIsKilledAtAnyPointRunsNothingTwice(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 10))
		c := play(t, people(), grants(), hidden())
		for range 300 {
			p := c.plan()
			if random.IntN(3) > 0 {
				c.act(p)
				if random.IntN(3) > 0 {
					c.group.Status.SQL = p.Status
				}
			}
			for name, job := range c.jobs {
				if !workload.HasJobEnded(job) && random.IntN(4) == 0 {
					c.end(name, batchv1.JobComplete, "")
				}
			}
		}
		for name, count := range c.made {
			require.Equal(t, 1, count, "%s, seed %d", name, seed)
		}
		require.Len(t, c.made, 3, "seed %d", seed)
	}
}

func TestDB10AJobThatIsGoneIsNotRunAgain(t *testing.T) {
	c := play(t, people())
	c.settle()
	delete(c.jobs, peopleJob)
	c.settle()
	is := c.of("people")
	assert.Equal(t, v1alpha1.SQLFailed, is.State)
	assert.Contains(t, is.Message, "Job "+peopleJob+" is gone")
	assert.Contains(t, is.Message, "raise spec.sql[people].revision")
	assert.Equal(t, c.now, is.CompletionTime.Time)
	assert.Equal(t, 1, c.made[peopleJob])
}

func TestDB10AnEntryThatIsRemovedIsStopped(t *testing.T) {
	c := play(t, people(), grants())
	c.settle()
	c.group.Spec.SQL = c.group.Spec.SQL[1:]
	p := c.plan()
	require.Len(t, p.Stop, 1)
	assert.Nil(t, p.Start, "it may run still")
	assert.Contains(t, p.Status[0].Message, peopleJob+" has not ended")
	c.group.Spec.Paused = true
	assert.Empty(t, c.plan().Stop, "a paused group does nothing")
	c.group.Spec.Paused = false

	// Its Job takes its time to go, and the entry is back by then.
	gone := metav1.NewTime(c.now)
	c.jobs[peopleJob].DeletionTimestamp = &gone
	c.group.Status.SQL = p.Status
	c.group.Spec.SQL = append([]v1alpha1.SQLRun{people()}, c.group.Spec.SQL...)
	c.end(peopleJob, batchv1.JobFailed, "")
	c.settle()
	assert.Equal(t, v1alpha1.SQLWaiting, c.of("people").State, "that Job is not of this entry")
	delete(c.jobs, peopleJob)
	c.settle()
	assert.Equal(t, v1alpha1.SQLRunning, c.of("people").State)
}

func TestARevisionThatIsRaisedWhileItRunsStopsTheOldOneFirst(t *testing.T) {
	c := play(t, people())
	c.settle()
	c.group.Spec.SQL[0].Revision = 2
	p := c.plan()
	require.Len(t, p.Stop, 1)
	assert.Nil(t, p.Start)
	c.settle()
	assert.Equal(t, map[string]int{peopleJob: 1, "basic-tidb-sql-people-2": 1}, c.made)
}

func TestTheCauseOfAFailedJobIsReportedEvenWithoutItsPod(t *testing.T) {
	for name, c := range map[string]struct {
		end    End
		reason string
		says   string
	}{
		"the program":         {End{Message: "connect as root: error 1045"}, "", "connect as root: error 1045; to run it again"},
		"memory":              {End{Reason: "OOMKilled, exit code 137"}, "", "its pod ended without a message: OOMKilled, exit code 137; to"},
		"the image":           {End{}, batchv1.JobReasonDeadlineExceeded, "its pod did not run in time: kubectl -n db describe job " + peopleJob},
		"a pod that was lost": {End{}, "", "its pod is gone, and how it ended is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			w := play(t, people())
			w.settle()
			w.ends[peopleJob] = c.end
			w.end(peopleJob, batchv1.JobFailed, c.reason)
			w.settle()
			assert.Contains(t, w.of("people").Message, c.says)
		})
	}
	t.Run("what cannot be read yet is read later", func(t *testing.T) {
		w := play(t, people())
		w.settle()
		w.ends[peopleJob] = End{Err: errors.New("forbidden")}
		w.end(peopleJob, batchv1.JobFailed, "")
		p := w.step()
		assert.Equal(t, v1alpha1.SQLRunning, w.of("people").State)
		assert.Contains(t, w.of("people").Message, "forbidden")
		assert.Equal(t, 10*time.Second, p.Wake)
	})
	t.Run("a Job that never ends", func(t *testing.T) {
		w := play(t, people())
		w.settle()
		p := w.step()
		assert.Equal(t, lookBeside, p.Wake, "its pod may go on after its program")
		w.now = w.now.Add(16*time.Minute - time.Second)
		assert.Equal(t, time.Second, w.step().Wake, "its deadline, and some")
		w.now = w.now.Add(time.Second)
		assert.Zero(t, w.step().Wake)
		assert.Contains(t, w.of("people").Message, "does Kubernetes' controller of Jobs run?")
	})
}

func TestAMessageIsAlwaysOneLineThatFits(t *testing.T) {
	g := sample(people())
	g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "groups.tidb.dev/v1alpha1", Kind: v1alpha1.KindTidbCluster, Name: "basic", Controller: new(true)}}
	m := maker{g: g}
	text := m.failureMessage(&g.Spec.SQL[0], strings.Repeat("é\x00\n", 400))
	assert.Len(t, []rune(text), 256)
	assert.True(t, strings.HasSuffix(text, "…; to run it again raise spec.tidb[].sql[people].revision (kubectl -n db edit tidbcluster basic)"), text)
	assert.NotContains(t, text, "\n")
	assert.NotContains(t, text, "\x00")
}

func TestAJobOfAnotherOwnerOrWithoutAnImageIsNamed(t *testing.T) {
	c := play(t, people())
	foreign := renderJob(c.group, new(people()), image, 4000)
	foreign.OwnerReferences = nil
	c.jobs[peopleJob] = foreign
	c.settle()
	assert.Equal(t, v1alpha1.SQLWaiting, c.of("people").State)
	assert.Contains(t, c.of("people").Message, "kubectl -n db delete job "+peopleJob)
	assert.NotNil(t, c.jobs[peopleJob], "it is not ours to delete")

	p := MakePlan(c.group, Seen{MayBegin: verdict.Allow(), Port: 4000, Now: clock()})
	assert.Nil(t, p.Start)
	assert.Contains(t, p.Status[0].Message, "--image")

	p = MakePlan(c.group, Seen{MayBegin: verdict.Allow(), Image: image, Port: 4000, Now: clock()})
	require.NotNil(t, p.Start)
	assert.Equal(t, "its Job cannot be made: exceeded quota", p.WithError(errors.New("exceeded quota")).Status[0].Message)
	assert.NotContains(t, p.WithError(nil).Status[0].Message, "cannot")
}

func TestPodsOfOtherJobsAreIgnored(t *testing.T) {
	job := renderJob(sample(), new(people()), image, 4000)
	job.UID = "job"
	ours := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}
	pod := func(message, reason string, owners ...metav1.OwnerReference) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owners}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container}}
		p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{Message: message, Reason: reason, ExitCode: 1}
		return p
	}
	evicted := corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{ours}}}
	evicted.Status.Reason = "Evicted"
	assert.Equal(t, End{Message: "it is so"}, EndOf(job, []corev1.Pod{pod("a lie", "Error"), pod(" it is\nso", "Error", ours)}))
	assert.Equal(t, End{Reason: "OOMKilled, exit code 1"}, EndOf(job, []corev1.Pod{pod("", "OOMKilled", ours)}))
	assert.Equal(t, End{Reason: "Evicted"}, EndOf(job, []corev1.Pod{evicted}))
	job.Status.Failed = 1
	assert.Equal(t, End{}, EndOf(job, nil))
}

// What an evicted pod says ends no run that gets another pod, whose words count.
func TestDB10AnEvictedPodOfUsersSaysNothingOfTheirEnd(t *testing.T) {
	for _, run := range []v1alpha1.SQLRun{people(), grants()} {
		job := renderJob(sample(), new(run), image, 4000)
		job.UID = "job"
		pod := func(message string) corev1.Pod {
			p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message, ExitCode: 1}}},
				{Name: "istio-proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			}
			return p
		}
		evicted, last := pod("it was stopped"), pod("error 1819")
		evicted.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		again := run.Users != nil
		assert.Equal(t, again, EndOf(job, []corev1.Pod{evicted}) == End{}, run.Name)
		if again {
			assert.Equal(t, "error 1819", EndOf(job, []corev1.Pod{evicted, last}).Message)
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
			assert.Equal(t, "it was stopped", EndOf(job, []corev1.Pod{evicted}).Message, "no other pod came")
		}
	}
}

// A container of a service mesh runs on forever: the Job would be called failed when its time is over,
// although the statements have run, and a user would run them again.
func TestDB10ARunEndsWithItsProgramBesideAContainerThatGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		code          int32
		message, says string
		state         v1alpha1.SQLState
	}{
		"it has succeeded": {0, "", "", v1alpha1.SQLSucceeded},
		"it has failed":    {1, "statement 1 of 2: error 1064", "statement 1 of 2: error 1064; to run it again", v1alpha1.SQLFailed},
		"it was killed":    {137, "", "its pod ended without a message: OOMKilled, exit code 137; to run it again", v1alpha1.SQLFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := play(t, people(), grants())
			w.settle()
			job := w.jobs[peopleJob]
			assert.Empty(t, ListUnreported(w.group, []*batchv1.Job{job}, w.now), "it has only just begun")
			w.now = w.now.Add(lookBeside)
			require.Len(t, ListUnreported(w.group, []*batchv1.Job{job}, w.now), 1)
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}}}
			program := corev1.ContainerStatus{Name: Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
			proxy := corev1.ContainerStatus{Name: "istio-proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{program, proxy}
			w.ends[peopleJob] = EndOf(job, []corev1.Pod{pod})
			w.settle()
			assert.Equal(t, v1alpha1.SQLRunning, w.of("people").State)
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: c.code, Message: c.message, Reason: "OOMKilled", FinishedAt: metav1.NewTime(w.now)}}
			w.ends[peopleJob] = EndOf(job, []corev1.Pod{pod})
			w.step()
			assert.Equal(t, c.state, w.of("people").State)
			assert.Contains(t, w.of("people").Message, c.says)
			assert.Equal(t, w.now, w.of("people").CompletionTime.Time)
			w.settle()
			if c.code == 0 {
				assert.Nil(t, w.jobs[peopleJob], "nothing else ends its pod")
				assert.Equal(t, v1alpha1.SQLRunning, w.of("grants").State)
			}
			assert.Equal(t, 1, w.made[peopleJob])
		})
	}
}

func TestOnlyTheFailuresThatAreNewAreRead(t *testing.T) {
	c := play(t, people())
	c.settle()
	c.end(peopleJob, batchv1.JobFailed, "")
	jobs := []*batchv1.Job{c.jobs[peopleJob]}
	assert.False(t, LacksJob(c.group, jobs))
	assert.True(t, LacksJob(c.group, nil), "it runs, and is looked for where all are")
	assert.Len(t, ListUnreported(c.group, jobs, c.now), 1)
	c.settle()
	assert.Equal(t, v1alpha1.SQLFailed, c.of("people").State)
	assert.Empty(t, ListUnreported(c.group, jobs, c.now))
	assert.False(t, LacksJob(c.group, nil), "how it ended is known")
}

// refused is a pod of a Job that a node has refused some time before now.
func refused(job *batchv1.Job, at time.Time) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfmemory", Message: "Pod was rejected: Node didn't have enough resource: memory", StartTime: new(metav1.NewTime(at))}
	return pod
}

// No statement has run of a Job whose pod a node has refused: the entry would wait for a user for nothing.
func TestDB10ARunWhosePodWasRefusedIsTriedAgain(t *testing.T) {
	w := play(t, grants(), people())
	w.settle()
	w.end(grantsJob, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	w.ends[grantsJob] = EndOf(w.jobs[grantsJob], []corev1.Pod{refused(w.jobs[grantsJob], w.now)})
	p := w.step()
	assert.Equal(t, v1alpha1.SQLWaiting, w.of("grants").State)
	assert.Contains(t, w.of("grants").Message, "its pod ended without a message: OutOfmemory; no statement ran, and it is tried again")
	assert.NotZero(t, p.Wake)
	w.settle()
	assert.Equal(t, 1, w.made[grantsJob], "after a while")
	w.now = w.now.Add(retry)
	w.step()
	assert.Nil(t, w.jobs[grantsJob])
	delete(w.ends, grantsJob)
	w.settle()
	assert.Equal(t, 2, w.made[grantsJob])
	w.end(grantsJob, batchv1.JobComplete, "")
	w.settle()
	assert.Equal(t, v1alpha1.SQLSucceeded, w.of("grants").State)
}

// A kubelet that is started again refuses pods that ran, too.
func TestDB10ARunWhosePodMayHaveStartedIsNotTriedAgain(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"it was refused late": func(pod *corev1.Pod) { pod.Status.StartTime.Time = pod.Status.StartTime.Add(-time.Minute) },
		"it was evicted": func(pod *corev1.Pod) {
			pod.Status.Reason, pod.Status.Message = "Evicted", "The node was low on resource: memory."
		},
		"its program has ended": func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}}}
		},
		"its program waits by now": func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
		},
		"it belongs to another Job": func(pod *corev1.Pod) { pod.OwnerReferences = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := play(t, grants())
			w.settle()
			w.end(grantsJob, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
			pod := refused(w.jobs[grantsJob], w.now)
			change(&pod)
			w.ends[grantsJob] = EndOf(w.jobs[grantsJob], []corev1.Pod{pod})
			w.settle()
			assert.Equal(t, v1alpha1.SQLFailed, w.of("grants").State)
		})
	}
}

// A pod may wait for its node or its image for longer than its statements may take.
func TestDB10ARunWhosePodHasNotStartedWaits(t *testing.T) {
	w := play(t, people())
	w.settle()
	job := w.jobs[peopleJob]
	pod := refused(job, w.now)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: Container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}
	assert.GreaterOrEqual(t, *job.Spec.ActiveDeadlineSeconds, int64(24*3600), "else Kubernetes deletes the pod")
	w.now = w.now.Add(time.Hour)
	w.ends[peopleJob] = EndOf(job, []corev1.Pod{pod})
	assert.Equal(t, lookBeside, w.step().Wake)
	assert.Equal(t, v1alpha1.SQLRunning, w.of("people").State)
	assert.Contains(t, w.of("people").Message, "its pod has not started: kubectl -n db describe pods -l job-name="+peopleJob)
	w.ends[peopleJob] = End{}
	w.step()
	assert.Contains(t, w.of("people").Message, "does Kubernetes' controller of Jobs run?", "of one that has, it is too late")
}

// A quota, a LimitRange or a policy may refuse the pod of a Job: no statement has run, and what refuses it is to be found in
// the Events of the Job. Its log says nothing.
func TestDB10ARunWhoseJobHasNoPodSaysWhereToLook(t *testing.T) {
	w := play(t, grants())
	w.settle()
	w.now = w.now.Add(time.Minute)
	w.ends[grantsJob] = EndOf(w.jobs[grantsJob], nil)
	assert.Equal(t, lookBeside, w.step().Wake)
	assert.Equal(t, v1alpha1.SQLRunning, w.of("grants").State)
	assert.Contains(t, w.of("grants").Message, "it has no pod: a quota, a LimitRange or a policy refuses it, or Kubernetes' controller of Jobs does not run: kubectl -n db describe job "+grantsJob)

	w.jobs[grantsJob].Status.Active = 1
	assert.False(t, EndOf(w.jobs[grantsJob], nil).Unstarted, "the pods were read before it was made")
	w.jobs[grantsJob].Status.Active, w.jobs[grantsJob].Status.Failed = 0, 1
	assert.False(t, EndOf(w.jobs[grantsJob], nil).Unstarted, "it is gone, and may have run")
	w.jobs[grantsJob].Status.Failed = 0
	w.jobs[grantsJob].Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"pod"}}
	assert.False(t, EndOf(w.jobs[grantsJob], nil).Unstarted, "it is gone, and is not counted yet")
	w.jobs[grantsJob].Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	w.end(grantsJob, batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)
	w.ends[grantsJob] = EndOf(w.jobs[grantsJob], nil)
	w.step()
	assert.Equal(t, v1alpha1.SQLWaiting, w.of("grants").State)
	assert.Contains(t, w.of("grants").Message, "its pod did not run in time: kubectl -n db describe job "+grantsJob+"; no statement ran, and it is tried again")
}

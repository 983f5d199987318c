package controller

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/job"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/schedule"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// What retention has planned by its caches is looked at once more at the API server.
func TestBR02RetentionDeletesWhatTheAPIServerStillHasSo(t *testing.T) {
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	storage := v1alpha1.Storage{S3: &v1alpha1.S3Storage{Bucket: "copies", Prefix: "prod"}}
	restoreFrom := func(from v1alpha1.RestoreSource) *v1alpha1.Restore {
		return &v1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r"}, Spec: v1alpha1.RestoreSpec{From: from}}
	}
	byName := restoreFrom(v1alpha1.RestoreSource{Backup: &v1alpha1.LocalReference{Name: "old"}})
	byFolder := restoreFrom(v1alpha1.RestoreSource{Storage: &storage, Folder: "old"})
	ended := byName.DeepCopy()
	ended.Status.State = v1alpha1.RunComplete
	for name, c := range map[string]struct {
		change  func(*v1alpha1.BackupSchedule, *v1alpha1.Backup)
		restore *v1alpha1.Restore
		deleted bool
	}{
		"nothing has changed":           {nil, nil, true},
		"a Restore names it":            {nil, byName, false},
		"a Restore reads its folder":    {nil, byFolder, false},
		"a Restore of it has ended":     {nil, ended, true},
		"it is another of its name":     {func(_ *v1alpha1.BackupSchedule, b *v1alpha1.Backup) { b.UID = "another" }, nil, false},
		"a user has taken its label":    {func(_ *v1alpha1.BackupSchedule, b *v1alpha1.Backup) { b.Labels = nil }, nil, false},
		"it is of an earlier schedule":  {func(_ *v1alpha1.BackupSchedule, b *v1alpha1.Backup) { b.Annotations = nil }, nil, false},
		"it was made last":              {func(s *v1alpha1.BackupSchedule, _ *v1alpha1.Backup) { s.Status.LastBackup = "old" }, nil, false},
		"the schedule is paused":        {func(s *v1alpha1.BackupSchedule, _ *v1alpha1.Backup) { s.Spec.Paused = true }, nil, false},
		"the schedule keeps everything": {func(s *v1alpha1.BackupSchedule, _ *v1alpha1.Backup) { s.Spec.MaxBackups = nil }, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.BackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "of-s"}, Spec: v1alpha1.BackupScheduleSpec{MaxBackups: ptr.To(int32(1))}}
			planned := &v1alpha1.Backup{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "n", Name: "old", UID: "of-old",
					Labels: map[string]string{v1alpha1.LabelSchedule: s.Name}, Annotations: map[string]string{v1alpha1.AnnotationScheduleUID: string(s.UID)},
				},
				Spec: v1alpha1.BackupSpec{BackupTemplate: v1alpha1.BackupTemplate{Storage: storage}},
			}
			live := planned.DeepCopy()
			if c.change != nil {
				c.change(s, live)
			}
			objects := []client.Object{s, live}
			if c.restore != nil {
				objects = append(objects, c.restore.DeepCopy())
			}
			there := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			r := &schedules{Env: operator.Env{Client: there, Live: there, Recorder: events.NewFakeRecorder(1)}}
			seen := s.DeepCopy()
			require.NoError(t, there.Get(t.Context(), client.ObjectKeyFromObject(s), seen))

			outcome := r.act(t.Context(), seen, schedule.Plan{Delete: []*v1alpha1.Backup{planned}})
			var left v1alpha1.BackupList
			require.NoError(t, there.List(t.Context(), &left))
			if c.deleted {
				assert.Equal(t, step.KindDone, outcome.Kind)
				assert.Empty(t, left.Items)
				return
			}
			assert.NotEqual(t, step.KindDone, outcome.Kind, "it is planned again")
			assert.Len(t, left.Items, 1)
		})
	}
}

// A schedule that is made again after its deletion finds the Backups of the one before.
func TestWhoIsToDeleteABackupIsToldOfItsFiles(t *testing.T) {
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	s := &v1alpha1.BackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "of-s"}}
	for policy, says := range map[v1alpha1.CleanupPolicy]string{
		v1alpha1.CleanupRetain: "or delete the Backup: kubectl -n n delete backup b",
		v1alpha1.CleanupDelete: "or delete the Backup with its files: kubectl -n n delete backup b",
	} {
		b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}}
		there := b.DeepCopy()
		there.Spec.CleanupPolicy = policy
		store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).Build()
		r := &schedules{Env: operator.Env{Client: store, Live: store, Recorder: events.NewFakeRecorder(1)}}
		assert.Contains(t, r.make(t.Context(), s, b).Message, says)
	}
}

// A TiDBGroup becomes Ready, and what waited for it begins at once, each before its cache shows the
// other: BR refuses one of the two, and a Restore that BR refused is not tried again.
func TestBR04WhatExcludesOneAnotherIsLookedForAtTheAPIServer(t *testing.T) {
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "g", Generation: 1}}
	g.Spec.PDGroup.Name, g.Spec.Version = "pd", "v8.5.7"
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	bucket := v1alpha1.Storage{S3: &v1alpha1.S3Storage{Bucket: "copies", Secret: &v1alpha1.LocalReference{Name: "keys"}}}
	newLog := func() *v1alpha1.LogBackup {
		l := &v1alpha1.LogBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "l", UID: "of-l", Finalizers: []string{v1alpha1.FinalizerBackup}}}
		l.Spec.TiDBGroup.Name, l.Spec.Storage = "g", bucket
		l.Status.PDGroup, l.Status.State = "pd", v1alpha1.RunWaiting
		return l
	}
	newRestore := func(name string) *v1alpha1.Restore {
		r := &v1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID("of-" + name)}}
		r.Spec.TiDBGroup.Name, r.Spec.Type = "g", v1alpha1.BackupPhysical
		r.Spec.From = v1alpha1.RestoreSource{Storage: &bucket, Folder: "monday"}
		return r
	}
	// What the cache shows, to which each may begin.
	cached := job.Seen{Group: g, Image: image, Now: time.Now()}
	jobOf := func(run v1alpha1.Run) *batchv1.Job {
		p := planRun(run, cached)
		require.NotNil(t, p.Start)
		return p.Start
	}
	stopped := newLog()
	stopped.Status.State = v1alpha1.RunStopped
	elsewhere := newLog()
	elsewhere.Status.PDGroup = "another"
	looked := newLog()
	looked.Status.State, looked.Status.CompletionTime = v1alpha1.RunRunning, &metav1.Time{Time: time.Now().Add(-time.Hour)}
	for name, c := range map[string]struct {
		run   v1alpha1.Run
		there client.Object
		waits string
	}{
		"a Restore, nothing is there":             {newRestore("r"), nil, ""},
		"a Restore, a log that begins":            {newRestore("r"), newLog(), "LogBackup l writes a log"},
		"a Restore, a log that was stopped":       {newRestore("r"), stopped, ""},
		"a Restore, a log of another cluster":     {newRestore("r"), elsewhere, ""},
		"a Restore, another one":                  {newRestore("r"), jobOf(newRestore("other")), "Job other-restore-1 belongs to another"},
		"a log, nothing is there":                 {newLog(), nil, ""},
		"a log, a Restore that begins":            {newLog(), jobOf(newRestore("r")), "Job r-restore-1 restores into the cluster"},
		"a look at a log that goes on, as before": {looked, jobOf(newRestore("r")), ""},
		"a Restore, one that waits as it does":    {newRestore("r"), newRestore("other"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{c.run}
			if c.there != nil {
				objects = append(objects, c.there)
			}
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			var physical sync.Mutex
			r := &runs{Env: operator.Env{Client: live, Live: live, Recorder: events.NewFakeRecorder(1)}, kind: c.run.RunKind(), physical: &physical}
			r.new = func() v1alpha1.Run { return &v1alpha1.Restore{} }
			if c.run.RunKind() == v1alpha1.KindLogBackup {
				r.new = func() v1alpha1.Run { return &v1alpha1.LogBackup{} }
			}
			run := r.new()
			require.NoError(t, live.Get(t.Context(), client.ObjectKeyFromObject(c.run), run))

			outcome := r.act(t.Context(), run, cached, planRun(run, cached))
			made, err := listJobs(t.Context(), live, client.MatchingLabels(jobtemplate.RunLabels(run)))
			require.NoError(t, err)
			if c.waits == "" {
				assert.Equal(t, step.Done(), outcome)
				assert.Len(t, made, 1)
				return
			}
			assert.Contains(t, outcome.Message, c.waits)
			assert.Equal(t, step.KindAfter, outcome.Kind, "it is planned again")
			assert.Empty(t, made)
		})
	}
}

// A cluster with two TiDBGroups: its log may be of one, and its Backups of the other.
func TestBR01BackupsOfALogMayBeThroughAnyTiDBGroupOfItsCluster(t *testing.T) {
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	l := &v1alpha1.LogBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "l"}}
	l.Status.PDGroup = "pd"
	objects := []client.Object{&v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}}, &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: "c"}}}
	for name, cluster := range map[string]string{"one": "pd", "two": "pd", "other": "another"} {
		g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		g.Spec.PDGroup.Name = cluster
		objects = append(objects, g)
	}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	r := &runs{Env: operator.Env{Client: store, Live: store}, kind: v1alpha1.KindRestore}
	var seen job.Seen
	require.NoError(t, r.readBackups(t.Context(), &seen, l))
	assert.ElementsMatch(t, []string{"one", "two"}, seen.Groups)
	require.Len(t, seen.Backups, 1)
	assert.Equal(t, "b", seen.Backups[0].Name)
}

func TestAPausedScheduleDoesNotTellOfANextBackup(t *testing.T) {
	s := &v1alpha1.BackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "nightly"}, Spec: v1alpha1.BackupScheduleSpec{Schedule: "0 2 * * *", Paused: true}}
	_, set := reportSchedule(s, schedule.MakePlan(s, schedule.Seen{Now: time.Unix(1800000000, 0)}), step.Done(), time.Unix(1800000000, 0))
	assert.Equal(t, "no backup has ended yet; none begins while spec.paused is true", set.Get(v1alpha1.ConditionReady).Message)
}

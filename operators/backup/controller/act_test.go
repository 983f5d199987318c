package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
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

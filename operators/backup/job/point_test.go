package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// full is a Backup that a log can go on from.
func full(name string, minutes int, change func(*v1alpha1.Backup)) *v1alpha1.Backup {
	b := toRetained()
	b.Name, b.Spec.Type, b.Spec.Filters, b.Spec.Storage.S3.Prefix = name, v1alpha1.BackupPhysical, nil, "full"
	b.Status.State, b.Status.TSO = v1alpha1.RunComplete, text(tso(minutes))
	if change != nil {
		change(b)
	}
	return b
}

// toMoment is a Restore to some minutes past three, and -1 to the end of the log.
func toMoment(minutes int) *v1alpha1.Restore {
	r := fromPVC()
	r.Spec.From = v1alpha1.RestoreSource{LogBackup: &v1alpha1.LocalReference{Name: "the-log"}}
	if minutes >= 0 {
		r.Spec.PointInTime = &v1alpha1.Moment{Time: result.TimeOf(tso(minutes))}
	}
	return r
}

// A LogBackup whose task is being started, or that another TiDBGroup of the cluster has.
func TestBR01ARestoreWaitsForEachLogOfItsCluster(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.LogBackup){
		"its first Job runs":         func(l *v1alpha1.LogBackup) { l.Status.State = v1alpha1.RunWaiting },
		"it is of another TiDBGroup": func(l *v1alpha1.LogBackup) { l.Spec.TiDBGroup.Name = "second-tidb" },
	} {
		l, r := running(), toMoment(40)
		change(l)
		r.Status.Backup = "old"
		p := MakePlan(r, Seen{Group: group(), Image: image, Now: clock(), Log: running(), Backups: []*v1alpha1.Backup{full("old", 10, nil)}, Logs: []*v1alpha1.LogBackup{l}})
		assert.Nil(t, p.Start, name)
		assert.Contains(t, p.Outcome.Message, "kubectl -n db patch logbackup the-log", name)
		assert.Equal(t, step.KindStall, p.Outcome.Kind, "only a user stops it")
	}
}

func TestBR01ARestoreWaitsForALogThatIsBeingStopped(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.LogBackup){
		"by its spec": func(l *v1alpha1.LogBackup) { l.Spec.State = v1alpha1.LogStopped },
		"as it goes":  func(l *v1alpha1.LogBackup) { l.DeletionTimestamp = &metav1.Time{Time: clock()} },
	} {
		l, r := running(), toMoment(40)
		change(l)
		r.Status.Backup = "old"
		p := MakePlan(r, Seen{Group: group(), Image: image, Now: clock(), Log: running(), Backups: []*v1alpha1.Backup{full("old", 10, nil)}, Logs: []*v1alpha1.LogBackup{l}})
		assert.Nil(t, p.Start, name)
		assert.Equal(t, step.KindWait, p.Outcome.Kind, name)
		assert.Contains(t, p.Outcome.Message, "LogBackup the-log is being stopped", name)
	}
}

func TestBR01APointInTimeIsRestoredFromTheNewestFullBackupBeforeIt(t *testing.T) {
	old, fresh := full("old", 10, nil), full("fresh", 30, nil)
	for name, of := range map[string]struct {
		at      int
		backups []*v1alpha1.Backup
		change  func(*v1alpha1.LogBackup, *Seen)
		want    string
		words   string
	}{
		"the newest before it":    {40, []*v1alpha1.Backup{old, fresh}, nil, "fresh", ""},
		"not a newer one":         {20, []*v1alpha1.Backup{old, fresh}, nil, "old", ""},
		"the end of the log":      {-1, []*v1alpha1.Backup{old, fresh}, nil, "fresh", ""},
		"the very moment":         {30, []*v1alpha1.Backup{old, fresh}, nil, "fresh", ""},
		"none before it":          {5, []*v1alpha1.Backup{old, fresh}, nil, "", "between 2026-01-02T03:00:00.000Z, where the log begins, and 2026-01-02T03:05:00.000Z"},
		"what was truncated":      {20, []*v1alpha1.Backup{old}, func(l *v1alpha1.LogBackup, _ *Seen) { l.Status.TruncatedTo = text(tso(15)) }, "", "no complete Backup"},
		"what was before the log": {20, []*v1alpha1.Backup{old}, func(l *v1alpha1.LogBackup, _ *Seen) { l.Status.LogStart = text(tso(11)) }, "", "no complete Backup"},
		"one of some tables":      {40, []*v1alpha1.Backup{full("x", 20, func(b *v1alpha1.Backup) { b.Spec.Tables = []string{"a.b"} })}, nil, "", "no complete Backup"},
		"one of another cluster":  {40, []*v1alpha1.Backup{full("x", 20, func(b *v1alpha1.Backup) { b.Spec.TiDBGroup.Name = "other" })}, nil, "", "no complete Backup"},
		"one through another group": {40, []*v1alpha1.Backup{full("x", 20, func(b *v1alpha1.Backup) { b.Spec.TiDBGroup.Name = "beside" })}, func(_ *v1alpha1.LogBackup, s *Seen) {
			s.Groups = []string{"basic-tidb", "beside"}
		}, "x", ""},
		"one with another Secret":      {40, []*v1alpha1.Backup{full("x", 20, func(b *v1alpha1.Backup) { b.Spec.Storage.S3.Secret.Name = "new-keys" })}, nil, "", "with the bucket and the Secret of LogBackup the-log"},
		"one in another bucket":        {40, []*v1alpha1.Backup{full("x", 20, func(b *v1alpha1.Backup) { b.Spec.Storage.S3.Bucket = "other" })}, nil, "", "no complete Backup"},
		"the region by its name":       {40, []*v1alpha1.Backup{full("x", 20, func(b *v1alpha1.Backup) { b.Spec.Storage.S3.Region = "us-east-1" })}, nil, "x", ""},
		"one in another region":        {40, []*v1alpha1.Backup{full("x", 20, func(b *v1alpha1.Backup) { b.Spec.Storage.S3.Region = "eu-west-1" })}, nil, "", "no complete Backup"},
		"one that is going":            {40, []*v1alpha1.Backup{full("x", 20, func(b *v1alpha1.Backup) { b.DeletionTimestamp = &metav1.Time{Time: clock()} })}, nil, "", "no complete Backup"},
		"a moment that is to come":     {55, []*v1alpha1.Backup{old}, nil, "", "LogBackup the-log has reached 2026-01-02T03:50:00.000Z, and spec.pointInTime is 2026-01-02T03:55:00.000Z"},
		"a moment after the last look": {55, []*v1alpha1.Backup{old}, func(l *v1alpha1.LogBackup, _ *Seen) { l.Status.State = v1alpha1.RunStopped }, "old", ""},
		"a log without checkpoint":     {40, []*v1alpha1.Backup{old}, func(l *v1alpha1.LogBackup, _ *Seen) { l.Status.Checkpoint = "" }, "", "has no checkpoint yet"},
		"no log":                       {40, []*v1alpha1.Backup{old}, func(_ *v1alpha1.LogBackup, s *Seen) { s.Log = nil }, "", "LogBackup the-log does not exist"},
		"a cluster whose log is kept":  {40, []*v1alpha1.Backup{old}, func(l *v1alpha1.LogBackup, s *Seen) { s.Logs = []*v1alpha1.LogBackup{l} }, "old", "kubectl -n db patch logbackup the-log"},
	} {
		t.Run(name, func(t *testing.T) {
			l, r := running(), toMoment(of.at)
			seen := Seen{Group: group(), Image: image, Now: clock(), Log: l, Backups: of.backups}
			if of.change != nil {
				of.change(l, &seen)
			}
			p := MakePlan(r, seen)
			require.Nil(t, p.Start, "what is read stands in status first")
			assert.Equal(t, of.want, p.Backup)
			if of.want == "" {
				assert.Contains(t, p.Outcome.Message, of.words)
				assert.NotEmpty(t, p.Outcome.After)
				return
			}
			r.Status.Backup, r.Status.RunStatus = p.Backup, p.Status
			p = MakePlan(r, seen)
			if of.words != "" {
				assert.Nil(t, p.Start)
				assert.Contains(t, p.Outcome.Message, of.words)
				return
			}
			require.NotNil(t, p.Start)
			args := p.Start.Spec.Template.Spec.Containers[0].Args
			assert.Contains(t, args, "--folder=full/"+of.want)
			assert.Contains(t, args, "--log-folder=a/b/the-log")
			assert.Contains(t, args, "--log-uid=0123-456789")
			until := "" // what the log has when the Job runs, which may be more than status says
			if of.at >= 0 {
				until = text(tso(of.at))
			}
			assert.Contains(t, args, "--until="+until)
		})
	}
}

// A Backup that was chosen stays, whatever is complete meanwhile.
func TestBR01AChosenBackupStays(t *testing.T) {
	r := toMoment(40)
	r.Status.Backup = "old"
	p := MakePlan(r, Seen{Group: group(), Image: image, Now: clock(), Log: running(), Backups: []*v1alpha1.Backup{full("fresh", 30, nil), full("old", 10, nil)}})
	require.NotNil(t, p.Start)
	assert.Contains(t, p.Start.Spec.Template.Spec.Containers[0].Args, "--folder=full/old")
}

func TestBR01APointInTimeIsRestoredWithoutItsObjects(t *testing.T) {
	r := toMoment(40)
	r.Spec.From = v1alpha1.RestoreSource{Storage: toS3().Spec.Storage.DeepCopy(), Folder: "sunday", LogFolder: "pitr"}
	r.Spec.Type = v1alpha1.BackupPhysical
	p := MakePlan(r, Seen{Group: group(), Image: image, Now: clock()})
	require.NotNil(t, p.Start)
	args := p.Start.Spec.Template.Spec.Containers[0].Args
	assert.Contains(t, args, "--log-folder=a/b/pitr")
	assert.Contains(t, args, "--until="+text(tso(40)))
	assert.Contains(t, args, "--log-uid=")
}

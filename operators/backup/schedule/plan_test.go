package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

func clock() time.Time { return time.Date(2026, 3, 28, 12, 0, 30, 0, time.UTC) }

func sample(change func(*v1alpha1.BackupSchedule)) *v1alpha1.BackupSchedule {
	s := &v1alpha1.BackupSchedule{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "db", UID: "s1", CreationTimestamp: metav1.Time{Time: clock().Add(-72 * time.Hour)}}}
	s.Spec.Schedule = "0 2 * * *"
	change(s)
	return s
}

func backup(name string, state v1alpha1.RunState, age time.Duration) *v1alpha1.Backup {
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "db", Labels: map[string]string{v1alpha1.LabelSchedule: "nightly"}, Annotations: map[string]string{v1alpha1.AnnotationScheduleUID: "s1"},
	}}
	b.Status.State = state
	if b.Status.HasEnded() {
		b.Status.CompletionTime = &metav1.Time{Time: clock().Add(-age)}
	}
	return b
}

func at(day, hour int) *metav1.Time {
	return &metav1.Time{Time: time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC)}
}

func TestBR02WhenABackupIsDue(t *testing.T) {
	running := backup("a", v1alpha1.RunRunning, 0)
	for name, c := range map[string]struct {
		change  func(*v1alpha1.BackupSchedule)
		backups []*v1alpha1.Backup
		makes   string
		last    *metav1.Time
		next    *metav1.Time
	}{
		"not yet":                        {func(s *v1alpha1.BackupSchedule) { s.Status.LastRun = at(28, 2) }, nil, "", at(28, 2), at(29, 2)},
		"now":                            {func(s *v1alpha1.BackupSchedule) { s.Status.LastRun = at(27, 2) }, nil, "nightly-20260328-020000", at(28, 2), at(29, 2)},
		"one for many that were missed":  {func(s *v1alpha1.BackupSchedule) { s.Status.LastRun = at(1, 2) }, nil, "nightly-20260328-020000", at(28, 2), at(29, 2)},
		"none from before it was made":   {func(s *v1alpha1.BackupSchedule) { s.CreationTimestamp = *at(28, 3) }, nil, "", nil, at(29, 2)},
		"not while one runs":             {func(s *v1alpha1.BackupSchedule) { s.Status.LastRun = at(27, 2) }, []*v1alpha1.Backup{running}, "", at(28, 2), at(29, 2)},
		"beside one that runs, if asked": {func(s *v1alpha1.BackupSchedule) { s.Spec.ConcurrencyPolicy = v1alpha1.ConcurrencyAllow }, []*v1alpha1.Backup{running}, "nightly-20260328-020000", at(28, 2), at(29, 2)},
		"not while it is paused":         {func(s *v1alpha1.BackupSchedule) { s.Spec.Paused, s.Status.LastRun = true, at(27, 2) }, nil, "", at(27, 2), nil},
		"in its time zone": {func(s *v1alpha1.BackupSchedule) {
			s.Spec.TimeZone, s.Status.LastRun = "Europe/Berlin", at(27, 1)
		}, nil, "nightly-20260328-010000", at(28, 1), &metav1.Time{Time: time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)}}, // on the 29th there is no 2:00, and it is made at 3:00
	} {
		t.Run(name, func(t *testing.T) {
			p := MakePlan(sample(c.change), Seen{Backups: c.backups, Now: clock()})
			if c.makes == "" {
				assert.Nil(t, p.Make)
			} else if assert.NotNil(t, p.Make) {
				assert.Equal(t, c.makes, p.Make.Name)
			}
			assert.Equal(t, c.last, p.Status.LastRun)
			assert.Equal(t, c.next, p.Status.NextRun)
			assert.Equal(t, step.KindDone, p.Outcome.Kind)
		})
	}
}

// The clock of a node was years ahead, and then was set right.
func TestBR02BackupsAreMadeAfterAClockThatWasAhead(t *testing.T) {
	s := sample(func(s *v1alpha1.BackupSchedule) { s.Status.LastRun = &metav1.Time{Time: clock().AddDate(4, 0, 0)} })
	p := MakePlan(s, Seen{Now: clock()})
	assert.Nil(t, p.Make, "the time before now was one of those that have been looked at")
	s.Status = p.Status
	p = MakePlan(s, Seen{Now: at(29, 2).Time})
	require.NotNil(t, p.Make)
	assert.Equal(t, "nightly-20260329-020000", p.Make.Name)
	assert.Equal(t, at(29, 2), p.Status.LastRun)

	// The clock of the next leader is a little behind: the same Backup is made again, which is there.
	s.Status = p.Status
	p = MakePlan(s, Seen{Now: at(29, 2).Add(-time.Second)})
	assert.Nil(t, p.Make)
	s.Status = p.Status
	p = MakePlan(s, Seen{Now: at(29, 2).Time})
	require.NotNil(t, p.Make)
	assert.Equal(t, "nightly-20260329-020000", p.Make.Name)
}

func TestBR02AnInvalidScheduleIsNamed(t *testing.T) {
	for words, change := range map[string]func(*v1alpha1.BackupScheduleSpec){
		`spec.schedule: "CRON_TZ=UTC 0 2 * * *"`:  func(s *v1alpha1.BackupScheduleSpec) { s.Schedule = "CRON_TZ=UTC 0 2 * * *" },
		`spec.schedule: "0 2 * *"`:                func(s *v1alpha1.BackupScheduleSpec) { s.Schedule = "0 2 * *" },
		`spec.schedule: "@every 1h"`:              func(s *v1alpha1.BackupScheduleSpec) { s.Schedule = "@every 1h" },
		`spec.schedule: "0 2 30 2 *" never comes`: func(s *v1alpha1.BackupScheduleSpec) { s.Schedule = "0 2 30 2 *" },
		`spec.timeZone: "Mars"`:                   func(s *v1alpha1.BackupScheduleSpec) { s.TimeZone = "Mars" },
	} {
		s := sample(func(s *v1alpha1.BackupSchedule) {
			s.Spec.MaxBackups = ptr.To[int32](1)
			change(&s.Spec)
		})
		p := MakePlan(s, Seen{Backups: []*v1alpha1.Backup{backup("a", v1alpha1.RunComplete, 1), backup("b", v1alpha1.RunComplete, 2)}, Now: clock()})
		assert.Equal(t, v1alpha1.ReasonInvalidSpec, p.Outcome.Reason)
		assert.Contains(t, p.Outcome.Message, words)
		assert.Empty(t, p.Delete, "nothing is touched")
	}
}

func TestBR02TheLatestTimeOfAScheduleIsFoundAfterAnyPause(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := Parse(&v1alpha1.BackupScheduleSpec{Schedule: rapid.SampledFrom([]string{"* * * * *", "*/7 3 * * *", "0 2 * * 6", "30 4 1 * *"}).Draw(t, "schedule")})
		require.NoError(t, err)
		after := clock().Add(-time.Duration(rapid.IntRange(1, 3_000_000).Draw(t, "seconds")) * time.Second)
		got, found := latestTime(s, after, clock())
		if !found {
			assert.True(t, s.Next(after).After(clock()))
			return
		}
		assert.True(t, got.After(after) && !got.After(clock()))
		assert.True(t, s.Next(got).After(clock()), "there is no later one")
	})
}

func TestBR02RetentionNeverDeletesTheLastGoodBackup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sample(func(s *v1alpha1.BackupSchedule) {
			if rapid.Bool().Draw(t, "count") {
				s.Spec.MaxBackups = ptr.To(int32(rapid.IntRange(1, 4).Draw(t, "maxBackups")))
			}
			if rapid.Bool().Draw(t, "age") {
				s.Spec.MaxAge = &metav1.Duration{Duration: time.Duration(rapid.IntRange(1, 10).Draw(t, "maxAge")) * time.Hour}
			}
		})
		var all []*v1alpha1.Backup
		read := map[string]bool{}
		for n := range rapid.IntRange(0, 8).Draw(t, "backups") {
			b := backup(fmt.Sprint("b", n), rapid.SampledFrom([]v1alpha1.RunState{"", v1alpha1.RunRunning, v1alpha1.RunComplete, v1alpha1.RunFailed}).Draw(t, "state"), time.Duration(rapid.IntRange(0, 20).Draw(t, "hours"))*time.Hour)
			if rapid.IntRange(0, 5).Draw(t, "strange") == 0 {
				b.Annotations = nil
			}
			read[b.Name] = rapid.IntRange(0, 4).Draw(t, "read") == 0
			all = append(all, b)
		}
		p := MakePlan(s, Seen{Backups: all, Read: read, Now: clock()})
		gone := map[string]bool{}
		for _, b := range p.Delete {
			gone[b.Name] = true
			assert.True(t, IsOwn(s, b), "others' are left alone")
			assert.True(t, b.Status.HasEnded(), "none that runs")
			assert.False(t, b.Status.State == v1alpha1.RunComplete && read[b.Name], "none that a Restore reads")
		}
		good := completeBackups(ownOf(s, all))
		kept := 0
		for n, b := range good {
			if gone[b.Name] {
				assert.NotZero(t, n, "the newest stays")
				continue
			}
			kept++
			old := s.Spec.MaxAge != nil && clock().Sub(endOf(b)) > s.Spec.MaxAge.Duration
			many := s.Spec.MaxBackups != nil && n >= int(*s.Spec.MaxBackups)
			assert.True(t, n == 0 || read[b.Name] || !old && !many, "no more are kept than asked for")
		}
		if len(good) > 0 {
			assert.Positive(t, kept)
			assert.Equal(t, good[0].Name, p.Status.LastBackup)
		}
		if s.Spec.MaxBackups == nil && s.Spec.MaxAge == nil {
			assert.Empty(t, p.Delete)
		}
	})
}

func TestBR02StatusShowsTheLastEnd(t *testing.T) {
	good, bad := backup("good", v1alpha1.RunComplete, 2*time.Hour), backup("bad", v1alpha1.RunFailed, time.Hour)
	s := sample(func(*v1alpha1.BackupSchedule) {})
	p := MakePlan(s, Seen{Backups: []*v1alpha1.Backup{good, bad}, Now: clock()})
	assert.Equal(t, "the last backup has failed: kubectl -n db describe backup bad", p.Last.Message)
	assert.Equal(t, "good", p.Status.LastBackup)
	assert.Equal(t, step.KindDone, MakePlan(s, Seen{Backups: []*v1alpha1.Backup{backup("new", v1alpha1.RunComplete, 0), bad}, Now: clock()}).Last.Kind)
}

func TestBR02TheNewestOfDaysWeeksAndMonthsStay(t *testing.T) {
	s := sample(func(s *v1alpha1.BackupSchedule) {
		s.Spec.TimeZone, s.Spec.MaxBackups = "Europe/Berlin", ptr.To[int32](2)
		s.Spec.Keep = &v1alpha1.KeepBackups{Daily: ptr.To[int32](3), Weekly: ptr.To[int32](2), Monthly: ptr.To[int32](3)}
	})
	stay := func(all []*v1alpha1.Backup) []string {
		var out []string
		gone := MakePlan(s, Seen{Backups: all, Now: clock()}).Delete
		for _, b := range all {
			if !slices.Contains(gone, b) {
				out = append(out, b.Name)
			}
		}
		return out
	}
	var all []*v1alpha1.Backup
	for day := range 100 {
		for _, hour := range []int{23, 11} { // 23 h in UTC is a day later in Berlin
			end := time.Date(2026, 3, 27-day, hour, 30, 0, 0, time.UTC)
			b := backup(end.Format("0102-15"), v1alpha1.RunComplete, 0)
			b.Status.CompletionTime = &metav1.Time{Time: end}
			all = append(all, b)
		}
	}
	want := []string{
		"0327-23", "0327-11", // the two newest, of Saturday 28 and of Friday 27 in Berlin: the newest of a day, a week and a month is the first
		"0326-11",            // of Thursday, the third day
		"0322-11",            // of the Sunday before, the second week
		"0228-11", "0131-11", // of February and January
	}
	assert.Equal(t, want, stay(all))
	left := slices.DeleteFunc(slices.Clone(all), func(b *v1alpha1.Backup) bool { return !slices.Contains(want, b.Name) })
	assert.Equal(t, want, stay(left), "what stays stays")
	s.Spec.Keep = nil
	assert.Equal(t, want[:2], stay(all))
}

// A mistake in the template has a Backup wait forever, and every later time is left out.
func TestBR02ABackupThatCannotBeginIsNamed(t *testing.T) {
	s := sample(func(s *v1alpha1.BackupSchedule) { s.Status.LastRun = at(28, 2) })
	stuck := backup("nightly-1", v1alpha1.RunWaiting, 0)
	assert.Equal(t, step.KindDone, MakePlan(s, Seen{Backups: []*v1alpha1.Backup{stuck}, Now: clock()}).Last.Kind, "it has just begun")
	stuck.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonLoginRefused}}
	good := backup("nightly-0", v1alpha1.RunComplete, time.Hour)
	p := MakePlan(s, Seen{Backups: []*v1alpha1.Backup{good, stuck}, Now: clock()})
	assert.Equal(t, step.KindStall, p.Last.Kind)
	assert.Equal(t, "Backup nightly-1 cannot begin, and others may wait for it: correct what its status says, or delete it; spec.template is for later ones: kubectl -n db describe backup nightly-1", p.Last.Message)
	stuck.DeletionTimestamp = &metav1.Time{Time: clock()}
	assert.Equal(t, step.KindDone, MakePlan(s, Seen{Backups: []*v1alpha1.Backup{good, stuck}, Now: clock()}).Last.Kind)
}

// A wrong image, a quota or a node that was cut off has the pod of a Backup wait forever, too. It is named
// when a time was left out for it: a node may be on its way.
func TestBR02ABackupWhosePodDoesNotRunIsNamed(t *testing.T) {
	stuck := backup("nightly-1", v1alpha1.RunRunning, 0)
	stuck.CreationTimestamp = metav1.Time{Time: at(27, 2).Add(time.Second)}
	last := func(reason string, run *metav1.Time) step.Outcome {
		stuck.Status.Reason = reason
		s := sample(func(s *v1alpha1.BackupSchedule) { s.Status.LastRun = run })
		return MakePlan(s, Seen{Backups: []*v1alpha1.Backup{stuck}, Now: clock()}).Last
	}
	for _, reason := range []string{v1alpha1.ReasonPodMissing, v1alpha1.ReasonPodUnschedulable, v1alpha1.ReasonPodTerminating, v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonContainerConfigError} {
		assert.Equal(t, step.KindDone, last(reason, at(27, 2)).Kind, reason)
		assert.Equal(t, "Backup nightly-1 cannot begin, and others may wait for it: correct what its status says, or delete it; spec.template is for later ones: kubectl -n db describe backup nightly-1", last(reason, at(28, 2)).Message)
	}
	for _, reason := range []string{"", v1alpha1.ReasonJobRunning, v1alpha1.ReasonWaitingForTiDBGroup} {
		assert.Equal(t, step.KindDone, last(reason, at(28, 2)).Kind, reason)
	}
	assert.Equal(t, step.KindDone, last(v1alpha1.ReasonImagePullFailed, nil).Kind)
}

// The TiDBGroup was renamed or deleted: its Backup waits without an end, and no other is made. One whose
// cluster is suspended begins when that is resumed.
func TestBR02ABackupOfATiDBGroupThatIsGoneIsNamed(t *testing.T) {
	stuck := backup("nightly-1", v1alpha1.RunWaiting, 0)
	stuck.CreationTimestamp = metav1.Time{Time: at(27, 2).Add(time.Second)}
	stuck.Status.Reason, stuck.Spec.TiDBGroup.Name = v1alpha1.ReasonWaitingForTiDBGroup, "shop-tidb"
	for _, c := range []struct {
		gone string
		run  *metav1.Time
		kind step.Kind
	}{{"shop-tidb", at(28, 2), step.KindStall}, {"shop-tidb", at(27, 2), step.KindDone}, {"other-tidb", at(28, 2), step.KindDone}} {
		s := sample(func(s *v1alpha1.BackupSchedule) { s.Status.LastRun = c.run })
		last := MakePlan(s, Seen{Backups: []*v1alpha1.Backup{stuck}, Gone: map[string]bool{c.gone: true}, Now: clock()}).Last
		assert.Equal(t, c.kind, last.Kind, c)
	}
}

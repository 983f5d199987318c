package controller

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/job"
	"github.com/tidb-groups/tidb-groups/operators/backup/schedule"
)

// planRun decides what to do about a Backup or a Restore. It is pure: see package job.
func planRun(run v1alpha1.Run, seen job.Seen) job.Plan { return job.MakePlan(run, seen) }

// planSchedule decides what to do about a BackupSchedule. It is pure: see package schedule.
func planSchedule(s *v1alpha1.BackupSchedule, seen schedule.Seen) schedule.Plan {
	return schedule.MakePlan(s, seen)
}

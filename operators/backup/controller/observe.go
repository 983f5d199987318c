package controller

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/job"
	"github.com/tidb-groups/tidb-groups/operators/backup/schedule"
)

// observe reads what a run has to do with.
func (r *runs) observe(ctx context.Context, run v1alpha1.Run) (job.Seen, error) {
	seen := job.Seen{Image: r.Image, Now: r.Now()}
	in, labels := client.InNamespace(run.GetNamespace()), client.MatchingLabels(job.Labels(run))
	var jobs batchv1.JobList
	if err := r.Client.List(ctx, &jobs, in, labels); err != nil {
		return seen, fmt.Errorf("list Jobs of %s %s: %w", r.kind, run.GetName(), err)
	}
	for i := range jobs.Items {
		seen.Jobs = append(seen.Jobs, &jobs.Items[i])
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, in, labels); err != nil {
		return seen, fmt.Errorf("list pods of %s %s: %w", r.kind, run.GetName(), err)
	}
	for i := range pods.Items {
		seen.Pods = append(seen.Pods, &pods.Items[i])
	}
	if run.GetRunStatus().Ended() {
		return seen, nil
	}
	group := &v1alpha1.TiDBGroup{}
	switch found, err := r.find(ctx, run.GetNamespace(), run.GetTiDBGroup(), group); {
	case err != nil:
		return seen, err
	case found:
		seen.Group, seen.Silent = group, r.Waits.Overdue(group, group.Status.Conditions, seen.Now)
		if seen.Others, err = physicalJobs(ctx, r.Client, group.Namespace, group.PDGroupName()); err != nil {
			return seen, err
		}
	}
	if name := sourceOf(run); name != "" {
		source := &v1alpha1.Backup{}
		found, err := r.find(ctx, run.GetNamespace(), name, source)
		if err != nil {
			return seen, err
		}
		if found {
			seen.Source = source
		}
	}
	return seen, nil
}

// physicalJobs reads the Jobs of physical runs of a cluster.
func physicalJobs(ctx context.Context, from client.Reader, namespace, cluster string) ([]*batchv1.Job, error) {
	var jobs batchv1.JobList
	if err := from.List(ctx, &jobs, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelPhysicalOf: cluster}); err != nil {
		return nil, fmt.Errorf("list Jobs of physical runs: %w", err)
	}
	var out []*batchv1.Job
	for i := range jobs.Items {
		out = append(out, &jobs.Items[i])
	}
	return out, nil
}

// find reads an object of the suite; false if there is none.
func (r *runs) find(ctx context.Context, namespace, name string, into client.Object) (bool, error) {
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get %T %s: %w", into, name, err)
	}
	return err == nil, nil
}

// list reads the Backups, or the Restores, of a namespace.
func (r *runs) list(ctx context.Context, namespace string) ([]v1alpha1.Run, error) {
	var out []v1alpha1.Run
	if r.kind == v1alpha1.KindBackup {
		var all v1alpha1.BackupList
		if err := r.Client.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list Backups: %w", err)
		}
		for i := range all.Items {
			out = append(out, &all.Items[i])
		}
		return out, nil
	}
	var all v1alpha1.RestoreList
	if err := r.Client.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Restores: %w", err)
	}
	for i := range all.Items {
		out = append(out, &all.Items[i])
	}
	return out, nil
}

// sourceOf returns the name of the Backup that a Restore names; empty if it names none.
func sourceOf(run v1alpha1.Run) string {
	if restore, is := run.(*v1alpha1.Restore); is && restore.Spec.From.Backup != nil {
		return restore.Spec.From.Backup.Name
	}
	return ""
}

// observe reads the Backups of a schedule, and which of them are being read.
func (r *schedules) observe(ctx context.Context, s *v1alpha1.BackupSchedule) (schedule.Seen, error) {
	seen := schedule.Seen{Now: r.Now(), Read: map[string]bool{}}
	var backups v1alpha1.BackupList
	if err := r.Client.List(ctx, &backups, client.InNamespace(s.Namespace), client.MatchingLabels(schedule.Selector(s))); err != nil {
		return seen, fmt.Errorf("list Backups of BackupSchedule %s: %w", s.Name, err)
	}
	for i := range backups.Items {
		seen.Backups = append(seen.Backups, &backups.Items[i])
	}
	var restores v1alpha1.RestoreList
	if err := r.Client.List(ctx, &restores, client.InNamespace(s.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return seen, fmt.Errorf("list Restores: %w", err)
	}
	for i := range restores.Items {
		if from := sourceOf(&restores.Items[i]); from != "" && !restores.Items[i].Status.Ended() {
			seen.Read[from] = true
		}
	}
	return seen, nil
}

package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/job"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/schedule"
)

// listJobs reads Jobs from the cache or the API server.
func listJobs(ctx context.Context, from client.Reader, options ...client.ListOption) ([]*batchv1.Job, error) {
	var list batchv1.JobList
	if err := from.List(ctx, &list, options...); err != nil {
		return nil, err
	}
	var out []*batchv1.Job
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// observe reads what a run has to do with.
func (r *runs) observe(ctx context.Context, run v1alpha1.Run) (job.Seen, error) {
	seen := job.Seen{Image: r.Image, Now: r.Now()}
	in, labels := client.InNamespace(run.GetNamespace()), client.MatchingLabels(jobtemplate.RunLabels(run))
	var err error
	if seen.Jobs, err = listJobs(ctx, r.Client, in, labels); err == nil && job.LacksJob(run, seen.Jobs) {
		// The cache may be older than the status, right after the operator has started.
		seen.Jobs, err = listJobs(ctx, r.Live, in, labels)
	}
	if err != nil {
		return seen, fmt.Errorf("list Jobs of %s %s: %w", r.kind, run.GetName(), err)
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, in, labels); err != nil {
		return seen, fmt.Errorf("list pods of %s %s: %w", r.kind, run.GetName(), err)
	}
	for i := range pods.Items {
		seen.Pods = append(seen.Pods, &pods.Items[i])
	}
	if run.GetRunStatus().HasEnded() && run.GetDeletionTimestamp() == nil {
		return seen, nil
	}
	if ip := job.ProgressAddress(run, seen); ip != "" {
		var err error
		if seen.Progress, err = r.progress.Ask(ctx, ip); err != nil {
			log.FromContext(ctx).V(1).Info("the pod does not report its progress", "why", err.Error())
		}
	}
	switch group, err := r.findGroup(ctx, run); {
	case err != nil:
		return seen, err
	case group != nil:
		seen.Group, seen.Overdue = group, r.Waits.IsOverdue(group, group.Status.Conditions, seen.Now)
		if seen.Others, err = physicalJobs(ctx, r.Client, group.Namespace, group.PDGroupName()); err != nil {
			return seen, err
		}
	}
	switch of := run.(type) {
	case *v1alpha1.Restore:
		err = r.observeSource(ctx, of, &seen)
	case *v1alpha1.LogBackup:
		err = r.observeLog(ctx, of, &seen)
	}
	return seen, err
}

// findGroup returns the TiDBGroup that a run connects to, nil if there is none. A log is that of a
// cluster: where its group is gone, such as one that was renamed, another one of the cluster does.
func (r *runs) findGroup(ctx context.Context, run v1alpha1.Run) (*v1alpha1.TiDBGroup, error) {
	named := &v1alpha1.TiDBGroup{}
	found, err := r.find(ctx, run.GetNamespace(), run.GetTiDBGroup(), named)
	if found {
		return named, nil
	}
	l, is := run.(*v1alpha1.LogBackup)
	if err != nil || !is {
		return nil, err
	}
	all, err := r.groupsOf(ctx, l)
	all = slices.DeleteFunc(all, func(g *v1alpha1.TiDBGroup) bool { return g.DeletionTimestamp != nil })
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return slices.MinFunc(all, func(a, b *v1alpha1.TiDBGroup) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// groupsOf reads the TiDBGroups of the cluster of a log.
func (r *runs) groupsOf(ctx context.Context, l *v1alpha1.LogBackup) ([]*v1alpha1.TiDBGroup, error) {
	if l.Status.PDGroup == "" {
		return nil, nil
	}
	var all v1alpha1.TiDBGroupList
	if err := r.Client.List(ctx, &all, client.InNamespace(l.Namespace)); err != nil {
		return nil, fmt.Errorf("list TiDBGroups: %w", err)
	}
	var out []*v1alpha1.TiDBGroup
	for i := range all.Items {
		if g := &all.Items[i]; g.PDGroupName() == l.Status.PDGroup {
			out = append(out, g)
		}
	}
	return out, nil
}

// observeSource reads what a Restore reads, and the LogBackups of the namespace.
func (r *runs) observeSource(ctx context.Context, of *v1alpha1.Restore, seen *job.Seen) error {
	if from := of.Spec.From.Backup; from != nil {
		source := &v1alpha1.Backup{}
		found, err := r.find(ctx, of.Namespace, from.Name, source)
		if err != nil {
			return err
		}
		if found {
			seen.Source = source
		}
	}
	var err error
	if seen.Logs, err = logsOf(ctx, r.Client, of.Namespace); err != nil {
		return err
	}
	for _, l := range seen.Logs {
		if l.Name == logOf(of) {
			seen.Log = l
		}
	}
	if seen.Log == nil {
		return nil
	}
	return r.readBackups(ctx, seen, seen.Log)
}

// observeLog reads what holds back or asks for the truncation of a log, and whether its cluster
// is there.
func (r *runs) observeLog(ctx context.Context, of *v1alpha1.LogBackup, seen *job.Seen) error {
	if of.Status.PDGroup != "" && seen.Group == nil {
		var err error
		if seen.Cluster, err = r.find(ctx, of.Namespace, of.Status.PDGroup, &v1alpha1.PDGroup{}); err != nil {
			return err
		}
	}
	restores, err := restoresOf(ctx, r.Client, of.Namespace)
	if err != nil {
		return err
	}
	for i := range restores {
		seen.Read = seen.Read || schedule.ReadsLog(&restores[i], of)
		isOf, err := r.isPhysicalRestore(ctx, &restores[i], of)
		if err != nil {
			return err
		}
		if isOf {
			seen.Restores = append(seen.Restores, &restores[i])
		}
	}
	if of.Spec.TruncateWith == nil {
		return nil
	}
	s := &v1alpha1.BackupSchedule{}
	found, err := r.find(ctx, of.Namespace, of.Spec.TruncateWith.Name, s)
	if err != nil {
		return err
	}
	if found {
		seen.Schedule = s
	}
	return r.readBackups(ctx, seen, of, client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelSchedule: of.Spec.TruncateWith.Name})
}

// isPhysicalRestore reports whether a Restore has BR write the cluster of a log whose task is stopped. One
// whose Backup is gone may.
func (r *runs) isPhysicalRestore(ctx context.Context, of *v1alpha1.Restore, l *v1alpha1.LogBackup) (bool, error) {
	if l.Status.State != v1alpha1.RunStopped || of.Status.StartTime == nil || of.Spec.From.Storage != nil && of.Spec.Type != v1alpha1.BackupPhysical {
		return false, nil
	}
	if from := of.Spec.From.Backup; from != nil {
		source := &v1alpha1.Backup{}
		if found, err := r.find(ctx, of.Namespace, from.Name, source); err != nil || found && source.Spec.Type != v1alpha1.BackupPhysical {
			return false, err
		}
	}
	group := &v1alpha1.TiDBGroup{}
	found, err := r.find(ctx, of.Namespace, of.Spec.TiDBGroup.Name, group)
	return found && group.PDGroupName() == l.Status.PDGroup || !found && of.Spec.TiDBGroup == l.Spec.TiDBGroup, err
}

// readBackups reads Backups of the namespace of a log, and the TiDBGroups of its cluster.
func (r *runs) readBackups(ctx context.Context, seen *job.Seen, l *v1alpha1.LogBackup, which ...client.ListOption) error {
	var all v1alpha1.BackupList
	if err := r.Client.List(ctx, &all, append(which, client.InNamespace(l.Namespace))...); err != nil {
		return fmt.Errorf("list Backups: %w", err)
	}
	for i := range all.Items {
		seen.Backups = append(seen.Backups, &all.Items[i])
	}
	groups, err := r.groupsOf(ctx, l)
	for _, g := range groups {
		seen.Groups = append(seen.Groups, g.Name)
	}
	return err
}

// restoresOf reads the Restores of a namespace.
func restoresOf(ctx context.Context, from client.Reader, namespace string) ([]v1alpha1.Restore, error) {
	var out v1alpha1.RestoreList
	if err := from.List(ctx, &out, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Restores: %w", err)
	}
	return out.Items, nil
}

// logsOf reads the LogBackups of a namespace.
func logsOf(ctx context.Context, from client.Reader, namespace string) ([]*v1alpha1.LogBackup, error) {
	var all v1alpha1.LogBackupList
	if err := from.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list LogBackups: %w", err)
	}
	var out []*v1alpha1.LogBackup
	for i := range all.Items {
		out = append(out, &all.Items[i])
	}
	return out, nil
}

// physicalJobs reads the Jobs of physical runs of a cluster.
func physicalJobs(ctx context.Context, from client.Reader, namespace, cluster string) ([]*batchv1.Job, error) {
	out, err := listJobs(ctx, from, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelPhysicalOf: cluster})
	if err != nil {
		return nil, fmt.Errorf("list Jobs of physical runs: %w", err)
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

// list reads the objects of the kind in a namespace.
func (r *runs) list(ctx context.Context, namespace string) ([]v1alpha1.Run, error) {
	all := r.many()
	if err := r.Client.List(ctx, all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list %ss: %w", r.kind, err)
	}
	var out []v1alpha1.Run
	err := meta.EachListItem(all, func(o runtime.Object) error {
		run, _ := o.(v1alpha1.Run)
		out = append(out, run)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("walk the list of %ss: %w", r.kind, err)
	}
	return out, nil
}

// sourceOf returns the name of the Backup that a Restore reads; empty if it reads none.
func sourceOf(run v1alpha1.Run) string {
	if restore, is := run.(*v1alpha1.Restore); is {
		return schedule.SourceOf(restore)
	}
	return ""
}

// logOf returns the name of the LogBackup that a Restore reads; empty if it reads none.
func logOf(run v1alpha1.Run) string {
	if restore, is := run.(*v1alpha1.Restore); is && restore.Spec.From.LogBackup != nil {
		return restore.Spec.From.LogBackup.Name
	}
	return ""
}

// observe reads the Backups of a schedule, and which of them are being read.
func (r *schedules) observe(ctx context.Context, s *v1alpha1.BackupSchedule) (schedule.Seen, error) {
	seen := schedule.Seen{Gone: map[string]bool{}, Now: r.Now()}
	var backups v1alpha1.BackupList
	if err := r.Client.List(ctx, &backups, client.InNamespace(s.Namespace), client.MatchingLabels(schedule.Selector(s))); err != nil {
		return seen, fmt.Errorf("list Backups of BackupSchedule %s: %w", s.Name, err)
	}
	for i := range backups.Items {
		b := &backups.Items[i]
		if seen.Backups = append(seen.Backups, b); b.Status.HasEnded() {
			continue
		}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: b.Spec.TiDBGroup.Name}, &v1alpha1.TiDBGroup{})
		if client.IgnoreNotFound(err) != nil {
			return seen, fmt.Errorf("get TiDBGroup %s: %w", b.Spec.TiDBGroup.Name, err)
		}
		seen.Gone[b.Spec.TiDBGroup.Name] = err != nil
	}
	restores, err := restoresOf(ctx, r.Client, s.Namespace)
	if err != nil {
		return seen, err
	}
	seen.Read = schedule.FindRead(restores, seen.Backups)
	return seen, nil
}

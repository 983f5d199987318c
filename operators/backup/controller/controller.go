package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/queueing"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=backups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=logbackups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=backupschedules;pdgroups;restores;tidbgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=backups/status;backupschedules/status;logbackups/status;restores/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=backups/finalizers;logbackups/finalizers;restores/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	return operator.Definition{
		Name: v1alpha1.OperatorBackup, Kind: v1alpha1.KindBackup,
		List: func() client.ObjectList { return &v1alpha1.BackupList{} },
		Beside: []operator.Kind{
			{Name: v1alpha1.KindBackupSchedule, List: func() client.ObjectList { return &v1alpha1.BackupScheduleList{} }},
			{Name: v1alpha1.KindLogBackup, List: func() client.ObjectList { return &v1alpha1.LogBackupList{} }},
			{Name: v1alpha1.KindRestore, List: func() client.ObjectList { return &v1alpha1.RestoreList{} }},
		},
		Cached: map[client.Object]cache.ByObject{&batchv1.Job{}: {Label: ofRuns()}, &corev1.Pod{}: {Label: ofRuns()}},
		Tools:  true,
		Setup:  func(_ context.Context, env operator.Env) error { return setupControllers(env) },
	}
}

// ofRuns selects the Jobs and pods of Backups, LogBackups and Restores.
func ofRuns() labels.Selector {
	made, err := labels.NewRequirement(v1alpha1.LabelRun, selection.Exists, nil)
	if err != nil {
		panic(err) // a label's name that is none: every test finds it
	}
	return operator.ManagedSelector().Add(*made)
}

func setupControllers(env operator.Env) error {
	var physical sync.Mutex
	asks := progress.NewClient()
	for _, r := range []*runs{
		{Env: env, physical: &physical, progress: asks, kind: v1alpha1.KindBackup, new: func() v1alpha1.Run { return &v1alpha1.Backup{} }, many: func() client.ObjectList { return &v1alpha1.BackupList{} }},
		{Env: env, physical: &physical, progress: asks, kind: v1alpha1.KindLogBackup, new: func() v1alpha1.Run { return &v1alpha1.LogBackup{} }, many: func() client.ObjectList { return &v1alpha1.LogBackupList{} }},
		{Env: env, physical: &physical, progress: asks, kind: v1alpha1.KindRestore, new: func() v1alpha1.Run { return &v1alpha1.Restore{} }, many: func() client.ObjectList { return &v1alpha1.RestoreList{} }},
	} {
		r.Outcomes = env.Outcomes.WithKind(r.kind)
		if err := r.setup(); err != nil {
			return fmt.Errorf("build controller of %ss: %w", r.kind, err)
		}
	}
	s := &schedules{Env: env}
	s.Outcomes = env.Outcomes.WithKind(v1alpha1.KindBackupSchedule)
	if err := s.setup(); err != nil {
		return fmt.Errorf("build controller of BackupSchedules: %w", err)
	}
	return nil
}

// runs reconciles Backups, LogBackups, or Restores.
type runs struct {
	operator.Env
	kind string
	// new and many return an empty object of the kind, and an empty list.
	new  func() v1alpha1.Run
	many func() client.ObjectList
	// progress asks pods how far they are.
	progress *progress.Client
	// physical is held while a Job is made that others exclude: of a physical Backup or Restore, or of
	// a log that begins.
	physical *sync.Mutex
}

func (r *runs) setup() error {
	changed := builder.WithPredicates(watch.ChangedPredicate())
	named := handler.EnqueueRequestsFromMapFunc(r.findOwnerRun)
	edits := queueing.NewEdits()
	b := edits.For(ctrl.NewControllerManagedBy(r.Manager), r.new(), watch.OwnPredicate()).
		Watches(&batchv1.Job{}, named, changed).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(r.listQueuedRuns), changed).
		Watches(&corev1.Pod{}, named, changed).
		Watches(&v1alpha1.TiDBGroup{}, handler.EnqueueRequestsFromMapFunc(r.listRunsOfGroup), changed).
		WithOptions(edits.WithBackoff(r.Controller))
	reading := handler.EnqueueRequestsFromMapFunc(r.listDependentRuns)
	if r.kind != v1alpha1.KindBackup {
		b = b.Watches(&v1alpha1.Backup{}, reading, changed)
	}
	if r.kind == v1alpha1.KindRestore {
		b = b.Watches(&v1alpha1.LogBackup{}, reading, changed)
	}
	if r.kind == v1alpha1.KindLogBackup {
		b = b.Watches(&v1alpha1.Restore{}, reading, changed).Watches(&v1alpha1.BackupSchedule{}, reading, changed)
	}
	return b.Complete(r.InScope(edits.NewFairReconciler(r.PerNamespace, r.Now, edits.NewReconciler(r))))
}

// findOwnerRun returns the run that a Job or a pod is of.
func (r *runs) findOwnerRun(_ context.Context, o client.Object) []reconcile.Request {
	kind, name, _ := strings.Cut(o.GetAnnotations()[v1alpha1.AnnotationRun], "/")
	if kind != r.kind || name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// listQueuedRuns returns the runs that may have waited for the Job of a physical one to end.
func (r *runs) listQueuedRuns(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetLabels()[v1alpha1.LabelPhysicalOf] == "" {
		return nil
	}
	return r.listWaitingRuns(ctx, o.GetNamespace(), func(run v1alpha1.Run) bool { return run.GetRunStatus().Reason == v1alpha1.ReasonWaitingForRun })
}

// listRunsOfGroup returns the runs that wait for a TiDBGroup, and the logs of its cluster.
func (r *runs) listRunsOfGroup(ctx context.Context, group client.Object) []reconcile.Request {
	return r.listWaitingRuns(ctx, group.GetNamespace(), func(run v1alpha1.Run) bool {
		l, isLog := run.(*v1alpha1.LogBackup)
		g, isGroup := group.(*v1alpha1.TiDBGroup)
		return run.GetTiDBGroup() == group.GetName() || isLog && isGroup && l.Status.PDGroup == g.PDGroupName()
	})
}

// listDependentRuns returns the runs that wait for another one: a Restore for what it reads, or for a log
// of its cluster to be stopped; a LogBackup for what it is truncated with, and for a Restore
// that reads it or writes its cluster.
func (r *runs) listDependentRuns(ctx context.Context, other client.Object) []reconcile.Request {
	return r.listWaitingRuns(ctx, other.GetNamespace(), func(run v1alpha1.Run) bool { return concernsRun(run, other) })
}

// concernsRun reports whether a run may wait for another object.
func concernsRun(run v1alpha1.Run, other client.Object) bool {
	switch of := other.(type) {
	case *v1alpha1.Backup:
		if l, is := run.(*v1alpha1.LogBackup); is {
			return l.Spec.TruncateWith != nil && of.Labels[v1alpha1.LabelSchedule] == l.Spec.TruncateWith.Name
		}
		return sourceOf(run) == of.Name
	case *v1alpha1.BackupSchedule:
		l, is := run.(*v1alpha1.LogBackup)
		return is && l.Spec.TruncateWith != nil && of.Name == l.Spec.TruncateWith.Name
	case *v1alpha1.LogBackup:
		return logOf(run) == of.Name || run.GetTiDBGroup() == of.GetTiDBGroup()
	case *v1alpha1.Restore:
		return true // few begin and end, and which cluster a log is of does not stand in it
	}
	return false
}

// listWaitingRuns returns the runs that have not ended and that matter.
func (r *runs) listWaitingRuns(ctx context.Context, namespace string, matters func(v1alpha1.Run) bool) []reconcile.Request {
	all, err := r.list(ctx, namespace)
	if err != nil {
		return nil // the cache is not there, and then neither is the event
	}
	var out []reconcile.Request
	for _, run := range all {
		if !run.GetRunStatus().HasEnded() && matters(run) {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: run.GetName()}})
		}
	}
	return out
}

// Reconcile brings one Backup or Restore closer to its end, or a LogBackup to its spec.
func (r *runs) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	run := r.new()
	if err := r.Client.Get(ctx, request.NamespacedName, run); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	seen, err := r.observe(ctx, run)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := planRun(run, seen)
	r.Outcomes.Count("plan", p.Outcome)
	outcome := r.Outcomes.Count("act", r.act(ctx, run, seen, p))

	status, set := reportRun(run, p, outcome, seen.Now)
	before, after := statusesOf(run, p, &status)
	switch _, err := r.Status.WriteSeen(ctx, run, before, after, set.Transitions()); {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: step.ConflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return queueing.ResultOf(step.Worst(outcome, p.Outcome), p.Wake)
}

// schedules reconciles BackupSchedules.
type schedules struct{ operator.Env }

func (r *schedules) setup() error {
	changed := builder.WithPredicates(watch.ChangedPredicate())
	edits := queueing.NewEdits()
	return edits.For(ctrl.NewControllerManagedBy(r.Manager), &v1alpha1.BackupSchedule{}, watch.OwnPredicate()).
		Watches(&v1alpha1.Backup{}, handler.EnqueueRequestsFromMapFunc(r.findScheduleOfBackup), changed).
		Watches(&v1alpha1.Restore{}, handler.EnqueueRequestsFromMapFunc(r.findScheduleOfRestore), changed).
		WithOptions(edits.WithBackoff(r.Controller)).
		Complete(r.InScope(edits.NewFairReconciler(r.PerNamespace, r.Now, edits.NewReconciler(r))))
}

// findScheduleOfBackup returns the schedule that has made a Backup.
func (r *schedules) findScheduleOfBackup(_ context.Context, backup client.Object) []reconcile.Request {
	name := backup.GetLabels()[v1alpha1.LabelSchedule]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: backup.GetNamespace(), Name: name}}}
}

// findScheduleOfRestore returns the schedule whose Backup a Restore reads, which may go when that has ended.
func (r *schedules) findScheduleOfRestore(ctx context.Context, o client.Object) []reconcile.Request {
	restore, is := o.(*v1alpha1.Restore)
	if !is || sourceOf(restore) == "" {
		return nil
	}
	var b v1alpha1.Backup
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: sourceOf(restore)}, &b); err != nil {
		return nil // it is gone
	}
	return r.findScheduleOfBackup(ctx, &b)
}

// Reconcile brings one BackupSchedule closer to its spec.
func (r *schedules) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s := &v1alpha1.BackupSchedule{}
	if err := r.Client.Get(ctx, request.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	seen, err := r.observe(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := planSchedule(s, seen)
	r.Outcomes.Count("plan", p.Outcome)
	outcome := r.Outcomes.Count("act", r.act(ctx, s, p))

	status, set := reportSchedule(s, p, outcome, seen.Now)
	switch _, err := r.Status.WriteSeen(ctx, s, &s.Status, &status, set.Transitions()); {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: step.ConflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return queueing.ResultOf(step.Worst(outcome, p.Outcome, p.Last), p.Wake)
}

package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/reading"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups/finalizers,verbs=update
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tikvgroups;tiflashgroups;tidbgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// pdDeadline is after how long the operator looks again by itself whether PD
// has been asked.
const pdDeadline = 5 * time.Second

// Reconciler reconciles PDGroups.
type Reconciler struct{ operator.Env }

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	return operator.Definition{
		Name: "pdgroup", Kind: v1alpha1.KindPDGroup, Dialer: pdclient.OpenWithConfig, Tools: true,
		List:  list,
		Setup: func(_ context.Context, env operator.Env) error { return (&Reconciler{env}).setup() },
	}
}

func list() client.ObjectList { return &v1alpha1.PDGroupList{} }

func (r *Reconciler) setup() error {
	b := ctrl.NewControllerManagedBy(r.Manager).
		For(&v1alpha1.PDGroup{}, builder.WithPredicates(watch.Own())).
		Watches(&v1alpha1.Instance{}, watch.GroupsOf(r.Client, list, watch.ByCluster), builder.WithPredicates(stops())).
		WatchesRawSource(r.PD.Events(watch.GroupsOf(r.Client, list, watch.ByName))).
		WithOptions(r.Controller)
	if err := reading.Watches(b, r.Env, v1alpha1.KindPDGroup, v1alpha1.ComponentPD, list).Complete(r.Env.Fair(r)); err != nil {
		return fmt.Errorf("build controller: %w", err)
	}
	return nil
}

// stops passes what may be the end of a pod: a recovery waits for those of
// everything that PD serves, also of groups that are gone.
func stops() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.Instance)
			after, also := e.ObjectNew.(*v1alpha1.Instance)
			return ok && also && after.Status.PodUID == "" &&
				(before.Status.PodUID != "" || before.Status.ObservedGeneration != after.Status.ObservedGeneration)
		},
	}
}

// Reconcile brings one PDGroup closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	g := &v1alpha1.PDGroup{}
	if err := r.Client.Get(ctx, request.NamespacedName, g); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.PD.Forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s, err := r.observe(ctx, g)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.PDPending {
		return step.Wait("PD", pdDeadline, v1alpha1.ReasonBootstrapping, "PD is being asked").Result()
	}
	p, err := plan(g, s)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("plan PDGroup %s: %w", g.Name, err)
	}
	r.Outcomes.Count("plan", p.Outcome)

	outcome := r.Outcomes.Count("act", r.act(ctx, g, s, &p))

	before := g.Status.Recovery
	status, set, end := report(g, s, p, outcome, r.Now())
	result, err := execution.Conclude(ctx, r.Env, g, &g.Status, execution.Findings[v1alpha1.PDGroupStatus]{Status: status, Set: set, Members: members(g, s, p, r.Now()), Changes: p.Changes, End: end, Once: true})
	if after := g.Status.Recovery; err == nil && recovery.Turned(before, after) {
		r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "QuorumRecovery", string(after.Phase), "%s", recovery.Told(after))
	}
	if err != nil || len(s.Instances) == 0 {
		return result, err
	}
	// Nothing else would slow the polls down once the group has arrived.
	r.PD.Watch(request.NamespacedName, observation.IsProgressing(g))
	return result, nil
}

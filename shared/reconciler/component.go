package reconciler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/queueing"
	"github.com/tidb-groups/tidb-groups/shared/reading"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// Planned is a plan of any component: what all groups plan, and what it adds.
type Planned interface {
	// CommonPlan returns what all groups plan.
	CommonPlan() planning.Plan
}

// Component is a kind of group G as its operator brings it. S is what it observes, P its
// plan, and Status the status of a group.
type Component[G v1alpha1.Group, S any, P Planned, Status any] struct {
	// Kind of the groups. It has a row in v1alpha1.ComponentTable.
	Kind string
	// StatusOf returns the status in a group, which the report is written to.
	StatusOf func(g G) *Status

	// Observe reads everything that the other steps decide from.
	Observe func(ctx context.Context, g G) (S, error)
	// Pending waits for an answer that was asked for and without which nothing can be
	// planned; it is Done if there is none. It is pure. Nil if a component asks nothing.
	Pending func(s S) step.Outcome
	// Plan decides what to do. It is pure, unless the plan asks a question, which it then
	// answers in the observation.
	Plan func(ctx context.Context, g G, s *S) (P, error)
	// Act carries a plan out, and notes in it what did not come to pass.
	Act func(ctx context.Context, g G, s S, p *P) step.Outcome
	// Report computes the status from what was observed, planned and done. It is pure.
	Report func(g G, s S, p P, acted step.Outcome, now time.Time) execution.Findings[Status]

	// Announce records Events about a status that has just been written; before is what it
	// was. Nil for none.
	Announce func(g G, before Status)
	// Forget drops what is remembered of a group that is gone. Nil for nothing.
	Forget func(group types.NamespacedName)
	// AsksPD says whether PD is polled for a group. Nil for a component that never polls.
	AsksPD func(g G, s S) bool
	// Watch adds what wakes up groups of this kind alone. Nil for nothing.
	Watch func(b *builder.Builder) *builder.Builder
}

// Definition describes the operator of a kind of groups to operator.Main.
func Definition(kind string, setup func(ctx context.Context, env operator.Env) error) operator.Definition {
	info, _ := v1alpha1.LookupComponent(kind) // a kind without a row fails in Setup
	return operator.Definition{Name: strings.ToLower(kind), Kind: kind, List: newListFunc(info), Setup: setup, Cached: cachedChildren(info)}
}

// cachedChildren keeps what belongs to other components out of the cache: each version of an
// Instance that another component's member goes through would be decoded for nothing, and each
// status that Kubernetes writes to a claim or a PodDisruptionBudget. Leases are of whole clusters.
func cachedChildren(info v1alpha1.ComponentInfo) map[client.Object]cache.ByObject {
	own := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelComponent: info.Component})}
	return map[client.Object]cache.ByObject{
		&v1alpha1.Instance{}: own, &appsv1.ControllerRevision{}: own, &policyv1.PodDisruptionBudget{}: own,
		&corev1.PersistentVolumeClaim{}: own, &corev1.Service{}: own, &corev1.ConfigMap{}: own,
	}
}

// newListFunc returns how an empty list of a component's groups is made.
func newListFunc(info v1alpha1.ComponentInfo) func() client.ObjectList {
	return func() client.ObjectList { return info.NewList() }
}

// Setup adds the controller of a component to the operator's manager.
func (c Component[G, S, P, Status]) Setup(env operator.Env) error {
	info, known := v1alpha1.LookupComponent(c.Kind)
	if !known {
		return fmt.Errorf("kind %q has no row in v1alpha1.ComponentTable", c.Kind)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("component %s: %w", c.Kind, err)
	}
	edits := queueing.NewEdits()
	b := edits.For(ctrl.NewControllerManagedBy(env.Manager), info.New(), watch.OwnPredicate()).WithOptions(edits.WithBackoff(env.Controller))
	b = b.WatchesRawSource(source.Channel(env.Credentials.Changes(c.Kind), &handler.EnqueueRequestForObject{}))
	if c.AsksPD != nil {
		b = b.WatchesRawSource(env.PD.Events(watch.GroupsOf(env.Client, newListFunc(info), watch.ByName)))
	}
	if c.Watch != nil {
		b = c.Watch(b)
	}
	inner := &loop[G, S, P, Status]{env: env, info: info, component: c}
	if err := reading.AddWatches(b, env, info).Complete(env.InScope(edits.NewFairReconciler(env.PerNamespace, env.Now, edits.NewPacedReconciler(inner)))); err != nil {
		return fmt.Errorf("build controller: %w", err)
	}
	return nil
}

// check names every step that is missing.
func (c Component[G, S, P, Status]) check() error {
	var missing []error
	for _, field := range []struct {
		name  string
		isSet bool
	}{
		{"StatusOf", c.StatusOf != nil}, {"Observe", c.Observe != nil}, {"Plan", c.Plan != nil},
		{"Act", c.Act != nil}, {"Report", c.Report != nil},
	} {
		if !field.isSet {
			missing = append(missing, fmt.Errorf("field %s is not set", field.name))
		}
	}
	return errors.Join(missing...)
}

package controller

import (
	"context"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/registry"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// labelled is what the servers were given over their status port, and told is
// what they were told of upgrades.
type labelled struct {
	mu     sync.Mutex
	calls  int
	labels map[string]string
	told   []statusport.Verb
	tell   func(statusport.Verb) error
}

func (l *labelled) order(_ context.Context, _ string, verb statusport.Verb) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, verb)
	if l.tell == nil {
		return nil
	}
	return l.tell(verb)
}

func (l *labelled) orders() []statusport.Verb {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.told)
}

func (l *labelled) set(_ context.Context, _ string, labels map[string]string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.labels = labels
	return nil
}

func (l *labelled) get() (int, map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls, l.labels
}

// world is the stage of a TiDBGroup.
type world struct {
	stage.Subject[*v1alpha1.TiDBGroup]
	operator *stage.Operator
	labelled *labelled
}

// begin makes a world with an instance operator, and starts the operator in it.
func begin(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{Subject: stage.NewSubject(rig.Stage(t), "basic-tidb", func() *v1alpha1.TiDBGroup { return &v1alpha1.TiDBGroup{} })}
	w.operator, w.labelled = w.operate()
	w.BreakImage("typo")
	w.PlayInstances(nil)
	w.Follow(&v1alpha1.TiDBGroupList{}, nil)
	return w
}

// operate starts an operator, which labels no real servers.
func (w *world) operate() (*stage.Operator, *labelled) {
	w.Helper()
	labels := &labelled{}
	definition := Definition()
	definition.Setup = func(ctx context.Context, env operator.Env) error {
		return newSteps(ctx, env, statusPorts{labels.set, labels.order, statusport.Settings{}}, registryTiming()).component().Setup(env)
	}
	return w.Operate(definition, func(f *operator.Flags) { f.Image = ownImage }), labels
}

// ownImage is the image that the operator runs from.
const ownImage = "tidb-groups/tidbgroup-operator:v7"

// registryTiming is how PD's list of servers is looked at, soon.
func registryTiming() registry.Timing {
	return registry.Timing{Between: stage.Tick, Timeout: stage.Timeout, Call: stage.Timeout}
}

// dependencies creates both groups that TiDB waits for, Ready.
func (w *world) dependencies() {
	w.Helper()
	for _, g := range []interface {
		client.Object
		v1alpha1.Group
	}{w.PDGroup(), w.TiKVGroup()} {
		w.Create(g)
		w.WriteGroupStatus(g, step.Done())
	}
}

// sample is the TiDBGroup that the tests begin with.
func sample(namespace string, changes ...func(*v1alpha1.TiDBGroup)) *v1alpha1.TiDBGroup {
	g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: namespace}}
	g.Spec.ComponentSpec = stage.Component()
	g.Spec.Replicas = ptr.To(int32(2))
	g.Spec.PDGroup.Name = stage.PDGroupName
	for _, change := range changes {
		change(g)
	}
	return g
}

// create creates a TiDBGroup.
func (w *world) create(changes ...func(*v1alpha1.TiDBGroup)) {
	w.Helper()
	w.Create(sample(w.Namespace, changes...))
}

// existing returns the names of the Instances by slot.
func existing(w *world) []string {
	var out []string
	for _, i := range w.Instances() {
		out = append(out, i.Name)
	}
	return out
}

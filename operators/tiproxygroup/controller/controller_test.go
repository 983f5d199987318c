package controller

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// rig is what TestMain hands to the tests: an API server with the CRDs. Each test runs
// the operator in a namespace of its own, and plays everybody else.
var rig *stage.Server

func TestMain(m *testing.M) {
	options := stage.Options{Options: controlplane.Options{CRDPaths: []string{"../../../deploy/crds"}}}
	os.Exit(stage.Main(m, options, func(r *stage.Server) { rig = r }))
}

// runningConfig is what every proxy of a test runs with, and takes.
type runningConfig struct {
	mu     sync.Mutex
	level  string
	refuse string
	// labels that proxies were given, and how often.
	labels map[string]string
	calls  int
	down   error
}

func (c *runningConfig) label(_ context.Context, _ string, labels map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return c.down
	}
	c.calls++
	c.labels = labels
	return nil
}

func (c *runningConfig) refuseLabels(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

func (c *runningConfig) labelled() (int, map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls, c.labels
}

func (c *runningConfig) Show(context.Context, string) (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]any{"log": map[string]any{"level": c.level}}, nil
}

func (c *runningConfig) Take(_ context.Context, _ string, items map[string]string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(items) != 1 || items["log.level"] == "" {
		return "", errors.New("it is told more than its level")
	}
	if c.refuse == "" {
		c.level = items["log.level"]
	}
	return c.refuse, nil
}

func (c *runningConfig) get() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// world is the stage of a TiProxyGroup.
type world struct {
	stage.Subject[*v1alpha1.TiProxyGroup]
	config *runningConfig
}

// begin makes a world with an instance operator and a PDGroup, and starts the operator.
func begin(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{Subject: stage.NewSubject(rig.Stage(t), "basic-tiproxy", func() *v1alpha1.TiProxyGroup { return &v1alpha1.TiProxyGroup{} }), config: &runningConfig{level: "info"}}
	definition := Definition()
	definition.Setup = func(ctx context.Context, env operator.Env) error {
		env.ClusterScoped = true // it looks at nodes, and at the groups of its namespace alone
		return newSteps(ctx, env, w.config, w.config.label).component().Setup(env)
	}
	w.Operate(definition, func(f *operator.Flags) { f.Image = ownImage })
	w.PlayInstances(nil)
	w.Follow(&v1alpha1.TiProxyGroupList{}, nil)
	return w
}

// create creates a TiProxyGroup.
func (w *world) create(changes ...func(*v1alpha1.TiProxyGroup)) {
	w.Helper()
	g := sample(changes...)
	g.ObjectMeta = w.Meta("basic-tiproxy")
	w.Create(g)
}

func TestProxiesStartTheMomentThatPDIsReady(t *testing.T) {
	w := begin(t)
	w.create()
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionDependenciesReady, "False/WaitingForPDGroup")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionReady), "PDGroup basic-pd does not exist")
	assert.Empty(t, w.Instances())
	pd := w.PDGroup()
	w.Create(pd)
	w.WriteGroupStatus(pd, step.Done())
	g = w.WaitUntilConverged()
	assert.Len(t, w.Instances(), 2)
	assert.Equal(t, "basic-tiproxy."+w.Namespace+".svc:6000", g.Status.Endpoint)
	assert.Equal(t, "Serving", w.Instances()[0].Status.Member.State)
}

func TestPX01TheServiceChangesInPlace(t *testing.T) {
	w := begin(t)
	w.Create(w.PDGroup())
	w.WriteGroupStatus(w.PDGroup(), step.Done())
	w.create()
	w.WaitUntilConverged()
	w.Change(func(g *v1alpha1.TiProxyGroup) {
		g.Spec.Service = &v1alpha1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []v1alpha1.ServicePort{{Name: "mysql", Port: 3306}}}
	})
	var s corev1.Service
	require.Eventually(t, func() bool {
		err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "basic-tiproxy"}, &s)
		return err == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.Ports[0].Port == 3306
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	require.NoError(t, w.Client.Status().Update(w.Context(), &s))
	require.Eventually(t, func() bool { return w.Get().Status.Endpoint == "192.0.2.7:3306" }, machine.StretchWait(stage.Timeout), stage.Tick)
}

func TestPX03ARunningProxyTakesAChangedConfiguration(t *testing.T) {
	w := begin(t)
	w.Create(w.PDGroup())
	w.WriteGroupStatus(w.PDGroup(), step.Done())
	w.create(func(g *v1alpha1.TiProxyGroup) {
		g.Spec.ConfigUpdate, g.Spec.Config = v1alpha1.ConfigOnline, "[log]\nlevel = \"info\"\n"
	})
	w.WaitUntilConverged()
	before := w.Instances()[0].Status.PodUID
	w.Change(func(g *v1alpha1.TiProxyGroup) { g.Spec.Config = "[log]\nlevel = \"warn\"\n" })
	require.Eventually(t, func() bool { return w.config.get() == "warn" }, machine.StretchWait(stage.Timeout), stage.Tick)
	w.WaitUntilConverged()
	assert.Equal(t, before, w.Instances()[0].Status.PodUID)
}

func TestDB14ARunningProxyGetsTheZoneOfItsNode(t *testing.T) {
	w := begin(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + w.Namespace, Labels: map[string]string{corev1.LabelTopologyZone: "z1"}}}
	w.Create(node)
	w.SetNode("basic-tiproxy-0", node.Name)
	w.Create(w.PDGroup())
	w.WriteGroupStatus(w.PDGroup(), step.Done())
	w.create(func(g *v1alpha1.TiProxyGroup) { g.Spec.Replicas = ptr.To[int32](1) })
	w.WaitUntilConverged()
	wait := func(zone string) {
		require.Eventually(t, func() bool { _, l := w.config.labelled(); return l["zone"] == zone }, machine.StretchWait(stage.Timeout), stage.Tick)
	}
	wait("z1")
	calls, _ := w.config.labelled()
	revision := w.Get().Status.CurrentRevision
	w.Edit(node, func() { node.Labels[corev1.LabelTopologyZone] = "z2" })
	wait("z2")
	again, labels := w.config.labelled()
	assert.Equal(t, calls+1, again, "once for each change")
	assert.Equal(t, map[string]string{"zone": "z2"}, labels)
	assert.Equal(t, revision, w.Get().Status.UpdateRevision, "labels are no new revision")

	w.config.refuseLabels(errors.New("connection refused"))
	w.Edit(node, func() { node.Labels[corev1.LabelTopologyZone] = "z3" })
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReconciling, "True/RequestFailed")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionReconciling), "label the member of Instance "+w.Namespace+"/basic-tiproxy-0: connection refused")
	w.config.refuseLabels(nil)
	wait("z3")
	w.WaitUntilConverged()
}

func TestTheGroupIsScaledThroughItsScaleSubresource(t *testing.T) {
	w := begin(t)
	w.Create(w.PDGroup())
	w.WriteGroupStatus(w.PDGroup(), step.Done())
	w.create()
	w.WaitUntilConverged()
	w.Change(func(g *v1alpha1.TiProxyGroup) { g.Spec.Replicas = ptr.To[int32](1) })
	w.WaitUntilConverged()
	assert.Len(t, w.Instances(), 1)
}

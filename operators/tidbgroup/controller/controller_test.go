package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func TestDB02ServersStartTheMomentThatPDAndTiKVAreReady(t *testing.T) {
	w := begin(t)
	w.create()
	g := w.within(named, v1alpha1.ConditionDependenciesReady, "False/WaitingForPDGroup")
	assert.Contains(t, meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady).Message, "PDGroup basic-pd does not exist")

	pd := pdGroup()
	w.dependency(pd, false)
	w.within(named, v1alpha1.ConditionReady, "False/WaitingForPDGroup")
	w.say(pd, true)
	g = w.within(named, v1alpha1.ConditionDependenciesReady, "False/WaitingForTiKVGroup")
	assert.Contains(t, meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady).Message, "no TiKVGroup names PDGroup basic-pd")
	tikv := tikvGroup()
	w.dependency(tikv, false)
	w.within(named, v1alpha1.ConditionReady, "False/WaitingForTiKVGroup")
	assert.Empty(t, w.instances())

	w.say(tikv, true)
	require.Eventually(t, func() bool { return len(w.instances()) == 2 }, named, tick)
	g = w.converged()
	assert.Equal(t, "basic-tidb."+w.namespace+".svc:4000", g.Status.Endpoint)
	assert.Equal(t, "Serving", w.instances()[0].Status.Member.State)

	// Once they run, a dependency that fails takes no server away.
	w.say(pd, false)
	g = w.within(named, v1alpha1.ConditionDependenciesReady, "False/WaitingForPDGroup")
	assert.Equal(t, "True/Ready", condition(g, v1alpha1.ConditionReady))
	assert.Len(t, w.instances(), 2)
}

func TestDB01TheServiceChangesInPlace(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create()
	w.converged()
	w.edit(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Service = &v1alpha1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Annotations: map[string]string{"team": "blue"},
			Ports: []v1alpha1.ServicePort{{Name: "mysql", Port: 3306}}}
	})
	key := client.ObjectKey{Namespace: w.namespace, Name: "basic-tidb"}
	var s corev1.Service
	require.Eventually(t, func() bool {
		err := api.Get(w.ctx, key, &s)
		return err == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Annotations["team"] == "blue" && s.Spec.Ports[0].Port == 3306
	}, patience, tick)
	assert.NotZero(t, s.Spec.Ports[0].NodePort)
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	require.NoError(t, api.Status().Update(w.ctx, &s))
	require.Eventually(t, func() bool { return w.get().Status.Endpoint == "192.0.2.7:3306" }, patience, tick)
	w.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Service = &v1alpha1.ServiceSpec{Type: corev1.ServiceTypeClusterIP} })
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var s corev1.Service
		assert.NoError(c, api.Get(w.ctx, key, &s))
		assert.Equal(c, corev1.ServiceTypeClusterIP, s.Spec.Type)
		assert.NotContains(c, s.Annotations, "team")
		assert.EqualValues(c, 4000, s.Spec.Ports[0].Port)
		assert.Zero(c, s.Spec.Ports[0].NodePort)
	}, patience, tick)
	w.converged()
}

func TestDB09AMissingBootstrapSQLIsNamedAndWaitedFor(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) {
		g.Spec.BootstrapSQL = &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}
	})
	g := w.within(named, v1alpha1.ConditionReady, "False/MissingReference")
	assert.Contains(t, meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady).Message, "ConfigMap sql does not exist")
	assert.Empty(t, w.instances())
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "sql", Namespace: w.namespace}, Data: map[string]string{"other.sql": ""}}
	require.NoError(t, api.Create(w.ctx, c))
	require.EventuallyWithT(t, func(check *assert.CollectT) {
		assert.Contains(check, dump(w.get().Status.Conditions), `has no key "init.sql"`)
	}, named, tick)
	c.Data["init.sql"] = "CREATE USER x;"
	require.NoError(t, api.Update(w.ctx, c))
	w.converged()
}

func TestDB14RunningServersAreLabelledAndAgainAfterARestart(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Replicas = ptr.To(int32(1))
		g.Spec.ServerLabels = map[string]v1alpha1.StoreLabelValue{"rack": "r1"}
	})
	w.converged()
	require.Eventually(t, func() bool { n, _ := w.labelled.get(); return n > 0 }, patience, tick)
	calls, labels := w.labelled.get()
	assert.Equal(t, map[string]string{"rack": "r1"}, labels)
	w.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.ServerLabels["rack"] = "r2" })
	require.Eventually(t, func() bool { _, l := w.labelled.get(); return l["rack"] == "r2" }, patience, tick)
	again, _ := w.labelled.get()
	assert.Equal(t, calls+1, again, "once for each change")
	for _, i := range w.instances() {
		assert.NotContains(t, string(i.Spec.PodTemplate.Raw), "r2", "labels change no pod")
	}
}

func TestServersAreAddedAndAreReadyThroughoutAnEditInPlace(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create()
	w.converged()
	w.follow(&v1alpha1.TiDBGroupList{}, func(o client.Object) {
		if g, ok := o.(*v1alpha1.TiDBGroup); ok {
			assert.True(t, meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady), dump(g.Status.Conditions))
		}
	})
	w.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Labels = map[string]string{"team": "blue"} })
	w.converged()
	for _, i := range w.instances() {
		assert.Equal(t, "blue", template(t, i).Labels["team"])
	}
	w.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(4)) })
	g := w.converged()
	assert.EqualValues(t, 4, g.Status.ReadyReplicas)
	w.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	g = w.within(named, v1alpha1.ConditionUpToDate, "False/ScaleInPending")
	assert.Contains(t, meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionUpToDate).Message, "set spec.replicas back to 4")
	assert.Len(t, w.instances(), 4)
	w.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(4)) })
	w.converged()
}

func TestAWrongImageIsMendedByMendingTheSpec(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) { g.Spec.Image = "pingcap/typo:v8.5.7" })
	w.within(named, v1alpha1.ConditionReady, "False/ImagePullFailed")
	w.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Image = "" })
	w.converged()
	for _, i := range w.instances() {
		assert.Equal(t, "pingcap/tidb:v8.5.7", template(t, i).Spec.Containers[0].Image)
	}
}

func TestAGroupOfNoServersSaysSo(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(0)) })
	g := w.within(named, v1alpha1.ConditionUpToDate, "True/UpToDate")
	assert.Equal(t, "False/NotReady", condition(g, v1alpha1.ConditionReady))
	assert.Contains(t, dump(g.Status.Conditions), "spec.replicas is 0")
}

func TestAnIdleGroupCausesNoWriteAlsoAfterARestart(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) { g.Spec.ServerLabels = map[string]v1alpha1.StoreLabelValue{"rack": "r1"} })
	w.converged()
	settle := func() map[string]string {
		var before map[string]string
		require.Eventually(t, func() bool {
			last := before
			before = w.versions()
			return assert.ObjectsAreEqual(last, before)
		}, patience, 10*tick)
		return before
	}
	settle()
	calls := len(w.writes.list())
	given, _ := w.labelled.get()
	again := &world{T: t, ctx: w.ctx, namespace: w.namespace, writes: &writes{}, labelled: &labelled{}}
	again.operate()
	again.touch("one")
	require.Eventually(t, func() bool { n, _ := again.labelled.get(); return n == 2 }, patience, tick, "a new operator labels once more")
	settle()
	assert.Empty(t, again.writes.list())
	assert.Empty(t, w.writes.list()[calls:])
	now, _ := w.labelled.get()
	assert.Equal(t, given, now, "and an old one does not")
}

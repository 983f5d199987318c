package controller

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

func TestDB02ServersStartTheMomentThatPDAndTiKVAreReady(t *testing.T) {
	w := begin(t)
	w.create()
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionDependenciesReady, "False/WaitingForPDGroup")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionReady), "PDGroup basic-pd does not exist")

	pd := w.PDGroup()
	w.Create(pd)
	w.WriteGroupStatus(pd, stage.WaitingOutcome())
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReady, "False/WaitingForPDGroup")
	w.WriteGroupStatus(pd, step.Done())
	g = w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionDependenciesReady, "False/WaitingForTiKVGroup")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionReady), "no TiKVGroup names PDGroup basic-pd")
	tikv := w.TiKVGroup()
	w.Create(tikv)
	w.WriteGroupStatus(tikv, stage.WaitingOutcome())
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReady, "False/WaitingForTiKVGroup")
	assert.Empty(t, w.Instances())

	w.WriteGroupStatus(tikv, step.Done())
	require.Eventually(t, func() bool { return len(w.Instances()) == 2 }, machine.StretchWait(stage.Promptly), stage.Tick)
	g = w.WaitUntilConverged()
	assert.Equal(t, "basic-tidb."+w.Namespace+".svc:4000", g.Status.Endpoint)
	assert.Equal(t, "Serving", w.Instances()[0].Status.Member.State)

	// Once they run, a dependency that fails takes no server away.
	w.WriteGroupStatus(pd, stage.WaitingOutcome())
	g = w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionDependenciesReady, "False/WaitingForPDGroup")
	assert.Equal(t, "True/Ready", stage.Verdict(g, v1alpha1.ConditionReady))
	assert.Len(t, w.Instances(), 2)
}

func TestDB01TheServiceChangesInPlace(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create()
	w.WaitUntilConverged()
	w.Change(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Service = &v1alpha1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Annotations: map[string]string{"team": "blue"},
			Ports: []v1alpha1.ServicePort{{Name: "mysql", Port: 3306}}}
	})
	key := client.ObjectKey{Namespace: w.Namespace, Name: "basic-tidb"}
	var s corev1.Service
	require.Eventually(t, func() bool {
		err := w.Client.Get(w.Context(), key, &s)
		return err == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Annotations["team"] == "blue" && s.Spec.Ports[0].Port == 3306
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	assert.NotZero(t, s.Spec.Ports[0].NodePort)
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	require.NoError(t, w.Client.Status().Update(w.Context(), &s))
	require.Eventually(t, func() bool { return w.Get().Status.Endpoint == "192.0.2.7:3306" }, machine.StretchWait(stage.Timeout), stage.Tick)
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Service = &v1alpha1.ServiceSpec{Type: corev1.ServiceTypeClusterIP} })
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var s corev1.Service
		assert.NoError(c, w.Client.Get(w.Context(), key, &s))
		assert.Equal(c, corev1.ServiceTypeClusterIP, s.Spec.Type)
		assert.NotContains(c, s.Annotations, "team")
		assert.EqualValues(c, 4000, s.Spec.Ports[0].Port)
		assert.Zero(c, s.Spec.Ports[0].NodePort)
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	w.WaitUntilConverged()
}

func TestADrainAsksTheGroupsOwnBudget(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create()
	w.WaitUntilConverged()
	key := client.ObjectKey{Namespace: w.Namespace, Name: "basic-tidb-tidb"}
	stay := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			var b policyv1.PodDisruptionBudget
			return w.Client.Get(w.Context(), key, &b) == nil && b.Spec.MinAvailable.IntValue() == n
		}, machine.StretchWait(stage.Timeout), stage.Tick, "all but one stay: %d", n)
	}
	stay(int(w.Get().GetReplicas()) - 1)
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To[int32](4) })
	stay(3)
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To[int32](1) })
	stay(0)
	require.NoError(t, w.Client.Delete(w.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}))
	stay(0)
}

func TestDB09AMissingBootstrapSQLIsNamedAndWaitedFor(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) {
		g.Spec.BootstrapSQL = &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}
	})
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReady, "False/MissingReference")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionReady), "ConfigMap sql does not exist")
	assert.Empty(t, w.Instances())
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "sql", Namespace: w.Namespace}, Data: map[string]string{"other.sql": ""}}
	require.NoError(t, w.Client.Create(w.Context(), c))
	require.EventuallyWithT(t, func(check *assert.CollectT) {
		assert.Contains(check, stage.Dump(w.Get()), `has no key "init.sql"`)
	}, machine.StretchWait(stage.Promptly), stage.Tick)
	c.Data["init.sql"] = "CREATE USER x;"
	require.NoError(t, w.Client.Update(w.Context(), c))
	w.WaitUntilConverged()
}

func TestDB11RootGetsAPasswordOnceAndForAll(t *testing.T) {
	w := begin(t)
	w.dependencies()
	sql := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "sql", Namespace: w.Namespace}, Data: map[string]string{"init.sql": "CREATE DATABASE IF NOT EXISTS shop;"}}
	require.NoError(t, w.Client.Create(w.Context(), sql))
	initialized := func(g *v1alpha1.TiDBGroup) {
		g.Spec.Initialization = &v1alpha1.Initialization{RootPassword: v1alpha1.RootPasswordGenerate}
		g.Spec.BootstrapSQL = &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}
	}
	w.create(initialized)
	w.WaitUntilConverged()
	var made corev1.Secret
	key := client.ObjectKey{Namespace: w.Namespace, Name: "basic-tidb-root"}
	require.NoError(t, w.Client.Get(w.Context(), key, &made))
	password := string(made.Data["password"])
	assert.Regexp(t, "^[A-Z2-7]{24,}$", password)
	assert.Equal(t, "ALTER USER 'root'@'%' IDENTIFIED BY '"+password+"';\nCREATE DATABASE IF NOT EXISTS shop;", string(made.Data["bootstrap.sql"]))
	for _, i := range w.Instances() {
		assert.NotContains(t, string(i.Spec.PodTemplate.Raw), password)
	}
}

func TestDB11ASecretThatIsThereAlreadyIsUsedAsItIs(t *testing.T) {
	w := begin(t)
	w.dependencies()
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb-root", Namespace: w.Namespace}, StringData: map[string]string{"bootstrap.sql": "ALTER USER root IDENTIFIED BY 'mine';"}}
	require.NoError(t, w.Client.Create(w.Context(), mine))
	w.create(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Initialization = &v1alpha1.Initialization{RootPassword: v1alpha1.RootPasswordGenerate}
	})
	w.WaitUntilConverged()
	var kept corev1.Secret
	require.NoError(t, w.Client.Get(w.Context(), client.ObjectKeyFromObject(mine), &kept))
	assert.Equal(t, mine.UID, kept.UID)
	assert.Equal(t, mine.ResourceVersion, kept.ResourceVersion, "it was not touched")
}

func TestDB13ServersOfAClusterSignTokensOfSessionsWithOneKey(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) { g.Spec.SessionToken = &v1alpha1.SessionToken{} })
	w.WaitUntilConverged()
	made := func() *corev1.Secret {
		var out corev1.Secret
		require.NoError(t, w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "basic-session-token-secret"}, &out))
		return &out
	}
	first := made()
	require.NotEmpty(t, first.Data["tls.key"])
	assert.Equal(t, v1alpha1.KindPDGroup, first.OwnerReferences[0].Kind, "other groups of the cluster use it, too")
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	w.WaitUntilConverged()
	assert.Equal(t, first.ResourceVersion, made().ResourceVersion, "it is made once")
}

func TestDB14RunningServersAreLabelledAndAgainAfterARestart(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Replicas = ptr.To(int32(1))
		g.Spec.ServerLabels = map[string]v1alpha1.StoreLabelValue{"rack": "r1"}
	})
	w.WaitUntilConverged()
	require.Eventually(t, func() bool { n, _ := w.labelled.get(); return n > 0 }, machine.StretchWait(stage.Timeout), stage.Tick)
	calls, labels := w.labelled.get()
	assert.Equal(t, map[string]string{"rack": "r1"}, labels)
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.ServerLabels["rack"] = "another-rack" })
	require.Eventually(t, func() bool { _, l := w.labelled.get(); return l["rack"] == "another-rack" }, machine.StretchWait(stage.Timeout), stage.Tick)
	again, _ := w.labelled.get()
	assert.Equal(t, calls+1, again, "once for each change")
	for _, i := range w.Instances() {
		assert.NotContains(t, string(i.Spec.PodTemplate.Raw), "another-rack", "labels change no pod")
	}
}

func TestServersAreAddedAndAreReadyThroughoutAnEditInPlace(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create()
	w.WaitUntilConverged()
	w.Follow(&v1alpha1.TiDBGroupList{}, func(_ context.Context, o client.Object) {
		if g, ok := o.(*v1alpha1.TiDBGroup); ok {
			assert.True(t, meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady), stage.Dump(g))
		}
	})
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Labels = map[string]string{"team": "blue"} })
	w.WaitUntilConverged()
	for _, i := range w.Instances() {
		assert.Equal(t, "blue", stage.Template(t, i).Labels["team"])
	}
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(4)) })
	g := w.WaitUntilConverged()
	assert.EqualValues(t, 4, g.Status.ReadyReplicas)
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	w.WaitUntilConverged()
	assert.Equal(t, []string{"basic-tidb-0", "basic-tidb-1", "basic-tidb-2"}, existing(w))
}

// The API server, its conflicts and the operator's cache instead of a model.
func TestDB04ARollGoesThroughWithOneServerMoreForAWhile(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create()
	w.WaitUntilConverged()
	var most atomic.Int32
	w.Follow(&v1alpha1.TiDBGroupList{}, func(_ context.Context, o client.Object) {
		if g, ok := o.(*v1alpha1.TiDBGroup); ok {
			most.Store(max(most.Load(), g.Status.Replicas))
			assert.True(t, meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady), stage.Dump(g))
		}
	})
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Version = "v8.5.8" })
	g := w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionUpToDate, "True/UpToDate")
	assert.EqualValues(t, 3, most.Load())
	assert.Equal(t, "v8.5.8", g.Status.Version)
	assert.EqualValues(t, 2, g.Status.UpdatedReplicas)
	assert.Equal(t, g.Status.CurrentRevision, g.Status.UpdateRevision)
	assert.Equal(t, []string{"basic-tidb-0", "basic-tidb-1"}, existing(w))
	for _, i := range w.Instances() {
		assert.Equal(t, "pingcap/tidb:v8.5.8", stage.Template(t, i).Spec.Containers[0].Image)
		assert.NotContains(t, i.Annotations, v1alpha1.AnnotationSurge)
	}
}

// The record, its conflicts and the answers from beside the reconcile.
func TestDB08TiDBIsToldOfAnUpgradeBeforeItBeginsAndWhenItIsOver(t *testing.T) {
	w := begin(t)
	refusals := 2 // one of each server
	w.labelled.tell = func(verb statusport.Verb) error {
		for _, i := range w.Instances() {
			raw := string(i.Spec.PodTemplate.Raw)
			assert.Equal(w, verb == statusport.Start, strings.Contains(raw, "tidb:v8.5.7"), "%s is told while %s has %s", verb, i.Name, raw)
		}
		if refusals--; refusals >= 0 {
			return errors.New("no owner of the DDL yet")
		}
		return nil
	}
	w.dependencies()
	w.create()
	w.WaitUntilConverged()
	assert.Empty(t, w.labelled.orders())
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Version = "v8.5.8" })
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionUpToDate, "False/AnnouncingUpgrade")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Contains(c, stage.Dump(w.Get()), "no owner of the DDL yet")
	}, machine.StretchWait(stage.Promptly), stage.Tick)
	assert.Equal(t, "v8.5.7", g.Status.Upgrade.From)
	g = w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionUpToDate, "True/UpToDate")
	assert.Equal(t, []statusport.Verb{statusport.Start, statusport.Start, statusport.Start, statusport.Finish}, w.labelled.orders())
	assert.Nil(t, g.Status.Upgrade)
}

// GRP-04.
func TestARollWaitsForTheGroupsBeforeIt(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create()
	w.WaitUntilConverged()
	pd := w.PDGroup()
	require.NoError(t, w.Client.Get(w.Context(), client.ObjectKeyFromObject(pd), pd))
	pd.Spec.Version = "v8.5.8"
	require.NoError(t, w.Client.Update(w.Context(), pd))
	rolling := conditions.New(nil, pd.Generation, time.Now())
	rolling.Finish(conditions.Verdict{Serving: true, Outcome: stage.WaitingOutcome()})
	pd.Status.Conditions = rolling.List()
	require.NoError(t, w.Client.Status().Update(w.Context(), pd))
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Version = "v8.5.8" })
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionUpToDate, "False/WaitingForGroups")
	assert.Contains(t, stage.Dump(g), "PDGroup basic-pd comes first")
	assert.Len(t, w.Instances(), 2, "the additional server is part of the roll")
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	require.Eventually(t, func() bool { return len(w.Instances()) == 3 }, machine.StretchWait(stage.Timeout), stage.Tick)
	for _, i := range w.Instances() {
		assert.Equal(t, "pingcap/tidb:v8.5.7", stage.Template(t, i).Spec.Containers[0].Image, "who is added meanwhile runs what the others run")
	}
	w.WriteGroupStatus(pd, step.Done())
	w.WaitUntilConverged()
	for _, i := range w.Instances() {
		assert.Equal(t, "pingcap/tidb:v8.5.8", stage.Template(t, i).Spec.Containers[0].Image)
	}
}

// DB-18: what kubectl scale and a HorizontalPodAutoscaler do.
func TestDB18TheGroupIsScaledThroughItsScaleSubresource(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create()
	w.WaitUntilConverged()
	scale := &autoscalingv1.Scale{}
	require.NoError(t, w.Client.SubResource("scale").Get(w.Context(), w.Get(), scale))
	assert.EqualValues(t, 2, scale.Status.Replicas)
	pods, err := metav1.ParseToLabelSelector(scale.Status.Selector)
	require.NoError(t, err)
	selector, err := metav1.LabelSelectorAsSelector(pods)
	require.NoError(t, err)
	for _, i := range w.Instances() {
		assert.True(t, selector.Matches(kubelabels.Set(stage.Template(t, i).Labels)), "the selector finds the pods")
	}
	for _, n := range []int32{3, 1} {
		scale.Spec.Replicas = n
		scale.ResourceVersion = ""
		require.NoError(t, w.Client.SubResource("scale").Update(w.Context(), w.Get(), client.WithSubResourceBody(scale)))
		w.WaitUntilConverged()
		assert.Len(t, w.Instances(), int(n))
		require.NoError(t, w.Client.SubResource("scale").Get(w.Context(), w.Get(), scale))
		assert.Equal(t, n, scale.Status.Replicas)
	}
}

func TestDB19AServerThatHasLeftIsNotListedInPD(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To[int32](2) })
	w.WaitUntilConverged()
	var all []pd.Server
	for n, i := range w.Instances() {
		all = append(all, pd.Server{Address: names.PodHost(i.Name, "basic-tidb", w.Namespace, "") + ":4000", Revision: int64(n + 1)})
	}
	w.PD.RegisterServers(all...)
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To[int32](1) })
	w.WaitUntilConverged()
	stays := w.Instances()[0].Name
	require.Eventually(t, func() bool {
		left, err := w.PD.Servers(w.Context())
		return err == nil && len(left) == 1 && strings.HasPrefix(left[0].Address, stays+".")
	}, machine.StretchWait(stage.Timeout), stage.Tick)
}

func TestAWrongImageIsFixedByFixingTheSpec(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) { g.Spec.Image = "pingcap/typo:v8.5.7" })
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReady, "False/ImagePullFailed")
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Image = "" })
	w.WaitUntilConverged()
	for _, i := range w.Instances() {
		assert.Equal(t, "pingcap/tidb:v8.5.7", stage.Template(t, i).Spec.Containers[0].Image)
	}
}

func TestAGroupOfNoServersSaysSo(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(0)) })
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionUpToDate, "True/UpToDate")
	assert.Equal(t, "False/NotReady", stage.Verdict(g, v1alpha1.ConditionReady))
	assert.Contains(t, stage.Dump(g), "spec.replicas is 0")
}

func TestAnIdleGroupCausesNoWriteAlsoAfterARestart(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create(func(g *v1alpha1.TiDBGroup) { g.Spec.ServerLabels = map[string]v1alpha1.StoreLabelValue{"rack": "r1"} })
	w.WaitUntilConverged()
	w.WaitUntilSettled()
	calls := len(w.operator.Writes())
	given, _ := w.labelled.get()
	again, labelled := w.operate()
	w.Touch("one")
	require.Eventually(t, func() bool { n, _ := labelled.get(); return n == 2 }, machine.StretchWait(stage.Timeout), stage.Tick, "a new operator labels once more")
	w.WaitUntilSettled()
	assert.Empty(t, again.Writes())
	assert.Empty(t, w.operator.Writes()[calls:])
	now, _ := w.labelled.get()
	assert.Equal(t, given, now, "and an old one does not")
}

// Until it is told, TiDB holds DDL back, for other groups too.
func TestDB08TiDBIsToldThatAnUpgradeIsOverWhenItsGroupIsDeletedInTheMiddle(t *testing.T) {
	w := begin(t)
	w.dependencies()
	w.create()
	w.WaitUntilConverged()
	w.Change(func(g *v1alpha1.TiDBGroup) { g.Spec.Version = "v8.5.8-typo" })
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		u := w.Get().Status.Upgrade
		assert.True(c, u != nil && u.State == v1alpha1.UpgradeStarted)
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	require.NoError(t, w.Client.Delete(w.Context(), w.Get()))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, oneUpgrade, w.labelled.orders())
	}, machine.StretchWait(stage.Promptly), stage.Tick)
}

package controller

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

func TestPD01AGroupFoundsItsClusterTogetherAndBecomesReady(t *testing.T) {
	w := begin(t)
	w.create()
	g := w.converged()

	assert.Equal(t, w.pd.id, g.Status.ClusterID)
	assert.Equal(t, "True/Bootstrapped", condition(g, v1alpha1.ConditionBootstrapped))
	assert.Equal(t, "True/QuorumHealthy", condition(g, v1alpha1.ConditionQuorumHealthy))
	assert.Len(t, g.Status.Members, 3)
	assert.Contains(t, g.Status.Leader, "basic-pd-")
	assert.Equal(t, []int32{3, 3, 3}, []int32{g.Status.Replicas, g.Status.ReadyReplicas, g.Status.UpdatedReplicas})
	assert.Equal(t, "v8.5.7", g.Status.Version)
	assert.Equal(t, g.Status.UpdateRevision, g.Status.CurrentRevision)

	instances := w.instances()
	require.Len(t, instances, 3)
	for _, i := range instances {
		assert.Equal(t, g.UID, metav1.GetControllerOf(&i).UID)
		assert.Equal(t, g.Status.UpdateRevision, i.Spec.Revision)
		assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionJoined))
		require.NotNil(t, i.Status.Member)
		assert.Equal(t, i.Name, i.Status.Member.Name)
	}
	var configMaps corev1.ConfigMapList
	require.NoError(t, api.List(w.ctx, &configMaps, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}))
	require.Len(t, configMaps.Items, 1)
	assert.Contains(t, configMaps.Items[0].Data["pd.toml"], string(g.UID))
	assert.Equal(t, configMaps.Items[0].Name, template(t, instances[0]).Spec.Volumes[0].ConfigMap.Name)
	var revisions appsv1.ControllerRevisionList
	require.NoError(t, api.List(w.ctx, &revisions, client.InNamespace(w.namespace)))
	assert.Len(t, revisions.Items, 1)
}

func TestPD19TheClientServiceHasTheGroupsNameAndChangesInPlace(t *testing.T) {
	w := begin(t)
	w.create()
	before := w.converged()
	w.edit(func(g *v1alpha1.PDGroup) {
		g.Spec.Service = &v1alpha1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Annotations: map[string]string{"team": "blue"}}
		g.Spec.Labels = map[string]string{"team": "blue"}
		g.Spec.Annotations = map[string]string{"note": "one"}
	})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var s corev1.Service
		assert.NoError(c, api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "basic-pd"}, &s))
		assert.Equal(c, corev1.ServiceTypeNodePort, s.Spec.Type)
		assert.Equal(c, "blue", s.Annotations["team"])
		for _, i := range w.instances() {
			assert.Equal(c, "blue", template(c, i).Labels["team"])
			assert.Equal(c, "one", template(c, i).Annotations["note"])
		}
	}, patience, tick)
	after := w.converged()
	assert.NotEqual(t, before.Status.CurrentRevision, after.Status.CurrentRevision)
	for _, i := range w.instances() {
		assert.Equal(t, "pingcap/pd:v8.5.7", template(t, i).Spec.Containers[0].Image)
	}
}

func TestPD02MembersJoinByTheServiceOnceTheClusterExists(t *testing.T) {
	w := begin(t)
	w.create()
	first := func() string { return strings.Join(template(t, w.instances()[0]).Spec.Containers[0].Args, " ") }
	require.Eventually(t, func() bool { return len(w.instances()) == 3 }, patience, tick)
	revision := w.instances()[0].Spec.Revision
	w.converged()
	require.Eventually(t, func() bool { return strings.Contains(first(), "--join=http://basic-pd."+w.namespace+".svc:2379") }, patience, tick)
	for _, i := range w.instances() {
		assert.NotContains(t, strings.Join(template(t, i).Spec.Containers[0].Args, " "), "--initial-cluster=")
		assert.Equal(t, revision, i.Spec.Revision, "joining makes no revision")
	}
}

func TestPD03AnotherClustersPDIsNeverUsed(t *testing.T) {
	w := begin(t)
	w.create()
	before := w.converged()
	w.pd.Change(func(v *pd.View) { v.ClusterID = "999" })
	g := w.within(patience, v1alpha1.ConditionStalled, "True/ClusterIDMismatch")
	assert.Equal(t, before.Status.ClusterID, g.Status.ClusterID)
	assert.Equal(t, "False/ClusterIDMismatch", condition(g, v1alpha1.ConditionReady))
	w.edit(func(g *v1alpha1.PDGroup) { g.Spec.Replicas = ptr.To(int32(5)) })
	w.within(patience, v1alpha1.ConditionStalled, "True/ClusterIDMismatch")
	assert.Len(t, w.instances(), 3, "nobody joins a PD that is not ours")
	w.pd.Change(func(v *pd.View) { v.ClusterID = before.Status.ClusterID })
	w.converged()
	assert.Len(t, w.instances(), 5)
}

func TestPD04ReplicasAreFrozenUntilBootstrapped(t *testing.T) {
	w := begin(t)
	w.broken = "pd:v8.5.7"
	w.create()
	w.within(named, v1alpha1.ConditionReady, "False/ImagePullFailed")
	g := w.get()
	before := g.DeepCopy()
	g.Spec.Replicas = ptr.To(int32(5))
	assert.ErrorContains(t, api.Patch(w.ctx, g, client.MergeFrom(before)), "until PD has bootstrapped")
}

func TestPD05MembersAreAddedOneAtATime(t *testing.T) {
	w := begin(t)
	w.create()
	w.converged()
	unready, most := map[string]bool{}, 0 // written by the watch alone
	stop := w.follow(&v1alpha1.InstanceList{}, func(o client.Object) {
		delete(unready, o.GetName())
		if i, ok := o.(*v1alpha1.Instance); ok && i.Spec.Slot > 2 && !meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady) {
			unready[i.Name] = true
		}
		most = max(most, len(unready))
	})
	w.edit(func(g *v1alpha1.PDGroup) { g.Spec.Replicas = ptr.To(int32(5)) })
	require.Eventually(t, func() bool { return len(w.instances()) == 5 }, patience, tick)
	g := w.converged()
	assert.Len(t, g.Status.Members, 5)
	stop()
	assert.Equal(t, 1, most)
	for _, i := range w.instances() {
		assert.Contains(t, strings.Join(template(t, i).Spec.Containers[0].Args, " "), "--join=")
	}
}

func TestAWrongImageIsMendedByMendingTheSpec(t *testing.T) {
	w := begin(t)
	w.broken = "typo"
	w.create(func(g *v1alpha1.PDGroup) { g.Spec.Image = "pingcap/typo:v8.5.7" })
	g := w.within(named, v1alpha1.ConditionReady, "False/ImagePullFailed")
	assert.Contains(t, meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady).Message, "Instance basic-pd-")
	wrong := w.instances()[0].Spec.Revision
	w.edit(func(g *v1alpha1.PDGroup) { g.Spec.Image = "" })
	w.converged()
	for _, i := range w.instances() {
		assert.NotEqual(t, wrong, i.Spec.Revision)
		assert.Equal(t, "pingcap/pd:v8.5.7", template(t, i).Spec.Containers[0].Image)
	}
}

func TestAnEditThatNeedsARestartOfAHealthyMemberSaysSo(t *testing.T) {
	w := begin(t)
	w.create()
	before := w.converged()
	w.edit(func(g *v1alpha1.PDGroup) { g.Spec.Config = "lease = 5" })
	g := w.within(named, v1alpha1.ConditionUpToDate, "False/RestartPending")
	assert.Equal(t, "True/Ready", condition(g, v1alpha1.ConditionReady))
	for _, i := range w.instances() {
		assert.Equal(t, before.Status.CurrentRevision, i.Spec.Revision)
	}
	w.edit(func(g *v1alpha1.PDGroup) { g.Spec.Config = "" })
	g = w.converged()
	assert.Equal(t, before.Status.CurrentRevision, g.Status.CurrentRevision, "reverting an edit finds the old revision")
}

func TestWhatIsDeletedComesBack(t *testing.T) {
	w := begin(t)
	w.create()
	w.converged()
	configMap := template(t, w.instances()[0]).Spec.Volumes[0].ConfigMap.Name
	var revisions appsv1.ControllerRevisionList
	require.NoError(t, api.List(w.ctx, &revisions, client.InNamespace(w.namespace)))
	require.Len(t, revisions.Items, 1)
	for _, o := range []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd-peer"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMap}},
		&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: revisions.Items[0].Name}},
	} {
		key := client.ObjectKey{Namespace: w.namespace, Name: o.GetName()}
		require.NoError(t, api.Get(w.ctx, key, o))
		gone := o.GetUID()
		require.NoError(t, api.Delete(w.ctx, o))
		require.Eventually(t, func() bool {
			err := api.Get(w.ctx, key, o)
			return err == nil && o.GetUID() != gone
		}, patience, tick, "%T %s", o, key.Name)
	}
	// What somebody else changed is put right as well.
	var s corev1.Service
	require.NoError(t, api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "basic-pd"}, &s))
	s.Spec.Ports[0].TargetPort.StrVal = "elsewhere"
	require.NoError(t, api.Update(w.ctx, &s))
	require.Eventually(t, func() bool {
		err := api.Get(w.ctx, client.ObjectKeyFromObject(&s), &s)
		return err == nil && s.Spec.Ports[0].TargetPort.StrVal == "client"
	}, patience, tick)
	w.converged()
}

func TestInvalidTOMLStallsAndTouchesNothing(t *testing.T) {
	w := begin(t)
	w.create()
	w.converged()
	before := w.versions()
	w.edit(func(g *v1alpha1.PDGroup) { g.Spec.Config = "a = [" })
	g := w.within(named, v1alpha1.ConditionStalled, "True/InvalidSpec")
	assert.Equal(t, "True/Ready", condition(g, v1alpha1.ConditionReady), "it serves on")
	assert.Contains(t, meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionStalled).Message, "spec.config")
	after := w.versions()
	delete(before, "PDGroup basic-pd")
	delete(after, "PDGroup basic-pd")
	assert.Equal(t, before, after)
	w.edit(func(g *v1alpha1.PDGroup) { g.Spec.Config = "" })
	g = w.converged()
	assert.Equal(t, "none", condition(g, v1alpha1.ConditionStalled))
}

func TestAForeignServiceIsNeverTakenOver(t *testing.T) {
	w := begin(t)
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: w.namespace},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	require.NoError(t, api.Create(w.ctx, foreign))
	w.create()
	g := w.within(named, v1alpha1.ConditionStalled, "True/NameConflict")
	assert.Contains(t, meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionStalled).Message, "Service basic-pd")
	was := foreign.ResourceVersion
	require.NoError(t, api.Get(w.ctx, client.ObjectKeyFromObject(foreign), foreign))
	assert.Equal(t, was, foreign.ResourceVersion)
	assert.Empty(t, w.instances())
}

func TestAPausedGroupIsReportedAndNotTouched(t *testing.T) {
	w := begin(t)
	w.create(func(g *v1alpha1.PDGroup) { g.Spec.Paused = true })
	w.within(named, v1alpha1.ConditionPaused, "True/Paused")
	assert.Empty(t, w.instances())
	w.edit(func(g *v1alpha1.PDGroup) { g.Spec.Paused = false })
	w.converged()
	w.edit(func(g *v1alpha1.PDGroup) {
		g.Spec.Paused = true
		g.Spec.Labels = map[string]string{"team": "blue"}
	})
	g := w.within(named, v1alpha1.ConditionPaused, "True/Paused")
	assert.Equal(t, "True/Ready", condition(g, v1alpha1.ConditionReady))
	assert.Equal(t, "False/Paused", condition(g, v1alpha1.ConditionUpToDate))
	for _, i := range w.instances() {
		assert.NotContains(t, template(t, i).Labels, "team")
	}
}

func TestASuspendedGroupStopsItsPodsAndComesBack(t *testing.T) {
	w := begin(t)
	w.create()
	w.converged()
	w.edit(func(g *v1alpha1.PDGroup) { g.Spec.Suspended = true })
	w.within(patience, v1alpha1.ConditionUpToDate, "True/UpToDate")
	g := w.within(patience, v1alpha1.ConditionReady, "False/Suspended")
	assert.Equal(t, w.pd.id, g.Status.ClusterID)
	for _, i := range w.instances() {
		assert.True(t, i.Spec.Suspended)
		assert.Empty(t, i.Status.PodUID)
	}
	w.edit(func(g *v1alpha1.PDGroup) { g.Spec.Suspended = false })
	w.converged()
}

func TestADeletedGroupLeavesNothingOfItsOwnBehind(t *testing.T) {
	w := begin(t)
	w.create()
	w.converged()
	require.NoError(t, api.Delete(w.ctx, w.get()))
	require.Eventually(t, func() bool {
		left := w.versions()
		delete(left, "ConfigMap kube-root-ca.crt")
		return len(left) == 0
	}, patience, tick)
}

func TestPDThatFallsSilentIsNamed(t *testing.T) {
	w := begin(t)
	w.create()
	w.converged()
	w.pd.Fail(errors.New("connection refused"))
	g := w.within(patience, v1alpha1.ConditionQuorumHealthy, "Unknown/PDUnreachable")
	assert.Equal(t, "True/Ready", condition(g, v1alpha1.ConditionReady), "a silence of some seconds is a change of leader")
	assert.Len(t, g.Status.Members, 3, "what was known last stays")
	w.pd.Fail(nil)
	w.converged()
}

func TestLostQuorumIsNamed(t *testing.T) {
	w := begin(t)
	w.create()
	w.converged()
	w.pd.Change(func(v *pd.View) {
		w.pd.frozen = true
		v.Leader = ""
		for i := range v.Members {
			v.Members[i].Healthy = i == 0
		}
	})
	g := w.within(patience, v1alpha1.ConditionQuorumHealthy, "False/QuorumLost")
	assert.NotEqual(t, "True/Ready", condition(g, v1alpha1.ConditionReady))
	assert.NotEqual(t, "True/UpToDate", condition(g, v1alpha1.ConditionUpToDate))
}

func TestAnIdleGroupCausesNoWriteAndNoLogLine(t *testing.T) {
	w := begin(t)
	w.create()
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
	calls, line := len(w.writes.list()), logs.Len()
	// An annotation of the user's own makes the operator look at everything
	// again; that is the only write.
	for _, note := range []string{"one", "two", "one"} {
		w.touch(note)
	}
	before := settle()
	assert.Empty(t, w.writes.list()[calls:])
	assert.NotContains(t, logs.After(line), w.namespace)

	// A second operator, as after a restart, finds nothing to do either.
	again := &world{T: t, ctx: w.ctx, namespace: w.namespace, pd: w.pd, writes: &writes{}}
	again.operate()
	again.touch("three")
	delete(before, "PDGroup basic-pd")
	after := settle()
	delete(after, "PDGroup basic-pd")
	assert.Equal(t, before, after)
	assert.Empty(t, again.writes.list())
}

func TestAStoppedOperatorGivesItsLeaseBackAtOnce(t *testing.T) {
	w := &world{T: t, ctx: t.Context(), pd: silentPD(""), writes: &writes{}}
	w.namespace = begin(t).namespace
	stop := w.start(rest.CopyConfig(access), operator.Flags{
		Namespaces: w.namespace, MetricsAddress: "0", ProbeAddress: "0", Concurrency: 1, ClientQPS: -1,
		LeaderElect: true, LeaderElectionNamespace: w.namespace,
	})
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: w.namespace, Name: "tidb-groups-pdgroup"}
	require.Eventually(t, func() bool {
		err := api.Get(w.ctx, key, lease)
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
		return err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") != ""
	}, patience, tick)
	stop()
	// Far sooner than the 15 s that an abandoned lease takes to run out.
	require.Eventually(t, func() bool {
		require.NoError(t, api.Get(w.ctx, key, lease))
		return ptr.Deref(lease.Spec.HolderIdentity, "") == ""
	}, named, tick)
}

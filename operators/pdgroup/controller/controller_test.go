package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// GRP-11.
func TestPD01AGroupBootstrapsItsClusterTogetherAndBecomesReady(t *testing.T) {
	w := begin(t)
	w.create()
	g := w.WaitUntilConverged()

	assert.Equal(t, stage.ClusterID, g.Status.ClusterID)
	assert.Equal(t, "True/Bootstrapped", stage.Verdict(g, v1alpha1.ConditionBootstrapped))
	assert.Equal(t, "True/QuorumHealthy", stage.Verdict(g, v1alpha1.ConditionQuorumHealthy))
	assert.Len(t, g.Status.Members, 3)
	assert.Contains(t, g.Status.Leader, "basic-pd-")
	assert.Equal(t, []int32{3, 3, 3}, []int32{g.Status.Replicas, g.Status.ReadyReplicas, g.Status.UpdatedReplicas})
	assert.Equal(t, "v8.5.7", g.Status.Version)
	assert.Equal(t, g.Status.UpdateRevision, g.Status.CurrentRevision)

	instances := w.Instances()
	require.Len(t, instances, 3)
	for _, i := range instances {
		assert.Equal(t, g.UID, metav1.GetControllerOf(&i).UID)
		assert.Equal(t, g.Status.UpdateRevision, i.Spec.Revision)
		assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionJoined))
		require.NotNil(t, i.Status.Member)
		assert.Equal(t, i.Name, i.Status.Member.Name)
	}
	var configMaps corev1.ConfigMapList
	require.NoError(t, w.Client.List(w.Context(), &configMaps, client.InNamespace(w.Namespace), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}))
	require.Len(t, configMaps.Items, 1)
	assert.Contains(t, configMaps.Items[0].Data["pd.toml"], string(g.UID))
	assert.Equal(t, configMaps.Items[0].Name, stage.Template(t, instances[0]).Spec.Volumes[0].ConfigMap.Name)
	var revisions appsv1.ControllerRevisionList
	require.NoError(t, w.Client.List(w.Context(), &revisions, client.InNamespace(w.Namespace)))
	assert.Len(t, revisions.Items, 1)
}

func TestPD19TheClientServiceHasTheGroupsNameAndChangesInPlace(t *testing.T) {
	w := begin(t)
	w.create()
	before := w.WaitUntilConverged()
	w.Change(func(g *v1alpha1.PDGroup) {
		g.Spec.Service = &v1alpha1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Annotations: map[string]string{"team": "blue"}}
		g.Spec.Labels = map[string]string{"team": "blue"}
		g.Spec.Annotations = map[string]string{"note": "one"}
	})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var s corev1.Service
		assert.NoError(c, w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "basic-pd"}, &s))
		assert.Equal(c, corev1.ServiceTypeNodePort, s.Spec.Type)
		assert.Equal(c, "blue", s.Annotations["team"])
		for _, i := range w.Instances() {
			assert.Equal(c, "blue", stage.Template(c, i).Labels["team"])
			assert.Equal(c, "one", stage.Template(c, i).Annotations["note"])
		}
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	after := w.WaitUntilConverged()
	assert.NotEqual(t, before.Status.CurrentRevision, after.Status.CurrentRevision)
	for _, i := range w.Instances() {
		assert.Equal(t, "pingcap/pd:v8.5.7", stage.Template(t, i).Spec.Containers[0].Image)
	}
}

func TestPD02MembersJoinByTheServiceOnceTheClusterExists(t *testing.T) {
	w := begin(t)
	w.create()
	first := func() string { return startArg(t, &w.Instances()[0]) }
	require.Eventually(t, func() bool { return len(w.Instances()) == 3 }, machine.StretchWait(stage.Timeout), stage.Tick)
	revision := w.Instances()[0].Spec.Revision
	w.WaitUntilConverged()
	require.Eventually(t, func() bool { return strings.Contains(first(), "--join=http://basic-pd."+w.Namespace+".svc:2379") }, machine.StretchWait(stage.Timeout), stage.Tick)
	for _, i := range w.Instances() {
		assert.NotContains(t, startArg(t, &i), "--initial-cluster=")
		assert.Equal(t, revision, i.Spec.Revision, "joining makes no revision")
	}
}

func TestPD03AnotherClustersPDIsNeverUsed(t *testing.T) {
	w := begin(t)
	w.create()
	before := w.WaitUntilConverged()
	w.PD.Change(func(v *pd.View) { v.ClusterID = "999" })
	g := w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionStalled, "True/ClusterIDMismatch")
	assert.Equal(t, before.Status.ClusterID, g.Status.ClusterID)
	assert.Equal(t, "False/ClusterIDMismatch", stage.Verdict(g, v1alpha1.ConditionReady))
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Replicas = ptr.To(int32(5)) })
	w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionStalled, "True/ClusterIDMismatch")
	assert.Len(t, w.Instances(), 3, "no member joins a PD that is not ours")
	w.PD.Change(func(v *pd.View) { v.ClusterID = before.Status.ClusterID })
	w.WaitUntilConverged()
	assert.Len(t, w.Instances(), 5)
}

func TestPD04ReplicasAreFrozenUntilBootstrapped(t *testing.T) {
	w := begin(t)
	w.BreakImage("pd:v8.5.7")
	w.create()
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReady, "False/ImagePullFailed")
	g := w.Get()
	before := g.DeepCopy()
	g.Spec.Replicas = ptr.To(int32(5))
	assert.ErrorContains(t, w.Client.Patch(w.Context(), g, client.MergeFrom(before)), "until PD has bootstrapped")
}

func TestPD05MembersAreAddedOneAtATime(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	unready, most := map[string]bool{}, 0 // written by the watch alone
	stop := w.Follow(&v1alpha1.InstanceList{}, func(_ context.Context, o client.Object) {
		delete(unready, o.GetName())
		if i, ok := o.(*v1alpha1.Instance); ok && i.Spec.Slot > 2 && !meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady) {
			unready[i.Name] = true
		}
		most = max(most, len(unready))
	})
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Replicas = ptr.To(int32(5)) })
	require.Eventually(t, func() bool { return len(w.Instances()) == 5 }, machine.StretchWait(stage.Timeout), stage.Tick)
	g := w.WaitUntilConverged()
	assert.Len(t, g.Status.Members, 5)
	stop()
	assert.Equal(t, 1, most)
	for _, i := range w.Instances() {
		assert.Contains(t, startArg(t, &i), "--join=")
	}
}

// PD-12.
func TestAWrongImageIsFixedByFixingTheSpec(t *testing.T) {
	w := begin(t)
	w.BreakImage("typo")
	w.create(func(g *v1alpha1.PDGroup) { g.Spec.Image = "pingcap/typo:v8.5.7" })
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionReady, "False/ImagePullFailed")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionReady), "Instance basic-pd-")
	wrong := w.Instances()[0].Spec.Revision
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Image = "" })
	w.WaitUntilConverged()
	for _, i := range w.Instances() {
		assert.NotEqual(t, wrong, i.Spec.Revision)
		assert.Equal(t, "pingcap/pd:v8.5.7", stage.Template(t, i).Spec.Containers[0].Image)
	}
}

// PD-08, PD-10, PD-20.
func TestPD20AnEditRollsTheMembersOneByOneAndTheLeaderLast(t *testing.T) {
	w := begin(t)
	w.create()
	before := w.WaitUntilConverged()
	leader := before.Status.Leader
	var order []string // of new revisions; written by the watch alone
	stop := w.Follow(&v1alpha1.InstanceList{}, func(_ context.Context, o client.Object) {
		if i, ok := o.(*v1alpha1.Instance); ok && i.Spec.Revision != before.Status.CurrentRevision && !slices.Contains(order, i.Name) {
			order = append(order, i.Name)
		}
	})
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Config = "lease = 5" })
	w.WaitUntilConverged()
	stop()
	require.Len(t, order, 3)
	assert.Equal(t, leader, order[2], "the leader is the last")
	assert.Equal(t, []string{"transfer " + w.Get().Status.Leader}, slices.Compact(w.PD.Calls()), "and has handed over before")
	lease := &coordinationv1.Lease{}
	require.NoError(t, w.Client.Get(w.Context(), w.Key("basic-pd-disruption"), lease))
	assert.Nil(t, lease.Spec.HolderIdentity)
	assert.EqualValues(t, 3, *lease.Spec.LeaseTransitions, "each member had the Lease")

	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Config = "" })
	require.Equal(t, before.Status.CurrentRevision, w.WaitUntilConverged().Status.CurrentRevision, "reverting an edit finds the old revision")
}

// GRP-10: revisions that no member runs are kept up to the limit, the youngest of them,
// and their ConfigMaps with them. One that is kept is taken up again by setting the spec
// back, one that is gone is recreated.
func TestGRP10RevisionsBeyondTheLimitArePrunedAndTheOthersTakenUpAgain(t *testing.T) {
	w := begin(t)
	stranger := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd-of-another-owner", Namespace: w.Namespace}, Revision: 1, Data: runtime.RawExtension{Raw: []byte("{}")}}
	require.NoError(t, w.Client.Create(w.Context(), stranger))
	w.create(func(g *v1alpha1.PDGroup) { g.Spec.RevisionHistoryLimit = ptr.To(int32(2)) })
	// stored returns the hashes of the group's revisions and the leases in its ConfigMaps.
	stored := func(c require.TestingT) (revisions, files []string) {
		var all appsv1.ControllerRevisionList
		require.NoError(c, w.Client.List(w.Context(), &all, client.InNamespace(w.Namespace)))
		for _, r := range all.Items {
			if r.Name != stranger.Name {
				record, err := revision.Decode(r)
				require.NoError(c, err)
				hash, err := record.Hash()
				require.NoError(c, err)
				revisions = append(revisions, hash)
			}
		}
		var configMaps corev1.ConfigMapList
		require.NoError(c, w.Client.List(w.Context(), &configMaps, client.InNamespace(w.Namespace), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}))
		for _, m := range configMaps.Items {
			for line := range strings.Lines(m.Data["pd.toml"]) {
				if value, ok := strings.CutPrefix(line, "lease = "); ok {
					files = append(files, strings.TrimSpace(value))
				}
			}
		}
		return revisions, files
	}
	hashes := map[string]string{} // by the lease
	roll := func(lease string) {
		w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Config = "lease = " + lease })
		g := w.WaitUntilConverged()
		assert.Equal(t, g.Status.UpdateRevision, g.Status.CurrentRevision)
		hashes[lease] = g.Status.CurrentRevision
	}
	kept := func(leases ...string) {
		t.Helper()
		var want []string
		for _, lease := range leases {
			want = append(want, hashes[lease])
		}
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			revisions, files := stored(c)
			assert.ElementsMatch(c, want, revisions)
			assert.ElementsMatch(c, leases, files)
		}, machine.StretchWait(stage.Timeout), stage.Tick)
	}
	for _, lease := range []string{"5", "6", "7"} {
		roll(lease)
	}
	kept("5", "6", "7")
	roll("8")
	kept("6", "7", "8")

	was := hashes["6"]
	roll("6")
	assert.Equal(t, was, hashes["6"], "it is taken up again")
	kept("6", "7", "8")
	was = hashes["5"]
	roll("5")
	assert.Equal(t, was, hashes["5"], "the same inputs are the same revision")
	kept("5", "7", "8")

	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.RevisionHistoryLimit = ptr.To(int32(0)) })
	w.WaitUntilConverged()
	kept("5")
	for _, i := range w.Instances() {
		assert.Equal(t, hashes["5"], i.Spec.Revision)
	}
	assert.NoError(t, w.Client.Get(w.Context(), client.ObjectKeyFromObject(stranger), stranger), "it is not ours")
}

// PD-06, PD-07, PD-08.
func TestPD06AScaleInMovesTheLeaderRemovesTheMemberAndThenTheInstance(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	w.PD.Change(func(v *pd.View) { v.Leader = "basic-pd-2" })
	w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionReady, "True/Ready")
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Replicas = ptr.To(int32(1)) })
	w.WaitForInstances(stage.Timeout, "basic-pd-0")
	g := w.WaitUntilConverged()
	calls := slices.Compact(w.PD.Calls())
	removals := slices.DeleteFunc(slices.Clone(calls), func(c string) bool { return strings.HasPrefix(c, "transfer ") })
	assert.Equal(t, []string{"delete-member 12", "delete-member 11"}, removals)
	assert.Contains(t, []string{"transfer basic-pd-0", "transfer basic-pd-1"}, calls[0], "the leader moves before it leaves, to who has been healthy the longest")
	assert.NotContains(t, calls, "transfer basic-pd-2")
	assert.Equal(t, []v1alpha1.PDMember{{Name: "basic-pd-0", ID: "10", Healthy: true, ClientURL: "http://basic-pd-0"}}, g.Status.Members)
	assert.Equal(t, "basic-pd-0", g.Status.Leader)
}

// PD-09.
func TestPD09ZeroReplicasAreRefusedWithTheGroupsThatNeedPD(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	w.Create(w.TiKVGroup())
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Replicas = ptr.To(int32(0)) })
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionUpToDate, "False/ScaleInRefused")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionUpToDate), "TiKVGroup basic-tikv would be left without a PD")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionUpToDate), "kubectl -n "+w.Namespace+" scale pdgroup basic-pd --replicas=3")
	assert.Equal(t, "True/Ready", stage.Verdict(g, v1alpha1.ConditionReady))
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	w.WaitUntilConverged()
	assert.Empty(t, w.PD.Calls(), "nothing was touched")
	assert.Len(t, w.Instances(), 3)
}

// PD-13.
func TestPD13ADeletedInstanceIsReplacedBeforeItGoes(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	w.PD.Change(func(v *pd.View) { v.Leader = "basic-pd-1" })
	fewest := 3 // healthy members of PD; the watch alone writes it
	stop := w.Follow(&v1alpha1.InstanceList{}, func(ctx context.Context, _ client.Object) {
		if view, err := w.PD.View(ctx); err == nil {
			fewest = min(fewest, view.CountHealthy())
		}
	})
	i := w.Instance("basic-pd-1")
	require.NoError(t, w.Client.Delete(w.Context(), &i))
	w.WaitForInstances(stage.Timeout, "basic-pd-0", "basic-pd-2", "basic-pd-3")
	w.WaitUntilConverged()
	stop()
	assert.Equal(t, 3, fewest)
	calls := slices.Compact(w.PD.Calls())
	require.Len(t, calls, 2)
	assert.Contains(t, []string{"transfer basic-pd-0", "transfer basic-pd-2", "transfer basic-pd-3"}, calls[0], "to who has been healthy the longest")
	assert.Equal(t, "delete-member 11", calls[1])
}

// PD-13.
func TestPD13AMemberThatIsDownForLongIsReplaced(t *testing.T) {
	w := begin(t)
	w.create(func(g *v1alpha1.PDGroup) { g.Spec.ReplaceAfter = &metav1.Duration{Duration: 2 * time.Second} })
	w.WaitUntilConverged()
	dead := w.Instance("basic-pd-1").UID
	w.SetDown("basic-pd-1", true)
	require.Eventually(t, func() bool {
		// The stage has no claims, whose slot would be left alone.
		i := &v1alpha1.Instance{}
		err := w.Client.Get(w.Context(), w.Key("basic-pd-1"), i)
		return err == nil && i.UID != dead
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	w.SetDown("basic-pd-1", false)
	w.WaitUntilConverged()
	assert.Equal(t, []string{"delete-member 11"}, slices.Compact(w.PD.Calls()), "the dead one leaves before the new one joins")
}

func TestDeletedObjectsAreRecreated(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	configMap := stage.Template(t, w.Instances()[0]).Spec.Volumes[0].ConfigMap.Name
	var revisions appsv1.ControllerRevisionList
	require.NoError(t, w.Client.List(w.Context(), &revisions, client.InNamespace(w.Namespace)))
	require.Len(t, revisions.Items, 1)
	for _, o := range []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd-peer"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMap}},
		&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: revisions.Items[0].Name}},
	} {
		key := client.ObjectKey{Namespace: w.Namespace, Name: o.GetName()}
		require.NoError(t, w.Client.Get(w.Context(), key, o))
		gone := o.GetUID()
		require.NoError(t, w.Client.Delete(w.Context(), o))
		require.Eventually(t, func() bool {
			err := w.Client.Get(w.Context(), key, o)
			return err == nil && o.GetUID() != gone
		}, machine.StretchWait(stage.Timeout), stage.Tick, "%T %s", o, key.Name)
	}
	// What another owner changed is set back as well.
	var s corev1.Service
	require.NoError(t, w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "basic-pd"}, &s))
	s.Spec.Ports[0].TargetPort.StrVal = "elsewhere"
	require.NoError(t, w.Client.Update(w.Context(), &s))
	require.Eventually(t, func() bool {
		err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(&s), &s)
		return err == nil && s.Spec.Ports[0].TargetPort.StrVal == "client"
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	w.WaitUntilConverged()
}

func TestInvalidTOMLStallsAndTouchesNothing(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	before := w.WaitUntilSettled()
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Config = "a = [" })
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionStalled, "True/InvalidSpec")
	assert.Equal(t, "True/Ready", stage.Verdict(g, v1alpha1.ConditionReady), "it serves on")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionStalled), "spec.config")
	after := w.Versions()
	delete(before, "PDGroup basic-pd")
	delete(after, "PDGroup basic-pd")
	assert.Equal(t, before, after)
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Config = "" })
	g = w.WaitUntilConverged()
	assert.Equal(t, "none", stage.Verdict(g, v1alpha1.ConditionStalled))
}

func TestAForeignServiceIsNeverTakenOver(t *testing.T) {
	w := begin(t)
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: w.Namespace},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	require.NoError(t, w.Client.Create(w.Context(), foreign))
	w.create()
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionStalled, "True/NameConflict")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionStalled), "Service basic-pd")
	was := foreign.ResourceVersion
	require.NoError(t, w.Client.Get(w.Context(), client.ObjectKeyFromObject(foreign), foreign))
	assert.Equal(t, was, foreign.ResourceVersion)
	assert.Empty(t, w.Instances())
}

// P2, S M2: the API server is asked by name for claims that no cache shows.
func TestPD03AClaimWithoutLabelsKeepsPDFromBeingBootstrapped(t *testing.T) {
	w := begin(t)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-basic-pd-5", Namespace: w.Namespace}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	require.NoError(t, w.Client.Create(w.Context(), claim))
	w.create()
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionStalled, "True/ClaimRejected")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionStalled), "annotate pvc data-basic-pd-5 groups.tidb.dev/adopt=basic-pd-5")
	assert.Empty(t, w.Instances())
	claim.Annotations = map[string]string{v1alpha1.AnnotationAdopt: "basic-pd-5"}
	require.NoError(t, w.Client.Update(w.Context(), claim))
	require.Eventually(t, func() bool { return len(w.Instances()) == 1 }, machine.StretchWait(2*stage.Promptly), stage.Tick)
	assert.Equal(t, "basic-pd-5", w.Instances()[0].Name, "the member with the data starts, and none bootstraps beside it")
}

// GRP-06.
func TestAPausedGroupIsReportedAndNotTouched(t *testing.T) {
	w := begin(t)
	w.create(func(g *v1alpha1.PDGroup) { g.Spec.Paused = true })
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionPaused, "True/Paused")
	assert.Empty(t, w.Instances())
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Paused = false })
	w.WaitUntilConverged()
	w.Change(func(g *v1alpha1.PDGroup) {
		g.Spec.Paused = true
		g.Spec.Labels = map[string]string{"team": "blue"}
	})
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionPaused, "True/Paused")
	assert.Equal(t, "True/Ready", stage.Verdict(g, v1alpha1.ConditionReady))
	assert.Equal(t, "False/Paused", stage.Verdict(g, v1alpha1.ConditionUpToDate))
	for _, i := range w.Instances() {
		assert.NotContains(t, stage.Template(t, i).Labels, "team")
	}
}

// GRP-06.
func TestASuspendedGroupStopsItsPodsAndComesBack(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Suspended = true })
	w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionUpToDate, "True/UpToDate")
	g := w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionReady, "False/Suspended")
	assert.Equal(t, stage.ClusterID, g.Status.ClusterID)
	for _, i := range w.Instances() {
		assert.True(t, i.Spec.Suspended)
		assert.Empty(t, i.Status.PodUID)
	}
	w.Change(func(g *v1alpha1.PDGroup) { g.Spec.Suspended = false })
	w.WaitUntilConverged()
}

func TestADeletedGroupLeavesNothingOfItsOwnBehind(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	require.NoError(t, w.Client.Delete(w.Context(), w.Get()))
	require.Eventually(t, func() bool {
		left := w.Versions()
		delete(left, "ConfigMap kube-root-ca.crt")
		return len(left) == 0
	}, machine.StretchWait(stage.Timeout), stage.Tick)
}

func TestAPDThatStopsAnsweringIsNamed(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	w.PD.Fail(errors.New("connection refused"))
	g := w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionQuorumHealthy, "Unknown/PDUnreachable")
	assert.Equal(t, "True/Ready", stage.Verdict(g, v1alpha1.ConditionReady), "an outage of some seconds is a change of leader")
	assert.Len(t, g.Status.Members, 3, "what was known last stays")
	w.PD.Fail(nil)
	w.WaitUntilConverged()
}

func TestLostQuorumIsNamed(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	w.PD.Change(func(v *pd.View) {
		w.frozen = true
		v.Leader = ""
		for i := range v.Members {
			v.Members[i].Healthy = i == 0
		}
	})
	g := w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionQuorumHealthy, "False/QuorumLost")
	assert.NotEqual(t, "True/Ready", stage.Verdict(g, v1alpha1.ConditionReady))
	assert.NotEqual(t, "True/UpToDate", stage.Verdict(g, v1alpha1.ConditionUpToDate))
}

func TestAnIdleGroupCausesNoWriteAndNoLogLine(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	w.WaitUntilSettled()
	calls, line := len(w.operator.Writes()), rig.Log.Len()
	// An annotation of the user's own makes the operator look at everything
	// again; that is the only write.
	for _, note := range []string{"one", "two", "one"} {
		w.Touch(note)
	}
	before := w.WaitUntilSettled()
	assert.Empty(t, w.operator.Writes()[calls:])
	assert.NotContains(t, rig.Log.TextAfter(line), w.Namespace)

	// A second operator, as after a restart, finds nothing to do either.
	again := w.Operate(Definition())
	w.Touch("three")
	delete(before, "PDGroup basic-pd")
	after := w.WaitUntilSettled()
	delete(after, "PDGroup basic-pd")
	assert.Equal(t, before, after)
	assert.Empty(t, again.Writes())
}

func TestAStoppedOperatorGivesItsLeaseBackAtOnce(t *testing.T) {
	w := begin(t)
	again := w.Operate(Definition(), func(f *operator.Flags) {
		f.LeaderElect, f.LeaderElectionNamespace = true, w.Namespace
	})
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: w.Namespace, Name: "tidb-groups-pdgroup"}
	require.Eventually(t, func() bool {
		err := w.Client.Get(w.Context(), key, lease)
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
		// It gives back what it knows to hold: the API server's answer may still be on its way.
		return err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") != "" && strings.Contains(rig.Log.LinesAbout(w.Namespace), "Successfully acquired lease")
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	again.Stop()
	// Far sooner than the 15 s that an abandoned lease takes to run out.
	require.Eventually(t, func() bool {
		require.NoError(t, w.Client.Get(w.Context(), key, lease))
		return ptr.Deref(lease.Spec.HolderIdentity, "") == ""
	}, machine.StretchWait(stage.Promptly), stage.Tick)
}

package controller

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
)

// KV-05: an empty store leaves within moments, and may have left, with the Lease still held, when
// its removal is taken back. It is replaced, and its plan can be carried out.
func TestKV05AStoreThatLeftBeforeItsRemovalWasTakenBackIsReplaced(t *testing.T) {
	g := sample()
	s := world(t, g, 4)
	g.Spec.Replicas = ptr.To(int32(4))
	i := s.Instances[3]
	i.UID, i.Spec.Retire = "uid", true
	metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1alpha1.AnnotationDisruption, string(member.Remove))
	s.Lease = lease.NewState(lease.NewHolder(i), now(), 0)
	s.PD.Bootstrapped, s.PD.Stores = true, s.PD.Stores[:3]
	p, err := makePlan(g, s)
	require.NoError(t, err)
	assert.True(t, p.Lease.Release)
	require.Len(t, p.Deletes, 1)
	assert.Equal(t, i.Name, p.Deletes[0].Name)
	for _, c := range p.Rechecks {
		may := c.Still(s.PD)
		assert.True(t, may.IsAllowed(), may.Reason())
	}
}

// P7: Instances that a user deletes in a suspended group, or several at once whose members do not
// serve, go and are to come back. If spec.replicas is smaller by then their stores would stay in PD
// without anybody to remove them, and no other store would be restarted.
func TestAStoreThatHasNotLeftComesBackToLeave(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*v1alpha1.TiKVGroup, *observation.Snapshot)
		creates []string
	}{
		"two too many":       {func(*v1alpha1.TiKVGroup, *observation.Snapshot) {}, []string{"basic-tikv-3", "basic-tikv-4"}},
		"PD has removed one": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[:4] }, []string{"basic-tikv-3"}},
		"and removes the other": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.PD.Stores = s.PD.Stores[:4]
			s.PD.Stores[3].State = pd.StateOffline
		}, nil},
		"of another group": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.PD.Stores = s.PD.Stores[:4]
			s.PD.Stores[3].Address = "hot-3.hot-peer.shop.svc:20160"
		}, nil},
		"a TiFlash": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.PD.Stores = s.PD.Stores[:4]
			s.PD.Stores[3].Labels = map[string]string{"engine": "tiflash"}
		}, nil},
		"their claims are retired": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.RetiredSlots = map[int32]bool{3: true, 4: true}
		}, nil},
		"PD is not known":                     {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PD.ClusterID = "2" }, nil},
		"the group is suspended and so stays": {func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.Suspended = true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			s := world(t, g, 5)
			s.Instances, s.PD.Bootstrapped = s.Instances[:3], true
			c.change(g, &s)
			p, err := makePlan(g, s)
			require.NoError(t, err)
			var creates []string
			for _, i := range p.Instances {
				if i.Live == nil {
					creates = append(creates, i.Desired.Name)
				}
			}
			assert.Equal(t, c.creates, creates)
		})
	}
}

// KV-15: the annotation reports what is to be undone in PD. It goes only when PD says right then
// that nothing is: the last order may be younger than the last poll. So it is for an Instance that
// is being deleted, too.
func TestKV15AnAnnotationGoesOnlyWhenPDHasUndoneWhatItReports(t *testing.T) {
	for name, deleted := range map[string]bool{"a member that stays": false, "one whose Instance is being deleted": true} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			s := world(t, g, 4)
			g.Spec.Replicas, g.Spec.Suspended = ptr.To[int32](4), true
			i := s.Instances[0]
			i.UID = "uid"
			metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1alpha1.AnnotationDisruption, string(member.Remove))
			s.Lease = lease.NewState(lease.NewHolder(i), now(), 10)
			if deleted {
				i.DeletionTimestamp = ptr.To(metav1.NewTime(now()))
				i.Spec.ClaimRetention.WhenDeleted = v1alpha1.DeleteClaim // it leaves for good, when the group is resumed
			}
			p, err := makePlan(g, s)
			require.NoError(t, err)
			at := slices.IndexFunc(p.Instances, func(c planning.InstanceChange) bool { return c.Desired.Name == i.Name })
			require.Empty(t, p.Instances[at].Desired.Annotations[v1alpha1.AnnotationDisruption])
			later := s.PD
			later.EvictLeader = []string{"1"}
			refuses := func(view pd.View) bool {
				return slices.ContainsFunc(p.Rechecks, func(c planning.Recheck) bool { may := c.Still(view); return c.Instance == i.Name && !may.IsAllowed() })
			}
			assert.True(t, refuses(later), "its leaders are kept away")
			assert.False(t, refuses(s.PD), "nothing is left")
		})
	}
}

// P1: while TiDB still stops, the stores of a suspended group serve. Instances of it that a user
// deletes meanwhile do not stop before the others may.
func TestP1DeletedStoresOfASuspendedGroupServeUntilTiDBHasStopped(t *testing.T) {
	for name, c := range map[string]struct {
		tidb, broken, releases bool
	}{
		"TiDB still stops":                        {true, false, false},
		"TiDB has stopped":                        {false, false, true},
		"TiDB still stops, and they do not serve": {true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			s := world(t, g, 3)
			g.Spec.Suspended = true
			s.Groups = []v1alpha1.Group{g}
			if c.tidb {
				tidb := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "shop"}}
				tidb.Spec.Suspended = true
				s.Groups = append(s.Groups, tidb)
			}
			for n, i := range s.Instances[:2] {
				i.DeletionTimestamp = ptr.To(metav1.NewTime(now()))
				if c.broken {
					i.Status.PodUID, i.Status.NodeName, i.Status.Conditions = "", "", nil
					s.PD.Stores[n].State = pd.StateDown
				}
			}
			p, err := makePlan(g, s)
			require.NoError(t, err)
			for _, change := range p.Instances[:2] {
				assert.Equal(t, c.releases, !member.HasMemberFinalizer(change.Desired), change.Desired.Name)
			}
			if !c.releases {
				assert.Contains(t, p.Outcome.Message, "TiDBGroup db has to stop first")
			}
		})
	}
}

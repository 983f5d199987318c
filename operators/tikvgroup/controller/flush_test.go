package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/logbackup"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// TestKV17AStoreWritesItsLogBackupsOutBetweenItsLeadersAndItsEnd plans for a group
// of which the first store holds the Lease for a new version.
func TestKV17AStoreWritesItsLogBackupsOutBetweenItsLeadersAndItsEnd(t *testing.T) {
	begun := now().Add(-time.Minute)
	for name, c := range map[string]struct {
		change         func(*v1alpha1.TiKVGroup, *observation.Snapshot)
		flushes, stops bool
	}{
		"its leaders go first": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PD.Stores[0].Leaders = 3 }, false, false},
		"also if its Instance does not say yet which store it is": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.Instances[0].Status.Member = nil }, true, false},
		"then it writes them out":                                 {func(*v1alpha1.TiKVGroup, *observation.Snapshot) {}, true, false},
		"and stops when it has": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.Flushed = map[types.UID]time.Time{"pod-basic-tikv-0": begun}
		}, false, true},
		"not when another one has": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.Flushed = map[types.UID]time.Time{"pod-basic-tikv-1": begun}
		}, true, false},
		"nor when it has some time ago": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.Flushed = map[types.UID]time.Time{"pod-basic-tikv-0": begun.Add(-time.Hour)}
		}, true, false},
		"the user may not want it": {func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.FlushLogBackups = ptr.To(false) }, false, true},
		"its address is unknown":   {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.Instances[0].Status.PodIP = "" }, false, true},
		"one that keeps leaders does not": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.PD.Stores[0].Leaders = 3
			s.Lease.Since = now().Add(-time.Hour)
		}, false, true},
		"nor one that does not work":     {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDown }, false, true},
		"paused, nothing is done":        {func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.Paused = true }, false, false},
		"it is not written out unsafely": {func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PD.Stores[1].State = pd.StateDown }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			s := world(t, g, 3)
			i := s.Instances[0]
			i.UID, i.Status.PodIP, i.Annotations = "uid-0", "10.0.0.1", map[string]string{v1alpha1.AnnotationDisruption: string(member.Restart)}
			i.Finalizers = []string{v1alpha1.FinalizerMember}
			s.PD.Stores[0].Leaders, s.PD.EvictLeader = 0, []string{"1"}
			s.Lease, s.RegionsKnown = lease.NewState(lease.NewHolder(i), begun, 10), true
			g.Spec.Version = "v8.5.8"
			c.change(g, &s)
			p, err := makePlan(g, s)
			require.NoError(t, err)
			if c.flushes {
				assert.Equal(t, []logbackup.Order{{Group: g, Instance: "basic-tikv-0", StoreID: "1", Pod: "pod-basic-tikv-0", Since: begun, Host: "10.0.0.1", Within: 3 * time.Minute}}, p.Flushes)
			} else {
				assert.Empty(t, p.Flushes)
			}
			for _, call := range p.Calls {
				assert.NotEqual(t, flushLogBackups, call.Verb, "it is no order to PD")
			}
			stops := false
			for _, change := range p.Instances {
				stops = stops || change.Live == i && change.Desired.Spec.Revision != i.Spec.Revision
			}
			assert.Equal(t, c.stops, stops)
		})
	}
}

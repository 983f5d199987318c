package observation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// P5: when the holder is lost its batch is waited for, but none of it indefinitely.
func TestTheBatchOfALostLeaseHolderIsWaitedFor(t *testing.T) {
	group := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv"}}
	group.Spec.Suspended = true
	ready := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	for name, c := range map[string]struct {
		asker  int // whose turn it is, -1 for none
		change func(*Snapshot)
		waits  string
	}{
		"for one that is not back":                {0, func(*Snapshot) {}, "kv-1"},
		"if no member asks too":                   {-1, func(*Snapshot) {}, "kv-1"},
		"not by itself":                           {1, func(*Snapshot) {}, ""},
		"not for one that is deleted":             {0, func(s *Snapshot) { instancetest.MarkDeleted(s.Instances[1]) }, ""},
		"not for one that is suspended":           {0, func(s *Snapshot) { s.Instances[1].Spec.Suspended = true }, ""},
		"not for one whose group is":              {0, func(s *Snapshot) { s.Groups = []v1alpha1.Group{group} }, ""},
		"not for one that is back":                {0, func(s *Snapshot) { s.Instances[1].Status.Conditions = ready }, ""},
		"not for each other":                      {1, func(s *Snapshot) { s.Instances[2].Status.Conditions = nil }, ""},
		"but for one that is still to be stopped": {1, func(s *Snapshot) { s.Instances[2].Spec.Revision = "b" }, "kv-2"},
		"not while the holder is there":           {0, func(s *Snapshot) { s.HolderLost = false }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{HolderLost: true, Instances: []*v1alpha1.Instance{instancetest.Instance(0, "0"), instancetest.Instance(1, "1"), instancetest.Instance(2, "2")}, Lease: lease.State{
				Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-5", UID: "5"},
				Batch:  []lease.BatchMember{{Instance: "kv-1"}, {Instance: "kv-2"}},
			}}
			s.Instances[2].Status.Conditions = ready
			c.change(&s)
			var asker *v1alpha1.Instance
			if c.asker >= 0 {
				asker = s.Instances[c.asker]
			}
			assert.Equal(t, c.waits, s.UnfinishedBatchMember(asker))
		})
	}
}

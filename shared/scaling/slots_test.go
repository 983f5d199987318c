package scaling

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// Its store is in the database: it comes back to leave it properly, even if it is
// one too many by now.
func TestTheSlotOfADeletedMemberIsFilledAgain(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv"}}
	g.Spec.Replicas = ptr.To[int32](2)
	s := observation.Snapshot{
		Instances: []*v1alpha1.Instance{instancetest.Instance(0, "0"), instancetest.Instance(3, "3")}, HolderRecreated: true,
		Lease: lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-2"}, Recreating: "kv"},
	}
	slots := func() []int32 {
		create, _ := PlanSlots(g, s, component.Rendering{Component: componenttest.Needed{}}, 0)
		return create
	}
	assert.Equal(t, []int32{2}, slots())
	g.Spec.Replicas = ptr.To[int32](4)
	assert.Equal(t, []int32{2, 1}, slots(), "it comes first, and in its own slot")
	s.Instances = append(s.Instances, instancetest.Instance(2, "2"))
	assert.Equal(t, []int32{1}, slots())
	s.RetiredSlots = map[int32]bool{2: true}
	s.Instances = s.Instances[:2]
	assert.Equal(t, []int32{1, 4}, slots())
}

// The database lists their members, which have not left: they come back to leave it properly,
// even if they are too many by now.
func TestTheSlotsOfMembersThatHaveNotLeftAreFilledAgain(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv"}}
	s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.Instance(0, "0"), instancetest.Instance(1, "1")}}
	for name, c := range map[string]struct {
		replicas int32
		awaited  []int32
		retired  map[int32]bool
		create   []int32
	}{
		"none has":                           {3, nil, nil, []int32{2}},
		"one has, which is wanted":           {3, []int32{4}, nil, []int32{4}},
		"it comes before others":             {4, []int32{4}, nil, []int32{4, 2}},
		"two have, of which one is too many": {3, []int32{2, 3}, nil, []int32{2, 3}},
		"both are":                           {1, []int32{2, 3}, nil, []int32{2, 3}},
		"one is there":                       {2, []int32{1}, nil, nil},
		"a claim is retired":                 {2, []int32{2, 3}, map[int32]bool{2: true}, []int32{3}},
	} {
		t.Run(name, func(t *testing.T) {
			g.Spec.Replicas, s.RetiredSlots = ptr.To(c.replicas), c.retired
			create, _ := PlanSlots(g, s, component.Rendering{Component: componenttest.Needed{}, AwaitedSlots: c.awaited}, 0)
			assert.Equal(t, c.create, create)
		})
	}
}

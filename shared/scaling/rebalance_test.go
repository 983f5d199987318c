package scaling

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// KV-19: what a rebalance goes through, one state after the other; an operator that begins at
// any of them goes on from there. Nothing is begun beside anything else, and a member
// that does not help stays alone.
func TestKV19ARebalanceStepByStep(t *testing.T) {
	old := func(slot int32) *v1alpha1.Instance { return instancetest.WithVolume(slot, "fast", "2Gi") }
	fresh := func(slot int32) *v1alpha1.Instance {
		i := old(slot)
		i.Annotations = map[string]string{v1alpha1.AnnotationRebalance: "zone"}
		return i
	}
	is := func(all ...*v1alpha1.Instance) []*v1alpha1.Instance { return all }
	uneven := component.Spread{By: "zone", Uneven: verdict.NewReason("a has more than b")}
	unknown, fruitless := uneven, uneven
	unknown.Unknown, fruitless.NoGain = verdict.NewReason("who knows"), verdict.NewReason("it came to a")
	for name, c := range map[string]struct {
		instances []*v1alpha1.Instance
		spread    component.Spread
		change    func(*v1alpha1.TiKVGroup, *observation.Snapshot, *component.Rendering)
		extra     int32
		says      string
	}{
		"uneven: one more":             {is(old(0), old(1), old(2)), uneven, nil, 1, "a has more than b"},
		"even":                         {is(old(0), old(1), old(2)), component.Spread{By: "zone"}, nil, 0, ""},
		"not asked for":                {is(old(0), old(1), old(2)), component.Spread{}, nil, 0, ""},
		"the zones are unknown":        {is(old(0), old(1), old(2)), unknown, nil, 0, "who knows"},
		"PD does not answer":           {is(old(0), old(1), old(2)), unknown, func(_ *v1alpha1.TiKVGroup, _ *observation.Snapshot, r *component.Rendering) { r.DatabaseUnknown = true }, 0, ""},
		"not while one does not serve": {is(old(0), instancetest.NotReady(old(1)), old(2)), uneven, nil, 0, ""},
		"not while one leaves":         {is(old(0), instancetest.MarkRetiring(old(1)), old(2)), uneven, nil, 0, ""},
		"not while one comes back":     {is(old(0), instancetest.MarkDeleted(old(1)), old(2), old(3)), uneven, nil, 0, ""},
		"not while there are too few":  {is(old(0), old(1)), uneven, nil, 0, ""},
		"not while there are too many": {is(old(0), old(1), old(2), old(3)), uneven, nil, 0, ""},
		"not while one is to be restarted": {is(old(0), old(1), old(2)), uneven, func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *component.Rendering) {
			s.Instances[1].Spec.Revision = "restart"
		}, 0, ""},
		"not while one is to be replaced": {is(old(0), instancetest.ToReplace(old(1)), old(2)), uneven, nil, 0, ""},
		"not before there is a cluster": {is(old(0), old(1), old(2)), uneven, func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *component.Rendering) {
			s.PDGroup.Status.ClusterID = ""
		}, 0, ""},
		"not while the group is suspended": {is(old(0), old(1), old(2)), uneven, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot, _ *component.Rendering) { g.Spec.Suspended = true }, 0, ""},
		"not while disruptions are paused": {is(old(0), old(1), old(2)), uneven, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot, _ *component.Rendering) {
			g.Spec.Disruption = &v1alpha1.Disruption{Paused: true}
		}, 0, "disruption.paused"},
		"the new one starts: no member leaves": {is(old(0), old(1), old(2), instancetest.NotReady(fresh(3))), uneven, nil, 1, "when all are Ready"},
		"its place is not known yet":           {is(old(0), old(1), old(2), fresh(3)), unknown, nil, 1, "who knows"},
		"PD does not answer when it has come":  {is(old(0), old(1), old(2), fresh(3)), uneven, func(_ *v1alpha1.TiKVGroup, _ *observation.Snapshot, r *component.Rendering) { r.DatabaseUnknown = true }, 1, ""},
		"it does not help, and stays":          {is(old(0), old(1), old(2), fresh(3)), fruitless, nil, 1, "it came to a"},
		"it helps: one may leave":              {is(old(0), old(1), old(2), fresh(3)), uneven, nil, 0, ""},
		"also when disruptions were paused meanwhile": {is(old(0), old(1), old(2), fresh(3)), uneven, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot, _ *component.Rendering) {
			g.Spec.Disruption = &v1alpha1.Disruption{Paused: true}
		}, 0, ""},
		"not wanted any more: one is too many":         {is(old(0), old(1), old(2), fresh(3)), component.Spread{}, nil, 0, ""},
		"one is to be replaced: the new one is for it": {is(old(0), instancetest.ToReplace(old(1)), old(2), fresh(3)), fruitless, nil, 0, ""},
		"the group grew by one meanwhile": {is(old(0), old(1), old(2), fresh(3)), fruitless, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot, _ *component.Rendering) {
			g.Spec.Replicas = ptr.To(int32(4))
		}, 0, ""},
		"without the new one they lie evenly":        {is(old(0), old(1), old(2), instancetest.NotReady(fresh(3))), component.Spread{By: "zone", Unneeded: true, NoGain: verdict.NewReason("it came to a")}, nil, 0, ""},
		"one leaves, and the new one is one of many": {is(old(0), old(1), instancetest.MarkRetiring(old(2)), fresh(3)), fruitless, nil, 0, ""},
		"the group shrinks by one meanwhile": {is(old(0), old(1), old(2), fresh(3)), fruitless, func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot, _ *component.Rendering) {
			g.Spec.Replicas = ptr.To(int32(2))
		}, 1, "it came to a"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv"}}
			g.Spec.Replicas = ptr.To(int32(3))
			s := observation.Snapshot{Instances: c.instances, PDGroup: &v1alpha1.PDGroup{}, Now: time.Unix(1800000000, 0)}
			s.PDGroup.Status.ClusterID = "7"
			r := component.Rendering{Component: componenttest.Removable{}, Spread: c.spread}
			if c.change != nil {
				c.change(g, &s, &r)
			}
			var living []planning.InstanceDiff
			for _, i := range s.Instances {
				m := planning.InstanceDiff{Live: i}
				if i.Spec.Revision == "restart" {
					m.RestartReason = verdict.NewReason(i.Spec.Revision)
				}
				living = append(living, m)
			}
			extra, _, o := PlanRebalance(g, s, r, living, "r")
			assert.Equal(t, c.extra, extra)
			if c.says == "" {
				assert.Equal(t, step.KindDone, o.Kind, o.Message)
			} else {
				assert.Contains(t, o.Message, c.says)
			}
		})
	}
}

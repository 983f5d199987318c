package scaling

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// VOL-04, OPS-01: what a replacement goes through, one state after
// the other: an operator that begins at any of them, after a crash or because the spec has
// changed, goes on from there. One more is made, and when all that have come are
// Ready an old one leaves; never are there fewer than spec.replicas.
func TestMembersAreReplacedStepByStep(t *testing.T) {
	old := func(slot int32) *v1alpha1.Instance { return instancetest.WithVolume(slot, "slow", "2Gi") }
	fresh := func(slot int32) *v1alpha1.Instance { return instancetest.WithVolume(slot, "fast", "2Gi") }
	is := func(all ...*v1alpha1.Instance) []*v1alpha1.Instance { return all }
	for name, c := range map[string]struct {
		instances []*v1alpha1.Instance
		change    func(g *v1alpha1.TiKVGroup, s *observation.Snapshot)
		extra     int32
		leaves    string
	}{
		"all are old: one more":                            {is(old(0), old(1), old(2)), nil, 1, ""},
		"the new one starts: no member leaves":             {is(old(0), old(1), old(2), instancetest.NotReady(fresh(3))), nil, 1, ""},
		"the new one is Ready: an old one leaves":          {is(old(0), old(1), old(2), fresh(3)), nil, 0, "kv-2"},
		"it goes on leaving":                               {is(old(0), instancetest.MarkRetiring(old(1)), old(2), fresh(3)), nil, 0, "kv-1"},
		"also when the new one does not serve any more":    {is(old(0), instancetest.MarkRetiring(old(1)), old(2), instancetest.NotReady(fresh(3))), nil, 0, "kv-1"},
		"it is being deleted: the next one is made":        {is(old(0), instancetest.MarkDeleted(old(1)), old(2), fresh(3)), nil, 1, "kv-1"},
		"one is left: one more":                            {is(old(0), fresh(3), fresh(4)), nil, 1, ""},
		"all are new":                                      {is(fresh(3), fresh(4), fresh(5)), nil, 0, ""},
		"a new one that does not serve is waited for":      {is(old(0), old(1), instancetest.NotReady(fresh(3)), fresh(4)), nil, 1, ""},
		"an old one that does not serve is not waited for": {is(old(0), instancetest.NotReady(old(1)), old(2), fresh(3)), nil, 0, "kv-2"},
		"a scale-in at the same time takes an old one":     {is(old(0), old(1), fresh(3), fresh(4)), func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.Replicas = ptr.To(int32(2)) }, 0, "kv-1"},
		"a scale-out at the same time":                     {is(old(0), old(1), old(2)), func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.Replicas = ptr.To(int32(5)) }, 1, ""},
		"the user does not want it":                        {is(old(0), old(1), old(2)), func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.VolumeReplacement = "" }, 0, ""},
		"not before there is a cluster":                    {is(old(0), old(1), old(2)), func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) { s.PDGroup.Status.ClusterID = "" }, 0, ""},
		"not while disruptions are paused": {is(old(0), old(1), old(2)), func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) {
			g.Spec.Disruption = &v1alpha1.Disruption{Paused: true}
		}, 0, ""},
		"not while the group is suspended": {is(old(0), old(1), old(2)), func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.Suspended = true }, 0, ""},
		"set back, the new one leaves and not the retiring one": {is(old(0), instancetest.MarkRetiring(old(1)), old(2), fresh(3)), func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) {
			g.Spec.Volumes[0].StorageClassName = ptr.To("slow")
		}, 0, "kv-3"},
		"not wanted any more, one too many leaves": {is(old(0), old(1), old(2), fresh(3)), func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) { g.Spec.VolumeReplacement = v1alpha1.KeepVolumes }, 0, "kv-3"},
		"volumes that are to be smaller": {is(fresh(0), fresh(1), fresh(2)), func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) {
			g.Spec.Volumes[0].Storage = resource.MustParse("1Gi")
		}, 1, ""},
		"an increase that has not come is taken back in place": {is(fresh(0), fresh(1), fresh(2)), func(g *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			g.Spec.Volumes[0].Storage = resource.MustParse("1500Mi")
			for _, i := range s.Instances {
				i.Status.Volumes[0].Capacity = ptr.To(resource.MustParse("1Gi"))
			}
		}, 0, ""},
		"volumes that are to be larger grow in place": {is(fresh(0), fresh(1), fresh(2)), func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot) {
			g.Spec.Volumes[0].Storage = resource.MustParse("9Gi")
		}, 0, ""},
		"a user names one: one more":              {is(fresh(0), instancetest.ToReplace(fresh(1)), fresh(2)), nil, 1, ""},
		"and that one leaves, whatever its slot":  {is(fresh(0), instancetest.ToReplace(fresh(1)), fresh(2), fresh(3)), nil, 0, "kv-1"},
		"a user has named two: the first is gone": {is(instancetest.ToReplace(fresh(0)), fresh(2), fresh(3)), nil, 1, ""},
		"a webhook gives every claim another class: no member leaves for it": {is(old(0), old(1), old(2)), func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			for _, i := range s.Instances {
				i.Status.Volumes[0].Change = v1alpha1.ReasonClaimRejected
			}
		}, 0, ""},
		"nor more when the first new one has got it, too": {is(old(0), instancetest.MarkDeleted(old(1)), old(2), old(3)), func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.Instances[3].Status.Volumes[0].Change = v1alpha1.ReasonClaimRejected
		}, 0, "kv-1"},
		"a claim that a user has made larger may stay": {is(fresh(0), fresh(1), fresh(2)), func(g *v1alpha1.TiKVGroup, s *observation.Snapshot) {
			s.Instances[0].Status.Volumes[0].Requested = ptr.To(resource.MustParse("9Gi"))
		}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv"}}
			g.Spec.Replicas, g.Spec.VolumeReplacement = ptr.To(int32(3)), v1alpha1.ReplaceVolumes
			g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("2Gi"), StorageClassName: ptr.To("fast")}}
			s := observation.Snapshot{Instances: c.instances, PDGroup: &v1alpha1.PDGroup{}}
			s.PDGroup.Status.ClusterID = "7"
			if c.change != nil {
				c.change(g, &s)
			}
			r := component.Rendering{Component: componenttest.Removable{}}
			r.Extra = PlanReplacements(g, s, r)
			assert.Equal(t, c.extra, r.Extra)
			var leaving []string
			for i := range PlanRemoval(g, s, r, 0, "r").Candidates {
				leaving = append(leaving, i)
			}
			if c.leaves == "" {
				assert.Empty(t, leaving)
				return
			}
			assert.Equal(t, []string{c.leaves}, leaving)
		})
	}
}

package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// on is a settled member of group kv with a volume of a class and size.
func on(slot int32, class, size string) *v1alpha1.Instance {
	i, has := kv(slot, "uid"), resource.MustParse(size)
	i.Spec.Revision, i.Status.Revision, i.Status.PodUID = "r", "r", "pod"
	i.Spec.VolumeClaimTemplates = []v1alpha1.VolumeClaimTemplate{{Name: "data", Storage: has}}
	i.Status.Volumes = []v1alpha1.VolumeStatus{{Name: "data", StorageClassName: class, Requested: &has, Capacity: &has}}
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	return i
}

func starting(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.Status.Conditions[0].Status = metav1.ConditionFalse
	return i
}

func retiring(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.Spec.Retire = true
	return i
}

// willing lets everything be removed.
type willing struct{ careful }

func (willing) Refuse([]*v1alpha1.Instance) string { return "" }
func (willing) RemoveAtOnce() int                  { return 1 }
func (willing) Restarted(*v1alpha1.Instance) bool  { return false }

// VOL-04, OPS-01: what a replacement goes through, one state after
// the other: whoever begins at any of them, after a crash or because the spec has
// changed, goes on from there. One more is made, and when all that have come are
// Ready an old one leaves; never are there fewer than spec.replicas.
func TestMembersAreReplacedStepByStep(t *testing.T) {
	old := func(slot int32) *v1alpha1.Instance { return on(slot, "slow", "2Gi") }
	fresh := func(slot int32) *v1alpha1.Instance { return on(slot, "fast", "2Gi") }
	is := func(all ...*v1alpha1.Instance) []*v1alpha1.Instance { return all }
	for name, c := range map[string]struct {
		instances []*v1alpha1.Instance
		change    func(g *v1alpha1.TiKVGroup, s *Snapshot)
		extra     int32
		leaves    string
	}{
		"all are old: one more":                                 {is(old(0), old(1), old(2)), nil, 1, ""},
		"the new one starts: nobody leaves":                     {is(old(0), old(1), old(2), starting(fresh(3))), nil, 1, ""},
		"the new one is Ready: an old one leaves":               {is(old(0), old(1), old(2), fresh(3)), nil, 0, "kv-2"},
		"it goes on leaving":                                    {is(old(0), retiring(old(1)), old(2), fresh(3)), nil, 0, "kv-1"},
		"also when the new one does not serve any more":         {is(old(0), retiring(old(1)), old(2), starting(fresh(3))), nil, 0, "kv-1"},
		"it is being deleted: the next one is made":             {is(old(0), doomed(old(1)), old(2), fresh(3)), nil, 1, "kv-1"},
		"one is left: one more":                                 {is(old(0), fresh(3), fresh(4)), nil, 1, ""},
		"all are new":                                           {is(fresh(3), fresh(4), fresh(5)), nil, 0, ""},
		"a new one that does not serve is waited for":           {is(old(0), old(1), starting(fresh(3)), fresh(4)), nil, 1, ""},
		"an old one that does not serve is not waited for":      {is(old(0), starting(old(1)), old(2), fresh(3)), nil, 0, "kv-2"},
		"a scale-in at the same time takes an old one":          {is(old(0), old(1), fresh(3), fresh(4)), func(g *v1alpha1.TiKVGroup, _ *Snapshot) { g.Spec.Replicas = ptr.To(int32(2)) }, 0, "kv-1"},
		"a scale-out at the same time":                          {is(old(0), old(1), old(2)), func(g *v1alpha1.TiKVGroup, _ *Snapshot) { g.Spec.Replicas = ptr.To(int32(5)) }, 1, ""},
		"the user does not want it":                             {is(old(0), old(1), old(2)), func(g *v1alpha1.TiKVGroup, _ *Snapshot) { g.Spec.VolumeReplacement = "" }, 0, ""},
		"not before there is a cluster":                         {is(old(0), old(1), old(2)), func(_ *v1alpha1.TiKVGroup, s *Snapshot) { s.PDGroup.Status.ClusterID = "" }, 0, ""},
		"not while disruptions are paused":                      {is(old(0), old(1), old(2)), func(g *v1alpha1.TiKVGroup, _ *Snapshot) { g.Spec.Disruption = &v1alpha1.Disruption{Paused: true} }, 0, ""},
		"not while the group is suspended":                      {is(old(0), old(1), old(2)), func(g *v1alpha1.TiKVGroup, _ *Snapshot) { g.Spec.Suspended = true }, 0, ""},
		"set back, the new one leaves and not the retiring one": {is(old(0), retiring(old(1)), old(2), fresh(3)), func(g *v1alpha1.TiKVGroup, _ *Snapshot) { g.Spec.Volumes[0].StorageClassName = ptr.To("slow") }, 0, "kv-3"},
		"not wanted any more, one too many leaves":              {is(old(0), old(1), old(2), fresh(3)), func(g *v1alpha1.TiKVGroup, _ *Snapshot) { g.Spec.VolumeReplacement = v1alpha1.KeepVolumes }, 0, "kv-3"},
		"volumes that are to be smaller":                        {is(fresh(0), fresh(1), fresh(2)), func(g *v1alpha1.TiKVGroup, _ *Snapshot) { g.Spec.Volumes[0].Storage = resource.MustParse("1Gi") }, 1, ""},
		"volumes that are to be larger grow in place":           {is(fresh(0), fresh(1), fresh(2)), func(g *v1alpha1.TiKVGroup, _ *Snapshot) { g.Spec.Volumes[0].Storage = resource.MustParse("9Gi") }, 0, ""},
		"a person names one: one more":                          {is(fresh(0), unwanted(fresh(1)), fresh(2)), nil, 1, ""},
		"and that one leaves, whatever its slot":                {is(fresh(0), unwanted(fresh(1)), fresh(2), fresh(3)), nil, 0, "kv-1"},
		"a person has named two: the first is gone":             {is(unwanted(fresh(0)), fresh(2), fresh(3)), nil, 1, ""},
		"a claim that somebody has made larger may stay": {is(fresh(0), fresh(1), fresh(2)), func(g *v1alpha1.TiKVGroup, s *Snapshot) {
			s.Instances[0].Status.Volumes[0].Requested = ptr.To(resource.MustParse("9Gi"))
		}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv"}}
			g.Spec.Replicas, g.Spec.VolumeReplacement = ptr.To(int32(3)), v1alpha1.ReplaceVolumes
			g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("2Gi"), StorageClassName: ptr.To("fast")}}
			s := Snapshot{Instances: c.instances, PDGroup: &v1alpha1.PDGroup{}}
			s.PDGroup.Status.ClusterID = "7"
			if c.change != nil {
				c.change(g, &s)
			}
			r := Rendering{Disrupt: willing{}}
			r.Extra = planReplacements(g, s, r)
			assert.Equal(t, c.extra, r.Extra)
			var leaving []string
			for i := range planRemoval(g, s, r, 0, "r").victims {
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

// P4: a version that renders claims otherwise changes none for which the spec says
// what it said; a size that a person changes goes through.
func TestAnotherRenderingOfClaimsChangesNone(t *testing.T) {
	rendered := func(size string) []v1alpha1.VolumeClaimTemplate {
		return []v1alpha1.VolumeClaimTemplate{{Name: "data", Storage: resource.MustParse(size), StorageClassName: ptr.To("fast")}}
	}
	for name, c := range map[string]struct{ spec, rendered, want string }{
		"as it was":                           {"2Gi", "2Gi", "2Gi"},
		"the operators render more":           {"2Gi", "4Gi", "2Gi"},
		"a person wants more":                 {"3Gi", "3Gi", "3Gi"},
		"and the operators render more still": {"3Gi", "6Gi", "6Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{}
			g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse(c.spec), StorageClassName: ptr.To("fast")}}
			live := on(0, "fast", "2Gi")
			live.Spec.VolumeClaimTemplates[0].StorageClassName = ptr.To("fast")
			out := asWished(g, rendered(c.rendered), live)
			require.Len(t, out, 1)
			assert.Equal(t, c.want, out[0].Storage.String())
		})
	}
}

// P7: an increase that was refused is taken back where it has not come; a volume
// that has grown is not asked to shrink.
func TestALivingMemberKeepsTheSizeThatItsVolumeHas(t *testing.T) {
	for name, c := range map[string]struct {
		asked, requested, capacity, wanted, want string
	}{
		"larger":                                   {"2Gi", "2Gi", "2Gi", "3Gi", "3Gi"},
		"smaller than it is":                       {"2Gi", "2Gi", "2Gi", "1Gi", "2Gi"},
		"set back, and the claim was refused":      {"9Gi", "2Gi", "2Gi", "2Gi", "2Gi"},
		"set back, and the driver failed":          {"9Gi", "9Gi", "2Gi", "3Gi", "3Gi"},
		"set back too far after the driver failed": {"9Gi", "9Gi", "2Gi", "2Gi", "9Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			live := on(0, "fast", c.asked)
			live.Status.Volumes[0].Requested, live.Status.Volumes[0].Capacity = ptr.To(resource.MustParse(c.requested)), ptr.To(resource.MustParse(c.capacity))
			out := lasting([]v1alpha1.VolumeClaimTemplate{{Name: "data", Storage: resource.MustParse(c.wanted)}}, live)
			require.Len(t, out, 1)
			assert.Equal(t, c.want, out[0].Storage.String())
		})
	}
}

// P7: a size that no claim has asked for yet may be taken back.
func TestTheStatusSaysTheMostThatAClaimAsksFor(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("9Gi")}, {Name: "log", Storage: resource.MustParse("1Gi")}}
	says := func(instances ...*v1alpha1.Instance) []string {
		var out []string
		for _, v := range Report(g, Snapshot{Instances: instances}, Plan{}, step.Done(), conditions.New(nil, 1, time.Now()), true).Volumes {
			out = append(out, v.Name+" "+v.Requested.String())
		}
		return out
	}
	assert.Equal(t, []string{"data 0", "log 0"}, says(), "nobody has asked for anything")
	assert.Equal(t, []string{"data 3Gi", "log 0"}, says(on(0, "slow", "2Gi"), on(1, "slow", "3Gi")))
	unknown := on(2, "slow", "4Gi")
	unknown.Status.Volumes = nil
	assert.Equal(t, []string{"data 4Gi", "log 0"}, says(on(0, "slow", "2Gi"), unknown), "its claim may ask for what its Instance says")
	patched := on(0, "slow", "2Gi")
	patched.Spec.VolumeClaimTemplates[0].Storage = resource.MustParse("9Gi")
	assert.Equal(t, []string{"data 2Gi", "log 0"}, says(patched), "a claim that was refused still asks for what it did")
}

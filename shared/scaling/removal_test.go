package scaling

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// unwilling refuses the removal of members that have not begun to leave.
type unwilling struct{ componenttest.Removable }

func (unwilling) AllowsRemoval([]*v1alpha1.Instance) verdict.Verdict {
	return verdict.Refuse("too few would stay")
}

func (unwilling) MaxConcurrentRemovals() int { return 9 }

func listCandidates(g *v1alpha1.TiKVGroup, s observation.Snapshot, r component.Rendering) []string {
	return slices.Sorted(maps.Keys(PlanRemoval(g, s, r, 0, "r").Candidates))
}

// KV-03: a scale-in that is refused goes on with members that have begun to leave, and with no
// other, in whatever order they would leave.
func TestARefusedScaleInContinuesOnlyRemovalsThatHaveBegun(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Name = "kv"
	g.Spec.Replicas, g.Spec.VolumeReplacement = ptr.To(int32(1)), v1alpha1.ReplaceVolumes
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("2Gi"), StorageClassName: ptr.To("fast")}}
	s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.WithVolume(0, "slow", "2Gi"), instancetest.MarkRetiring(instancetest.WithVolume(1, "fast", "2Gi")), instancetest.WithVolume(2, "fast", "2Gi")}}
	assert.Equal(t, []string{"kv-1"}, listCandidates(g, s, component.Rendering{Component: unwilling{}}))
}

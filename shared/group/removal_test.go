package group

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// unwilling lets nobody go who has not begun to.
type unwilling struct{ willing }

func (unwilling) Refuse([]*v1alpha1.Instance) string { return "too few would stay" }
func (unwilling) RemoveAtOnce() int                  { return 9 }

func victims(g *v1alpha1.TiKVGroup, s Snapshot, r Rendering) []string {
	return slices.Sorted(maps.Keys(planRemoval(g, s, r, 0, "r").victims))
}

// KV-03: a scale-in that is refused lets go on who has begun to leave, and nobody
// else, in whatever order they would leave.
func TestARefusedScaleInTakesNobodyWhoHasNotBegunToLeave(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Name = "kv"
	g.Spec.Replicas, g.Spec.VolumeReplacement = ptr.To(int32(1)), v1alpha1.ReplaceVolumes
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("2Gi"), StorageClassName: ptr.To("fast")}}
	s := Snapshot{Instances: []*v1alpha1.Instance{on(0, "slow", "2Gi"), retiring(on(1, "fast", "2Gi")), on(2, "fast", "2Gi")}}
	assert.Equal(t, []string{"kv-1"}, victims(g, s, Rendering{Disrupt: unwilling{}}))
}

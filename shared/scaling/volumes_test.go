package scaling

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// P5: what others wait for ends.
func TestASuspendedGroupDoesNotWaitForAReplacementThatIsPutOff(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Spec.VolumeReplacement, g.Spec.Disruption = v1alpha1.ReplaceVolumes, &v1alpha1.Disruption{Paused: true}
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("2Gi"), StorageClassName: ptr.To("fast")}}
	s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.WithVolume(0, "slow", "2Gi")}}
	s.Instances[0].Status.Volumes[0].PersistentVolume = "pv"
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, VolumeOutcome(g, s, component.Rendering{}).Reason)
	g.Spec.Suspended = true
	reason := VolumeOutcome(g, s, component.Rendering{}).Reason
	assert.Equal(t, v1alpha1.ReasonReplacementPending, reason)
	assert.True(t, rollout.HasStopped(reason))
}

// P11: what waits for a user has another reason than what goes on by itself.
func TestAVolumeThatStaysHasAnotherReasonThanOneThatIsReplaced(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("2Gi"), StorageClassName: ptr.To("fast")}}
	s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.WithVolume(0, "slow", "2Gi")}}
	s.Instances[0].Status.Volumes[0].PersistentVolume = "pv"
	assert.Equal(t, v1alpha1.ReasonVolumeChangePending, VolumeOutcome(g, s, component.Rendering{}).Reason)
	g.Spec.VolumeReplacement = v1alpha1.ReplaceVolumes
	assert.Equal(t, v1alpha1.ReasonReplacementPending, VolumeOutcome(g, s, component.Rendering{}).Reason)
}

// P11: that no member is replaced is said, with who must act.
func TestAVolumeOfAClassThatAWebhookGivesIsNamed(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Spec.VolumeReplacement = v1alpha1.ReplaceVolumes
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("2Gi"), StorageClassName: ptr.To("fast")}}
	s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.WithVolume(0, "slow", "2Gi")}}
	s.Instances[0].Status.Volumes[0].Change = v1alpha1.ReasonClaimRejected
	o := VolumeOutcome(g, s, component.Rendering{})
	assert.Equal(t, v1alpha1.ReasonVolumeChangePending, o.Reason)
	assert.Contains(t, o.Message, "Instance kv-0: volume data has StorageClass slow, spec.volumes says fast; its claim was made with that, and an admission webhook or a user gave it the other")
}

// P4: a version that renders claims otherwise changes none for which the spec says
// what it said; a size that a user changes goes through.
func TestAnotherRenderingOfClaimsChangesNone(t *testing.T) {
	rendered := func(size string) []v1alpha1.VolumeClaimTemplate {
		return []v1alpha1.VolumeClaimTemplate{{Name: "data", Storage: resource.MustParse(size), StorageClassName: ptr.To("fast")}}
	}
	for name, c := range map[string]struct{ spec, rendered, want string }{
		"as it was":                           {"2Gi", "2Gi", "2Gi"},
		"the operators render more":           {"2Gi", "4Gi", "2Gi"},
		"a user wants more":                   {"3Gi", "3Gi", "3Gi"},
		"and the operators render more still": {"3Gi", "6Gi", "6Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{}
			g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse(c.spec), StorageClassName: ptr.To("fast")}}
			live := instancetest.WithVolume(0, "fast", "2Gi")
			live.Spec.VolumeClaimTemplates[0].StorageClassName = ptr.To("fast")
			out := KeepClaims(g, rendered(c.rendered), live)
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
		"smaller than a claim without a volume":    {"9Ti", "9Ti", "", "9Gi", "9Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			live := instancetest.WithVolume(0, "fast", c.asked)
			volume := &live.Status.Volumes[0]
			volume.Requested, volume.Capacity, volume.PersistentVolume = ptr.To(resource.MustParse(c.requested)), nil, ""
			if c.capacity != "" {
				volume.Capacity, volume.PersistentVolume = ptr.To(resource.MustParse(c.capacity)), "pv"
			}
			out := WithoutShrinking([]v1alpha1.VolumeClaimTemplate{{Name: "data", Storage: resource.MustParse(c.wanted)}}, live)
			require.Len(t, out, 1)
			assert.Equal(t, c.want, out[0].Storage.String())
		})
	}
}

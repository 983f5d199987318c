package scaling

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// VolumeOutcome names a volume that is not what the spec asks for and cannot become it,
// and what happens to its member.
func VolumeOutcome(g v1alpha1.Group, s observation.Snapshot, r component.Rendering) step.Outcome {
	left, first, why, changed := 0, "", "", ""
	for _, i := range s.Instances {
		if changed == "" && member.ReplacesVolumes(g) && member.IsClassChanged(g, i) {
			changed = fmt.Sprintf("Instance %s: %s", i.Name, member.VolumeMismatch(g, i).Text())
		}
		if mismatch := member.VolumeMismatch(g, i); mismatch.IsGiven() {
			if left++; left == 1 {
				first, why = i.Name, mismatch.Text()
			}
		}
	}
	wait := func(reason, text string) step.Outcome {
		return step.Wait("Instance", member.WaitDeadline, reason, text)
	}
	switch {
	case left == 0:
		return step.Done()
	case changed != "":
		return wait(v1alpha1.ReasonVolumeChangePending, changed+"; its claim was made with that, and an admission webhook or a user gave it the other, as a new member might get: correct what does, and request replacements of such members (docs/tasks/replace.md), or set the volume back")
	case !member.ReplacesVolumes(g):
		edit := origin.OfGroup(g)
		return wait(v1alpha1.ReasonVolumeChangePending, fmt.Sprintf("Instance %s: %s, and volumes do not move: set it back, or set %s to Replace to have new members take the place of the old ones: %s", first, why, edit.Field("volumeReplacement"), edit.Edit()))
	}
	// While a group is suspended, do not wait for a postponed replacement.
	if hold := rollout.CheckUserHolds(g, s, r, component.Disruption{Instance: s.Instance(first), Verb: member.Remove, Why: why}, ""); hold.Kind != step.KindDone && !g.GetComponentSpec().Suspended {
		return hold
	}
	return wait(v1alpha1.ReasonReplacementPending, fmt.Sprintf("Instance %s will be replaced: %s; members left to replace: %d; to stop that, set the volume back", first, why, left))
}

// OnlineClaims returns the claims of a member with what changes of them without a restart.
func OnlineClaims(claims, wanted []v1alpha1.VolumeClaimTemplate) []v1alpha1.VolumeClaimTemplate {
	out := slices.Clone(claims)
	for n := range out {
		if w := member.ClaimTemplate(wanted, out[n].Name); w != nil {
			out[n].Storage, out[n].VolumeAttributesClassName = w.Storage, w.VolumeAttributesClassName
		}
	}
	return out
}

// KeepClaims returns the rendered claims, and in their place those of an existing member
// that are exactly what the spec asks for: an upgrade of the operators to a version that
// renders claims differently must change none (P4).
func KeepClaims(g v1alpha1.Group, rendered []v1alpha1.VolumeClaimTemplate, live *v1alpha1.Instance) []v1alpha1.VolumeClaimTemplate {
	out := slices.Clone(rendered)
	for n := range out {
		has := member.ClaimTemplate(live.Spec.VolumeClaimTemplates, out[n].Name)
		said := slices.ContainsFunc(g.GetComponentSpec().Volumes, func(v v1alpha1.Volume) bool {
			return has != nil && v.Name == has.Name && v.Storage.Cmp(has.Storage) == 0 &&
				ptr.Equal(v.StorageClassName, has.StorageClassName) && ptr.Equal(v.VolumeAttributesClassName, has.VolumeAttributesClassName)
		})
		if said {
			out[n] = *has
		}
	}
	return out
}

// WithoutShrinking returns the claims that an existing member is to have. A volume does
// not shrink. A claim is set back to a smaller size only if it has not asked for more yet,
// if its volume has not grown as far, or if it has none: then it is created again.
func WithoutShrinking(wanted []v1alpha1.VolumeClaimTemplate, live *v1alpha1.Instance) []v1alpha1.VolumeClaimTemplate {
	out := slices.Clone(wanted)
	for n := range out {
		asked, has := member.ClaimTemplate(live.Spec.VolumeClaimTemplates, out[n].Name), member.VolumeStatus(live, out[n].Name)
		if asked == nil || has == nil || asked.Storage.Cmp(out[n].Storage) <= 0 || !member.HasVolume(has) {
			continue
		}
		if member.StaysLarger(has, out[n].Storage) {
			out[n].Storage = asked.Storage
		}
	}
	return out
}

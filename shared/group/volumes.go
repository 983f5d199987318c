package group

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// replaces reports whether members are to be replaced whose volumes cannot become
// what the spec asks for.
func replaces(g v1alpha1.Group) bool {
	return g.GetComponentSpec().VolumeReplacement == v1alpha1.ReplaceVolumes
}

// Outgrown says which volume of a member cannot become what the group's spec asks
// for, because volumes neither move to another StorageClass nor shrink; empty if
// all can. A claim without a volume is made anew by the instance operator. A claim
// that somebody else made larger than its Instance asks for may stay.
func Outgrown(g v1alpha1.Group, i *v1alpha1.Instance) string {
	for _, wanted := range g.GetComponentSpec().Volumes {
		has := volumeOf(i, wanted.Name)
		if has == nil || has.PersistentVolume == "" && has.Capacity == nil {
			continue
		}
		if class := wanted.StorageClassName; class != nil && has.StorageClassName != "" && has.StorageClassName != *class {
			return fmt.Sprintf("volume %s has StorageClass %s, spec.volumes says %s", wanted.Name, has.StorageClassName, *class)
		}
		asked := templateOf(i.Spec.VolumeClaimTemplates, wanted.Name)
		if replaces(g) && asked != nil && asked.Storage.Cmp(wanted.Storage) > 0 && has.Requested != nil && has.Requested.Cmp(wanted.Storage) > 0 {
			return fmt.Sprintf("volume %s has %s, spec.volumes says %s", wanted.Name, asked.Storage.String(), wanted.Storage.String())
		}
	}
	return ""
}

// ReplacedForVolumes says why a member is to be replaced for its volumes; empty if
// it is not, or if the user does not want that.
func ReplacedForVolumes(g v1alpha1.Group, i *v1alpha1.Instance) string {
	if !replaces(g) {
		return ""
	}
	return Outgrown(g, i)
}

// volumeChange names a volume that is not what the spec asks for and cannot become
// it, and what becomes of its member.
func volumeChange(g v1alpha1.Group, s Snapshot, r Rendering) step.Outcome {
	left, first, why := 0, "", ""
	for _, i := range s.Instances {
		if text := Outgrown(g, i); text != "" {
			if left++; left == 1 {
				first, why = i.Name, text
			}
		}
	}
	wait := func(text string) step.Outcome {
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonVolumeChangePending, text)
	}
	switch {
	case left == 0:
		return step.Done()
	case !replaces(g):
		edit := origin.Of(g)
		return wait(fmt.Sprintf("Instance %s: %s, and volumes do not move: set it back, or set %s to Replace to have new members take the place of the old ones: %s", first, why, edit.Field("volumeReplacement"), edit.Edit()))
	}
	// Who waits for a suspended group to stop does not wait for what is put off.
	if hold := putOff(g, s, r, Disruption{Instance: s.Instance(first), Verb: Remove, Why: why}, ""); hold.Kind != step.KindDone && !g.GetComponentSpec().Suspended {
		return hold
	}
	return wait(fmt.Sprintf("Instance %s is to be replaced: %s; members left to replace: %d; to stop that, set the volume back", first, why, left))
}

// online returns the claims that a member has with what changes of them without a
// restart.
func online(claims, wanted []v1alpha1.VolumeClaimTemplate) []v1alpha1.VolumeClaimTemplate {
	out := slices.Clone(claims)
	for n := range out {
		if w := templateOf(wanted, out[n].Name); w != nil {
			out[n].Storage, out[n].VolumeAttributesClassName = w.Storage, w.VolumeAttributesClassName
		}
	}
	return out
}

// asWished returns the claims that are rendered, and those of a living member
// where they are just what the spec says: who upgrades the operators to a version
// that renders claims otherwise has asked for none to change (P4). This version
// renders what the spec says, so that an Instance's own claims tell what that was.
func asWished(g v1alpha1.Group, rendered []v1alpha1.VolumeClaimTemplate, live *v1alpha1.Instance) []v1alpha1.VolumeClaimTemplate {
	out := slices.Clone(rendered)
	for n := range out {
		has := templateOf(live.Spec.VolumeClaimTemplates, out[n].Name)
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

// lasting returns the claims that a living member is to have. A volume does not
// shrink: its claim is taken back to a smaller size only where it has not asked
// for more yet, or its volume has not grown as far.
func lasting(wanted []v1alpha1.VolumeClaimTemplate, live *v1alpha1.Instance) []v1alpha1.VolumeClaimTemplate {
	out := slices.Clone(wanted)
	for n := range out {
		asked, has := templateOf(live.Spec.VolumeClaimTemplates, out[n].Name), volumeOf(live, out[n].Name)
		if asked == nil || has == nil || has.Requested == nil || asked.Storage.Cmp(out[n].Storage) <= 0 {
			continue
		}
		if has.Requested.Cmp(out[n].Storage) > 0 && (has.Capacity == nil || has.Capacity.Cmp(out[n].Storage) >= 0) {
			out[n].Storage = asked.Storage
		}
	}
	return out
}

// requestedVolumes returns the most that a claim of the group asks for, of each
// volume of the spec: what the spec may be set back to. A claim that is not known
// yet may ask for what its Instance says.
func requestedVolumes(g v1alpha1.Group, s Snapshot) []v1alpha1.RequestedVolume {
	var out []v1alpha1.RequestedVolume
	for _, v := range g.GetComponentSpec().Volumes {
		most := resource.Quantity{}
		for _, i := range s.Instances {
			size := &resource.Quantity{}
			if has := volumeOf(i, v.Name); has != nil && has.Requested != nil {
				size = has.Requested
			} else if asked := templateOf(i.Spec.VolumeClaimTemplates, v.Name); asked != nil {
				size = &asked.Storage
			}
			if size.Cmp(most) > 0 {
				most = size.DeepCopy()
			}
		}
		out = append(out, v1alpha1.RequestedVolume{Name: v.Name, Requested: most})
	}
	return out
}

func templateOf(claims []v1alpha1.VolumeClaimTemplate, name string) *v1alpha1.VolumeClaimTemplate {
	if at := slices.IndexFunc(claims, func(c v1alpha1.VolumeClaimTemplate) bool { return c.Name == name }); at >= 0 {
		return &claims[at]
	}
	return nil
}

func volumeOf(i *v1alpha1.Instance, name string) *v1alpha1.VolumeStatus {
	if at := slices.IndexFunc(i.Status.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.Name == name }); at >= 0 {
		return &i.Status.Volumes[at]
	}
	return nil
}

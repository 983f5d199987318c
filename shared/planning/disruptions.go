package planning

import (
	"maps"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// Disruptions are which members are stopped or removed, and what is done for it.
type Disruptions struct {
	// Lease to take or to release.
	Lease LeaseChange
	// Question that PD has to answer before the plan can go on; nil for none.
	Question *observation.RegionQuestion
	// Calls to PD, in this order.
	Calls []component.Call
	// Deletes are Instances to delete, because their member has left or never comes back.
	Deletes []*v1alpha1.Instance
	// Drained are the Instances whose member has left the database, Waiting why those that
	// were deleted and need the Lease are still there.
	Drained map[string]bool
	Waiting map[string]string
	// Unsafe is the first member that is not disrupted because it is not safe; nil if
	// there is none.
	Unsafe *component.Disruption
	// Disrupted are the members that are being disrupted, StopPermitted those whose pod
	// may stop now, Released the Instances that may be deleted now.
	Disrupted     map[string]member.Verb
	StopPermitted map[string]bool
	Released      map[string]bool
	// Suspended are those whose pod has to stop before they are known to have left.
	Suspended map[string]bool
	// Rechecks have to pass before anything of the plan stops a member.
	Rechecks []Recheck
}

// NoDisruptions are those of a plan that stops nothing.
func NoDisruptions() Disruptions {
	return Disruptions{Drained: map[string]bool{}, Waiting: map[string]string{}, Disrupted: map[string]member.Verb{}, StopPermitted: map[string]bool{}, Released: map[string]bool{}, Suspended: map[string]bool{}}
}

// Clone returns a copy that a step may add to.
func (d Disruptions) Clone() Disruptions {
	d.Calls, d.Deletes, d.Rechecks = slices.Clone(d.Calls), slices.Clone(d.Deletes), slices.Clone(d.Rechecks)
	d.Drained, d.Waiting, d.Disrupted = maps.Clone(d.Drained), maps.Clone(d.Waiting), maps.Clone(d.Disrupted)
	d.StopPermitted, d.Released, d.Suspended = maps.Clone(d.StopPermitted), maps.Clone(d.Released), maps.Clone(d.Suspended)
	return d
}

// PermitStop permits a member to stop: its pod or, if its Instance is being deleted, the
// Instance.
func (d Disruptions) PermitStop(i *v1alpha1.Instance) {
	if i.DeletionTimestamp != nil {
		d.Released[i.Name] = true
		return
	}
	d.StopPermitted[i.Name] = true
}

// WithPlannedRevisions is the Snapshot as it will be when this has been carried out: members
// that are restarted have the wanted revision. The limit of a canary counts these.
func (d Disruptions) WithPlannedRevisions(s observation.Snapshot, wanted string) observation.Snapshot {
	s.Instances = slices.Clone(s.Instances)
	for n, i := range s.Instances {
		taken := d.Lease.Take != nil && d.Lease.Take.Verb == member.Restart && d.Lease.State().NamesInstance(i.Name)
		if i.DeletionTimestamp == nil && (taken || d.StopPermitted[i.Name] || d.Disrupted[i.Name] == member.Restart) {
			s.Instances[n] = i.DeepCopy()
			s.Instances[n].Spec.Revision = wanted
		}
	}
	return s
}

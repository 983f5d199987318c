package planning

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// PermitStop permits a member to stop: its pod or, if its Instance is being deleted, the
// Instance.
func (p *Plan) PermitStop(i *v1alpha1.Instance) {
	if i.DeletionTimestamp != nil {
		p.Released[i.Name] = true
		return
	}
	p.StopPermitted[i.Name] = true
}

// WithPlannedRevisions is the Snapshot as it will be when the plan has been carried out:
// members that the plan restarts have the wanted revision. The limit of a canary counts
// these.
func (p *Plan) WithPlannedRevisions(s observation.Snapshot) observation.Snapshot {
	s.Instances = slices.Clone(s.Instances)
	for n, i := range s.Instances {
		taken := p.Lease.Take != nil && p.Lease.Take.Verb == member.Restart && p.Lease.State().Names(i.Name)
		if i.DeletionTimestamp == nil && (taken || p.StopPermitted[i.Name] || p.Disrupted[i.Name] == member.Restart) {
			s.Instances[n] = i.DeepCopy()
			s.Instances[n].Spec.Revision = p.Target.Hash
		}
	}
	return s
}

// Task is the making of a plan: for which group, from what, and how its members are to be.
// The steps of the plan hand it on.
type Task struct {
	// Plan that is being made.
	*Plan
	// Group that is planned for.
	Group v1alpha1.Group
	// Snapshot of what there is.
	Snapshot observation.Snapshot
	// Rendering of the members.
	Rendering component.Rendering
}

// With returns the task with another Snapshot.
func (t Task) With(s observation.Snapshot) Task {
	t.Snapshot = s
	return t
}

// Plan is what the operator of a group will do, and why.
type Plan struct {
	// Services, ConfigMap and Revision to apply, in this order; ConfigMap and
	// Revision are nil when they are stored already.
	Services  []*corev1.Service
	ConfigMap *corev1.ConfigMap
	Revision  *appsv1.ControllerRevision
	// Budget to apply, nil for none.
	Budget *policyv1.PodDisruptionBudget
	// Instances to apply, with the live object of each.
	Instances []InstanceChange
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
	// Prune are revisions and ConfigMaps that nothing uses any more.
	Prune []client.Object
	// Unsafe is the first member that is not disrupted because it is not safe; nil if
	// there is none.
	Unsafe *component.Disruption
	// Target is the revision that is wanted.
	Target revision.Target
	// Changes says how the target differs from the revision that was wanted before; empty
	// if it is the same, or that one is not known any more.
	Changes string
	// Gate that the group waits for.
	Gate gate.Result
	// ConfigUpdates are configurations to send to running members, ConfigOutcome what
	// members still lack of theirs. The component reports it.
	ConfigUpdates []component.ConfigUpdate
	ConfigOutcome step.Outcome
	// Evictions are calls to PD for members that are to lead nothing because a user asks,
	// or to lead again. They are made last, and nothing waits for their effect.
	Evictions []component.Call
	// EvictionOutcome is which members still lead although they are not to, or do not lead
	// yet. The component reports it after everything else: no rollout waits for it.
	EvictionOutcome step.Outcome
	// Outcome is why the group is not what its spec asks for.
	Outcome step.Outcome
	// Notes say why, one for each decision.
	Notes []string

	// Disrupted are the members that are being disrupted, StopPermitted those whose pod
	// may stop now, Released the Instances that may be deleted now.
	Disrupted     map[string]member.Verb
	StopPermitted map[string]bool
	Released      map[string]bool
	// Suspended are those whose pod has to stop before they are known to have left.
	Suspended map[string]bool
	// ApplyingConfig says that a changed configuration is being applied to running
	// members. Until they have shown that it works, no member is created with it.
	ApplyingConfig bool
	// UnansweredEviction is an Instance whose annotation does not yet say that it leads
	// nothing, or leads again.
	UnansweredEviction string
	// files of the stored revisions, read when first needed.
	files StoredFiles
	// Rechecks have to pass before anything of the plan stops a member.
	Rechecks []Recheck
}

// Common returns the plan as a component embeds it in its own.
func (p Plan) Common() Plan { return p }

// InstanceChange is an Instance to create or to update.
type InstanceChange struct {
	// Desired Instance.
	Desired *v1alpha1.Instance
	// Live Instance, nil if it is to be created.
	Live *v1alpha1.Instance
	// Stops says that the change permits a pod to stop that serves.
	Stops bool
	// Rolls says that the change brings a new revision to a group whose members serve at
	// an old one.
	Rolls bool
}

// LoadStoredFiles decodes the stored revisions, once for a plan.
func (p *Plan) LoadStoredFiles(s observation.Snapshot) (StoredFiles, error) {
	if p.files != nil {
		return p.files, nil
	}
	out := StoredFiles{}
	for _, object := range s.Revisions {
		r, err := revision.Decode(object)
		if err != nil {
			return nil, err
		}
		hash, err := r.Hash()
		if err != nil {
			return nil, err
		}
		out[hash] = r.Files
	}
	out[p.Target.Hash] = p.Target.Files
	p.files = out
	return out, nil
}

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

// PermitStop lets a member stop: its pod, or for one that was deleted its Instance.
func (p *Plan) PermitStop(i *v1alpha1.Instance) {
	if i.DeletionTimestamp != nil {
		p.Released[i.Name] = true
		return
	}
	p.StopPermitted[i.Name] = true
}

// WithPlannedRevisions is a snapshot with the members at the wanted revision that the plan lets
// have it: of a canary they are those that count, whoever is made beside them.
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

// Plan is what a group's operator will do, and why.
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
	// Lease to take or to give back.
	Lease LeaseChange
	// Question that PD has to answer before the plan can go on; nil for none.
	Question *observation.RegionQuestion
	// Calls to PD, in this order.
	Calls []component.Call
	// Deletes are Instances to delete, because their member has left or will
	// never come back.
	Deletes []*v1alpha1.Instance
	// Drained are the Instances whose member has left the database, Waiting why
	// those that were deleted and need the Lease are still there.
	Drained map[string]bool
	Waiting map[string]string
	// Prune are revisions and ConfigMaps that nothing uses any more.
	Prune []client.Object
	// Unsafe is the first member that is not disrupted because Safe says so; nil if
	// there is none.
	Unsafe *component.Disruption
	// Target is the revision that is wanted.
	Target revision.Target
	// Changes says what of the target is not as in the revision that was wanted so far;
	// empty if that is the same, or not known any more.
	Changes string
	// Gate that the group stands before.
	Gate gate.Result
	// ConfigUpdates are configurations that running members are to be given, Settings what
	// such members still lack of theirs, for the component to tell.
	ConfigUpdates []component.ConfigUpdate
	ConfigOutcome step.Outcome
	// Evictions are orders to PD for members that are to lead nothing because a person
	// asks, or to lead again because he does not any more. They come last: nobody waits
	// for what becomes of them.
	Evictions []component.Call
	// EvictionOutcome is what members still lead that are to lead nothing, or may lead again,
	// for the component to tell after everything else: it holds nobody's roll up.
	EvictionOutcome step.Outcome
	// Outcome is why the group is not what its spec asks for.
	Outcome step.Outcome
	// Notes say why, one for each decision.
	Notes []string

	// Disrupted are the Instances that are under way, granted those whose pod may
	// stop now, released those that may go for good.
	Disrupted     map[string]member.Verb
	StopPermitted map[string]bool
	Released      map[string]bool
	// Suspended are those whose pod has to stop before they are known to have
	// left.
	Suspended map[string]bool
	// ApplyingConfig says that a change is being given to running members: until they have
	// shown that it is good nobody is made with it.
	ApplyingConfig bool
	// UnansweredEviction is an Instance that has yet to say that it leads nothing, or not any
	// more.
	UnansweredEviction string
	// files of the revisions that are stored, once they were needed.
	files StoredFiles
	// Rechecks are to pass before anything of the plan stops a member.
	Rechecks []Recheck
}

// InstanceChange is an Instance to create or update.
type InstanceChange struct {
	// Desired Instance.
	Desired *v1alpha1.Instance
	// Live Instance, nil if it is to be created.
	Live *v1alpha1.Instance
	// Stops says that the change is the permission to stop a pod that serves.
	Stops bool
	// Rolls says that the change brings a new revision to a group whose members
	// serve at an old one.
	Rolls bool
}

// LoadStoredFiles reads the revisions once for a plan, if anything needs them.
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

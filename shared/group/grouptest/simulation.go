package grouptest

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Simulation is one group and all that there is of it.
type Simulation struct {
	// Group that is planned for. A test edits its spec.
	Group v1alpha1.Group
	// Now is the stage's clock.
	Now time.Time
	// Lease of the cluster.
	Lease lease.State
	// HolderLost and HolderReturns as the operator would find out.
	HolderLost, HolderReturns bool
	// View of PD.
	View pd.View
	// Others are the other groups of the cluster.
	Others []v1alpha1.Group
	// OnStop is called for every pod that is stopped while it serves, and how many
	// others serve then; nil for none.
	OnStop func(pod Pod, others int)
	// StopsLate says of a pod that is to stop whether it is still there for now; nil for never.
	StopsLate func(name string) bool

	instances map[string]*v1alpha1.Instance
	applied   map[string]map[string]string // annotations that the operator set
	pods      map[string]*Pod
	revisions []appsv1.ControllerRevision
	files     map[string]bool
	serial    int
}

// New returns a stage with nothing on it.
func New(g v1alpha1.Group) *Simulation {
	return &Simulation{
		Group: g, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		instances: map[string]*v1alpha1.Instance{}, applied: map[string]map[string]string{}, pods: map[string]*Pod{}, files: map[string]bool{},
	}
}

// Instances returns the Instances by slot, as the API server has them.
func (s *Simulation) Instances() []*v1alpha1.Instance {
	var out []*v1alpha1.Instance
	for _, i := range s.instances {
		out = append(out, i.DeepCopy())
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Instance) int { return cmp.Compare(a.Spec.Slot, b.Spec.Slot) })
	return out
}

// Names returns the names of the Instances by slot.
func (s *Simulation) Names() []string {
	var out []string
	for _, i := range s.Instances() {
		out = append(out, i.Name)
	}
	return out
}

// Snapshot is what the operator would read now.
func (s *Simulation) Snapshot() observation.Snapshot {
	groups := slices.Clone(s.Others)
	if own, ok := s.Group.DeepCopyObject().(v1alpha1.Group); ok {
		groups = append(groups, own)
	}
	return observation.Snapshot{
		Instances: s.Instances(), ConfigMaps: maps.Clone(s.files), Revisions: slices.Clone(s.revisions),
		Lease: s.Lease, HolderLost: s.HolderLost, HolderRecreated: s.HolderReturns, Now: s.Now, Groups: groups, PD: s.View,
	}
}

// ExecutePlan does what the operator does with a plan that was made from a snapshot,
// and returns the calls that it makes. What the operator would look at live is
// looked at.
func (s *Simulation) ExecutePlan(seen observation.Snapshot, plan planning.Plan) []component.Call {
	if plan.ConfigMap != nil {
		s.files[plan.ConfigMap.Name] = true
	}
	if plan.Revision != nil && !slices.ContainsFunc(s.revisions, func(r appsv1.ControllerRevision) bool { return r.Name == plan.Revision.Name }) {
		s.revisions = append(s.revisions, *plan.Revision)
	}
	if take := plan.Lease.Take; take != nil {
		if !reflect.DeepEqual(s.Lease, seen.Lease) {
			return nil
		}
		since := plan.Lease.Since
		if since.IsZero() {
			since = s.Now
		}
		s.Lease, s.HolderLost, s.HolderReturns = lease.NewState(lease.NewHolder(take.Instance), since, plan.Lease.Leaders), false, false
		s.Lease.Recreating = plan.Lease.Recreating
	}
	refused := false
	for _, change := range plan.Instances {
		refused = !s.tryApplyChange(seen, change) || refused
	}
	if refused {
		return nil
	}
	for _, i := range plan.Deletes {
		if there := s.instances[i.Name]; there != nil && there.ResourceVersion == i.ResourceVersion {
			s.Delete(i.Name)
		}
	}
	for _, object := range plan.Prune {
		delete(s.files, object.GetName())
		s.revisions = slices.DeleteFunc(s.revisions, func(r appsv1.ControllerRevision) bool { return r.Name == object.GetName() })
	}
	if plan.Lease.Release && reflect.DeepEqual(s.Lease, seen.Lease) {
		s.Lease, s.HolderLost = lease.State{}, false
	}
	return plan.Calls
}

// Report writes the status that follows from a plan: the group's, and which
// members have left.
func (s *Simulation) Report(seen observation.Snapshot, plan planning.Plan) *conditions.Set {
	set := conditions.New(s.Group.GetGroupStatus().Conditions, s.Group.GetGeneration(), s.Now)
	serving := slices.ContainsFunc(seen.Instances, member.WasReady)
	*s.Group.GetGroupStatus() = groupstatus.Report(s.Group, seen, plan, groupstatus.Work{Acted: step.Done(), Serving: serving}, set)
	for _, name := range s.Names() {
		i := s.instances[name]
		if at := slices.IndexFunc(seen.Instances, func(x *v1alpha1.Instance) bool { return x.UID == i.UID }); at < 0 {
			continue
		}
		member := conditions.NewMember(i.Status.Conditions, s.Now)
		if plan.Drained[name] {
			member.MarkTrue(v1alpha1.ConditionDrained, v1alpha1.ReasonMemberLeft, "the member has left")
		} else if i.Spec.Retire {
			member.MarkFalse(v1alpha1.ConditionDrained, v1alpha1.ReasonNotDrained, "the member is leaving")
		}
		before := i.Status.DeepCopy()
		mergeConditions(i, member)
		s.touch(before, i)
	}
	return set
}

// Step is one reconcile of the group's operator.
func (s *Simulation) Step(planner func(observation.Snapshot) (planning.Plan, error)) (planning.Plan, []component.Call, error) {
	seen := s.Snapshot()
	plan, err := planner(seen)
	if err != nil {
		return plan, nil, err
	}
	calls := s.ExecutePlan(seen, plan)
	s.Report(seen, plan)
	return plan, calls, nil
}

func (s *Simulation) nextVersion() string {
	s.serial++
	return fmt.Sprint(s.serial)
}

func (s *Simulation) nextUID(kind string) types.UID {
	s.serial++
	return types.UID(fmt.Sprintf("%s-%d", kind, s.serial))
}

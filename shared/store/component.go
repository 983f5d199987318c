package store

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/departure"
	"github.com/tidb-groups/tidb-groups/shared/failover"
	"github.com/tidb-groups/tidb-groups/shared/leaders"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/removal"
	"github.com/tidb-groups/tidb-groups/shared/safety"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Component answers for the members of a group of stores when some of them are
// to be stopped. It is what TiKV and TiFlash have in common; what differs lies
// in the type that embeds it.
type Component struct{ storestate.State }

var _ component.BatchRestarter = Component{}

// New returns the Component of a group whose stores advertise themselves at a
// port.
func New(g v1alpha1.StoreGroup, s observation.Snapshot, port int32) Component {
	c := storestate.State{Group: g, Snapshot: s, TrustPD: storestate.TrustPD(g, s), HasLeaders: v1alpha1.LeadsRegions(g.GroupKind())}
	if c.TrustPD.IsAllowed() {
		c.Stores = storestate.Matches(g, s, port)
		c.Order = removal.Order(c)
	}
	return Component{c}
}

// Spread is placement.Spread of the group.
func (c Component) Spread(template *corev1.PodTemplateSpec, storeLabels map[string]v1alpha1.StoreLabelValue) component.Spread {
	return placement.Spread(c.State, template, storeLabels)
}

// EvictLeaders is leaders.Evict of the group.
func (c Component) EvictLeaders(d component.Disruption, begun time.Time) component.Preparation {
	return leaders.Evict(c.State, d, begun)
}

// HasNoLeaders is leaders.HaveLeft of the group.
func (c Component) HasNoLeaders(i *v1alpha1.Instance) bool {
	return leaders.HaveLeft(c.State, i)
}

// RestoreLeaders is leaders.Restore of the group.
func (c Component) RestoreLeaders(i *v1alpha1.Instance, held lease.State) component.Preparation {
	return leaders.Restore(c.State, i, held)
}

// ExtraMembers is failover.ExtraMembers of the group.
func (c Component) ExtraMembers() int32 {
	return failover.ExtraMembers(c.State)
}

// ReportFailover is failover.Explain of the group.
func (c Component) ReportFailover(o step.Outcome) step.Outcome {
	return failover.Explain(c.State, o)
}

// KeepLeadersAway is leaders.KeepAway of the group.
func (c Component) KeepLeadersAway(i *v1alpha1.Instance) component.Eviction {
	return leaders.KeepAway(c.State, i)
}

// UndoOrphaned is leaders.UndoOrphaned of the group.
func (c Component) UndoOrphaned() (calls []component.Call, unknown bool) {
	return leaders.UndoOrphaned(c.State)
}

// CanDoWithout is placement.CanDoWithout of the group.
func (c Component) CanDoWithout(members ...*v1alpha1.Instance) verdict.Verdict {
	return placement.CanDoWithout(c.State, members...)
}

// MayRemove is placement.MayRemove of the group.
func (c Component) MayRemove(i *v1alpha1.Instance) verdict.Verdict {
	return placement.MayRemove(c.State, i)
}

// IsNotServing implements component.Component: see safety.IsNotServing.
func (c Component) IsNotServing(i *v1alpha1.Instance) bool {
	return safety.IsNotServing(c.State, i)
}

// NeedsLease implements component.Component: see departure.NeedsLease.
func (c Component) NeedsLease(d component.Disruption) bool {
	return departure.NeedsLease(c.State, d)
}

// MaxConcurrentRemovals implements component.Component: see removal.MaxConcurrentRemovals.
func (c Component) MaxConcurrentRemovals() int {
	return removal.MaxConcurrentRemovals(c.State)
}

// LeaderCount implements component.Component: see leaders.LeaderCount.
func (c Component) LeaderCount(i *v1alpha1.Instance) int {
	return leaders.LeaderCount(c.State, i)
}

// OthersWork is safety.OthersWork of the group.
func (c Component) OthersWork(i *v1alpha1.Instance) verdict.Verdict {
	return safety.OthersWork(c.State, i)
}

// PodCanStop is safety.PodCanStop of the group.
func (c Component) PodCanStop(i *v1alpha1.Instance) verdict.Verdict {
	return safety.PodCanStop(c.State, i)
}

// IsTrusted is safety.IsTrusted of the group.
func (c Component) IsTrusted(i *v1alpha1.Instance) verdict.Verdict {
	return safety.IsTrusted(c.State, i)
}

// Recover implements component.Component: see leaders.Recover.
func (c Component) Recover(i *v1alpha1.Instance, held lease.State) component.Preparation {
	return leaders.Recover(c.State, i, held)
}

// ListedStore returns the store of a member as PD lists it, nil if it does not, or is not to
// be relied upon.
func (c Component) ListedStore(i *v1alpha1.Instance) *pd.Store {
	return storestate.StoreOf(c.State, i).Store
}

// Leave is removal.Leave of the group.
func (c Component) Leave(d component.Disruption, begun time.Time) component.Preparation {
	return removal.Leave(c.State, d, begun)
}

// UndoPreparation implements component.Component: see leaders.UndoPreparation.
func (c Component) UndoPreparation(i *v1alpha1.Instance) []component.Call {
	return leaders.UndoPreparation(c.State, i)
}

// ReasonDead implements component.Component: see removal.ReasonDead.
func (c Component) ReasonDead(i *v1alpha1.Instance) verdict.Reason {
	return removal.ReasonDead(c.State, i)
}

// AllowsRemoval implements component.Component: see removal.AllowsRemoval.
func (c Component) AllowsRemoval(leaving []*v1alpha1.Instance) verdict.Verdict {
	return removal.AllowsRemoval(c.State, leaving)
}

// ChooseBatch implements component.Component: see safety.ChooseBatch.
func (c Component) ChooseBatch(first *v1alpha1.Instance, others []*v1alpha1.Instance) (with []*v1alpha1.Instance, alone verdict.Reason) {
	return safety.ChooseBatch(c.State, first, others)
}

// AllowsBatch implements component.Component: see safety.AllowsBatch.
func (c Component) AllowsBatch(all []*v1alpha1.Instance) verdict.Verdict {
	return safety.AllowsBatch(c.State, all)
}

// AllowsBatchNow implements component.Component: see safety.AllowsBatchNow.
func (c Component) AllowsBatchNow(all []*v1alpha1.Instance) verdict.Verdict {
	return safety.AllowsBatchNow(c.State, all)
}

// BatchQuestion implements component.Component: see safety.BatchQuestion.
func (c Component) BatchQuestion(all []*v1alpha1.Instance) observation.RegionQuestion {
	return safety.BatchQuestion(c.State, all)
}

// AllowsByRegions implements component.Component: see safety.AllowsByRegions.
func (c Component) AllowsByRegions(a observation.RegionAnswer) verdict.Verdict {
	return safety.AllowsByRegions(c.State, a)
}

// Rank implements component.Component: see removal.Rank.
func (c Component) Rank(d component.Disruption) int {
	return removal.Rank(c.State, d)
}

// RestartsWhenDeleted implements component.Component: see departure.RestartsWhenDeleted.
func (c Component) RestartsWhenDeleted(i *v1alpha1.Instance) bool {
	return departure.RestartsWhenDeleted(c.State, i)
}

// IsReplacedWhenDeleted implements component.Component: see departure.IsReplacedWhenDeleted.
func (c Component) IsReplacedWhenDeleted(i *v1alpha1.Instance) bool {
	return departure.IsReplacedWhenDeleted(c.State, i)
}

// RegionsKeepMajority is safety.RegionsKeepMajority of the group.
func (c Component) RegionsKeepMajority(i *v1alpha1.Instance) verdict.Verdict {
	return safety.RegionsKeepMajority(c.State, i)
}

// RegionsAtRisk is safety.RegionsAtRisk of the group.
func (c Component) RegionsAtRisk(i *v1alpha1.Instance) []string {
	return safety.RegionsAtRisk(c.State, i)
}

// StallIfOverdue is safety.StallIfOverdue of the group.
func (c Component) StallIfOverdue(d *component.Disruption, o step.Outcome) step.Outcome {
	return safety.StallIfOverdue(c.State, d, o)
}

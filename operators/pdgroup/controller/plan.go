package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/issuance"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/persisted"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/voting"
	"github.com/tidb-groups/tidb-groups/shared/budget"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// switchAgain is how soon a PD is looked at again whose members are to start with another
// scheme: no watch reports that a status of its own, which that rests on, is stored.
const switchAgain = time.Second

// groupPlan is a group.Plan and what PD alone adds to it.
type groupPlan struct {
	planning.Plan
	// ClusterID to record; empty while there is none.
	ClusterID string
	// Orphan is a member to remove from PD because it has neither Instance nor
	// data; its ID is empty if there is none.
	Orphan pd.Member
	// PeerURLs are to be given to members of PD.
	PeerURLs []membership.PeerURLs
	// Config is what PD lacks of the configuration that it stores.
	Config []persisted.MissingItem
	// Recovery to record; nil while PD was not rebuilt.
	Recovery *v1alpha1.PDRecovery
	// Issuance is what is written so that the certificates of the cluster are there.
	Issuance issuance.Plan
	// Late are Services to apply after a step of a recovery: PD is asked through
	// them, and no step waits for what may be wrong with them.
	Late []*corev1.Service
}

// makePlan decides what to do about a PDGroup. It is pure. While PD is rebuilt from
// one member nothing else is done to the group.
func makePlan(g *v1alpha1.PDGroup, s observation.Snapshot) (groupPlan, error) {
	next, word := recovery.NextRecord(g, s)
	var p groupPlan
	var err error
	if recovery.IsActive(g) {
		p.ClusterID = bootstrap.ClusterID(g, s)
		p.Plan, err = recovery.MakePlan(g, s)
		if err == nil && !g.Spec.Paused {
			// What has changed for the pods comes after the recovery.
			p.Late, _, err = rollout.KeptServices(g, s, component.Rendering{Services: renderServices(g), ServiceInputs: g.Spec.Service}, true)
		}
	} else {
		p, err = planWith(g, s, renderGroup(g, s))
	}
	p.Recovery, p.Outcome = next, step.Worst(word, p.Outcome)
	return p, err
}

// renderGroup is what PD makes of a group's spec.
func renderGroup(g *v1alpha1.PDGroup, s observation.Snapshot) component.Rendering {
	template, files, problems := buildTemplate(g, s.Image)
	foreign := bootstrap.ForeignClaims(g, s)
	if start := membership.MayStart(g, s); !start.IsAllowed() {
		problems = append(problems, start.Reason())
	}
	return withVoters(g, s, component.Rendering{
		Template: template, Problems: problems, Files: files,
		Inputs:         collectInputs(g),
		Services:       renderServices(g),
		ServiceInputs:  g.Spec.Service,
		Gate:           gate.Result{Open: foreign.Kind == step.KindDone, Message: foreign.Message},
		GateReason:     foreign.Reason,
		ReadinessGates: []string{v1alpha1.ConditionJoined, v1alpha1.ConditionHealthy},
		ClaimLoss:      v1alpha1.HoldOnClaimLoss,
		OnlineConfig:   persisted.New(g, s),
		AdjustTemplate: func(slot int32, template *corev1.PodTemplateSpec) {
			before, asked := "", false
			i := s.Instance(names.Instance(g.Name, slot))
			if i != nil {
				before, asked = bootstrap.StartArgument(i)
			}
			initial := bootstrap.StartsAsInitial(g, s, slot, before)
			// A member that is made to bootstrap asks its pod how it starts, from the first pod on and
			// forever, because the pod that runs does. An initial member that an earlier version
			// has made has its argument until its pod is recreated.
			bootstrap.SetArgument(g, template, bootstrap.Startup{Bootstraps: initial, InitialCluster: bootstrap.InitialSlots(g, s), Before: before, Asked: asked || i == nil && initial})
		},
		RollGate: rollout.RollGate(g, s), MaySuspend: verdict.RequireAll(rollout.MaySuspend(g, s), membership.MaySwitch(g, s)),
		Budget: budget.ComponentBudget(g, s, workload.Owner(g), countForBudget(g, s)),
	})
}

// withVoters completes a rendering with what depends on who votes.
func withVoters(g *v1alpha1.PDGroup, s observation.Snapshot, r component.Rendering) component.Rendering {
	r.PreferredSlots, r.Extra = membership.ReturningSlots(g, s), membership.CountExtra(g, s)
	r.CreateLimit = func() (int, string) { return membership.StartLimit(g, s) }
	r.Component, r.ComponentFor = voting.New(g, s), voting.New(g, s).WithView
	return r
}

// planWith plans for a rendering.
func planWith(g *v1alpha1.PDGroup, s observation.Snapshot, r component.Rendering) (groupPlan, error) {
	children, err := group.MakePlan(g, s, r)
	p := groupPlan{Plan: children, ClusterID: bootstrap.ClusterID(g, s)}
	if err == nil && !g.Spec.Paused && len(p.Calls) == 0 && p.Outcome.Kind != step.KindStall {
		p.Orphan, p.PeerURLs = membership.FindOrphan(g, s), membership.WrongPeerURLs(g, s)
	}
	if lost := bootstrap.CheckVanished(g, s); lost.Kind != step.KindDone && g.DeletionTimestamp == nil {
		p.Outcome = step.Worst(lost, p.Outcome)
	}
	if p.Outcome.Kind != step.KindStall {
		p.Config = persisted.New(g, s).MissingItems()
	}
	if !g.Spec.Paused {
		p.Outcome = step.Worst(p.Outcome, bootstrap.ForeignClaims(g, s))
	}
	p.Outcome = step.Worst(p.Outcome, bootstrap.CheckQuorum(g, s), persisted.WaitForItems(p.Config), p.ConfigOutcome, p.EvictionOutcome)
	if due := voting.New(g, s).RecheckDelay(); due > 0 && p.Outcome.Kind == step.KindWait {
		// A second more, because the API keeps whole ones.
		p.Outcome.After = min(p.Outcome.After, due+time.Second)
	}
	if membership.IsSwitching(g) && p.Outcome.Kind == step.KindWait {
		p.Outcome.After = min(p.Outcome.After, switchAgain)
	}
	if own := bootstrap.OwnPD(g, s); !own.IsAllowed() {
		p.Outcome = step.Worst(step.Stall(v1alpha1.ReasonClusterIDMismatch, own.Reason()), p.Outcome)
	}
	return p, err
}

const (
	// ordersDeadline bounds what PD is ordered in one reconcile: to remove a member, to change
	// the members' URLs, or to take what it lacks of its configuration.
	ordersDeadline = 5 * time.Second
)

var _ component.OnlineConfig = persisted.Stored{}

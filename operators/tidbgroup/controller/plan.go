package controller

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/failover"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/initialsql"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqljob"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/upgrade"
	"github.com/tidb-groups/tidb-groups/shared/budget"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/labelling"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/topology"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// lookAgain is how soon a user's object that is not watched is looked for again.
const lookAgain = 2 * time.Second

// groupPlan is a group.Plan and what TiDB alone adds to it.
type groupPlan struct {
	planning.Plan
	// Dependencies is the gate that the group stands before.
	Dependencies gate.Dependencies
	// Labels to give to running servers.
	Labels []labelling.Labelling
	// Upgrade that TiDB is notified of, nil for none; Order is what it is to be notified of
	// now, nil for nothing.
	Upgrade *v1alpha1.TiDBUpgrade
	Order   *statusport.Order
	// RootSecret says that the Secret with root's password is to be there before the
	// first Instance is.
	RootSecret bool
	// SigningSecret says that the Secret with the key of sessions' tokens is to be made.
	SigningSecret bool
	// Configure is what running servers are to take of a changed configuration.
	Configure []settings.Order
	// Registered are the servers that PD's etcd may list, nil while PD is not Ready:
	// no others of the group are to stand there (DB-19).
	Registered map[string]bool
	// SQL is what to do about spec.sql. Nothing else waits for it.
	SQL sqljob.Plan
	// SQLOutcome is how it went to make and delete Jobs of spec.sql.
	SQLOutcome step.Outcome
}

// makePlan decides what to do about a TiDBGroup. It is pure.
func makePlan(g *v1alpha1.TiDBGroup, s snapshot) (groupPlan, error) {
	template, files, problems := buildTemplate(g)
	return planWith(g, s, component.Rendering{Template: template, Problems: problems, Files: files, Inputs: collectInputs(g), Services: renderServices(g), ServiceInputs: g.Spec.Service})
}

// hasServed reports whether a TiDBGroup of the cluster has ever had all its servers Ready
// (DB-02). It is remembered in status.currentRevision, which never goes.
func hasServed(g *v1alpha1.TiDBGroup, s snapshot) bool {
	return g.Status.CurrentRevision != "" || slices.ContainsFunc(s.Groups, func(other v1alpha1.Group) bool {
		return other.GroupKind() == v1alpha1.KindTiDBGroup && other.GetGroupStatus().CurrentRevision != ""
	})
}

// planWith is plan for pods that are rendered already.
func planWith(g *v1alpha1.TiDBGroup, s snapshot, r component.Rendering) (groupPlan, error) {
	open := gate.CheckDependencies(g, s.PDGroup, s.TiKVGroups)
	missing := failover.FindMissing(g, s.Snapshot)
	r.Gate, r.GateReason = open.Result, open.Reason
	if s.PDGroup != nil && hasServed(g, s) && !group.IsResuming(g, s.Snapshot) {
		// Servers that are added to a database that works, or will again, need no other
		// group to be whole: one store of many that is not may be why they are wanted. Those that
		// are resumed would crash until what they need is Ready.
		r.Gate = gate.Result{Open: true}
	}
	if may := initialsql.MayBootstrap(g, s.Groups); r.Gate.Open && !may.IsAllowed() {
		r.Gate, r.GateReason = gate.Result{Message: may.Reason()}, v1alpha1.ReasonWaitingForGroups
	}
	r.ClaimLoss = v1alpha1.RecreateLostClaim
	judge := settings.Judge{Table: statusport.SettingsTable(), Group: g, Policy: g.Spec.ConfigUpdate, Running: s.Running, Now: s.Now}
	r.OnlineConfig = judge
	r.Component = serversOf(g, s, open.Result)
	r.Surge, r.Extra = maxSurge(g), missing.Count
	r.RollGate, r.MaySuspend, r.Budget = rollout.RollGate(g, s.Snapshot), rollout.MaySuspend(g, s.Snapshot), budget.OwnBudget(g)
	if g.Spec.Initialization != nil && g.Status.CurrentRevision == "" && !slices.ContainsFunc(s.Instances, member.WasReady) {
		r.CreateLimit = func() (int, string) {
			return max(1-len(s.Instances), 0), "the first server sets the passwords before another one may take connections"
		}
	}
	noSQL := s.BootstrapSQL != "" && r.Gate.Open
	if noSQL {
		r.Gate, r.GateReason = gate.Result{Message: s.BootstrapSQL}, v1alpha1.ReasonMissingReference
	}
	r.Blocked = keyset.Judge(g, s.Keys)
	children, err := group.MakePlan(g, s.Snapshot, r)
	p := groupPlan{Plan: children, Dependencies: open}
	if noSQL && p.Outcome.Kind == step.KindWait && p.Outcome.Reason == v1alpha1.ReasonMissingReference {
		p.Outcome = step.RetryAfter(lookAgain, p.Outcome.Reason, p.Outcome.Message)
	}
	missing.Mark(p.Instances)
	p.Outcome = missing.Wake(p.Outcome)
	// A server that cannot write its labels to PD says 200, and others never learn of them.
	if pd := gate.PDGroup(g.PDGroupName(), s.PDGroup); pd.Open || pd.Lagging {
		p.Labels = planLabels(g, s)
	}
	p.RootSecret = initialsql.GeneratesRootPassword(g) && len(s.Instances) == 0 && len(p.Instances) > 0
	p.SigningSecret = keyset.NeedsSigningSecret(g, s.Keys.Sessions) && s.PDGroup != nil && g.DeletionTimestamp == nil && !g.Spec.Paused
	p.Upgrade = g.Status.Upgrade
	if err == nil && g.DeletionTimestamp == nil && !g.Spec.Paused {
		p.announce(g, s)
	}
	if g.DeletionTimestamp == nil && !g.Spec.Paused && gate.PDGroup(g.PDGroupName(), s.PDGroup).Open {
		p.Registered = instanceNames(s)
	}
	p.Configure = judge.Orders(p.ConfigUpdates)
	p.Outcome = step.Worst(p.Outcome, p.ConfigOutcome)
	p.SQL = sqljob.MakePlan(g, sqljob.Seen{
		Jobs: s.Jobs, Ends: s.Ends, MayBegin: p.mayBeginSQL(g, s), Image: s.Image, Port: workload.ServicePortNumber(g.Spec.Service, renderPorts()[0]), Now: s.Now,
	})
	return p, err
}

// mayBeginSQL says whether SQL may begin to run.
func (p *groupPlan) mayBeginSQL(g *v1alpha1.TiDBGroup, s snapshot) verdict.Verdict {
	other := upgrade.FindOngoing(s.Groups, s.Siblings, g.Name)
	switch {
	case g.DeletionTimestamp != nil:
		return verdict.Refuse("the group is being deleted")
	case g.Spec.Paused:
		return verdict.Refuse("the group is paused")
	case g.Spec.Suspended:
		return verdict.Refuse("the group is suspended")
	case g.IsClosed():
		return verdict.Refuse("spec.service.closed keeps every client out")
	case !slices.ContainsFunc(s.Instances, member.WasReady):
		return verdict.Refuse("no server of the group serves")
	case p.Upgrade != nil:
		return verdict.Refuse("TiDB holds DDL back until the upgrade to " + p.Upgrade.To + " is over")
	case other != "":
		return verdict.Refuse("TiDB holds DDL back until the upgrade of TiDBGroup " + other + " is over")
	}
	return verdict.Allow()
}

const (
	// announceTimeout is for how long the servers keep their version because TiDB
	// does not accept the notification that an upgrade begins.
	announceTimeout = 2 * time.Minute
	// tellAgain is how soon TiDB is notified again of what it did not accept.
	tellAgain = 5 * time.Second
)

// announce decides what TiDB is notified of in an upgrade: that it begins before the
// first server gets another version, that it is over when none has an older one.
// What is recorded comes first, so that the operator that goes on after a crash ends what
// may have been begun; the same notification twice does no harm to TiDB.
func (p *groupPlan) announce(g *v1alpha1.TiDBGroup, s snapshot) {
	hosts := listServingHosts(s)
	from, to := g.Status.Version, g.Spec.Version
	told, updates := p.Upgrade, p.updatesAnyInstance()
	if told != nil && updates && s.Answer.IsFor(statusport.Finish, describeUpgrade(told)) && s.Answer.Err == nil {
		told = nil // TiDB knows that it is over, or will in a moment: this is another one
	}
	if updates && len(hosts) > 0 && upgrade.NeedsAnnouncement(from, to) && !g.Spec.Suspended {
		switch {
		case told == nil && p.hasUpdatedInstance(s):
			// It has begun without the notification, when no server could accept it.
		case told == nil || told.To != to:
			p.Upgrade = &v1alpha1.TiDBUpgrade{From: from, To: to, State: v1alpha1.UpgradeStarting, Since: metav1.NewTime(s.Now.UTC().Truncate(time.Second))}
			p.hold(step.Wait(v1alpha1.KindTiDBGroup, lookAgain, v1alpha1.ReasonAnnouncingUpgrade, "TiDB is about to be notified of the upgrade from "+from+" to "+to))
			return
		case told.State == v1alpha1.UpgradeStarting:
			p.announceStart(g, s, hosts)
			return
		}
	}
	if told == nil || !p.isRolledOut(s) || len(hosts) == 0 || upgrade.FindOngoing(s.Groups, s.Siblings, g.Name) != "" {
		return
	}
	if answer := p.planOrder(g, s, statusport.Finish, hosts); answer.Kind != step.KindDone {
		p.Outcome = step.Worst(p.Outcome, answer)
		return
	}
	p.Upgrade = nil
}

// announceStart holds the servers' new version back until it is recorded that TiDB has
// accepted the notification that the upgrade begins, or has not for too long.
func (p *groupPlan) announceStart(g *v1alpha1.TiDBGroup, s snapshot, hosts []string) {
	answer := p.planOrder(g, s, statusport.Start, hosts)
	next := *p.Upgrade
	switch late := s.Now.Sub(next.Since.Time) >= announceTimeout; {
	case answer.Kind == step.KindDone:
		next.State = v1alpha1.UpgradeStarted
		answer = step.Wait(v1alpha1.KindTiDBGroup, lookAgain, v1alpha1.ReasonAnnouncingUpgrade, "TiDB was notified of the upgrade from "+next.From+" to "+next.To)
	case late:
		next.State, p.Order = v1alpha1.UpgradeUnannounced, nil
	}
	p.hold(answer)
	p.Upgrade = &next
}

// planOrder returns how far an order is; Done when TiDB has taken it. It plans the
// order if it is to be given.
func (p *groupPlan) planOrder(g *v1alpha1.TiDBGroup, s snapshot, verb statusport.Verb, hosts []string) step.Outcome {
	about := describeUpgrade(p.Upgrade)
	last := s.Answer
	if !last.IsFor(verb, about) {
		last = statusport.Answer{}
	}
	if last.Done && last.Err == nil {
		return step.Done()
	}
	message := fmt.Sprintf("sending POST /upgrade/%s to TiDB (upgrade from %s to %s)", verb, p.Upgrade.From, p.Upgrade.To)
	if last.Verb != "" && !last.Done {
		// It is under way. By the time that it could be given again it may have ended.
		return step.Wait("TiDB", tellAgain, v1alpha1.ReasonAnnouncingUpgrade, message)
	}
	if last.Err != nil {
		message = fmt.Sprintf("TiDB did not accept POST /upgrade/%s (upgrade from %s to %s); retrying: %v", verb, p.Upgrade.From, p.Upgrade.To, last.Err)
		if left := tellAgain - s.Now.Sub(last.At); left > 0 {
			return step.Wait("TiDB", left, v1alpha1.ReasonAnnouncingUpgrade, message)
		}
	}
	p.Order = &statusport.Order{Group: types.NamespacedName{Namespace: g.Namespace, Name: g.Name}, Verb: verb, About: about, Hosts: hosts}
	return step.Wait("TiDB", tellAgain, v1alpha1.ReasonAnnouncingUpgrade, message)
}

// describeUpgrade tells upgrades apart.
func describeUpgrade(u *v1alpha1.TiDBUpgrade) string {
	return u.To + " since " + u.Since.UTC().Format(time.RFC3339)
}

// updatesAnyInstance reports whether the plan gives an Instance the wanted revision.
func (p *groupPlan) updatesAnyInstance() bool {
	return slices.ContainsFunc(p.Instances, p.updatesInstance)
}

// updatesInstance reports whether a change gives an Instance the wanted revision.
func (p *groupPlan) updatesInstance(c planning.InstanceChange) bool {
	return c.Desired.Spec.Revision == p.Target.Hash && (c.Live == nil || c.Live.Spec.Revision != p.Target.Hash)
}

// hasUpdatedInstance reports whether an Instance has the wanted revision.
func (p *groupPlan) hasUpdatedInstance(s snapshot) bool {
	return slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Spec.Revision == p.Target.Hash })
}

// isRolledOut reports whether no server runs anything but the wanted revision.
func (p *groupPlan) isRolledOut(s snapshot) bool {
	return !slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		return i.Status.PodUID != "" && i.Status.Revision != p.Target.Hash || i.DeletionTimestamp == nil && i.Spec.Revision != p.Target.Hash
	})
}

// hold leaves every server at the version that it has, and says why.
func (p *groupPlan) hold(why step.Outcome) {
	p.Instances = slices.DeleteFunc(p.Instances, p.updatesInstance)
	p.Notes = append([]string{why.Message}, p.Notes...)
	p.Outcome = step.Worst(why, p.Outcome)
}

// listServingHosts returns where the servers that serve are reached, the group's own first:
// all of the PDGroup learn what one is notified of.
func listServingHosts(s snapshot) []string {
	var out []string
	for _, i := range s.WithSiblings() {
		if member.WasReady(i) && i.Status.PodIP != "" && i.DeletionTimestamp == nil {
			out = append(out, i.Status.PodIP)
		}
	}
	return out
}

// instanceNames returns the names of the servers that a group has.
func instanceNames(s snapshot) map[string]bool {
	out := map[string]bool{}
	for _, i := range s.Instances {
		out[i.Name] = true
	}
	return out
}

// planLabels finds the running servers that do not have the labels they should.
func planLabels(g *v1alpha1.TiDBGroup, s snapshot) []labelling.Labelling {
	user := map[string]string{}
	for k, v := range g.Spec.ServerLabels {
		user[k] = string(v)
	}
	return labelling.FindMissing(g, s.Instances, s.Labelled, func(i *v1alpha1.Instance) map[string]string {
		return topology.ServerLabels(s.Nodes[i.Status.NodeName], user)
	})
}

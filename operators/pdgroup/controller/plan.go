package controller

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/issuance"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/persisted"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/shared/budget"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// lookAgain is after how long PD is looked at again although its poller, which
// wakes the group up with every change, said nothing.
const lookAgain = time.Minute

// orderPatience is after how long an order to PD is given again whose effect PD
// does not show.
const orderPatience = 5 * time.Second

// switchAgain is how soon a PD is looked at again whose members are to start with another
// scheme: no watch tells that a status of its own, which that rests on, is stored.
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
	Config []persisted.Lack
	// Recovery to record; nil while PD was not rebuilt.
	Recovery *v1alpha1.PDRecovery
	// Issuance is what is written so that the certificates of the cluster are there.
	Issuance issuance.Plan
	// Late are Services to apply after a step of a recovery: PD is asked through
	// them, and no step waits for what may be wrong with them.
	Late []*corev1.Service
}

// plan decides what to do about a PDGroup. It is pure. While PD is rebuilt from
// one member nothing else is done to the group.
func plan(g *v1alpha1.PDGroup, s observation.Snapshot) (groupPlan, error) {
	next, word := recovery.Next(g, s)
	var p groupPlan
	var err error
	if recovery.Active(g) {
		p.ClusterID = bootstrap.ClusterID(g, s)
		p.Plan, err = recovery.Plan(g, s)
		if err == nil && !g.Spec.Paused {
			p.Late, _, err = rollout.KeptServices(g, s, component.Rendering{Inputs: inputs(g), Services: services(g), ServiceInputs: g.Spec.Service})
		}
	} else {
		p, err = planWith(g, s, rendering(g, s))
	}
	p.Recovery, p.Outcome = next, step.Worst(word, p.Outcome)
	return p, err
}

// rendering is what PD makes of a group's spec.
func rendering(g *v1alpha1.PDGroup, s observation.Snapshot) component.Rendering {
	template, files, problems := render(g, s.Image)
	foreign := bootstrap.ForeignClaims(g, s)
	if problem := membership.SwitchProblem(g, s); problem != "" {
		problems = append(problems, problem)
	}
	return voting(g, s, component.Rendering{
		Template: template, Problems: problems, Files: files,
		Inputs:         inputs(g),
		Services:       services(g),
		ServiceInputs:  g.Spec.Service,
		Gate:           gate.Result{Open: foreign.Kind == step.KindDone, Message: foreign.Message},
		GateReason:     foreign.Reason,
		ReadinessGates: []string{v1alpha1.ConditionJoined, v1alpha1.ConditionHealthy},
		ClaimLoss:      v1alpha1.HoldOnClaimLoss,
		OnlineConfig:   storing{g, s},
		AdjustTemplate: func(slot int32, template *corev1.PodTemplateSpec) {
			before, asked := "", false
			i := s.Instance(names.Instance(g.Name, slot))
			if i != nil {
				before, asked = bootstrap.Start(i)
			}
			initial := bootstraps(g, s, slot, before)
			// A member that is made to bootstrap asks its pod how it starts, from the first pod on and
			// for ever, because the pod that runs does. An initial member that an earlier version
			// has made has its argument until its pod is made anew.
			bootstrapOrJoin(g, template, start{bootstraps: initial, initialCluster: initialCluster(g, s), before: before, asked: asked || i == nil && initial})
		},
		RollGate: rollout.RollGate(g, s), MaySuspend: verdict.All(rollout.MaySuspend(g, s), membership.MaySwitch(g, s)),
		Budget: budget.Budget(g, s, workload.Owner(g), counted(g, s)),
	})
}

// counted is how many members a drain takes for there: while one is replaced there is
// one more, and none more may go. Nor may one beside a member whose pod is ready and
// which PD calls unhealthy, such as one that is cut off from the others. The Instances
// keep PD's word while it has no leader.
func counted(g *v1alpha1.PDGroup, s observation.Snapshot) int32 {
	members := max(g.GetReplicas(), int32(len(s.Instances))) //nolint:gosec // a few
	missed := slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		said := i.Status.Conditions
		return meta.IsStatusConditionTrue(said, v1alpha1.ConditionPodReady) && meta.IsStatusConditionTrue(said, v1alpha1.ConditionJoined) &&
			meta.IsStatusConditionFalse(said, v1alpha1.ConditionHealthy)
	})
	if members > 1 && missed {
		members++
	}
	return members
}

// voting completes a rendering with what depends on who votes.
func voting(g *v1alpha1.PDGroup, s observation.Snapshot, r component.Rendering) component.Rendering {
	r.PreferredSlots, r.Extra = membership.Returning(g, s), membership.Extra(g, s)
	r.CreateLimit = func() (int, string) { return membership.Limit(g, s) }
	r.Component, r.ComponentFor = voters{g, s}, voters{g, s}.again
	return r
}

// planWith plans for a rendering.
func planWith(g *v1alpha1.PDGroup, s observation.Snapshot, r component.Rendering) (groupPlan, error) {
	children, err := group.MakePlan(g, s, r)
	p := groupPlan{Plan: children, ClusterID: bootstrap.ClusterID(g, s)}
	if err == nil && !g.Spec.Paused && len(p.Calls) == 0 && p.Outcome.Kind != step.KindStall {
		p.Orphan, p.PeerURLs = membership.Orphan(g, s), membership.WrongPeerURLs(g, s)
	}
	if lost := bootstrap.Vanished(g, s); lost.Kind != step.KindDone && g.DeletionTimestamp == nil {
		p.Outcome = step.Worst(lost, p.Outcome)
	}
	if p.Outcome.Kind != step.KindStall {
		p.Config = storing{g, s}.lacks()
	}
	if !g.Spec.Paused {
		p.Outcome = step.Worst(p.Outcome, bootstrap.ForeignClaims(g, s))
	}
	p.Outcome = step.Worst(p.Outcome, bootstrap.Stuck(g, s), pending(p.Config), p.ConfigOutcome, p.EvictionOutcome)
	if due := (voters{g, s}).due(); due > 0 && p.Outcome.Kind == step.KindWait {
		// A second more, because the API keeps whole ones.
		p.Outcome.After = min(p.Outcome.After, due+time.Second)
	}
	if membership.IsSwitching(g) && p.Outcome.Kind == step.KindWait {
		p.Outcome.After = min(p.Outcome.After, switchAgain)
	}
	if own := bootstrap.OwnPD(g, s); !own.Allowed() {
		p.Outcome = step.Worst(step.Stall(v1alpha1.ReasonClusterIDMismatch, own.Reason()), p.Outcome)
	}
	return p, err
}

// bootstraps reports whether the member of a slot starts as an initial member: each that is
// one before there is a cluster, and afterwards one that has never run. PD lists such a one
// by name and without client URLs, waits for it, and refuses to let it join. While PD does
// not say, an initial member stays one. before is the argument that the member bootstrapped
// with, empty if it has none: it never changes, however many join later.
func bootstraps(g *v1alpha1.PDGroup, s observation.Snapshot, slot int32, before string) bool {
	if !bootstrap.Bootstrapped(g, s) {
		return before != "" || slices.Contains(bootstrap.InitialMembers(g, s), slot)
	}
	if bootstrap.Usable(g, s) {
		member, listed := s.PD.Member(names.Instance(g.Name, slot))
		return listed && member.ClientURL == ""
	}
	return before != ""
}

// initialCluster returns the slots that an initial member lists, of which it is one. Once
// there is a cluster these are the members that PD lists: none joins while an initial
// member has still to start.
func initialCluster(g *v1alpha1.PDGroup, s observation.Snapshot) []int32 {
	if !bootstrap.Bootstrapped(g, s) {
		return bootstrap.InitialCluster(g, s)
	}
	var out []int32
	for _, m := range s.PD.Members {
		if slot, ours := names.Slot(g.Name, m.Name); ours {
			out = append(out, slot)
		}
	}
	slices.Sort(out)
	return out
}

// Prepare implements group.Component: the leader moves to another member and, for
// Remove, the member leaves PD. Each is done when PD says so.
func (v voters) Prepare(d component.Disruption, _ time.Time) component.Preparation {
	name := d.Instance.Name
	if d.Verb == member.Remove {
		if meta.IsStatusConditionTrue(d.Instance.Status.Conditions, v1alpha1.ConditionDrained) && !returned(v.g, v.s, d.Instance) {
			return component.Preparation{Ready: true}
		}
		if !bootstrap.Bootstrapped(v.g, v.s) {
			return v.beforeBootstrap(d.Instance)
		}
		if !bootstrap.Started(d.Instance) {
			return component.Preparation{Ready: true}
		}
	}
	if known := membership.Known(v.g, v.s); !known.Allowed() {
		return waiting(v1alpha1.ReasonUnsafe, "Instance %s stays (%s) until PD says more: %s", name, d.Why, known.Reason())
	}
	m, listed := membership.Of(v.g, v.s, d.Instance)
	if d.Verb == member.Remove && !listed {
		return component.Preparation{Ready: true}
	}
	if d.Verb == member.Remove {
		if may := v.Allows(d); !may.Allowed() {
			return waiting(v1alpha1.ReasonUnsafe, "Instance %s stays (%s): %s", name, d.Why, may.Reason())
		}
	}
	if m.Name == v.s.PD.Leader && len(v.s.PD.Members) > 1 {
		to := v.successor(d, anybody)
		if to == "" {
			return waiting(v1alpha1.ReasonPreparing, "member %s leads PD, and no other member is healthy", name)
		}
		return ordering(component.Call{Verb: component.TransferLeader, Target: to, Instance: name}, v1alpha1.ReasonPreparing, "PD's leader moves from %s to %s", name, to)
	}
	if d.Verb == member.Remove {
		return ordering(component.Call{Verb: component.DeleteMember, Target: m.ID, Instance: name}, v1alpha1.ReasonDraining, "member %s is being removed from PD", name)
	}
	return component.Preparation{Ready: true}
}

func waiting(reason, format string, args ...any) component.Preparation {
	return component.Preparation{Wait: step.Wait("PD", lookAgain, reason, fmt.Sprintf(format, args...))}
}

// ordering waits for the effect of an order to PD.
func ordering(call component.Call, reason, format string, args ...any) component.Preparation {
	return component.Preparation{Calls: []component.Call{call}, Wait: step.Wait("PD", orderPatience, reason, fmt.Sprintf(format, args...))}
}

// beforeBootstrap is how far a deleted Instance is before PD has a cluster ID. One that
// never started is made anew in its slot; one that may have bootstrapped must not
// forget it, and is replaced when the cluster is there.
func (v voters) beforeBootstrap(i *v1alpha1.Instance) component.Preparation {
	switch {
	case bootstrap.Started(i):
		return waiting(v1alpha1.ReasonBootstrapping, "Instance %s was deleted while it bootstraps PD's cluster: it is replaced when the cluster is there", i.Name)
	case bootstrap.Listed(v.g.Status.InitialMembers, i):
		return waiting(v1alpha1.ReasonBootstrapping, "Instance %s is taken off status.initialMembers: it has never started", i.Name)
	}
	return component.Preparation{Ready: true, Stays: true}
}

// anybody may lead when the one that does is stopped.
func anybody(*v1alpha1.Instance) bool { return true }

// successor names the member that leads next after an Instance's: one that is healthy
// and stays, at best none that a person wants to lead nothing, Ready and at the wanted
// revision, and of those the one that has been healthy for longest. fits tells of the
// Instance of one whether it may, nil if it has none. Empty if there is none.
func (v voters) successor(d component.Disruption, fits func(*v1alpha1.Instance) bool) string {
	type candidate struct {
		name  string
		score int
		since time.Time
	}
	var all []candidate
	for _, m := range v.s.PD.Members {
		i := v.s.Instance(m.Name)
		if !m.Healthy || m.Name == d.Instance.Name || m.Name == "" || !fits(i) {
			continue
		}
		c := candidate{name: m.Name}
		if i != nil {
			_, evicted := member.EvictionRequest(i)
			for _, good := range []bool{member.PodStateOf(i) == member.PodReady, i.DeletionTimestamp == nil && !i.Spec.Retire, !evicted, member.IsReady(i), i.Status.Revision == d.Revision} {
				c.score *= 2
				if good {
					c.score++
				}
			}
			if healthy := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionHealthy); healthy != nil {
				c.since = healthy.LastTransitionTime.Time
			}
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return ""
	}
	return slices.MinFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), a.since.Compare(b.since), strings.Compare(a.name, b.name))
	}).name
}

// Recover implements group.Component: the Lease is given back when PD calls the
// member healthy again.
func (v voters) Recover(i *v1alpha1.Instance, _ lease.State) component.Preparation {
	back := membership.Known(v.g, v.s)
	if m, listed := membership.Of(v.g, v.s, i); back.Allowed() && (!listed || !m.Healthy) {
		back = verdict.Refuse("PD does not call it healthy")
	}
	if !back.Allowed() {
		return waiting(v1alpha1.ReasonRecovering, "member %s is coming back: %s", i.Name, back.Reason())
	}
	return component.Preparation{Ready: true}
}

const (
	// configDeadline bounds giving PD what it lacks of its configuration.
	configDeadline = 5 * time.Second
	// configAgain is how soon PD is given again what it has refused: nothing tells when
	// it would take it.
	configAgain = time.Minute
)

// placementRules is the item that TiFlash needs to be true.
const placementRules = "replication.enable-placement-rules"

// storing is the group.Settings of PD: an Instance has the revision of a file that
// differs in stored items alone when PD, which stores them for all members, shows
// them. Until then a pod that is made anew gets the file that is known to be good.
type storing struct {
	g *v1alpha1.PDGroup
	s observation.Snapshot
}

var _ component.OnlineConfig = storing{}

// AppliesOnline implements group.Settings.
func (storing) AppliesOnline(old, wanted map[string]string) verdict.Verdict {
	return persisted.AppliesOnline(configFile, old, wanted)
}

// Progress implements group.Settings. What a member runs with is asked for the file of
// the spec alone: PD has no other one's items.
func (c storing) Progress(_ *v1alpha1.Instance, _ []map[string]string, wanted map[string]string) component.ConfigProgress {
	items := persisted.Items(wanted[configFile])
	if !reflect.DeepEqual(items, persisted.Items(c.g.Spec.Config)) {
		return component.ConfigProgress{Outcome: step.Done()}
	}
	if known := c.known(); !known.Allowed() {
		// A group at rest stays at rest while PD elects a leader.
		if upToDate := meta.FindStatusCondition(c.g.Status.Conditions, v1alpha1.ConditionUpToDate); upToDate != nil &&
			upToDate.Status == "True" && upToDate.ObservedGeneration == c.g.Generation {
			return component.ConfigProgress{Outcome: step.Done()}
		}
		return component.ConfigProgress{Outcome: step.Wait("PD", lookAgain, v1alpha1.ReasonConfigPending, "PD is given its changed configuration when it answers: "+known.Reason())}
	}
	return component.ConfigProgress{Outcome: pending(persisted.Lacks(items, c.s.PD.Config))}
}

// known says whether it is known what PD stores.
func (c storing) known() verdict.Verdict {
	if known := membership.Known(c.g, c.s); !known.Allowed() {
		return known
	}
	if c.s.PD.Config == nil {
		return verdict.Refuse("it has not told its configuration")
	}
	return verdict.Allow()
}

// lacks returns what PD is to be given: the items of the spec that it stores with
// another value, whoever has changed them. Items that the spec does not name are left
// alone.
func (c storing) lacks() []persisted.Lack {
	if c.g.DeletionTimestamp != nil || c.g.Spec.Paused || c.g.Spec.Suspended || recovery.Active(c.g) || !c.known().Allowed() {
		return nil
	}
	return persisted.Lacks(persisted.Items(c.g.Spec.Config), c.s.PD.Config)
}

// pending waits for PD to show some items.
func pending(lacks []persisted.Lack) step.Outcome {
	if len(lacks) == 0 {
		return step.Done()
	}
	var items []string
	for _, l := range lacks {
		items = append(items, fmt.Sprintf("%s (it has %s)", l.Item, orNothing(l.Has)))
	}
	return step.Wait("PD", configAgain, v1alpha1.ReasonConfigPending, "PD is given "+strings.Join(items, ", "))
}

func orNothing(has string) string {
	if has == "" {
		return "none"
	}
	return has
}

// contested says that the spec turns something off that another group turns on; Done
// if it does not.
func (c storing) contested(lacks []persisted.Lack) step.Outcome {
	for _, l := range lacks {
		for _, other := range c.s.Groups {
			if l.Key == placementRules && other.GroupKind() == v1alpha1.KindTiFlashGroup && other.GetDeletionTimestamp() == nil {
				return refuse(c.g, []string{l.Item.String()}, "TiFlashGroup "+other.GetName()+" needs placement rules")
			}
		}
	}
	return step.Done()
}

// refuse says which items PD does not take, and what to do.
func refuse(g *v1alpha1.PDGroup, items []string, answers string) step.Outcome {
	edit := origin.Of(g)
	o := step.Stall(v1alpha1.ReasonConfigRefused, fmt.Sprintf("PD does not take %s (%s): set it to what PD takes, or take it out of %s, and PD keeps what it has: %s",
		strings.Join(items, ", "), answers, edit.Field("config"), edit.Edit()))
	o.After = configAgain
	return o
}

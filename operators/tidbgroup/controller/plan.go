package controller

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/topology"
)

// lookAgain is how soon a user's object that is not watched is looked for again.
const lookAgain = 2 * time.Second

// groupPlan is a group.Plan and what TiDB alone adds to it.
type groupPlan struct {
	group.Plan
	// Dependencies is the gate that the group stands before.
	Dependencies gate.Result
	// DependencyReason names which dependency is missing.
	DependencyReason string
	// Labels to give to running servers.
	Labels []statusport.Labelling
}

// plan decides what to do about a TiDBGroup. It is pure.
func plan(g *v1alpha1.TiDBGroup, s snapshot) (groupPlan, error) {
	template, files, problems := render(g)
	return planWith(g, s, group.Rendering{Template: template, Problems: problems, Files: files, Inputs: inputs(g), Services: services(g)})
}

// planWith is plan for pods that are rendered already.
func planWith(g *v1alpha1.TiDBGroup, s snapshot, r group.Rendering) (groupPlan, error) {
	open, reason := dependencies(g, s)
	missing := missed(g, s)
	r.Gate, r.GateReason = open, reason
	r.ClaimLoss = v1alpha1.RecreateLostClaim
	r.Disrupt = servers{group: g, seen: s.Instances, open: open}
	r.Surge, r.Extra = maxSurge(g), missing.count
	r.RollGate, r.SuspendWait, r.Budget = group.RollGate(g, s.Snapshot), group.SuspendWait(g, s.Snapshot), group.OwnBudget(g)
	noSQL := s.BootstrapSQL != "" && open.Open
	if noSQL {
		r.Gate, r.GateReason = gate.Result{Message: s.BootstrapSQL}, v1alpha1.ReasonMissingReference
	}
	children, err := group.MakePlan(g, s.Snapshot, r)
	p := groupPlan{Plan: children, Dependencies: open, DependencyReason: reason}
	if noSQL && p.Outcome.Kind == step.KindWait && p.Outcome.Reason == v1alpha1.ReasonMissingReference {
		p.Outcome = step.After(lookAgain, p.Outcome.Reason, p.Outcome.Message)
	}
	if missing.next > 0 && p.Outcome.Kind != step.KindDone {
		// Nothing else tells that a server has been missed for long enough.
		p.Outcome = step.Worst(p.Outcome, step.After(missing.next, p.Outcome.Reason, p.Outcome.Message))
	}
	if g.DeletionTimestamp == nil && !g.Spec.Paused && !g.Spec.Suspended {
		p.Labels = labels(g, s)
	}
	return p, err
}

// dependencies is what TiDB needs before it can start: PD, and a store to keep
// its data on.
func dependencies(g *v1alpha1.TiDBGroup, s snapshot) (gate.Result, string) {
	if pd := gate.PDGroup(g.PDGroupName(), s.PDGroup); !pd.Open {
		return pd, v1alpha1.ReasonWaitingForPDGroup
	}
	return gate.AnyTiKVGroup(g.PDGroupName(), s.TiKVGroups), v1alpha1.ReasonWaitingForTiKVGroup
}

// failure is how many servers are to be added for those that do not serve.
type failure struct {
	count int32
	// next is when one more may have to be added; 0 if nothing is expected.
	next time.Duration
}

// missed finds the servers that have not served for as long as spec.failover
// says. Only the oldest spec.replicas servers count: those beyond are additions
// themselves.
func missed(g *v1alpha1.TiDBGroup, s snapshot) failure {
	var out failure
	f := g.Spec.Failover
	if f == nil || g.Spec.Suspended {
		return out
	}
	own := g.GetReplicas()
	for _, i := range s.Instances {
		if i.DeletionTimestamp != nil {
			continue
		}
		if own--; own < 0 {
			break
		}
		if group.InstanceServes(i) || out.count >= f.Max {
			continue
		}
		since := i.CreationTimestamp.Time
		if ready := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			since = ready.LastTransitionTime.Time
		}
		left := f.After.Duration - s.Now.Sub(since)
		switch {
		case left <= 0:
			out.count++
		case out.next == 0 || left < out.next:
			out.next = left
		}
	}
	return out
}

// labels finds the running servers that do not have the labels they should.
func labels(g *v1alpha1.TiDBGroup, s snapshot) []statusport.Labelling {
	user := map[string]string{}
	for k, v := range g.Spec.ServerLabels {
		user[k] = string(v)
	}
	var out []statusport.Labelling
	for _, i := range s.Instances {
		ready := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionPodReady)
		if ready == nil || ready.Status != "True" || i.Status.PodIP == "" || i.DeletionTimestamp != nil {
			continue
		}
		want := topology.ServerLabels(s.Nodes[i.Status.NodeName], user)
		next := statusport.Labelling{
			Instance: i.Namespace + "/" + i.Name, Host: i.Status.PodIP, Labels: want,
			Pod: string(i.Status.PodUID), Since: ready.LastTransitionTime.UTC().Format(time.RFC3339),
		}
		last := s.Labelled[next.Instance]
		if len(want) == 0 || last.Pod == next.Pod && last.Since == next.Since && maps.Equal(want, last.Labels) {
			continue
		}
		out = append(out, next)
	}
	return out
}

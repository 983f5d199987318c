package disruption

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// led is a Component that may stop everybody but PD's leader, and has the leader
// move to b.
type led struct {
	component.Component
	view pd.View
}

func (c led) NeedsLease(component.Disruption) bool { return true }

func (c led) IsNotServing(i *v1alpha1.Instance) bool { return i.Name != c.view.Leader }

func (c led) ReasonDead(i *v1alpha1.Instance) verdict.Reason {
	if i.Name != c.view.Leader {
		return verdict.NewReason("it is gone")
	}
	return verdict.Reason{}
}

func (led) AllowsNow(component.Disruption) verdict.Verdict { return verdict.Allow() }

func (c led) Allows(component.Disruption) verdict.Verdict {
	if c.view.Err != nil {
		return verdict.Refuse("PD does not answer")
	}
	return verdict.Allow()
}

func (c led) Prepare(d component.Disruption, _ time.Time) component.Preparation {
	switch {
	case c.view.Leader == d.Instance.Name:
		return component.Preparation{Calls: []component.Call{{Verb: component.TransferLeader, Target: "b", Instance: d.Instance.Name}}}
	case d.Verb == member.Remove:
		return component.Preparation{Calls: []component.Call{{Verb: component.DeleteMember, Target: "1", Instance: d.Instance.Name}}}
	}
	return component.Preparation{Ready: true}
}

func (c led) Recover(*v1alpha1.Instance, lease.State) component.Preparation {
	return component.Preparation{Ready: c.view.Leader != ""}
}

func TestAnIrreversibleStepRequiresAFreshAnswerOfPD(t *testing.T) {
	a := &v1alpha1.Instance{}
	a.Name = "a"
	then := led{view: pd.View{Leader: "b"}}
	rendering := component.Rendering{Component: then, ComponentFor: func(now pd.View) component.Component { return led{view: now} }}
	restart, remove := component.Disruption{Instance: a, Verb: member.Restart}, component.Disruption{Instance: a, Verb: member.Remove}
	for name, c := range map[string]struct {
		note func(r *Result)
		now  pd.View
		says string
	}{
		"a stop that is still safe": {func(r *Result) {
			recheckPreparation(planner{planning.Inputs{Rendering: rendering}, r}, restart, time.Time{}, then.Prepare(restart, time.Time{}))
		}, pd.View{Leader: "b"}, ""},
		"a stop of who leads by now": {func(r *Result) {
			recheckPreparation(planner{planning.Inputs{Rendering: rendering}, r}, restart, time.Time{}, then.Prepare(restart, time.Time{}))
		}, pd.View{Leader: "a"}, "PD's state has changed"},
		"a stop when PD answers no more": {func(r *Result) {
			recheckPreparation(planner{planning.Inputs{Rendering: rendering}, r}, restart, time.Time{}, then.Prepare(restart, time.Time{}))
		}, pd.View{Err: errors.New("refused")}, "PD does not answer"},
		"a removal of who leads by now": {func(r *Result) {
			recheckPreparation(planner{planning.Inputs{Rendering: rendering}, r}, remove, time.Time{}, then.Prepare(remove, time.Time{}))
		}, pd.View{Leader: "a"}, "PD's state has changed"},
		"a removal that is still safe": {func(r *Result) {
			recheckPreparation(planner{planning.Inputs{Rendering: rendering}, r}, remove, time.Time{}, then.Prepare(remove, time.Time{}))
		}, pd.View{Leader: "b"}, ""},
		"the move of a leader, which can be taken back": {func(r *Result) {
			recheckPreparation(planner{planning.Inputs{Rendering: rendering}, r}, restart, time.Time{}, led{view: pd.View{Leader: "a"}}.Prepare(restart, time.Time{}))
		}, pd.View{}, ""},
		"a member that has recovered": {func(r *Result) {
			recheckRecovery(planner{planning.Inputs{Rendering: rendering}, r}, a, lease.State{})
		}, pd.View{Leader: "b"}, ""},
		"a member that has been lost again": {func(r *Result) {
			recheckRecovery(planner{planning.Inputs{Rendering: rendering}, r}, a, lease.State{})
		}, pd.View{}, "it has not recovered yet"},
		"a member that adds nothing":       {func(r *Result) { recheckNotServing(planner{planning.Inputs{Rendering: rendering}, r}, a) }, pd.View{Leader: "b"}, ""},
		"a member that works again":        {func(r *Result) { recheckNotServing(planner{planning.Inputs{Rendering: rendering}, r}, a) }, pd.View{Leader: "a"}, "it works again"},
		"a member that is dead":            {func(r *Result) { recheckDead(planner{planning.Inputs{Rendering: rendering}, r}, a) }, pd.View{Leader: "b"}, ""},
		"a member that was taken for dead": {func(r *Result) { recheckDead(planner{planning.Inputs{Rendering: rendering}, r}, a) }, pd.View{Leader: "a"}, "it is not dead after all"},
		"a component that does not depend on PD is let be": {func(r *Result) {
			recheckPreparation(planner{planning.Inputs{Rendering: component.Rendering{Component: then}}, r}, restart, time.Time{}, component.Preparation{Ready: true})
		}, pd.View{Leader: "a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key := types.NamespacedName{Namespace: "ns", Name: "basic-pd"}
			env := operator.Env{PD: polling.New(func(types.NamespacedName) (pd.Client, error) { return pdtest.New(c.now), nil })}
			g := &v1alpha1.PDGroup{}
			g.Namespace, g.Name = key.Namespace, key.Name
			var p Result
			c.note(&p)
			o := execution.ConfirmPD(t.Context(), env, g, planning.Plan{Disruptions: p.Disruptions})
			if c.says == "" {
				assert.Equal(t, step.Done(), o)
				return
			}
			assert.Equal(t, step.KindAfter, o.Kind)
			assert.Equal(t, v1alpha1.ReasonUnsafe, o.Reason)
			assert.Contains(t, o.Message, "Instance a is not disrupted: "+c.says)
		})
	}
}

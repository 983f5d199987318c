package group

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// led is a Component that may stop everybody but PD's leader, and has the leader
// move to b.
type led struct {
	Component
	view pd.View
}

func (c led) Leased(Disruption) bool { return true }

func (c led) Spare(i *v1alpha1.Instance) bool { return i.Name != c.view.Leader }

func (c led) Dead(i *v1alpha1.Instance) string {
	if i.Name != c.view.Leader {
		return "it is gone"
	}
	return ""
}

func (led) Transient(Disruption) string { return "" }

func (c led) Safe(Disruption) string {
	if c.view.Err != nil {
		return "PD does not answer"
	}
	return ""
}

func (c led) Prepare(d Disruption, _ time.Time) Preparation {
	switch {
	case c.view.Leader == d.Instance.Name:
		return Preparation{Calls: []Call{{TransferLeader, "b", d.Instance.Name}}}
	case d.Verb == Remove:
		return Preparation{Calls: []Call{{DeleteMember, "1", d.Instance.Name}}}
	}
	return Preparation{Ready: true}
}

func (c led) Recover(*v1alpha1.Instance, lease.State) Preparation {
	return Preparation{Ready: c.view.Leader != ""}
}

func TestWhatCannotBeTakenBackRestsOnWhatPDSaysNow(t *testing.T) {
	a := &v1alpha1.Instance{}
	a.Name = "a"
	then := led{view: pd.View{Leader: "b"}}
	rendering := Rendering{Disrupt: then, Again: func(now pd.View) Component { return led{view: now} }}
	restart, remove := Disruption{Instance: a, Verb: Restart}, Disruption{Instance: a, Verb: Remove}
	for name, c := range map[string]struct {
		note func(p *Plan)
		now  pd.View
		says string
	}{
		"a stop that is still safe":        {func(p *Plan) { p.recheck(rendering, restart, time.Time{}, then.Prepare(restart, time.Time{})) }, pd.View{Leader: "b"}, ""},
		"a stop of who leads by now":       {func(p *Plan) { p.recheck(rendering, restart, time.Time{}, then.Prepare(restart, time.Time{})) }, pd.View{Leader: "a"}, "PD says something else by now"},
		"a stop when PD has fallen silent": {func(p *Plan) { p.recheck(rendering, restart, time.Time{}, then.Prepare(restart, time.Time{})) }, pd.View{Err: errors.New("refused")}, "PD does not answer"},
		"a removal of who leads by now":    {func(p *Plan) { p.recheck(rendering, remove, time.Time{}, then.Prepare(remove, time.Time{})) }, pd.View{Leader: "a"}, "PD says something else by now"},
		"a removal that is still safe":     {func(p *Plan) { p.recheck(rendering, remove, time.Time{}, then.Prepare(remove, time.Time{})) }, pd.View{Leader: "b"}, ""},
		"the move of a leader, which can be taken back": {func(p *Plan) {
			p.recheck(rendering, restart, time.Time{}, led{view: pd.View{Leader: "a"}}.Prepare(restart, time.Time{}))
		}, pd.View{}, ""},
		"a member that has recovered":                      {func(p *Plan) { p.recheckRecovery(rendering, a, lease.State{}) }, pd.View{Leader: "b"}, ""},
		"a member that has been lost again":                {func(p *Plan) { p.recheckRecovery(rendering, a, lease.State{}) }, pd.View{}, "it has not recovered yet"},
		"a member that adds nothing":                       {func(p *Plan) { p.recheckSpare(rendering, a) }, pd.View{Leader: "b"}, ""},
		"a member that works again":                        {func(p *Plan) { p.recheckSpare(rendering, a) }, pd.View{Leader: "a"}, "it works again"},
		"a member that is dead":                            {func(p *Plan) { p.recheckDead(rendering, a) }, pd.View{Leader: "b"}, ""},
		"a member that was taken for dead":                 {func(p *Plan) { p.recheckDead(rendering, a) }, pd.View{Leader: "a"}, "it is not dead after all"},
		"a component that does not depend on PD is let be": {func(p *Plan) { p.recheck(Rendering{Disrupt: then}, restart, time.Time{}, Preparation{Ready: true}) }, pd.View{Leader: "a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key := types.NamespacedName{Namespace: "ns", Name: "basic-pd"}
			env := operator.Env{PD: pd.NewPoller(func(types.NamespacedName) (pd.Client, error) { return pdtest.New(c.now), nil })}
			g := &v1alpha1.PDGroup{}
			g.Namespace, g.Name = key.Namespace, key.Name
			var p Plan
			c.note(&p)
			o := confirmPD(t.Context(), env, g, p)
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

// swept is a Component that takes back what PD shows.
type swept struct {
	calm
	view pd.View
}

func (c swept) Sweep(i *v1alpha1.Instance) []Call {
	if c.view.Evicts("1") {
		return []Call{{StopEvictingLeaders, "1", i.Name}}
	}
	return nil
}

// KV-15: the last answer of PD may be older than the last order to it.
func TestAMarkGoesWhenPDSaysNowThatNothingIsLeft(t *testing.T) {
	begun := pd.View{EvictLeader: []string{"1"}}
	for name, c := range map[string]struct {
		kind string
		now  pd.View
		says bool
	}{
		"nothing is left":       {v1alpha1.KindTiKVGroup, pd.View{}, false},
		"something is":          {v1alpha1.KindTiKVGroup, begun, true},
		"PD is silent":          {v1alpha1.KindTiKVGroup, pd.View{Err: errors.New("no")}, true},
		"and is not waited for": {v1alpha1.KindPDGroup, pd.View{Err: errors.New("no")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var g v1alpha1.Group = &v1alpha1.TiKVGroup{}
			if c.kind == v1alpha1.KindPDGroup {
				g = &v1alpha1.PDGroup{}
			}
			i := kv(0, "a")
			setAnnotation(i, v1alpha1.AnnotationDisruption, string(Restart))
			r := Rendering{Disrupt: swept{}, Again: func(now pd.View) Component { return swept{view: now} }}
			plan := Plan{disrupted: map[string]Verb{}, granted: map[string]bool{}}

			change := resident{live: i, kept: kv(0, "a")}.change(&plan, g, r, removal{}, nil)

			assert.Empty(t, change.Desired.Annotations[v1alpha1.AnnotationDisruption])
			said := ""
			for _, again := range plan.rechecks {
				said += again.still(c.now)
			}
			assert.Equal(t, c.says, said != "", said)
		})
	}
}

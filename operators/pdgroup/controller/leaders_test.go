package controller

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/voting"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// annotated puts an annotation on the Instance of a slot.
func annotated(slot int, key, value string) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) {
		if s.Instances[slot].Annotations == nil {
			s.Instances[slot].Annotations = map[string]string{}
		}
		s.Instances[slot].Annotations[key] = value
	}
}

// unwanted has a user not want the member of a slot to lead.
func unwanted(slot int) func(*observation.Snapshot) {
	return annotated(slot, v1alpha1.AnnotationEvictLeaders, "")
}

func TestOPS01AMemberDoesNotLeadWhileItsInstanceSaysSo(t *testing.T) {
	to := func(name string) []component.Call {
		return []component.Call{{Verb: component.TransferLeader, Target: name, Instance: "basic-pd-0"}}
	}
	told := annotated(0, v1alpha1.AnnotationLeadersEvicted, "true")
	leads := func(name string) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) { s.PD.Leader = name }
	}
	one := func(s *observation.Snapshot) { s.Instances, s.PD.Members = s.Instances[:1], s.PD.Members[:1] }
	const evicting, takeAway = v1alpha1.ReasonEvictingLeaders, "kubectl -n ns annotate instance basic-pd-0 groups.tidb.dev/evict-leaders-"
	for name, c := range map[string]struct {
		members int32
		edit    func(*v1alpha1.PDGroup)
		changes []func(*observation.Snapshot)
		calls   []component.Call
		answer  string
		reason  string
		says    string
	}{
		"it hands the leader on":                            {3, nil, []func(*observation.Snapshot){unwanted(0)}, to("basic-pd-1"), "", evicting, "PD's leader moves from basic-pd-0 to basic-pd-1: annotation groups.tidb.dev/evict-leaders on Instance basic-pd-0"},
		"it does not lead":                                  {3, nil, []func(*observation.Snapshot){unwanted(0), leads("basic-pd-1")}, nil, "true", "", ""},
		"with the request's own words":                      {3, nil, []func(*observation.Snapshot){annotated(0, v1alpha1.AnnotationEvictLeaders, "old node"), leads("basic-pd-1")}, nil, "old node", "", ""},
		"it comes to lead again, and hands it on":           {3, nil, []func(*observation.Snapshot){unwanted(0), told}, to("basic-pd-1"), "true", "", ""},
		"not to one that is not to lead either":             {3, nil, []func(*observation.Snapshot){unwanted(0), unwanted(1)}, to("basic-pd-2"), "", evicting, "to basic-pd-2"},
		"not to one that is not healthy":                    {3, nil, []func(*observation.Snapshot){unwanted(0), func(s *observation.Snapshot) { lives(s, 1, false, true) }}, to("basic-pd-2"), "", "", ""},
		"not to one whose pod is not ready":                 {3, nil, []func(*observation.Snapshot){unwanted(0), unwanted(2), func(s *observation.Snapshot) { lives(s, 1, true, false) }}, nil, "", "", ""},
		"not to one that is being restarted":                {3, nil, []func(*observation.Snapshot){unwanted(0), annotated(1, v1alpha1.AnnotationDisruption, "Restart")}, to("basic-pd-2"), "", evicting, ""},
		"not to one that is about to be":                    {3, nil, []func(*observation.Snapshot){unwanted(0), func(s *observation.Snapshot) { s.Lease = lease.NewState(lease.NewHolder(s.Instances[1]), clock(), 0) }}, to("basic-pd-2"), "", "", ""},
		"not to one that leaves":                            {3, nil, []func(*observation.Snapshot){unwanted(0), unwanted(2), func(s *observation.Snapshot) { s.Instances[1].Spec.Retire = true }}, nil, "", "", ""},
		"not to one that was deleted":                       {3, nil, []func(*observation.Snapshot){unwanted(0), unwanted(2), func(s *observation.Snapshot) { deleted(s, 1, 0) }}, nil, "", "", ""},
		"no other member may":                               {3, nil, []func(*observation.Snapshot){unwanted(0), unwanted(1), unwanted(2)}, nil, "", evicting, takeAway},
		"there is no other member":                          {1, nil, []func(*observation.Snapshot){unwanted(0), one}, nil, "", evicting, takeAway},
		"the leader is unknown while PD does not answer":    {3, nil, []func(*observation.Snapshot){unwanted(0), told, pdUnreachable}, nil, "true", "", ""},
		"the request is gone, and nothing is to be done":    {3, nil, []func(*observation.Snapshot){told}, nil, "", "", ""},
		"a paused group does nothing":                       {3, func(g *v1alpha1.PDGroup) { g.Spec.Paused = true }, []func(*observation.Snapshot){unwanted(0)}, nil, "-", evicting, "next: PD's leader moves"},
		"no other member may lead, though one could before": {3, nil, []func(*observation.Snapshot){unwanted(0), unwanted(1), unwanted(2), told}, nil, "true", evicting, takeAway},
		"nor does a suspended one":                          {3, func(g *v1alpha1.PDGroup) { g.Spec.Suspended = true }, []func(*observation.Snapshot){unwanted(0)}, nil, "", v1alpha1.ReasonSuspended, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored(bootstrapped, replicasOf(c.members))
			if c.edit != nil {
				c.edit(g)
			}
			p := mustPlan(t, g, scene(t, 3, c.changes...))
			assert.Equal(t, c.calls, slices.Concat(p.Calls, p.Evictions))
			if c.reason != "" {
				assert.Equal(t, c.reason, p.Outcome.Reason, p.Outcome.Message)
			}
			assert.Contains(t, p.Outcome.Message, c.says)
			if c.answer == "-" {
				assert.Empty(t, p.Instances)
				return
			}
			at := p.Instances[0].Desired
			require.Equal(t, "basic-pd-0", at.Name)
			assert.Equal(t, c.answer, at.Annotations[v1alpha1.AnnotationLeadersEvicted])
			if c.reason == evicting || c.reason == "" && c.says == "" && len(c.changes) < 2 {
				assert.Empty(t, at.Annotations[v1alpha1.AnnotationDisruption], "nothing is to be taken back in PD")
				assert.Nil(t, p.Lease.Take)
			}
		})
	}
}

// PD-08: the leader is restarted last, also if others are not to lead; and it may hand the
// leader to one that is not to lead if no other one is left.
func TestOPS01ARollRestartsTheLeaderLast(t *testing.T) {
	g := stored(edited)
	s := scene(t, 3, unwanted(0), annotated(0, v1alpha1.AnnotationLeadersEvicted, "true"), func(s *observation.Snapshot) { s.PD.Leader = "basic-pd-1" })
	p := mustPlan(t, g, s)
	require.NotNil(t, p.Lease.Take)
	assert.Equal(t, "basic-pd-0", p.Lease.Take.Instance.Name)
	v := voting.New(g, s)
	assert.Less(t, v.Rank(component.Disruption{Instance: s.Instances[2], Verb: member.Restart}), v.Rank(component.Disruption{Instance: s.Instances[1], Verb: member.Restart}))
	to := func() string {
		return v.Successor(component.Disruption{Instance: s.Instances[1], Verb: member.Restart, Revision: "new"}, voting.FitsAny)
	}
	s.Instances[0].Status.Revision = "new"
	assert.Equal(t, "basic-pd-2", to(), "rather one that has to be restarted again")
	unwanted(2)(&s)
	assert.Equal(t, "basic-pd-0", to(), "rather than none")

	// No member gets the leader in the very plan that chooses it to be restarted.
	s = scene(t, 3, unwanted(2), func(s *observation.Snapshot) { s.PD.Leader = "basic-pd-2" })
	p = mustPlan(t, g, s)
	require.NotNil(t, p.Lease.Take)
	assert.Empty(t, slices.Concat(p.Calls, p.Evictions))
	s.Lease = lease.NewState(lease.NewHolder(p.Lease.Take.Instance), clock(), 0)
	p = mustPlan(t, g, s)
	assert.Equal(t, []component.Call{{Verb: component.TransferLeader, Target: "basic-pd-1", Instance: "basic-pd-2"}}, slices.Concat(p.Calls, p.Evictions))
}

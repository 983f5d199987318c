package group

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// A pause in the middle of something: nothing is done, and what is said is true.
func TestAPausedGroupSaysWhatItWouldDoAndGivesTheLeaseBack(t *testing.T) {
	recovering := step.Wait("PD", member.WaitDeadline, v1alpha1.ReasonRecovering, "store 4 of Instance kv-1 will lead again")
	for name, c := range map[string]struct {
		plan    planning.Plan
		gives   bool
		reason  string
		message string
	}{
		"nothing is left to be done": {planning.Plan{Outcome: step.Done()}, false, "", ""},
		"a member that has recovered gives the Lease back": {planning.Plan{
			Outcome: step.Done(), Disruptions: planning.Disruptions{Lease: planning.LeaseChange{Release: true},
				Rechecks: []planning.Recheck{{Instance: "kv-1", Still: func(pd.View) verdict.Verdict { return verdict.Allow() }}, {Instance: "kv-2", Still: func(pd.View) verdict.Verdict { return verdict.Allow() }}}},
		}, true, "", ""},
		"members of the batch that have recovered too": {planning.Plan{
			Outcome: step.Done(), Disruptions: planning.Disruptions{Lease: planning.LeaseChange{Release: true},
				Rechecks: []planning.Recheck{{Instance: "kv-3", Still: func(pd.View) verdict.Verdict { return verdict.Allow() }}, {Instance: "kv-2", Still: func(pd.View) verdict.Verdict { return verdict.Allow() }}}},
		}, true, "", ""},
		"nor does one of whose batch a member is not to lead yet": {planning.Plan{
			Disruptions: planning.Disruptions{Lease: planning.LeaseChange{Release: true}, Calls: []component.Call{{Verb: component.StopEvictingLeaders, Instance: "kv-3"}}}, Outcome: step.Done(),
		}, false, v1alpha1.ReasonPaused, "paused: set spec.paused to false to go on: kubectl -n ns edit tikvgroup kv"},
		"one of which something is still to be taken back does not": {planning.Plan{
			Disruptions: planning.Disruptions{Lease: planning.LeaseChange{Release: true}, Calls: []component.Call{{Verb: component.StopEvictingLeaders, Instance: "kv-1"}}}, Outcome: step.Done(),
		}, false, v1alpha1.ReasonPaused, "paused: set spec.paused to false to go on: kubectl -n ns edit tikvgroup kv"},
		"one that cannot recover says why": {planning.Plan{
			Disruptions: planning.Disruptions{Calls: []component.Call{{Verb: component.StopEvictingLeaders, Instance: "kv-1"}}}, Outcome: recovering,
		}, false, v1alpha1.ReasonPaused, "paused: set spec.paused to false to go on: kubectl -n ns edit tikvgroup kv; next: store 4 of Instance kv-1 will lead again"},
		"one that comes back by itself is waited for": {planning.Plan{Outcome: recovering}, false, v1alpha1.ReasonRecovering, recovering.Message},
		"no member is said to have left": {planning.Plan{
			Disruptions: planning.Disruptions{Drained: map[string]bool{"kv-1": true}, Waiting: map[string]string{"kv-2": "soon"}}, Notes: []string{"remove kv-1"}, Outcome: step.Done(),
		}, false, v1alpha1.ReasonPaused, "paused: set spec.paused to false to go on: kubectl -n ns edit tikvgroup kv; next: remove kv-1"},
		"the Lease is not taken": {planning.Plan{Disruptions: planning.Disruptions{Lease: planning.LeaseChange{Take: &component.Disruption{Instance: instancetest.Instance(1, "a")}}}, Notes: []string{"take the Lease"}, Outcome: step.Done()},
			false, v1alpha1.ReasonPaused, "paused: set spec.paused to false to go on: kubectl -n ns edit tikvgroup kv; next: take the Lease"},
	} {
		t.Run(name, func(t *testing.T) {
			s := observation.Snapshot{Lease: lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-1", UID: "a"}, Batch: []lease.BatchMember{{Instance: "kv-3"}}}}
			plan := pausePlan(c.plan, &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}, s)
			assert.Equal(t, c.gives, plan.Lease.Release)
			assert.Nil(t, plan.Lease.Take)
			assert.Equal(t, c.reason, plan.Outcome.Reason)
			assert.Equal(t, c.message, plan.Outcome.Message)
			assert.Empty(t, plan.Calls)
			assert.Empty(t, plan.Drained)
			assert.Empty(t, plan.Waiting)
			if c.gives {
				assert.Len(t, plan.Rechecks, 1, "only what the Lease rests on is asked of PD")
			}
		})
	}
}

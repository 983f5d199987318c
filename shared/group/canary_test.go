package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// calm is a component without anything to take back.
type calm struct{ willing }

func (calm) Sweep(*v1alpha1.Instance) []Call { return nil }
func (calm) Dead(*v1alpha1.Instance) string  { return "" }

// GRP-03: who is made new beside a canary counts for it, several at once too.
func TestNewMembersCountForTheCanary(t *testing.T) {
	for name, c := range map[string]struct {
		most int32
		made []bool // at the new revision
		take bool
	}{
		"nobody may have it":                        {0, []bool{false, false, false}, false},
		"the first is the one that is restarted":    {1, []bool{false, false, false}, true},
		"and then as many newcomers as may have it": {2, []bool{true, false, false}, true},
		"all may": {9, []bool{true, true, true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
			g.Spec.PDGroup.Name, g.Spec.Replicas, g.Spec.Disruption = "pd", ptr.To(int32(4)), &v1alpha1.Disruption{UpdateAtMost: &c.most}
			render := func(image string) Rendering {
				r := Rendering{Inputs: image, Disrupt: calm{}, Gate: gate.Result{Open: true}, RollGate: gate.Result{Open: true}}
				r.Template.Spec.NodeName = image
				return r
			}
			old, err := resolve(Snapshot{}, render("old"))
			require.NoError(t, err)
			stored, err := revisionObject(g, old)
			require.NoError(t, err)
			g.Status.CurrentRevision = old.Hash
			serves, err := newInstance(g, render("old"), old, 0)
			require.NoError(t, err)
			serves.UID, serves.Status.PodUID, serves.Status.Revision = "0", "pod", old.Hash
			serves.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}

			plan, err := MakePlan(g, Snapshot{Instances: []*v1alpha1.Instance{serves}, Revisions: []appsv1.ControllerRevision{*stored}}, render("new"))
			require.NoError(t, err)
			var made []bool
			for _, change := range plan.Instances {
				if change.Live == nil {
					made = append(made, change.Desired.Spec.Revision == plan.Target.Hash)
				}
			}
			assert.Equal(t, c.made, made)
			assert.Equal(t, c.take, plan.Lease.Take != nil)
		})
	}
}

// So do those that are restarted at the same time.
func TestCompanionsCountForTheCanary(t *testing.T) {
	s := Snapshot{Instances: []*v1alpha1.Instance{kv(0, "a"), kv(1, "b"), kv(2, "c")}}
	plan := Plan{Target: revision.Target{Hash: "new"}, Lease: LeaseChange{
		Take: &Disruption{Instance: s.Instances[0], Verb: Restart}, Companions: []lease.Companion{{Instance: "kv-2"}},
	}}
	assert.EqualValues(t, 2, updated(plan.foreseen(s), "new"))
}

// spares is a component whose members have all only just been made.
type spares struct{ calm }

func (spares) Spare(*v1alpha1.Instance) bool { return true }

// So do those that add nothing yet, and who is restarted beside them.
func TestMembersThatStartCountForTheCanary(t *testing.T) {
	most := int32(1)
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Disruption, g.Status.CurrentRevision = &v1alpha1.Disruption{UpdateAtMost: &most}, "old"
	s := Snapshot{Now: time.Unix(1800000000, 0)}
	plan := Plan{Target: revision.Target{Hash: "new"}, granted: map[string]bool{}, disrupted: map[string]Verb{}}
	var work []Disruption
	for slot := range int32(3) {
		i := kv(slot, "u")
		i.Spec.Revision, i.CreationTimestamp = "old", metav1.NewTime(s.Now)
		s.Instances = append(s.Instances, i)
		work = append(work, Disruption{Instance: i, Verb: Restart, Revision: "new"})
	}
	r := Rendering{Disrupt: spares{}, RollGate: gate.Result{Open: true}}

	beside := Plan{Target: plan.Target, granted: map[string]bool{}, disrupted: map[string]Verb{"kv-0": Restart}}
	_, held := replaceSpares(&beside, g, s, r, work[1:])
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, held.Reason)
	assert.Empty(t, beside.granted, "the Lease's holder is to have the new revision")

	serving, held := replaceSpares(&plan, g, s, r, work)

	assert.Empty(t, serving)
	assert.Equal(t, map[string]bool{"kv-0": true}, plan.granted)
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, held.Reason)
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, obstacle(&plan, g, s, r, work[1]).Reason)
}

// P7: what all members had before is what a canary is taken back to, though there are
// more that have it than may have a new revision.
func TestACanaryIsTakenBackByRevertingTheEdit(t *testing.T) {
	most := int32(1)
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Disruption, g.Status.CurrentRevision = &v1alpha1.Disruption{UpdateAtMost: &most}, "old"
	s := Snapshot{Instances: []*v1alpha1.Instance{kv(0, "a"), kv(1, "b"), kv(2, "c")}}
	for n, rev := range []string{"old", "old", "new"} {
		s.Instances[n].Spec.Revision = rev
	}
	r := Rendering{RollGate: gate.Result{Open: true}}
	back := Disruption{Instance: s.Instances[2], Verb: Restart}
	on := Disruption{Instance: s.Instances[1], Verb: Restart}
	assert.Equal(t, step.KindDone, putOff(g, s, r, back, "old").Kind)
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, putOff(g, s, r, on, "new").Reason)
	assert.Equal(t, step.KindDone, putOff(g, s, r, on, "third").Kind, "another edit has a canary of its own")
}

// P7: what all have had is not what a canary has while one that has not is being deleted.
func TestTheCurrentRevisionIsThatOfThoseThatAreDeletedToo(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Name, g.UID = "kv", "g"
	g.Status.CurrentRevision = "old"
	s := Snapshot{Instances: []*v1alpha1.Instance{doomed(kv(0, "a")), kv(1, "b")}}
	for n, rev := range []string{"old", "new"} {
		s.Instances[n].Spec.Revision = rev
		s.Instances[n].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	}
	plan := Plan{Target: revision.Target{Hash: "new"}}
	now := func() string {
		return Report(g, s, plan, step.Done(), conditions.New(nil, 1, time.Unix(1800000000, 0)), true).CurrentRevision
	}
	assert.Equal(t, "old", now())
	s.Instances = s.Instances[1:]
	assert.Equal(t, "new", now())
}

// P7: nor is it what one has that has left: its pod may take for ever to stop.
func TestTheCurrentRevisionIsNotThatOfOneThatHasLeft(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
	record := func(image string) (revision.Target, appsv1.ControllerRevision) {
		r := Rendering{Inputs: image}
		r.Template.Spec.NodeName = image
		target, err := resolve(Snapshot{}, r)
		require.NoError(t, err)
		stored, err := revisionObject(g, target)
		require.NoError(t, err)
		return target, *stored
	}
	before, stored := record("old")
	target, _ := record("new")
	g.Status.CurrentRevision = before.Hash
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}
	s := Snapshot{Instances: []*v1alpha1.Instance{doomed(kv(0, "a")), kv(1, "b")}, Revisions: []appsv1.ControllerRevision{stored}}
	for n, hash := range []string{before.Hash, target.Hash} {
		s.Instances[n].Spec.Revision = hash
		s.Instances[n].Status.Conditions = []metav1.Condition{ready}
	}
	plan := Plan{Target: target}
	for _, left := range []bool{false, true} {
		if left {
			s.Instances[0].Status.Conditions = append(s.Instances[0].Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue})
		}
		want := map[bool]string{false: before.Hash, true: target.Hash}[left]
		assert.Equal(t, want, Report(g, s, plan, step.Done(), conditions.New(nil, 1, time.Unix(1800000000, 0)), true).CurrentRevision)
		old, err := running(&plan, g, s)
		require.NoError(t, err)
		assert.Equal(t, left, old == nil, "who is made new is made of what the members run")
	}
	s.Instances = s.Instances[:1]
	old, err := running(&plan, g, s)
	require.NoError(t, err)
	assert.NotNil(t, old, "where all have left, a roll that is put off is still that")
}

// P7: nor is a member whose node does not answer kept from it.
func TestACanaryOnANodeThatDoesNotAnswerIsTakenBack(t *testing.T) {
	most := int32(1)
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Disruption, g.Status.CurrentRevision = &v1alpha1.Disruption{UpdateAtMost: &most}, "old"
	i := kv(0, "a")
	i.Spec.Revision = "new"
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeUnreachable}}
	s, r, d := Snapshot{Instances: []*v1alpha1.Instance{i}}, Rendering{RollGate: gate.Result{Open: true}}, Disruption{Instance: i, Verb: Restart}
	assert.Equal(t, step.KindDone, overtakes(g, s, r, d, "old").Kind)
	i.Spec.Revision = "old"
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, overtakes(g, s, r, d, "new").Reason)
}

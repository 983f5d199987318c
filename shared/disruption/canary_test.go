package disruption

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// starting is a component whose members have all only just been made.
type starting struct{ componenttest.Clean }

func (starting) IsNotServing(*v1alpha1.Instance) bool { return true }

// So do those that add nothing yet, and who is restarted beside them.
func TestMembersThatStartCountForTheCanary(t *testing.T) {
	most := int32(1)
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Disruption, g.Status.CurrentRevision = &v1alpha1.Disruption{UpdateAtMost: &most}, "old"
	s := observation.Snapshot{Now: time.Unix(1800000000, 0)}
	var work []component.Disruption
	for slot := range int32(3) {
		i := instancetest.Instance(slot, "u")
		i.Spec.Revision, i.CreationTimestamp = "old", metav1.NewTime(s.Now)
		s.Instances = append(s.Instances, i)
		work = append(work, component.Disruption{Instance: i, Verb: member.Restart, Revision: "new"})
	}
	r := component.Rendering{Component: starting{}, RollGate: gate.Result{Open: true}}
	in, plan := planning.Inputs{Group: g, Snapshot: s, Rendering: r, Target: revision.Target{Hash: "new"}}, EmptyResult()

	beside := EmptyResult()
	beside.Disrupted["kv-0"] = member.Restart
	_, held := restartNotServing(planner{in, &beside}, work[1:])
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, held.Reason)
	assert.Empty(t, beside.StopPermitted, "the Lease's holder is to have the new revision")

	serving, held := restartNotServing(planner{in, &plan}, work)

	assert.Empty(t, serving)
	assert.Equal(t, map[string]bool{"kv-0": true}, plan.StopPermitted)
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, held.Reason)
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, checkStart(planner{in, &plan}, work[1]).Reason)
}

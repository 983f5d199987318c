package group

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
)

// GRP-03: who is made new beside a canary counts for it, several at once too.
func TestNewMembersCountForTheCanary(t *testing.T) {
	for name, c := range map[string]struct {
		most int32
		made []bool // at the new revision
		take bool
	}{
		"no member may have it":                       {0, []bool{false, false, false}, false},
		"the first is the one that is restarted":      {1, []bool{false, false, false}, true},
		"and then as many new members as may have it": {2, []bool{true, false, false}, true},
		"all may": {9, []bool{true, true, true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
			g.Spec.PDGroup.Name, g.Spec.Replicas, g.Spec.Disruption = "pd", ptr.To(int32(4)), &v1alpha1.Disruption{UpdateAtMost: &c.most}
			render := func(image string) component.Rendering {
				r := component.Rendering{Inputs: image, Component: componenttest.Clean{}, Gate: gate.Result{Open: true}, RollGate: gate.Result{Open: true}}
				r.Template.Spec.NodeName = image
				return r
			}
			old, err := rollout.ResolveTarget(observation.Snapshot{}, render("old"))
			require.NoError(t, err)
			stored, err := rollout.NewRevision(g, old)
			require.NoError(t, err)
			g.Status.CurrentRevision = old.Hash
			serves, err := component.NewInstance(g, render("old"), old, 0)
			require.NoError(t, err)
			serves.UID, serves.Status.PodUID, serves.Status.Revision = "0", "pod", old.Hash
			serves.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}

			plan, err := MakePlan(g, observation.Snapshot{Instances: []*v1alpha1.Instance{serves}, Revisions: []appsv1.ControllerRevision{*stored}}, render("new"))
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

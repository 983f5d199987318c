package controller

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/ticdcgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// rig is what TestMain hands to the tests: an API server with the CRDs. Each test runs
// the operator in a namespace of its own, and plays everybody else.
var rig *stage.Server

func TestMain(m *testing.M) {
	options := stage.Options{Options: controlplane.Options{CRDPaths: []string{"../../../deploy/crds"}}}
	os.Exit(stage.Main(m, options, func(r *stage.Server) { rig = r }))
}

// world is the stage of a TiCDCGroup.
type world struct {
	stage.Subject[*v1alpha1.TiCDCGroup]
}

// begin makes a world with an instance operator, and starts the operator in it.
func begin(t *testing.T) *world {
	t.Helper()
	w := &world{stage.NewSubject(rig.Stage(t), "basic-ticdc", func() *v1alpha1.TiCDCGroup { return &v1alpha1.TiCDCGroup{} })}
	definition := Definition()
	definition.Setup = func(ctx context.Context, env operator.Env) error {
		return newSteps(ctx, env, func(context.Context, string) (string, error) { return statusport.Capture, nil }).component().Setup(env)
	}
	w.Operate(definition, func(f *operator.Flags) { f.Image = ownImage })
	w.PlayInstances(nil)
	w.Follow(&v1alpha1.TiCDCGroupList{}, nil)
	g := sample()
	g.ObjectMeta = w.Meta("basic-ticdc")
	w.Create(g)
	return w
}

func TestCapturesStartTheMomentThatPDAndTiKVAreReady(t *testing.T) {
	w := begin(t)
	g := w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionDependenciesReady, "False/WaitingForPDGroup")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionReady), "PDGroup basic-pd does not exist")
	pd, tikv := w.PDGroup(), w.TiKVGroup()
	w.Create(pd)
	w.WriteGroupStatus(pd, step.Done())
	w.WaitForVerdict(stage.Promptly, v1alpha1.ConditionDependenciesReady, "False/WaitingForTiKVGroup")
	assert.Empty(t, w.Instances())
	w.Create(tikv)
	w.WriteGroupStatus(tikv, step.Done())
	w.WaitUntilConverged()
	assert.Len(t, w.Instances(), 3)
	assert.Equal(t, "Serving", w.Instances()[0].Status.Member.State)

	w.Change(func(g *v1alpha1.TiCDCGroup) { g.Spec.Replicas = ptr.To[int32](1) })
	w.WaitUntilConverged()
	assert.Len(t, w.Instances(), 1)
}

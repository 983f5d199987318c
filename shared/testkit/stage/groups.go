package stage

import (
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// PDGroupName is the PDGroup of every stage.
const PDGroupName = "basic-pd"

// Component returns a spec that will do for any component.
func Component(volumes ...string) v1alpha1.ComponentSpec {
	spec := v1alpha1.ComponentSpec{Version: "v8.5.7"}
	for _, name := range volumes {
		spec.Volumes = append(spec.Volumes, v1alpha1.Volume{Name: name, Storage: resource.MustParse("1Gi")})
	}
	return spec
}

// PDGroup returns a PDGroup for tests in which no operator looks after it.
func PDGroup(namespace string) *v1alpha1.PDGroup {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PDGroupName}}
	g.Spec.ComponentSpec = Component("data")
	return g
}

// TiKVGroup returns a TiKVGroup of that PDGroup, likewise.
func TiKVGroup(namespace string) *v1alpha1.TiKVGroup {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "basic-tikv"}}
	g.Spec.PDGroup.Name = PDGroupName
	g.Spec.ComponentSpec = Component("data")
	return g
}

// PDGroup is PDGroup in the stage's namespace.
func (s *Stage) PDGroup() *v1alpha1.PDGroup { return PDGroup(s.Namespace) }

// TiKVGroup is TiKVGroup in the stage's namespace.
func (s *Stage) TiKVGroup() *v1alpha1.TiKVGroup { return TiKVGroup(s.Namespace) }

// WaitingOutcome is the end of a reconcile that does not get on.
func WaitingOutcome() step.Outcome {
	return step.Wait("the stage", time.Minute, v1alpha1.ReasonWaitingForInstances, "it is starting")
}

// WriteGroupStatus writes what a group's operator says of it: Ready and UpToDate, or the end
// of a reconcile that got less far.
func (s *Stage) WriteGroupStatus(g v1alpha1.Group, end step.Outcome) {
	s.Helper()
	o, ok := g.(client.Object)
	require.True(s, ok)
	require.NoError(s, s.Client.Get(s.Context(), s.Key(g.GetName()), o))
	set := conditions.New(nil, g.GetGeneration(), time.Now())
	set.Finish(conditions.Verdict{Serving: end.Kind == step.KindDone, Summary: "all Instances are ready", Outcome: end})
	status := g.GetGroupStatus()
	status.Conditions, status.ReadyReplicas = set.List(), g.GetReplicas()
	switch x := g.(type) {
	case *v1alpha1.PDGroup:
		x.Status.ClusterID = ClusterID
	case *v1alpha1.TiDBGroup:
		x.Status.Endpoint = x.Name + ":4000"
	}
	require.NoError(s, s.Client.Status().Update(s.Context(), o))
}

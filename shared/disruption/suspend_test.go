package disruption

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

func TestASuspendedGroupGivesTheLeaseBackWhenItsHolderHasStopped(t *testing.T) {
	for name, c := range map[string]struct {
		holder, pod string
		unknown     bool
		component   component.Component
		gives       bool
	}{
		"its pod is gone":                         {"uid", "", false, componenttest.Clean{}, true},
		"its pod still runs":                      {"uid", "pod", false, componenttest.Clean{}, false},
		"something is still to be taken back":     {"uid", "", false, componenttest.ToUndo{}, false},
		"PD says nothing":                         {"uid", "", true, componenttest.Clean{}, false},
		"another group's member holds it":         {"other", "", false, componenttest.Clean{}, false},
		"it has no holder, and is not given back": {"", "", false, componenttest.Clean{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := instancetest.Instance(1, "uid")
			i.Status.PodUID = types.UID(c.pod)
			s := observation.Snapshot{Instances: []*v1alpha1.Instance{i}}
			if c.holder != "" {
				s.Lease = lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: i.Name, UID: types.UID(c.holder)}}
			}
			plan := EmptyResult()
			releaseWhileSuspended(planner{planning.Inputs{Group: &v1alpha1.TiKVGroup{}, Snapshot: s, Rendering: component.Rendering{Component: c.component, DatabaseUnknown: c.unknown}}, &plan})
			assert.Equal(t, c.gives, plan.Lease.Release)
		})
	}
}

// KV-15: the Instance in place of the holder's carries the annotation before the Lease is given
// back, also if a user deletes that one too: only by the annotation PD lets its store lead again.
func TestASuspendedGroupKeepsTheLeaseUntilARecreatedInstanceIsAnnotated(t *testing.T) {
	for name, c := range map[string]struct {
		deleted, annotated, gives bool
	}{
		"it has just been made":                 {false, false, false},
		"it is annotated":                       {false, true, true},
		"it was deleted before it is annotated": {true, false, false},
		"it was deleted after that":             {true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{}
			g.Name = "kv"
			i := instancetest.Instance(1, "new")
			if c.deleted {
				instancetest.MarkDeleted(i)
			}
			if c.annotated {
				member.SetAnnotation(i, v1alpha1.AnnotationDisruption, string(member.Restart))
			}
			s := observation.Snapshot{Instances: []*v1alpha1.Instance{i}, HolderRecreated: true,
				Lease: lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: i.Name, UID: "old"}, Recreating: "kv"}}
			plan := EmptyResult()
			releaseWhileSuspended(planner{planning.Inputs{Group: g, Snapshot: s, Rendering: component.Rendering{Component: componenttest.Clean{}}}, &plan})
			assert.Equal(t, c.gives, plan.Lease.Release)
			assert.Equal(t, !c.annotated, plan.Disrupted[i.Name] == member.Restart)
		})
	}
}

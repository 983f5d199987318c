package observation

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

func TestKV13RegionsAreAskedForBeforeTheLeaseIsTaken(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Status.UpdateRevision = "r1"
	for name, c := range map[string]struct {
		change func(*v1alpha1.Instance)
		due    bool
	}{
		"nothing is to be done":   {func(*v1alpha1.Instance) {}, false},
		"another revision":        {func(i *v1alpha1.Instance) { i.Spec.Revision = "r0" }, true},
		"a deleted member":        {func(i *v1alpha1.Instance) { instancetest.MarkDeleted(i) }, true},
		"a user asked":            {func(i *v1alpha1.Instance) { i.Annotations = map[string]string{v1alpha1.AnnotationRestart: "now"} }, true},
		"it may run with another": {func(i *v1alpha1.Instance) { i.Status.MadeFrom = "r0" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			i := instancetest.Instance(1, "uid")
			i.Spec.Revision = "r1"
			c.change(i)
			assert.Equal(t, c.due, IsRestartDue(g, Snapshot{Instances: []*v1alpha1.Instance{i}}))
		})
	}
}

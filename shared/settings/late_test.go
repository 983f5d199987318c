package settings_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// server is the API server that has the Instances of a stage.
type server struct {
	client.Reader
	*grouptest.Simulation
}

// Get implements client.Reader.
func (s server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	instances := s.Instances()
	at := slices.IndexFunc(instances, func(i *v1alpha1.Instance) bool { return i.Name == key.Name })
	if at < 0 {
		return errors.NewNotFound(schema.GroupResource{Resource: "instances"}, key.Name)
	}
	instances[at].DeepCopyInto(into.(*v1alpha1.Instance)) //nolint:forcetypeassert // nothing else is asked for
	return nil
}

func TestAnUpdatePlannedFromARemovedMarkReachesNoMember(t *testing.T) {
	p := online(t, config{"a": "1"})
	p.edit(func() { p.config = config{"a": "2"} })
	p.reconcile(p.Snapshot()) // marks
	marked := p.Snapshot()
	p.edit(func() { p.config = config{"a": "1"} })
	p.converge()
	assert.Empty(t, p.Instances()[0].Annotations[v1alpha1.AnnotationAppliedConfig])

	p.edit(func() { p.config = config{"a": "2"} })
	posts := p.posts
	plan := p.reconcile(marked)
	assert.NotEmpty(t, plan.ConfigUpdates, "the cache still shows the marks")
	assert.Equal(t, posts, p.posts)
	assert.Equal(t, step.ConflictDelay, plan.Outcome.After, "and is looked at again soon")

	p.edit(func() { p.config = config{"a": "1"} })
	p.converge()
	assert.Empty(t, p.stopped)
}

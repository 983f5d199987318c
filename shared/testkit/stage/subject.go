package stage

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// Subject is the object whose operator a test tries, on its Stage.
type Subject[T client.Object] struct {
	*Stage
	name  string
	empty func() T
}

// NewSubject returns the Subject of a name; empty makes an object of its kind.
func NewSubject[T client.Object](s *Stage, name string, empty func() T) Subject[T] {
	return Subject[T]{Stage: s, name: name, empty: empty}
}

// Get reads the object.
func (s Subject[T]) Get() T {
	s.Helper()
	o := s.empty()
	require.NoError(s, s.Client.Get(s.Context(), s.Key(s.name), o))
	return o
}

// Change changes the object the way a user does.
func (s Subject[T]) Change(change func(T)) {
	s.Helper()
	o := s.Get()
	s.Edit(o, func() { change(o) })
}

// Touch wakes the operator up without changing the spec.
func (s Subject[T]) Touch(note string) {
	s.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"note":%q}}}`, note))
	require.NoError(s, s.Client.Patch(s.Context(), s.Get(), patch))
}

// WaitForVerdict waits for a condition to be as wanted at the current generation, as
// Status/Reason.
func (s Subject[T]) WaitForVerdict(d time.Duration, kind, want string) T {
	s.Helper()
	var o T
	require.EventuallyWithT(s, func(c *assert.CollectT) {
		o = s.Get()
		assert.Equal(c, want, Verdict(o, kind), "%s: %s", kind, Dump(o))
	}, machine.StretchWait(d), Tick)
	return o
}

// WaitUntilConverged waits until the object and everything below it is as asked for.
func (s Subject[T]) WaitUntilConverged() T {
	s.Helper()
	s.WaitForVerdict(Timeout, v1alpha1.ConditionUpToDate, "True/UpToDate")
	return s.WaitForVerdict(Timeout, v1alpha1.ConditionReady, "True/Ready")
}

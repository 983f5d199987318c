package stage

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// Condition waits for a condition of an object, for its current generation, and
// returns it. reason may be empty. The object is as it was read last.
func (s *Stage) Condition(o client.Object, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	s.Helper()
	want := string(status) + "/" + reason
	require.EventuallyWithT(s, func(c *assert.CollectT) {
		assert.NoError(c, s.Client.Get(s.Context(), client.ObjectKeyFromObject(o), o))
		have := Verdict(o, kind)
		assert.True(c, have == want || reason == "" && strings.HasPrefix(have, want), "%s of %s is %s instead of %s\n%s", kind, o.GetName(), have, want, Dump(o))
	}, machine.StretchWait(Timeout), Tick)
	return *meta.FindStatusCondition(conditions.FromObject(o), kind)
}

// WaitForMessage waits until UpToDate of an object is False with a reason and some words.
// The object is as it was read last.
func (s *Stage) WaitForMessage(o client.Object, reason, words string) {
	s.Helper()
	require.EventuallyWithT(s, func(c *assert.CollectT) {
		_ = s.Client.Get(s.Context(), client.ObjectKeyFromObject(o), o)
		assert.Equal(c, "False/"+reason, Verdict(o, v1alpha1.ConditionUpToDate))
		assert.Contains(c, Message(o, v1alpha1.ConditionUpToDate), words)
	}, machine.StretchWait(Timeout), Tick)
}

// NoCondition waits until an object carries no condition of a type, for its
// current generation.
func (s *Stage) NoCondition(o client.Object, kind string) {
	s.Helper()
	require.EventuallyWithT(s, func(c *assert.CollectT) {
		assert.NoError(c, s.Client.Get(s.Context(), client.ObjectKeyFromObject(o), o))
		assert.Equal(c, "none", Verdict(o, kind))
		assert.NotEqual(c, "old", Verdict(o, v1alpha1.ConditionReady), "the operator has seen the current generation")
	}, machine.StretchWait(Timeout), Tick)
}

// Verdict describes a condition of an object at its current generation, as
// Status/Reason.
func Verdict(o client.Object, kind string) string {
	c := meta.FindStatusCondition(conditions.FromObject(o), kind)
	switch {
	case c == nil:
		return "none"
	case c.ObservedGeneration != 0 && c.ObservedGeneration != o.GetGeneration(): // what the database says has none
		return "old"
	}
	return string(c.Status) + "/" + c.Reason
}

// Message returns the message of a condition; empty if there is none.
func Message(o client.Object, kind string) string {
	if c := meta.FindStatusCondition(conditions.FromObject(o), kind); c != nil {
		return c.Message
	}
	return ""
}

// Dump lists an object's conditions.
func Dump(o client.Object) string {
	var out []string
	for _, c := range conditions.FromObject(o) {
		out = append(out, fmt.Sprintf("%s=%s/%s@%d: %s", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message))
	}
	return strings.Join(out, "\n")
}
